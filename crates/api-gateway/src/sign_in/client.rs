//! The gateway as a client of the provider: its settings, and the cookie of a browser that signs in.

use actix_web::{HttpRequest, http::header::COOKIE};
use platforms::Direct;
use runtime::{Config, config::Oidc};
use store::sessions;

use super::provider::Provider;

/// The gateway's side of sign-ins.
pub(crate) struct SignIns {
    pub(super) settings: Oidc,
    pub(super) provider: Provider,
    pub(super) redirect_uri: String,
    /// Origin of the console.
    pub(super) origin: String,
    /// Name of the cookie. Browsers take one with `__Host-` only from this host, and over HTTPS.
    cookie: &'static str,
}

impl SignIns {
    pub(crate) fn new(config: &Config) -> anyhow::Result<Option<Self>> {
        let Some(settings) = &config.gateway.oidc else {
            return Ok(None);
        };
        let client = Direct::leaving_by(&config.outbound.egress()?, None)?;
        let is_https = settings.console_url.scheme() == "https";
        Ok(Some(Self {
            provider: Provider::new(client, settings),
            redirect_uri: settings.console_url.join("sign-in/callback")?.into(),
            origin: settings.console_url.origin().ascii_serialization(),
            cookie: if is_https {
                "__Host-earshot-sign-in"
            } else {
                "earshot-sign-in"
            },
            settings: settings.clone(),
        }))
    }

    /// The cookie's value in a request.
    pub(super) fn browser(&self, request: &HttpRequest) -> Option<String> {
        let headers = request.headers().get_all(COOKIE);
        let cookies = headers.filter_map(|header| header.to_str().ok());
        let mut pairs = cookies.flat_map(|header| header.split(';'));
        let value = pairs.find_map(|pair| {
            let (name, value) = pair.trim().split_once('=')?;
            (name == self.cookie && !value.is_empty()).then_some(value)
        });
        value.map(str::to_owned)
    }

    /// The header that sets the cookie, or removes it if `value` is empty. The redirect of the provider is a navigation
    /// from another site, which `Strict` would leave without the cookie.
    pub(super) fn cookie(&self, value: &str) -> String {
        let secure = match self.cookie.starts_with("__Host-") {
            true => "; Secure",
            false => "",
        };
        let max_age = match value {
            "" => 0,
            _ => sessions::SIGN_IN_TIME.as_secs(),
        };
        format!(
            "{}={value}; Path=/; Max-Age={max_age}; HttpOnly; SameSite=Lax{secure}",
            self.cookie
        )
    }
}
