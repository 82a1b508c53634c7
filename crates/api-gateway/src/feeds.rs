//! Checks which feeds clients may name in instructions, from the configuration alone. The gateway calls no
//! platform; a feed that the platform does not have shows up in the feed's health.

use domain::{
    FeedName, Issue, Reach,
    address::AddressPolicy,
    feed::FeedRules,
    manager::SourceType,
    web_url::{self, WebUrl},
};
use platforms::{PlatformKind, registry};
use runtime::{Config, config::PlatformConfig};

/// The feeds of the configured platforms.
pub(crate) struct ConfiguredFeeds {
    platforms: Vec<PlatformConfig>,
    addresses: AddressPolicy,
}

impl ConfiguredFeeds {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            platforms: config.platforms.clone(),
            addresses: config.outbound.address_policy(),
        }
    }
}

impl ConfiguredFeeds {
    fn platform(&self, name: &str) -> Option<&PlatformConfig> {
        self.platforms.iter().find(|platform| platform.name == name)
    }

    /// Platform of a feed, and the descriptor of its kind.
    fn of_feed(&self, feed: &FeedName) -> Option<(&PlatformConfig, &'static PlatformKind)> {
        let platform = self.platform(feed.platform())?;
        Some((platform, registry::kind(platform.kind.as_str())?))
    }

    /// Returns the feeds for the account of this name.
    pub(crate) fn of_account<'a>(&'a self, account: &'a str) -> AccountFeeds<'a> {
        AccountFeeds {
            feeds: self,
            account,
        }
    }

    /// Returns the address where people can read the feed.
    pub(crate) fn page_of(&self, feed: &FeedName) -> Option<String> {
        let (platform, kind) = self.of_feed(feed)?;
        let page = (kind.page_of)(platform.base_url.as_ref(), feed.what());
        page.map(Into::into)
    }

    /// Returns true if the operator's configuration alone defines this feed, as it does for the feed of all new
    /// posts of a platform.
    fn is_configured(&self, feed: &FeedName) -> bool {
        self.of_feed(feed).is_some_and(|(platform, kind)| {
            (kind.newest)(platform.base_url.as_ref()) == Some(feed.what())
        })
    }

    /// Returns how far back the feed can be read: not at all if its platform is no longer configured.
    pub(crate) fn reach_of(&self, feed: &FeedName) -> Reach {
        let known = self.of_feed(feed);
        known.map_or(Reach::Nothing, |(_, kind)| kind.reach)
    }
}

/// The feeds that one account may watch.
#[derive(Clone, Copy)]
pub(crate) struct AccountFeeds<'a> {
    feeds: &'a ConfiguredFeeds,
    account: &'a str,
}

impl AccountFeeds<'_> {
    /// Returns the newest posts of each platform of the source: what a Manager without feeds watches.
    pub(crate) fn newest(&self, source: SourceType) -> Vec<FeedName> {
        let platforms = self.feeds.platforms.iter();
        let open = platforms.filter(|it| it.source == source && it.is_open_to(self.account));
        open.filter_map(|platform| {
            let kind = registry::kind(platform.kind.as_str())?;
            let what = (kind.newest)(platform.base_url.as_ref())?;
            format!("{}:{what}", platform.name).parse().ok()
        })
        .collect()
    }

    /// Same as [`ConfiguredFeeds::is_configured`], if the platform is open to the account.
    pub(crate) fn is_configured(&self, feed: &FeedName) -> bool {
        let platform = self.feeds.platform(feed.platform());
        platform.is_some_and(|platform| platform.is_open_to(self.account))
            && self.feeds.is_configured(feed)
    }
}

impl FeedRules for AccountFeeds<'_> {
    fn check(&self, feed: &FeedName, source: Option<SourceType>) -> Result<(), Issue> {
        let (platform, kind) = self.feeds.of_feed(feed).ok_or(Issue::NotFound)?;
        if !platform.is_open_to(self.account) {
            return Err(Issue::Forbidden);
        }
        let base_url = platform.base_url.as_ref();
        // Customers name such a feed by its address, which must be one that we may fetch. First, because it bounds what
        // `accepts` parses.
        if (kind.takes_any_address)(base_url) {
            WebUrl::parse(feed.what(), &self.feeds.addresses, web_url::Kind::Seed)?;
        }
        if !(kind.accepts)(base_url, feed.what()) {
            return Err(Issue::InvalidFormat);
        }
        if source.is_some_and(|source| source != platform.source) {
            return Err(Issue::Conflict);
        }
        Ok(())
    }
}
