//! The way out to platforms and models: the operator's proxy and authorities.

use std::sync::{Arc, OnceLock};

use domain::egress::{Egress, Proxy};

use crate::error::FetchError;

/// One for the process: its services have the same configuration.
static EGRESS: OnceLock<Egress> = OnceLock::new();
static DIRECT: Egress = Egress {
    proxy: None,
    authorities: Vec::new(),
};

/// Sets the way out of clients that are built from now on. Only the first call counts.
pub fn leave_by(egress: Egress) {
    // The services of `earshot dev` all call this.
    let _ = EGRESS.set(egress);
}

pub(crate) fn current() -> &'static Egress {
    EGRESS.get().unwrap_or(&DIRECT)
}

/// The proxy in the form of reqwest, which then ignores those of the environment.
pub(crate) fn for_reqwest(proxy: Proxy) -> reqwest::Proxy {
    let authorization = proxy.authorization().map(str::to_owned);
    let url = proxy.url().clone();
    let by_host = reqwest::Proxy::custom(move |target| {
        let host = target.host_str()?;
        proxy.is_used_for(host).then(|| url.clone())
    });
    match authorization.and_then(|value| value.parse().ok()) {
        Some(value) => by_host.custom_http_auth(value),
        None => by_host,
    }
}

/// TLS configuration for a client, independent of a process-wide provider. `protocols` are ALPN names.
pub(crate) fn tls(
    egress: &Egress,
    protocols: &[&[u8]],
) -> Result<rustls::ClientConfig, FetchError> {
    let failed = |error: rustls::Error| FetchError::Failed(error.into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    let authorities = egress.authorities.iter().map(|der| der.clone().into());
    roots.add_parsable_certificates(authorities);
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(config)
}
