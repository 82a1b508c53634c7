//! Settings of the Mastodon instance.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Settings of the instance.
#[derive(Debug, Clone)]
pub struct MastodonRules {
    /// `public`, `authenticated` or `disabled`, for local and for remote posts.
    pub live: [&'static str; 2],
    pub hashtags: [&'static str; 2],
    /// The only valid token.
    pub token: &'static str,
    /// True if searching requires the token.
    pub closed_search: bool,
    /// Number of requests left; at zero all requests are refused.
    pub requests_left: u32,
    /// Each status must be requested separately.
    pub before_4_3: bool,
}

impl Default for MastodonRules {
    fn default() -> Self {
        Self {
            live: ["public"; 2],
            hashtags: ["public"; 2],
            token: "good",
            closed_search: false,
            requests_left: u32::MAX,
            before_4_3: false,
        }
    }
}

#[derive(Default)]
pub(super) struct Rules(Mutex<MastodonRules>);

impl Rules {
    pub(super) fn get(&self) -> MutexGuard<'_, MastodonRules> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
