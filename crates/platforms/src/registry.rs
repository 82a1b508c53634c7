//! The configured platforms, by name.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use domain::{FeedName, manager::SourceType};
use runtime::config::PlatformConfig;
use url::Url;

use crate::{
    Adapter, AddressKey, Budget, Fetch, PlatformKind, Settings, SettingsError, Source, Unlimited,
    kind::Parts,
};

/// The kinds of platforms that have an adapter, one line each.
pub const KINDS: [&PlatformKind; 11] = [
    &crate::bluesky::kind::KIND,
    &crate::discourse::kind::KIND,
    &crate::facebook::kind::KIND,
    &crate::feed::kind::KIND,
    &crate::hackernews::kind::KIND,
    &crate::lemmy::kind::KIND,
    &crate::linkedin::kind::KIND,
    &crate::lobsters::kind::KIND,
    &crate::mastodon::kind::KIND,
    &crate::reddit::kind::KIND,
    &crate::x::kind::KIND,
];

/// The kind that has this name in the configuration.
pub fn kind(name: &str) -> Option<&'static PlatformKind> {
    KINDS.into_iter().find(|kind| kind.name == name)
}

impl From<&PlatformConfig> for Settings {
    fn from(config: &PlatformConfig) -> Self {
        let mut access = config.access.clone();
        let adapter = kind(config.kind.as_str());
        let usual = adapter.and_then(|kind| kind.requests_per_minute);
        access.requests_per_minute = access.requests_per_minute.or(usual);
        Self {
            name: config.name.clone(),
            kind: config.kind.as_str().to_owned(),
            source: Some(match config.source {
                SourceType::Forum => Source::Forum,
                SourceType::Microblog => Source::Microblog,
                SourceType::Network => Source::Network,
            }),
            base_url: config.base_url.clone(),
            items_url: config.items_url.clone(),
            poll_interval: config.poll_interval,
            access,
        }
    }
}

/// One configured platform.
#[derive(Clone)]
pub struct Platform {
    pub name: String,
    pub source: Source,
    pub kind: &'static PlatformKind,
    pub adapter: Arc<dyn Adapter>,
    /// The operator's interval, used exactly; without it, the adapter's default is the start value.
    pub poll_interval: Option<Duration>,
    base_url: Option<Url>,
}

impl Platform {
    /// Poll interval for a feed without statistics.
    pub fn interval(&self) -> Duration {
        self.poll_interval
            .unwrap_or_else(|| self.adapter.default_interval())
    }

    /// Returns true if `what`, the second part of a feed's name, is well-formed for this platform.
    pub fn accepts(&self, what: &str) -> bool {
        (self.kind.accepts)(self.base_url.as_ref(), what)
    }

    /// The feed of all new posts, if the platform has one.
    pub fn newest_feed(&self) -> Option<FeedName> {
        let what = (self.kind.newest)(self.base_url.as_ref())?;
        format!("{}:{what}", self.name).parse().ok()
    }
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

    pub fn get(&self, name: &str) -> Option<&Platform> {
        self.by_name.get(name)
    }

    /// The platform of `feed`, if it is configured and accepts such a feed.
    pub fn of_feed(&self, feed: &FeedName) -> Option<&Platform> {
        self.get(feed.platform())
            .filter(|platform| platform.accepts(feed.what()))
    }

    /// The feed of all new posts on the platform `name`.
    pub fn newest_feed(&self, name: &str) -> Option<FeedName> {
        self.get(name)?.newest_feed()
    }

    /// The platforms in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Platform> {
        self.by_name.values()
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
    let kind = kind(&settings.kind).ok_or_else(|| SettingsError::Kind {
        name: name.clone(),
        kind: settings.kind.clone(),
        known: KINDS.map(|kind| kind.name).join(", "),
    })?;
    let parts = Parts {
        settings,
        guarded,
        address_key,
        budget,
    };
    let web = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    let stream =
        |url: &Url| kind.is_streamed && matches!(url.scheme(), "ws" | "wss") && url.has_host();
    let is_good = settings.base_url.iter().all(|url| web(url) || stream(url))
        && settings.items_url.iter().all(web);
    if !is_good {
        return Err(parts.wrong("base_url and items_url must be http or https"));
    }
    if settings.poll_interval == Some(Duration::ZERO) {
        return Err(parts.wrong("poll_interval must be longer than zero"));
    }
    let adapter = (kind.build)(&parts)?;
    let source = match (kind.source, settings.source) {
        (Some(own), given) if given.is_none_or(|given| given == own) => own,
        (Some(Source::Forum), _) => return Err(parts.wrong("source is FORUM for this kind")),
        (Some(Source::Microblog), _) => {
            return Err(parts.wrong("source is MICROBLOG for this kind"));
        }
        (Some(Source::Network), _) => return Err(parts.wrong("source is NETWORK for this kind")),
        (None, given) => given.ok_or_else(|| parts.wrong("source is needed for this kind"))?,
    };
    Ok(Platform {
        name,
        source,
        kind,
        adapter,
        poll_interval: settings.poll_interval,
        base_url: settings.base_url.clone(),
    })
}
