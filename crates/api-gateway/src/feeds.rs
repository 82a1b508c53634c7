//! Which feeds clients may name in instructions, told from the configuration alone: the gateway asks no
//! platform, and one that knows no such feed shows in the feed's health.

use domain::{
    FeedName, Issue, Reach,
    address::AddressPolicy,
    feed::FeedRules,
    manager::SourceType,
    web_url::{self, WebUrl},
};
use platforms::registry;
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

    /// Address where people can read the feed.
    pub(crate) fn page_of(&self, feed: &FeedName) -> Option<String> {
        let platform = self.platform(feed.platform())?;
        let kind = platform.kind.as_str();
        let page = registry::page_of(kind, platform.base_url.as_ref(), feed.what());
        page.map(Into::into)
    }

    /// Returns true if the operator's configuration alone makes this feed: the one of everything new on a platform.
    pub(crate) fn is_configured(&self, feed: &FeedName) -> bool {
        self.platform(feed.platform()).is_some() && registry::is_newest(feed.what())
    }

    /// How far back it can be read; not at all where its platform is not configured any more.
    pub(crate) fn reach_of(&self, feed: &FeedName) -> Reach {
        let platform = self.platform(feed.platform());
        platform.map_or(Reach::Nothing, |platform| {
            registry::reach(platform.kind.as_str())
        })
    }
}

impl FeedRules for ConfiguredFeeds {
    fn check(&self, feed: &FeedName, source: Option<SourceType>) -> Result<(), Issue> {
        let platform = self.platform(feed.platform()).ok_or(Issue::NotFound)?;
        let kind = platform.kind.as_str();
        if !registry::accepts(kind, platform.base_url.as_ref(), feed.what()) {
            return Err(Issue::InvalidFormat);
        }
        // A feed that customers name by its address, which must be one that may be fetched.
        if kind == "feed" && platform.base_url.is_none() {
            WebUrl::parse(feed.what(), &self.addresses, web_url::Kind::Seed)?;
        }
        if source.is_some_and(|source| source != platform.source) {
            return Err(Issue::Conflict);
        }
        Ok(())
    }
}
