//! The provider: its discovery document, its keys, and the exchange of codes.
//!
//! Document and keys are cached, and read again after [`MAX_AGE`]. If that fails, the old ones stay in use. A token that is
//! signed with an unknown key makes the gateway read the keys again, because the provider may have changed them.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use domain::error_chain;
use jsonwebtoken::jwk::Jwk;
use platforms::{Direct, Fetch as _, FetchLimits, Fetched};
use runtime::config::Oidc;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::{sync::Mutex, time::Instant};
use url::{Url, form_urlencoded};

use super::{
    Failure,
    id_token::{self, Claims, Expected, Invalid},
};

const MAX_AGE: Duration = Duration::from_hours(1);
/// Minimum time between two readings, so that neither a provider that is down nor tokens with unknown keys cause many.
const PAUSE: Duration = Duration::from_secs(5);
const LIMITS: FetchLimits = FetchLimits {
    max_bytes: 1 << 20,
    timeout: Duration::from_secs(10),
};
/// Maximum length of an error code of the provider in the log.
const MAX_CODE_CHARS: usize = 60;

pub(super) struct Provider {
    client: Direct,
    issuer: String,
    client_id: String,
    client_secret: Option<SecretString>,
    /// Held during a reading, which other sign-ins wait for.
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    current: Option<(Arc<Document>, Instant)>,
    /// The last reading, if it failed.
    failed: Option<(String, Instant)>,
}

/// The provider's description of itself, and its keys.
pub(super) struct Document {
    pub(super) metadata: Metadata,
    keys: Vec<Jwk>,
}

/// The part of the discovery document that we use.
#[derive(Deserialize)]
pub(super) struct Metadata {
    issuer: String,
    pub(super) authorization_endpoint: Url,
    token_endpoint: Url,
    jwks_uri: Url,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// True if every redirect back to us names the issuer (RFC 9207).
    #[serde(default)]
    pub(super) authorization_response_iss_parameter_supported: bool,
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<Value>,
}

#[derive(Deserialize)]
struct Tokens {
    id_token: String,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
}

impl Provider {
    pub(super) fn new(client: Direct, settings: &Oidc) -> Self {
        id_token::install();
        Self {
            client,
            issuer: settings.issuer.clone(),
            client_id: settings.client_id.clone(),
            client_secret: settings.client_secret.clone(),
            known: Mutex::default(),
        }
    }

    /// Returns the cached document, or reads it.
    pub(super) async fn document(&self) -> Result<Arc<Document>, Failure> {
        self.document_not_older_than(MAX_AGE).await
    }

    async fn document_not_older_than(&self, age: Duration) -> Result<Arc<Document>, Failure> {
        let mut known = self.known.lock().await;
        let current = known.current.clone();
        if let Some((document, read_at)) = &current
            && read_at.elapsed() < age
        {
            return Ok(Arc::clone(document));
        }
        let outcome = match &known.failed {
            Some((reason, at)) if at.elapsed() < PAUSE => Err(reason.clone()),
            _ => self.read().await.map(Arc::new),
        };
        match (outcome, current) {
            (Ok(document), _) => {
                known.failed = None;
                known.current = Some((Arc::clone(&document), Instant::now()));
                Ok(document)
            }
            (Err(reason), old) => {
                if known
                    .failed
                    .as_ref()
                    .is_none_or(|(_, at)| at.elapsed() >= PAUSE)
                {
                    known.failed = Some((reason.clone(), Instant::now()));
                }
                match old {
                    Some((document, _)) => {
                        tracing::warn!(%reason, "the sign-in provider cannot be read again");
                        Ok(document)
                    }
                    None => Err(Failure::Provider(reason)),
                }
            }
        }
    }

    /// Reads discovery document and keys. Returns what is wrong with them.
    async fn read(&self) -> Result<Document, String> {
        let base = self.issuer.trim_end_matches('/');
        let address = format!("{base}/.well-known/openid-configuration");
        let address = Url::parse(&address).map_err(|error| error.to_string())?;
        let metadata: Metadata = self.get(&address, "the discovery document").await?;
        if metadata.issuer != self.issuer {
            return Err("the discovery document is of another issuer".to_owned());
        }
        let endpoints = [
            &metadata.authorization_endpoint,
            &metadata.token_endpoint,
            &metadata.jwks_uri,
        ];
        let is_safe = self.issuer.starts_with("https:");
        if is_safe && endpoints.iter().any(|url| url.scheme() != "https") {
            return Err("an address in the discovery document is not https://".to_owned());
        }
        let set: KeySet = self.get(&metadata.jwks_uri, "the keys").await?;
        // Keys of kinds that we do not know are left out.
        let keys = set.keys.into_iter();
        let keys = keys.filter_map(|key| serde_json::from_value(key).ok());
        Ok(Document {
            metadata,
            keys: keys.collect(),
        })
    }

    async fn get<T: DeserializeOwned>(&self, url: &Url, what: &str) -> Result<T, String> {
        let headers = [("accept", "application/json")];
        let answer = self.client.get(url, &headers, &LIMITS).await;
        let answer = answer.map_err(|error| format!("{what}: {}", error_chain(&error)))?;
        if answer.status != 200 {
            return Err(format!("{what}: answered {}", answer.status));
        }
        serde_json::from_slice(&answer.body).map_err(|error| format!("{what}: {error}"))
    }

    /// Exchanges a code for an ID token, and verifies it.
    pub(super) async fn exchange(
        &self,
        document: &Document,
        code: &str,
        verifier: &str,
        redirect_uri: &str,
        nonce: &str,
    ) -> Result<Claims, Failure> {
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect_uri),
            ("code_verifier", verifier),
        ];
        let secret = self.client_secret.as_ref();
        let secret = secret.map(|secret| secret.expose_secret());
        let basic = secret.filter(|_| document.metadata.takes_basic());
        let basic = basic.map(|secret| basic_authorization(&self.client_id, secret));
        let mut headers = vec![("accept", "application/json")];
        match (&basic, secret) {
            (Some(basic), _) => headers.push(("authorization", basic.as_str())),
            (None, secret) => {
                form.push(("client_id", self.client_id.as_str()));
                form.extend(secret.map(|secret| ("client_secret", secret)));
            }
        }
        let address = &document.metadata.token_endpoint;
        let answer = self
            .client
            .post_form(address, &headers, &form, &LIMITS)
            .await
            .map_err(|error| Failure::Provider(format!("token: {}", error_chain(&error))))?;
        let token = id_token_of(&answer)?;
        let expected = Expected {
            issuer: &self.issuer,
            client_id: &self.client_id,
            nonce,
        };
        let verified = match id_token::verify(&token, &document.keys, &expected) {
            Err(error) if error.may_be_of_a_new_key() => {
                let document = self.document_not_older_than(PAUSE).await?;
                id_token::verify(&token, &document.keys, &expected)
            }
            other => other,
        };
        verified.map_err(|error: Invalid| Failure::Invalid(error_chain(&error)))
    }
}

impl Metadata {
    /// Returns true if the client may authenticate by Basic authentication, the default of the standard.
    fn takes_basic(&self) -> bool {
        let methods = self.token_endpoint_auth_methods_supported.as_ref();
        methods.is_none_or(|methods| methods.iter().any(|method| method == "client_secret_basic"))
    }
}

/// Both parts are encoded like in a form (RFC 6749 2.3.1).
fn basic_authorization(client_id: &str, secret: &str) -> String {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encoded(client_id), encoded(secret));
    format!("Basic {}", BASE64_STANDARD.encode(pair))
}

/// The ID token in the answer to a code. A code that was used before, or is too old, is refused with 400.
fn id_token_of(answer: &Fetched) -> Result<String, Failure> {
    match answer.status {
        200 => {
            let tokens: Result<Tokens, _> = serde_json::from_slice(&answer.body);
            // The error would repeat parts of the answer.
            let tokens = tokens.map_err(|_not_repeated| {
                Failure::Invalid("the provider's answer has no ID token".to_owned())
            });
            Ok(tokens?.id_token)
        }
        status @ 400..=499 => {
            let refusal: Option<Refusal> = serde_json::from_slice(&answer.body).ok();
            let code = refusal.map_or_else(String::new, |refusal| plain(&refusal.error));
            Err(Failure::Invalid(format!(
                "the provider refused the code: {status} {code}"
            )))
        }
        status => Err(Failure::Provider(format!("token: answered {status}"))),
    }
}

/// An error code of the provider, for the log.
pub(super) fn plain(code: &str) -> String {
    let shown = code.chars().filter(char::is_ascii_graphic);
    shown.take(MAX_CODE_CHARS).collect()
}
