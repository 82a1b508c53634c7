//! The application's token: requested with its id and secret, stored in memory, and renewed shortly before it
//! expires or when Reddit rejects it. The response says how long it lives.

use std::time::{Duration, Instant};

use base64::{Engine, engine::general_purpose::STANDARD};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use tokio::sync::Mutex;
use url::Url;

use crate::{Fetch, FetchLimits, PollError, address::below};

/// A token is renewed this long before it expires, but not before nine tenths of its life.
const BEFORE_END: Duration = Duration::from_mins(1);
const WRONG: &str = "`client_id` and `client_secret` are not those of an application on Reddit";

pub(super) struct Holder {
    url: Url,
    client_id: String,
    client_secret: SecretString,
    held: Mutex<Option<Token>>,
}

struct Token {
    value: SecretString,
    renew_at: Instant,
}

#[derive(Deserialize)]
struct Answer {
    access_token: Option<SecretString>,
    expires_in: Option<u64>,
    error: Option<serde_json::Value>,
}

impl Holder {
    pub(super) fn new(base_url: &Url, client_id: String, client_secret: SecretString) -> Self {
        let mut base = base_url.clone();
        if base.host_str() == Some("oauth.reddit.com") {
            // Tokens come from another host. The host is a domain already, so replacing it cannot fail.
            let _ = base.set_host(Some("www.reddit.com"));
        }
        Self {
            url: below(&base, "api/v1/access_token"),
            client_id,
            client_secret,
            held: Mutex::new(None),
        }
    }

    /// Returns a token that is valid as far as we know.
    pub(super) async fn get(&self, fetch: &dyn Fetch) -> Result<SecretString, PollError> {
        // The lock is held during the request, so that only one of all polls sends it.
        let mut held = self.held.lock().await;
        if let Some(token) = held
            .as_ref()
            .filter(|token| token.renew_at > Instant::now())
        {
            return Ok(token.value.clone());
        }
        *held = None;
        let token = self.ask(fetch).await?;
        Ok(held.insert(token).value.clone())
    }

    /// Returns another token than `refused`, which another poll may have requested already.
    pub(super) async fn renewed(
        &self,
        refused: &SecretString,
        fetch: &dyn Fetch,
    ) -> Result<SecretString, PollError> {
        let mut held = self.held.lock().await;
        let same = |token: &Token| token.value.expose_secret() == refused.expose_secret();
        if held.as_ref().is_some_and(same) {
            *held = None;
        }
        drop(held);
        self.get(fetch).await
    }

    async fn ask(&self, fetch: &dyn Fetch) -> Result<Token, PollError> {
        let secret = self.client_secret.expose_secret();
        let credentials = STANDARD.encode(format!("{}:{secret}", self.client_id));
        let basic = format!("Basic {credentials}");
        let headers = [("authorization", basic.as_str())];
        let form = [("grant_type", "client_credentials")];
        let limits = FetchLimits {
            max_bytes: 64 * 1024,
            ..FetchLimits::default()
        };
        let asked = Instant::now();
        let answer = fetch.post_form(&self.url, &headers, &form, &limits).await?;
        let answer = match answer.success("token") {
            Err(PollError::Unauthorized { status: 401 }) => {
                let (status, advice) = (401, WRONG);
                return Err(PollError::Refused { status, advice });
            }
            Err(PollError::Unauthorized { status }) => {
                let advice = "Reddit blocks `user_agent` or has not approved the application";
                return Err(PollError::Refused { status, advice });
            }
            other => other?,
        };
        let answer: Answer = answer.json()?;
        if answer.error.is_some() {
            let (status, advice) = (400, WRONG);
            return Err(PollError::Refused { status, advice });
        }
        let value = answer.access_token;
        let value = value.filter(|value| is_token(value.expose_secret()));
        let (Some(value), Some(seconds)) = (value, answer.expires_in) else {
            return Err(PollError::Malformed("no token, or no expiry".into()));
        };
        let life = Duration::from_secs(seconds.min(30 * 86_400));
        let until = life.saturating_sub(BEFORE_END).max(life.mul_f64(0.9));
        Ok(Token {
            value,
            renew_at: asked + until,
        })
    }
}

/// Returns true if the text is valid in a header.
fn is_token(text: &str) -> bool {
    (1..=4_096).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
}
