//! The descriptor of a kind of platform: all that is known of it without a request, and how its adapter is built.
//!
//! Every other crate asks here instead of comparing names of kinds, so a new kind is one folder and one line in
//! [`crate::registry::KINDS`].

use std::{fmt, sync::Arc};

use domain::Reach;
use secrecy::SecretString;
use url::{Url, form_urlencoded};

use crate::{
    Adapter, AddressKey, Budget, Direct, Fetch, Settings, SettingsError, Source,
    address::below,
    budget::{Budgeted, ReadLeft},
};

/// Maximum number of pages in one reading.
pub(crate) const PAGES: u32 = 400;

/// A kind of platform. `base_url` is the address in the operator's settings, and `what` the second part of a
/// feed's name.
pub struct PlatformKind {
    /// Name in the configuration.
    pub name: &'static str,
    /// Family of its platforms; `None` if the operator must choose it.
    pub source: Option<Source>,
    /// Returns true if a platform accepts a feed `what`, by its form alone.
    pub accepts: fn(base_url: Option<&Url>, what: &str) -> bool,
    /// The feed of all new posts, if a platform has one.
    pub newest: fn(base_url: Option<&Url>) -> Option<&'static str>,
    /// Returns true if the feed of all new posts contains the posts of `what`.
    pub newest_has: fn(what: &str) -> bool,
    /// How far back feeds can be read, according to the platform's documentation and the pages in one reading.
    pub reach: Reach,
    /// The page where people see the feed `what`, without the operator's credentials.
    pub page_of: fn(base_url: Option<&Url>, what: &str) -> Option<Url>,
    /// The feed that a page of the platform belongs to: a post maps to the place that contains it, if the address
    /// includes it, otherwise to all new posts; a user to the user's feed, if there are such feeds. Names are
    /// copied from the address unchanged: check them with [`PlatformKind::accepts`].
    pub feed_of: fn(base_url: Option<&Url>, page: &Url) -> Option<String>,
    /// Returns true if customers name feeds by their web addresses.
    pub takes_any_address: fn(base_url: Option<&Url>) -> bool,
    /// The feed of the comments on the posts of `what`, if there is one. Comments have separate feeds: a
    /// subscriber to the posts gets no comments.
    pub comments_of: fn(what: &str) -> Option<String>,
    /// Returns true if the feed `what` has comments instead of posts.
    pub holds_comments: fn(what: &str) -> bool,
    /// True if the platform's terms demand that what is deleted there is deleted here.
    pub must_erase: bool,
    /// Maximum number of requests per minute where the operator sets none.
    pub requests_per_minute: Option<u32>,
    /// True if `base_url` may be the address of a WebSocket.
    pub is_streamed: bool,
    /// Builds the adapter of one platform.
    pub(crate) build: fn(&Parts<'_>) -> BuildResult,
}

/// An adapter, or the setting that is missing or wrong.
pub(crate) type BuildResult = Result<Arc<dyn Adapter>, SettingsError>;

impl PlatformKind {
    /// A kind with what each one must have.
    pub(crate) const fn new(
        name: &'static str,
        accepts: fn(Option<&Url>, &str) -> bool,
        page_of: fn(Option<&Url>, &str) -> Option<Url>,
        feed_of: fn(Option<&Url>, &Url) -> Option<String>,
        build: fn(&Parts<'_>) -> BuildResult,
    ) -> Self {
        Self {
            name,
            source: None,
            accepts,
            newest: |_| None,
            newest_has: |_| false,
            reach: Reach::Nothing,
            page_of,
            feed_of,
            takes_any_address: |_| false,
            comments_of: |_| None,
            holds_comments: |_| false,
            must_erase: false,
            requests_per_minute: None,
            is_streamed: false,
            build,
        }
    }
}

impl fmt::Debug for PlatformKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for PlatformKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for PlatformKind {}

/// Parts that an adapter is built from.
pub(crate) struct Parts<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) guarded: &'a Arc<dyn Fetch>,
    pub(crate) address_key: &'a AddressKey,
    pub(crate) budget: &'a Arc<dyn Budget>,
}

impl Parts<'_> {
    pub(crate) fn name(&self) -> String {
        self.settings.name.clone()
    }

    /// The error for a setting that is wrong.
    pub(crate) fn wrong(&self, problem: &'static str) -> SettingsError {
        let name = self.name();
        SettingsError::Value { name, problem }
    }

    pub(crate) fn base_url(&self) -> Result<Url, SettingsError> {
        let base_url = self.settings.base_url.clone();
        base_url.ok_or_else(|| self.wrong("base_url is needed"))
    }

    pub(crate) fn token(&self) -> Result<SecretString, SettingsError> {
        let token = self.settings.access.token.clone();
        token.ok_or_else(|| self.wrong("token is needed"))
    }

    /// Fetches from the operator's address, within the budget.
    pub(crate) fn direct(&self) -> Result<Arc<dyn Fetch>, SettingsError> {
        self.direct_reading(|_| None)
    }

    /// Like [`Parts::direct`]; the budget also learns what the platform's headers report.
    pub(crate) fn direct_reading(&self, left: ReadLeft) -> Result<Arc<dyn Fetch>, SettingsError> {
        let client = Direct::new(self.settings.access.user_agent.as_deref());
        let client = client.map_err(|source| SettingsError::Client {
            name: self.name(),
            source,
        })?;
        let client = client.with_redirects(Arc::clone(self.guarded));
        Ok(self.budgeted(Arc::new(client), left))
    }

    /// Fetches from addresses that customers named, within the budget.
    pub(crate) fn guarded(&self) -> Arc<dyn Fetch> {
        self.budgeted(Arc::clone(self.guarded), |_| None)
    }

    fn budgeted(&self, fetch: Arc<dyn Fetch>, left: ReadLeft) -> Arc<dyn Fetch> {
        Arc::new(Budgeted::new(fetch, Arc::clone(self.budget), left))
    }
}

/// An address of `path` on the platform that shows nothing of the operator's.
pub(crate) fn page_below(base_url: Option<&Url>, path: &str) -> Option<Url> {
    let mut url = base_url?.clone();
    url.set_query(None);
    // An address with a host accepts both.
    let _ = (url.set_username(""), url.set_password(None));
    Some(below(&url, path))
}

/// The parts of a page's path.
pub(crate) fn segments(page: &Url) -> Option<Vec<&str>> {
    Some(page.path_segments()?.filter(|s| !s.is_empty()).collect())
}

/// Like [`segments`]; `None` if the page is not on the platform's own host.
pub(crate) fn own_segments<'a>(base_url: Option<&Url>, page: &'a Url) -> Option<Vec<&'a str>> {
    let base = base_url?;
    let is_own =
        base.host() == page.host() && base.port_or_known_default() == page.port_or_known_default();
    segments(page).filter(|_| is_own)
}

/// Returns true if the page is on `domain` or a part of it.
pub(crate) fn is_under(page: &Url, domain: &str) -> bool {
    let under = |host: &str| {
        host.strip_suffix(domain)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    page.host_str().is_some_and(under)
}

pub(crate) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Returns a part of a path with percent-encoding decoded.
pub(crate) fn decoded(segment: &str) -> String {
    let pair = format!("x={}", segment.replace('+', "%2B").replace('&', "%26"));
    let value = form_urlencoded::parse(pair.as_bytes()).next();
    value
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}
