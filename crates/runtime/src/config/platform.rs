//! The configured platforms: `[[platforms]]`.

use std::{collections::BTreeSet, time::Duration};

use domain::{FeedName, manager::SourceType};
use url::Url;

use super::{
    access::Access,
    kinds::Kind,
    reader::{Reader, settings},
};

/// One configured platform. Two may have the same kind, with different names.
#[derive(Debug, Clone)]
pub struct PlatformConfig {
    /// The first part of its feeds' names.
    pub name: String,
    /// Name of its adapter.
    pub kind: Kind,
    /// Source type for customers; the kind determines it, except for `feed`.
    pub source: SourceType,
    /// Always set, except for a `feed` platform that reads any feed that customers name.
    pub base_url: Option<Url>,
    /// Hacker News: where single items are read, if anywhere. Bluesky: where handles are looked up.
    pub items_url: Option<Url>,
    /// Used exactly if set; else the interval adapts.
    pub poll_interval: Option<Duration>,
    pub access: Access,
}

settings! {
    /// One block for each platform to read. In variables a platform is identified by its index:
    /// `EARSHOT_PLATFORMS__0__BASE_URL`.
    struct Named {
        /// The first part of its feeds' names: small letters, digits, `.`, `_` and `-`.
        pub name: String;
    }

    struct Block {
        /// The kind of its adapter.
        pub kind: Kind;
        /// Its source type for customers. The kind determines it; required if `kind` is `feed`.
        pub source: Option<SourceType> = None;
        /// Address of its API. For `hackernews` Algolia's, by default `https://hn.algolia.com/api/v1`; for
        /// `lobsters` the site, by default `https://lobste.rs`; for `lemmy`, `discourse` and `mastodon` the
        /// instance; for `feed` one feed, or, if not set, any feed that a customer's page is or links to. The
        /// other kinds default to their platform's own.
        pub base_url: Option<Url> = None;
        /// For `hackernews`: where Firebase serves single items. For `bluesky`: the network's API,
        /// `https://public.api.bsky.app`, where authors' handles are looked up.
        pub items_url: Option<Url> = None;
        /// Used exactly if set; otherwise the interval adapts to the number of posts of each feed.
        pub poll_interval: Option<Duration> = None;
    }
}

impl PlatformConfig {
    /// Returns true if the account of this name may watch feeds of the platform.
    pub fn is_open_to(&self, account: &str) -> bool {
        let accounts = &self.access.accounts;
        accounts.is_empty() || accounts.iter().any(|name| name == account)
    }

    /// `None` if the configuration has no platforms.
    pub(super) fn read_all(reader: &mut Reader) -> Option<Vec<Self>> {
        let indexes = reader.items("platforms")?;
        // Only variables can skip an index, and then the list would have another order than intended.
        if let Some((place, index)) = indexes.iter().enumerate().find(|(at, index)| at != *index) {
            let reason = format!("is set, but `platforms[{place}]` is not");
            reader.reject(&format!("platforms[{index}]"), reason);
            reader.ignore_below("platforms");
            return None;
        }
        let mut names = BTreeSet::new();
        let mut platforms = Vec::new();
        for index in indexes {
            let path = format!("platforms[{index}]");
            let Some(platform) = Self::read(reader, &path) else {
                continue;
            };
            if !names.insert(platform.name.clone()) {
                let reason = format!("another platform is named `{}`", platform.name);
                reader.reject(&format!("{path}.name"), reason);
            }
            platforms.push(platform);
        }
        Some(platforms)
    }

    pub(super) fn read(reader: &mut Reader, path: &str) -> Option<Self> {
        // Without a valid kind, the other settings cannot be checked.
        let name = Named::read(reader, path, None).map(|named| named.name);
        let block = Block::read(reader, path, None);
        let access = Access::read(reader, path, None);
        let Block {
            kind,
            source,
            base_url,
            items_url,
            poll_interval,
        } = block?;
        let access = access?;

        let mut reject =
            |name: &str, reason: &str| reader.reject(&format!("{path}.{name}"), reason);
        if name
            .as_deref()
            .is_some_and(|name| !FeedName::is_platform_name(name))
        {
            reject(
                "name",
                "expected 1 to 64 of small letters, digits, `.`, `_` and `-`",
            );
        }
        let rules = kind.rules();
        if items_url.is_some() && !rules.has_items_url {
            reject(
                "items_url",
                &format!("not a setting of kind `{}`", kind.as_str()),
            );
        }
        if poll_interval.is_some_and(|interval| interval < Duration::from_millis(100)) {
            reject("poll_interval", "must be at least 100ms");
        }
        let base_url =
            base_url.or_else(|| rules.default_base_url.and_then(|url| Url::parse(url).ok()));
        // Only a platform without a source type of its own needs no address.
        let (required, is_absent) = match (rules.required, rules.source) {
            (Some(required), _) => (required.name, !(required.is_set)(&access)),
            (None, Some(_)) => ("base_url", base_url.is_none()),
            (None, None) => ("source", source.is_none()),
        };
        if is_absent {
            let reason = format!("is required for kind `{}`", kind.as_str());
            reject(required, &reason);
        }
        if let Some(form) = rules.form
            && let Some(value) = (form.value)(&access).filter(|value| !(form.holds)(value))
        {
            let expected = form.expected;
            reject(form.name, &format!("expected {expected}, not `{value}`"));
        }
        if let (Some(is), Some(given)) = (rules.source, source)
            && is != given
        {
            reject(
                "source",
                &format!("kind `{}` is {}", kind.as_str(), is.as_str()),
            );
        }
        let source = rules.source.or(source)?;
        Some(Self {
            name: name?,
            kind,
            source,
            base_url,
            items_url,
            poll_interval,
            access,
        })
    }
}
