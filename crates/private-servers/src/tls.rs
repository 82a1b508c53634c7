//! TLS settings of a server.

/// A certificate and its key, both as PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// The certificate, with its chain.
    pub certificate: String,
    pub key: String,
}
