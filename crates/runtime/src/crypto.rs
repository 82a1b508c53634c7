//! The TLS implementation of a process.

/// Makes ring the one that every TLS client and server uses; a second call changes nothing.
///
/// Each process calls this first: a client made without one panics.
pub fn install() {
    // An error only says that it is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
