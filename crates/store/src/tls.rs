//! TLS to PostgreSQL, as its URL says.
//!
//! `sslmode` and `sslrootcert` are named as libpq names them, but there are two modes only: encrypted, with the
//! server's certificate and name verified, or not encrypted. What libpq does between the two (`prefer`, and
//! `require` without a look at the certificate) protects against no one who can touch the connection: `prefer`
//! and `allow` are refused, and `require` and `verify-ca` verify all.
//!
//! | `sslmode` | |
//! |---|---|
//! | absent | encrypted where there is a `sslrootcert`, else not |
//! | `disable` | not encrypted |
//! | `require`, `verify-ca`, `verify-full` | encrypted and verified |
//!
//! `sslrootcert` is a PEM file with the certificates to trust, and no others; it is read for each connection, so
//! a new one counts without a restart. Absent, or `system`, the public authorities are trusted.

use std::sync::Arc;

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

/// How to reach a server, taken from its URL.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The URL without what is said here.
    pub(crate) url: String,
    pub(crate) mode: Mode,
    /// True if the URL says so, rather than nothing.
    pub(crate) is_said: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Plain,
    /// With the file of certificates to trust, where it is not the public authorities.
    Verified(Option<String>),
}

impl Mode {
    /// TLS mode of the driver.
    pub(crate) fn ssl_mode(&self) -> SslMode {
        match self {
            Self::Plain => SslMode::Disable,
            Self::Verified(_) => SslMode::Require,
        }
    }
}

impl Address {
    /// The error never repeats the URL, which may hold a password.
    pub(crate) fn read(url: &str) -> Result<Self, String> {
        // A password may hold a `?` too.
        let servers = url.find('@').map_or(0, |at| at + 1);
        let Some(question) = url[servers..].find('?') else {
            return Ok(Self {
                url: url.to_owned(),
                mode: Mode::Plain,
                is_said: false,
            });
        };
        let (base, parameters) = url.split_at(servers + question);
        let (mut mode, mut roots, mut rest) = (None, None, Vec::new());
        for parameter in parameters[1..].split('&') {
            match parameter.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value),
                Some(("sslrootcert", value)) => roots = Some(decoded(value)?),
                _ => rest.push(parameter),
            }
        }
        let is_said = mode.is_some() || roots.is_some();
        let file = roots.clone().filter(|roots| roots != "system");
        let mode = match mode {
            None if roots.is_none() => Mode::Plain,
            Some("disable") if roots.is_none() => Mode::Plain,
            Some("disable") => return Err("sslmode=disable beside certificates to trust".into()),
            None | Some("require" | "verify-ca" | "verify-full") => Mode::Verified(file),
            Some(_) => return Err("sslmode is `disable` or `verify-full`".into()),
        };
        let mut url = base.to_owned();
        if !rest.is_empty() {
            url.push('?');
            url.push_str(&rest.join("&"));
        }
        Ok(Self { url, mode, is_said })
    }
}

/// Path with its `%XX` escapes decoded.
fn decoded(text: &str) -> Result<String, String> {
    let wrong = || "sslrootcert is not well encoded".to_owned();
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let byte = match byte {
            b'%' => {
                let digits = [rest.next(), rest.next()].map(|digit| {
                    digit
                        .and_then(|digit| char::from(digit).to_digit(16))
                        .and_then(|digit| u8::try_from(digit).ok())
                });
                match digits {
                    [Some(high), Some(low)] => high << 4 | low,
                    _ => return Err(wrong()),
                }
            }
            byte => byte,
        };
        bytes.push(byte);
    }
    String::from_utf8(bytes).map_err(|_not_utf8| wrong())
}

/// Makes TLS connections that verify the server, with the certificates of `file` or of the public authorities.
///
/// # Errors
/// When the file cannot be read, or holds no certificate.
pub(crate) fn verifying(file: Option<&str>) -> Result<MakeRustlsConnect, String> {
    let mut roots = RootCertStore::empty();
    match file {
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Some(path) => {
            let failed = |reason: String| format!("certificates to trust: {path}: {reason}");
            let certificates = CertificateDer::pem_file_iter(path)
                .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                .map_err(|error| failed(error.to_string()))?;
            for certificate in certificates {
                let added = roots.add(certificate);
                added.map_err(|error| failed(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(failed("holds no certificate".to_owned()));
            }
        }
    }
    let provider = Arc::new(ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    // As PostgreSQL 17 wants to hear where TLS begins without a question before it.
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    Ok(MakeRustlsConnect::new(config))
}

#[cfg(test)]
mod tests {
    use super::{Address, Mode};

    fn read(url: &str) -> Result<(String, Mode), String> {
        Address::read(url).map(|address| (address.url, address.mode))
    }

    #[test]
    fn the_url_says_whether_a_connection_is_encrypted() {
        let verified = |file: &str| Mode::Verified(Some(file.to_owned()));
        for (url, rest, mode) in [
            ("postgres://h/d", "postgres://h/d", Mode::Plain),
            ("postgres://u:p?q@h/d", "postgres://u:p?q@h/d", Mode::Plain),
            (
                "postgres://h/d?sslmode=disable",
                "postgres://h/d",
                Mode::Plain,
            ),
            (
                "postgres://u:p?q@h/d?a=b&sslmode=verify-full&c=d",
                "postgres://u:p?q@h/d?a=b&c=d",
                Mode::Verified(None),
            ),
            (
                "postgres://h/d?sslmode=require&sslrootcert=/a%20b/ca.pem",
                "postgres://h/d",
                verified("/a b/ca.pem"),
            ),
            (
                "postgres://h/d?sslrootcert=/ca",
                "postgres://h/d",
                verified("/ca"),
            ),
            (
                "postgres://h/d?sslrootcert=system",
                "postgres://h/d",
                Mode::Verified(None),
            ),
        ] {
            assert_eq!(read(url), Ok((rest.to_owned(), mode)), "{url}");
        }
    }

    #[test]
    fn what_is_neither_encrypted_nor_not_is_refused() {
        for query in [
            "sslmode=prefer",
            "sslmode=allow",
            "sslmode=",
            "sslmode=disable&sslrootcert=/ca",
            "sslrootcert=%zz",
            "sslrootcert=%f",
        ] {
            assert!(read(&format!("postgres://h/d?{query}")).is_err(), "{query}");
        }
    }
}
