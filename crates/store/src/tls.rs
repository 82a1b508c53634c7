//! TLS to PostgreSQL, as its URL says.
//!
//! `sslmode` and `sslrootcert` have the same names as in libpq, but there are only two modes: encrypted, with the
//! server's certificate and name verified, or not encrypted. libpq's modes in between (`prefer`, and `require`
//! without verification) do not protect against anyone who can manipulate the connection. So `prefer` and `allow`
//! are refused, and `require` and `verify-ca` verify everything.
//!
//! | `sslmode` | |
//! |---|---|
//! | absent | encrypted where there is a `sslrootcert`, else not |
//! | `disable` | not encrypted |
//! | `require`, `verify-ca`, `verify-full` | encrypted and verified |
//!
//! `sslrootcert` is a PEM file with the only certificates to trust. It is read for each connection, so a new one
//! applies without a restart. If it is absent or `system`, the public authorities are trusted.

use std::sync::Arc;

use domain::error_chain;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};
use tokio_postgres::{Config, config::SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How to reach a server, taken from its URL.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The URL without the TLS parameters.
    pub(crate) url: String,
    pub(crate) mode: Mode,
    /// True if the URL states the mode explicitly.
    pub(crate) is_said: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Plain,
    /// The file of certificates to trust; `None` for the public authorities.
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
    /// Reads the TLS parameters of a URL. The error never repeats the URL, which may contain a password.
    pub(crate) fn read(url: &str) -> Result<Self, String> {
        // A password may contain a `?` too.
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

    /// Parses the settings for the driver. The error never repeats the URL.
    pub(crate) fn config(&self) -> Result<Config, String> {
        let parsed = self.url.parse();
        parsed.map_err(|error: tokio_postgres::Error| error_chain(&error))
    }
}

/// Decodes the `%XX` escapes of a path.
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

/// Creates TLS connections that verify the server, with the certificates of `file` or of the public authorities.
///
/// # Errors
/// If the file cannot be read, or contains no certificate.
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
    // PostgreSQL 17 requires this if TLS starts without a request before it.
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
    fn sslmode_of_the_url_sets_encryption() {
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
    fn ambiguous_sslmode_is_refused() {
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
