//! Which feeds clients may name in instructions, told from the configuration alone: the gateway asks no
//! platform, and one that knows no such feed shows in the feed's health.

use domain::{
    FeedName, Issue,
    address::AddressPolicy,
    feed::FeedRules,
    manager::SourceType,
    web_url::{self, WebUrl},
};
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
            addresses: AddressPolicy {
                allow_cidrs: config.outbound.allow_cidrs.clone(),
                allow_http: config.outbound.allow_http,
            },
        }
    }
}

impl FeedRules for ConfiguredFeeds {
    fn check(&self, feed: &FeedName, source: Option<SourceType>) -> Result<(), Issue> {
        let mut platforms = self.platforms.iter();
        let platform = platforms
            .find(|platform| platform.name == feed.platform())
            .ok_or(Issue::NotFound)?;
        let kind = platform.kind.as_str();
        if !platforms::registry::accepts(kind, platform.base_url.as_ref(), feed.what()) {
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
