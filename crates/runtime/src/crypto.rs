//! The TLS implementation of a process.

/// Makes ring the default of every TLS client and server; a second call changes nothing.
///
/// Each process calls this first: creating a client without it panics.
pub fn install() {
    // An error only means that it is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
