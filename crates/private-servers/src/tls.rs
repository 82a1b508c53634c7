//! What a server needs to speak TLS.

/// A certificate and its key, both as PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// With those that it hangs on.
    pub certificate: String,
    pub key: String,
}
