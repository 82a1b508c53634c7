//! TLS, if a certificate and its key are configured: TLS 1.2 and 1.3, HTTP/2 or HTTP/1.1 by ALPN.
//!
//! Both files are read again every [`LOOK_EVERY`]. New content is used for new connections; open ones continue. If
//! the files are invalid or do not belong together, for example because only one has been replaced so far, the old
//! certificate stays in use, and the log reports this once for each content.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use actix_http::Protocol;
use anyhow::Context as _;
use runtime::{Periodic, config::Gateway};
use rustls::{
    ServerConfig,
    crypto::ring::sign::any_supported_type,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use sha2::{Digest as _, Sha256};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::{either::Either, sync::CancellationToken};

use crate::connection::Stream;

pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(2);
/// No certificate with its chain is larger.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

runtime::metrics! {
    static EXPIRY: IntGauge = "earshot_tls_certificate_expiry_timestamp_seconds",
        "When the certificate that is served expires, as Unix time.";
}

/// Acceptor of connections; cheap to clone.
#[derive(Clone)]
pub(crate) struct Tls {
    acceptor: TlsAcceptor,
    served: Arc<Served>,
    handshake_timeout: Duration,
}

/// The certificate in use.
#[derive(Debug)]
struct Served {
    certificate_file: PathBuf,
    key_file: PathBuf,
    certified: RwLock<Arc<CertifiedKey>>,
}

impl ResolvesServerCert for Served {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let certified = self
            .certified
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&certified))
    }
}

impl Tls {
    /// Loads the certificate. Returns `None` if none is configured.
    ///
    /// # Errors
    /// If the configured certificate cannot be used.
    pub(crate) fn new(config: &Gateway) -> anyhow::Result<Option<Self>> {
        if config.tls_certificate_file.is_empty() {
            return Ok(None);
        }
        let certificate_file = PathBuf::from(&config.tls_certificate_file);
        let key_file = PathBuf::from(&config.tls_key_file);
        let files = Files::read(&certificate_file, &key_file)?;
        let served = Arc::new(Served {
            certificate_file,
            key_file,
            certified: RwLock::new(files.certified()?),
        });
        runtime::crypto::install();
        let mut tls = ServerConfig::builder()
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&served) as Arc<dyn ResolvesServerCert>);
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Some(Self {
            acceptor: TlsAcceptor::from(Arc::new(tls)),
            served,
            handshake_timeout: config.head_timeout,
        }))
    }

    /// Performs the handshake, within its time limit.
    pub(crate) async fn accept(&self, io: TcpStream) -> io::Result<(Stream, Protocol)> {
        let shaken = timeout(self.handshake_timeout, self.acceptor.accept(io)).await;
        let stream = shaken.map_err(|_elapsed| io::Error::from(io::ErrorKind::TimedOut))??;
        let protocol = match stream.get_ref().1.alpn_protocol() {
            Some(b"h2") => Protocol::Http2,
            _ => Protocol::Http1,
        };
        Ok((Either::Right(stream), protocol))
    }

    /// Follows changes of the files until `stop`.
    pub(crate) async fn follow(self, stop: CancellationToken) {
        let served = self.served;
        // Last content of the files, valid or not. It is read again at first, because it may have changed since the
        // start.
        let mut looked_at = None;
        let mut rounds = Periodic::new(&stop);
        while rounds.every(LOOK_EVERY).await {
            let at = Arc::clone(&served);
            let read = move || Files::read(&at.certificate_file, &at.key_file);
            let read = tokio::task::spawn_blocking(read).await;
            let read = read.unwrap_or_else(|error| Err(error.into()));
            let content = read.as_ref().map(Files::hash).ok();
            if looked_at != Some(content) {
                let first = looked_at.is_none();
                looked_at = Some(content);
                match read.and_then(|files| files.certified()) {
                    Ok(certified) => {
                        let mut present = served
                            .certified
                            .write()
                            .unwrap_or_else(PoisonError::into_inner);
                        *present = certified;
                        if !first {
                            tracing::info!("the certificate changed and is served from now on");
                        }
                    }
                    Err(error) => {
                        tracing::error!(
                            "the certificate changed and cannot be used, the old one stays: {error:#}"
                        );
                    }
                }
            }
        }
    }
}

/// Content of both files, read at nearly the same moment.
struct Files {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Files {
    fn read(certificate_file: &Path, key_file: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            certificate: read("gateway.tls_certificate_file", certificate_file)?,
            key: read("gateway.tls_key_file", key_file)?,
        })
    }

    fn hash(&self) -> [u8; 32] {
        let certificate = Sha256::digest(&self.certificate);
        Sha256::new()
            .chain_update(certificate)
            .chain_update(&self.key)
            .finalize()
            .into()
    }

    fn certified(&self) -> anyhow::Result<Arc<CertifiedKey>> {
        let chain = CertificateDer::pem_slice_iter(&self.certificate)
            .collect::<Result<Vec<_>, _>>()
            .ok()
            .filter(|chain| !chain.is_empty())
            .context("gateway.tls_certificate_file: holds no PEM certificate")?;
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .ok()
            .context("gateway.tls_key_file: holds no PEM private key")?;
        let key = any_supported_type(&key)
            .ok()
            .context("gateway.tls_key_file: a kind of key that is not supported")?;
        let (_, first) = x509_parser::parse_x509_certificate(&chain[0])
            .ok()
            .context("gateway.tls_certificate_file: not a certificate")?;
        let expiry = first.validity().not_after.timestamp();
        let certified = CertifiedKey::new(chain, key);
        certified
            .keys_match()
            .context("gateway.tls_key_file: not the key of the certificate")?;
        EXPIRY.set(expiry);
        Ok(Arc::new(certified))
    }
}

fn read(setting: &'static str, path: &Path) -> anyhow::Result<Vec<u8>> {
    let shown = path.display();
    let length = fs::metadata(path)
        .with_context(|| format!("{setting}: cannot read {shown}"))?
        .len();
    anyhow::ensure!(length <= MAX_FILE_BYTES, "{setting}: {shown} is too large");
    fs::read(path).with_context(|| format!("{setting}: cannot read {shown}"))
}
