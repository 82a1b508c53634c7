//! The configured platforms, by name.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use domain::{FeedName, Reach};
use url::Url;

use crate::{
    Adapter, AddressKey, Budget, Direct, Fetch, Settings, SettingsError, Source, Unlimited,
    bluesky::{self, Jetstream},
    budget::{Budgeted, ReadLeft},
    discourse::{self, Discourse},
    facebook::Facebook,
    feed::Feeds,
    hackernews::HackerNews,
    lemmy::Lemmy,
    linkedin::LinkedIn,
    mastodon::Mastodon,
    reddit::{self, Reddit},
    x::X,
};

/// The kinds of platforms that have an adapter.
pub const KINDS: [&str; 10] = [
    "bluesky",
    "discourse",
    "facebook",
    "feed",
    "hackernews",
    "lemmy",
    "linkedin",
    "mastodon",
    "reddit",
    "x",
];

/// One configured platform.
#[derive(Clone)]
pub struct Platform {
    pub name: String,
    pub source: Source,
    pub adapter: Arc<dyn Adapter>,
    /// The operator's interval, used exactly; without it, the adapter's default is the start value.
    pub poll_interval: Option<Duration>,
}

impl Platform {
    /// Poll interval for a feed without statistics.
    #[must_use]
    pub fn interval(&self) -> Duration {
        self.poll_interval
            .unwrap_or_else(|| self.adapter.default_interval())
    }

    /// The feed of all new posts, if the platform has one.
    #[must_use]
    pub fn newest_feed(&self) -> Option<FeedName> {
        let what = NEWEST.iter().find(|what| self.adapter.accepts(what))?;
        format!("{}:{what}", self.name).parse().ok()
    }
}

/// Names of the feeds of all new posts on a platform.
const NEWEST: [&str; 4] = ["newest", "latest", bluesky::JETSTREAM, "public"];

/// Returns true if `what` is the feed of all new posts on a platform, and not one that a customer has named.
#[must_use]
pub fn is_newest(what: &str) -> bool {
    NEWEST.contains(&what)
}

/// All configured platforms.
#[derive(Clone, Default)]
pub struct Platforms {
    by_name: BTreeMap<String, Platform>,
}

impl Platforms {
    /// Builds each platform's adapter. `guarded` fetches addresses that the operator did not name: targets of
    /// redirects, and the addresses of feeds on platforms of kind `feed` without a `base_url`. A random key
    /// hashes these addresses in ids of posts.
    ///
    /// # Errors
    /// [`SettingsError`] naming the platform and what is wrong with it.
    pub fn from_settings(
        settings: &[Settings],
        guarded: &Arc<dyn Fetch>,
    ) -> Result<Self, SettingsError> {
        Self::with_budgets(settings, guarded, &AddressKey::random(), |_| {
            Arc::new(Unlimited)
        })
    }

    /// Like [`Platforms::from_settings`], with the installation's `address_key`. Requests to a platform use the
    /// budget that is created for it.
    ///
    /// # Errors
    /// [`SettingsError`] naming the platform and what is wrong with it.
    pub fn with_budgets(
        settings: &[Settings],
        guarded: &Arc<dyn Fetch>,
        address_key: &AddressKey,
        budget: impl Fn(&Settings) -> Arc<dyn Budget>,
    ) -> Result<Self, SettingsError> {
        let mut by_name = BTreeMap::new();
        for one in settings {
            let platform = build(one, guarded, address_key, &budget(one))?;
            if by_name.insert(one.name.clone(), platform).is_some() {
                return Err(SettingsError::Duplicate(one.name.clone()));
            }
        }
        Ok(Self { by_name })
    }

    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Platform> {
        self.by_name.get(name)
    }

    /// The platform of `feed`, if it is configured and accepts such a feed.
    #[must_use]
    pub fn of_feed(&self, feed: &FeedName) -> Option<&Platform> {
        self.get(feed.platform())
            .filter(|platform| platform.adapter.accepts(feed.what()))
    }

    /// The feed of all new posts on the platform `name`.
    #[must_use]
    pub fn newest_feed(&self, name: &str) -> Option<FeedName> {
        self.get(name)?.newest_feed()
    }

    /// The platforms in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Platform> {
        self.by_name.values()
    }
}

/// Returns true if a platform of `kind` accepts a feed `what`, by its form alone, same as its adapter's
/// [`Adapter::accepts`]. For callers that have no adapter and must not send requests. An unknown kind accepts
/// anything.
#[must_use]
pub fn accepts(kind: &str, base_url: Option<&Url>, what: &str) -> bool {
    match kind {
        "hackernews" => crate::hackernews::accepts(what),
        "lemmy" => crate::lemmy::accepts(what),
        "discourse" => crate::discourse::accepts(what),
        "reddit" => crate::reddit::accepts(what),
        "feed" => crate::feed::address(base_url, what).is_some(),
        "linkedin" => crate::linkedin::accepts(what),
        "facebook" => crate::facebook::accepts(what),
        "bluesky" => bluesky::accepts(what),
        "mastodon" => crate::mastodon::accepts(what),
        "x" => crate::x::accepts(what),
        _ => true,
    }
}

/// How far back feeds of a platform of `kind` can be read, according to the platform's documentation and the
/// pages in one reading. For an unknown kind: not at all.
#[must_use]
pub fn reach(kind: &str) -> Reach {
    /// Maximum number of pages in one reading.
    const PAGES: u32 = 400;
    match kind {
        // Its search is by time.
        "hackernews" => Reach::Time(Duration::MAX),
        "lemmy" => Reach::Posts(PAGES * 50),
        "discourse" => Reach::Posts(PAGES * 30),
        // No listing goes further back.
        "reddit" => Reach::Posts(1_000),
        "mastodon" => Reach::Posts(PAGES * 40),
        // The limit of recent search.
        "x" => Reach::Time(Duration::from_hours(24 * 7)),
        "linkedin" | "facebook" => Reach::Posts(PAGES * 25),
        // A stream, and documents with an unknown number of posts.
        _ => Reach::Nothing,
    }
}

/// The page where people see the feed `what` of a platform of `kind`, without the operator's credentials.
#[must_use]
pub fn page_of(kind: &str, base_url: Option<&Url>, what: &str) -> Option<Url> {
    let below = |path: &str| {
        let mut url = base_url?.clone();
        url.set_query(None);
        // An address with a host accepts both.
        let _ = (url.set_username(""), url.set_password(None));
        Some(crate::hackernews::below(&url, path))
    };
    let at = |url: String| Url::parse(&url).ok();
    match kind {
        "hackernews" => {
            let list = if what == "comments" {
                "newcomments"
            } else {
                what
            };
            at(format!("https://news.ycombinator.com/{list}"))
        }
        "lemmy" => match what {
            "newest" | "comments" => below(""),
            list if holds_comments(kind, list) => below(list.strip_suffix("/comments")?),
            community => below(community),
        },
        "discourse" => below(if what == "posts" { "latest" } else { what }),
        "reddit" if holds_comments(kind, what) => at(format!("https://www.reddit.com/{what}/")),
        "reddit" => at(format!("https://www.reddit.com/{what}/new/")),
        "bluesky" => at("https://bsky.app/".to_owned()),
        "mastodon" => match what.strip_prefix("tag/") {
            Some(tag) => below(&format!("tags/{tag}")),
            None => below("public"),
        },
        "x" => {
            let mut url = at("https://x.com/search".to_owned())?;
            let query = what.strip_prefix("search/").unwrap_or(what);
            url.query_pairs_mut()
                .append_pair("q", query)
                .append_pair("f", "live");
            Some(url)
        }
        "linkedin" => {
            let id = what.strip_prefix("organization/")?;
            at(format!("https://www.linkedin.com/company/{id}/posts/"))
        }
        "facebook" => at(format!(
            "https://www.facebook.com/{}",
            what.strip_prefix("page/")?
        )),
        "feed" if base_url.is_some() => below("").map(|mut url| {
            url.set_path(base_url.map_or("/", Url::path));
            url
        }),
        "feed" => at(what.to_owned()),
        _ => None,
    }
}

/// The feed of the comments on the posts of `what`, if a platform of `kind` has one. Comments have separate
/// feeds: a subscriber to the posts gets no comments.
#[must_use]
pub fn comments_of(kind: &str, what: &str) -> Option<String> {
    if holds_comments(kind, what) {
        return None;
    }
    match (kind, what) {
        // The comment does not say on which list its post is.
        ("hackernews", _) | ("lemmy", "newest") => Some("comments".to_owned()),
        ("lemmy" | "reddit", place) => Some(format!("{place}/comments")),
        // There is no such list for a single category.
        ("discourse", "latest") => Some("posts".to_owned()),
        _ => None,
    }
}

/// Returns true if the feed `what` of a platform of `kind` has comments instead of posts.
#[must_use]
pub fn holds_comments(kind: &str, what: &str) -> bool {
    match kind {
        "hackernews" => what == "comments",
        // A community may have this name too.
        "lemmy" | "reddit" => match what.split_once('/') {
            Some((_, place)) => place.ends_with("/comments"),
            None => what == "comments",
        },
        "discourse" => what == "posts",
        _ => false,
    }
}

/// Returns true if the feed of all new posts on a platform of `kind` contains the posts of `what`.
#[must_use]
pub fn newest_has(kind: &str, what: &str) -> bool {
    match kind {
        "hackernews" | "bluesky" | "discourse" => true,
        // An instance's own feed has only its own communities.
        "lemmy" => !what.contains('@'),
        _ => false,
    }
}

fn build(
    settings: &Settings,
    guarded: &Arc<dyn Fetch>,
    address_key: &AddressKey,
    budget: &Arc<dyn Budget>,
) -> Result<Platform, SettingsError> {
    let name = settings.name.clone();
    if !FeedName::is_platform_name(&name) {
        return Err(SettingsError::Name(name));
    }
    let value = |problem| SettingsError::Value {
        name: name.clone(),
        problem,
    };
    let web = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    let stream = |url: &Url| {
        settings.kind == "bluesky" && matches!(url.scheme(), "ws" | "wss") && url.has_host()
    };
    let is_good = settings.base_url.iter().all(|url| web(url) || stream(url))
        && settings.items_url.iter().all(web);
    if !is_good {
        return Err(value("base_url and items_url must be http or https"));
    }
    if settings.poll_interval == Some(Duration::ZERO) {
        return Err(value("poll_interval must be longer than zero"));
    }
    let budgeted = |fetch: Arc<dyn Fetch>, left: ReadLeft| -> Arc<dyn Fetch> {
        Arc::new(Budgeted::new(fetch, Arc::clone(budget), left))
    };
    let direct_reading = |left: ReadLeft| -> Result<Arc<dyn Fetch>, SettingsError> {
        let client = Direct::new(settings.access.user_agent.as_deref());
        let client = client.map_err(|source| SettingsError::Client {
            name: name.clone(),
            source,
        })?;
        let client = client.with_redirects(Arc::clone(guarded));
        Ok(budgeted(Arc::new(client), left))
    };
    let direct = || direct_reading(|_| None);
    let base_url = || settings.base_url.clone().ok_or(value("base_url is needed"));
    let forum = || match settings.source {
        None | Some(Source::Forum) => Ok(Source::Forum),
        Some(_) => Err(value("source is FORUM for this kind")),
    };
    let microblog = || match settings.source {
        None | Some(Source::Microblog) => Ok(Source::Microblog),
        Some(_) => Err(value("source is MICROBLOG for this kind")),
    };
    let network = || match settings.source {
        None | Some(Source::Network) => Ok(Source::Network),
        Some(_) => Err(value("source is NETWORK for this kind")),
    };
    let access = &settings.access;
    let token = || access.token.clone().ok_or(value("token is needed"));
    let (source, adapter): (Source, Arc<dyn Adapter>) = match settings.kind.as_str() {
        "hackernews" => {
            let items = settings.items_url.clone();
            let adapter = HackerNews::new(name.clone(), base_url()?, items, direct()?);
            (forum()?, Arc::new(adapter))
        }
        "lemmy" => {
            let adapter = Lemmy::new(base_url()?, direct()?).with_token(access.token.clone());
            (forum()?, Arc::new(adapter))
        }
        "discourse" => {
            let key = match (&access.token, &access.client_id) {
                (Some(key), Some(username)) => Some(discourse::Key {
                    key: key.clone(),
                    username: username.clone(),
                }),
                (None, None) => None,
                _ => return Err(value("token and client_id go together")),
            };
            let adapter = Discourse::new(name.clone(), base_url()?, key, direct()?);
            (forum()?, Arc::new(adapter))
        }
        "reddit" => {
            let id = access.client_id.clone();
            let id = id.ok_or(value("client_id is needed"))?;
            let secret = access.client_secret.clone();
            let secret = secret.ok_or(value("client_secret is needed"))?;
            // Its format is checked where it is configured.
            if access.user_agent.is_none() {
                return Err(value("user_agent is needed"));
            }
            let fetch = direct_reading(reddit::left)?;
            let adapter = Reddit::new(name.clone(), base_url()?, id, secret, fetch);
            (forum()?, Arc::new(adapter))
        }
        "feed" => {
            let needed = value("source is needed for kind `feed`");
            let source = settings.source.ok_or(needed)?;
            let fetch = match settings.base_url {
                Some(_) => direct()?,
                None => budgeted(Arc::clone(guarded), |_| None),
            };
            let base_url = settings.base_url.clone();
            let adapter = Feeds::new(name.clone(), source, base_url, fetch)
                .with_address_key(address_key.clone());
            (source, Arc::new(adapter))
        }
        "linkedin" => {
            let version = access.api_version.clone();
            let version = version.ok_or(value("api_version is needed"))?;
            let adapter = LinkedIn::new(base_url()?, token()?, version, direct()?);
            (network()?, Arc::new(adapter))
        }
        "facebook" => {
            let fetch = direct_reading(crate::facebook::left)?;
            let version = access.api_version.clone();
            let adapter = Facebook::new(name.clone(), base_url()?, token()?, version, fetch);
            (network()?, Arc::new(adapter))
        }
        "bluesky" => {
            let base_url = base_url()?;
            let agent = access.user_agent.as_deref();
            let adapter = Jetstream::new(bluesky::hosts(&base_url), agent, Arc::clone(budget));
            let public = || Url::parse(bluesky::PUBLIC_API).ok();
            let app_view = settings.items_url.clone();
            let app_view = app_view.or_else(|| public().filter(|_| bluesky::is_public(&base_url)));
            let adapter = match app_view {
                Some(url) => adapter.with_app_view(url, direct()?, settings.items_url.is_some()),
                None => adapter,
            };
            (microblog()?, Arc::new(adapter))
        }
        "mastodon" => {
            let fetch = direct_reading(crate::mastodon::left)?;
            let adapter = Mastodon::new(base_url()?, access.token.clone(), fetch);
            (microblog()?, Arc::new(adapter))
        }
        "x" => {
            if access.posts_per_day.is_none() {
                return Err(value("posts_per_day is needed"));
            }
            let fetch = direct_reading(crate::x::left)?;
            let adapter = X::new(base_url()?, token()?, fetch, Arc::clone(budget));
            (microblog()?, Arc::new(adapter))
        }
        kind => {
            let kind = kind.to_owned();
            return Err(SettingsError::Kind { name, kind });
        }
    };
    Ok(Platform {
        name,
        source,
        adapter,
        poll_interval: settings.poll_interval,
    })
}
