//! The configured platforms, by name.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use domain::{FeedName, Reach};
use url::Url;

use crate::{
    Adapter, Budget, Direct, Fetch, Settings, SettingsError, Source, Unlimited,
    budget::{Budgeted, ReadLeft},
    facebook::Facebook,
    feed::Feeds,
    hackernews::HackerNews,
    lemmy::Lemmy,
    linkedin::LinkedIn,
};

/// The kinds of platforms that there are adapters for.
pub const KINDS: [&str; 5] = ["facebook", "feed", "hackernews", "lemmy", "linkedin"];

/// One configured platform.
#[derive(Clone)]
pub struct Platform {
    pub name: String,
    pub source: Source,
    pub adapter: Arc<dyn Adapter>,
    /// As the operator wants it, kept exactly; else the adapter's default is where to start.
    pub poll_interval: Option<Duration>,
}

impl Platform {
    /// How often to poll where nothing is known about the feed yet.
    #[must_use]
    pub fn interval(&self) -> Duration {
        self.poll_interval
            .unwrap_or_else(|| self.adapter.default_interval())
    }

    /// The feed of everything new there, where the platform has one.
    #[must_use]
    pub fn newest_feed(&self) -> Option<FeedName> {
        const NEWEST: &str = "newest";
        let name = format!("{}:{NEWEST}", self.name);
        self.adapter
            .accepts(NEWEST)
            .then(|| name.parse().ok())
            .flatten()
    }
}

/// All configured platforms.
#[derive(Clone, Default)]
pub struct Platforms {
    by_name: BTreeMap<String, Platform>,
}

impl Platforms {
    /// Builds each platform's adapter. `guarded` fetches what customers named: the addresses of feeds
    /// on platforms of kind `feed` without a `base_url`.
    ///
    /// # Errors
    /// [`SettingsError`] naming the platform and what is wrong with it.
    pub fn from_settings(
        settings: &[Settings],
        guarded: &Arc<dyn Fetch>,
    ) -> Result<Self, SettingsError> {
        Self::with_budgets(settings, guarded, |_| Arc::new(Unlimited))
    }

    /// As [`Platforms::from_settings`]; requests to a platform come out of the budget that it is given.
    ///
    /// # Errors
    /// [`SettingsError`] naming the platform and what is wrong with it.
    pub fn with_budgets(
        settings: &[Settings],
        guarded: &Arc<dyn Fetch>,
        budget: impl Fn(&Settings) -> Arc<dyn Budget>,
    ) -> Result<Self, SettingsError> {
        let mut by_name = BTreeMap::new();
        for one in settings {
            let platform = build(one, guarded, &budget(one))?;
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

    /// The platform of `feed`, when it is configured and takes such a feed.
    #[must_use]
    pub fn of_feed(&self, feed: &FeedName) -> Option<&Platform> {
        self.get(feed.platform())
            .filter(|platform| platform.adapter.accepts(feed.what()))
    }

    /// The feed of everything new on the platform `name`.
    #[must_use]
    pub fn newest_feed(&self, name: &str) -> Option<FeedName> {
        self.get(name)?.newest_feed()
    }

    /// By name.
    pub fn iter(&self) -> impl Iterator<Item = &Platform> {
        self.by_name.values()
    }
}

/// Whether a platform of `kind` takes a feed `what`, by its form alone, as its adapter's
/// [`Adapter::accepts`] says: for who has no adapter and must ask nobody. Of a kind that is not known here
/// anything is taken.
#[must_use]
pub fn accepts(kind: &str, base_url: Option<&Url>, what: &str) -> bool {
    match kind {
        "hackernews" => crate::hackernews::accepts(what),
        "lemmy" => crate::lemmy::accepts(what),
        "feed" => crate::feed::address(base_url, what).is_some(),
        "linkedin" => crate::linkedin::accepts(what),
        "facebook" => crate::facebook::accepts(what),
        _ => true,
    }
}

/// How far back feeds of a platform of `kind` can be read, by what the platform documents and by
/// the pages that one reading takes. Of a kind that is not known here: not at all.
#[must_use]
pub fn reach(kind: &str) -> Reach {
    /// The most pages that one reading takes.
    const PAGES: u32 = 400;
    match kind {
        // Its search goes by time.
        "hackernews" => Reach::Time(Duration::MAX),
        "lemmy" => Reach::Posts(PAGES * 50),
        "discourse" => Reach::Posts(PAGES * 30),
        // No listing goes further.
        "reddit" => Reach::Posts(1_000),
        "mastodon" => Reach::Posts(PAGES * 40),
        // Of recent search.
        "x" => Reach::Time(Duration::from_hours(24 * 7)),
        "linkedin" | "facebook" => Reach::Posts(PAGES * 25),
        // A stream, and documents with some posts of which nobody says how many.
        _ => Reach::Nothing,
    }
}

fn build(
    settings: &Settings,
    guarded: &Arc<dyn Fetch>,
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
    if !settings.base_url.iter().chain(&settings.items_url).all(web) {
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
        Ok(budgeted(Arc::new(client), left))
    };
    let direct = || direct_reading(|_| None);
    let base_url = || settings.base_url.clone().ok_or(value("base_url is needed"));
    let forum = || match settings.source {
        None | Some(Source::Forum) => Ok(Source::Forum),
        Some(_) => Err(value("source is FORUM for this kind")),
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
        "lemmy" => (forum()?, Arc::new(Lemmy::new(base_url()?, direct()?))),
        "feed" => {
            let needed = value("source is needed for kind `feed`");
            let source = settings.source.ok_or(needed)?;
            let fetch = match settings.base_url {
                Some(_) => direct()?,
                None => budgeted(Arc::clone(guarded), |_| None),
            };
            let base_url = settings.base_url.clone();
            let adapter = Feeds::new(name.clone(), source, base_url, fetch);
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
