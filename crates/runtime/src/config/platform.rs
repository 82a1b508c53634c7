//! The configured platforms: `[[platforms]]`.

use std::{collections::BTreeSet, time::Duration};

use domain::{FeedName, manager::SourceType};
use secrecy::SecretString;
use url::Url;

use super::{
    reader::{Reader, settings},
    setting::choice,
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
        /// `lemmy`, `discourse` and `mastodon` the instance; for `feed` one feed, or, if not set, any feed that
        /// a customer's page is or links to. The other kinds default to their platform's own.
        pub base_url: Option<Url> = None;
        /// For `hackernews`: where Firebase serves single items. For `bluesky`: the network's API,
        /// `https://public.api.bsky.app`, where authors' handles are looked up.
        pub items_url: Option<Url> = None;
        /// Used exactly if set; otherwise the interval adapts to the number of posts of each feed.
        pub poll_interval: Option<Duration> = None;
    }

    pub struct Access: Default {
        /// For `reddit` the application's id; for `discourse` the user of the API key. The scanner needs the
        /// credentials, and the compiler too if it must find communities.
        pub client_id: Option<String> = None;
        /// For `reddit`: the application's secret.
        pub client_secret: Option<SecretString> = None;
        /// Token for the requests: required for `x`, `linkedin` and `facebook`; for `discourse` an API key; for
        /// `mastodon` and `lemmy` if the instance requires one.
        pub token: Option<SecretString> = None;
        /// User-Agent of the requests; required for `reddit`, which prescribes
        /// `<platform>:<app id>:<version> (by /u/<name>)`.
        pub user_agent: Option<String> = None;
        /// For `linkedin` such as `202610`, for `facebook` such as `v25.0`: versions end after about a year.
        pub api_version: Option<String> = None;
        /// Maximum number of requests per minute, over all replicas; by default the platform's limit.
        pub requests_per_minute: Option<u32> = None;
        /// Required for `x`: the maximum number of billed posts per UTC day.
        pub posts_per_day: Option<u32> = None;
        /// Whether stored posts are checked again and blanked after they are deleted at their source. On by
        /// default if the platform's terms require it.
        pub erase_deleted: Option<bool> = None;
    }
}

choice! {
    /// Kind of a platform's adapter.
    pub enum Kind {
        HackerNews = "hackernews",
        Lemmy = "lemmy",
        Discourse = "discourse",
        Reddit = "reddit",
        Bluesky = "bluesky",
        Mastodon = "mastodon",
        X = "x",
        LinkedIn = "linkedin",
        Facebook = "facebook",
        Feed = "feed",
    }
}

impl Kind {
    /// Source type of platforms of this kind; a feed may have any.
    #[must_use]
    pub fn source(self) -> Option<SourceType> {
        match self {
            Self::HackerNews | Self::Lemmy | Self::Discourse | Self::Reddit => {
                Some(SourceType::Forum)
            }
            Self::Bluesky | Self::Mastodon | Self::X => Some(SourceType::Microblog),
            Self::LinkedIn | Self::Facebook => Some(SourceType::Network),
            Self::Feed => None,
        }
    }

    fn default_base_url(self) -> Option<Url> {
        let url = match self {
            Self::HackerNews => "https://hn.algolia.com/api/v1",
            Self::Reddit => "https://oauth.reddit.com",
            Self::Bluesky => "wss://jetstream2.us-east.bsky.network",
            Self::X => "https://api.x.com",
            Self::LinkedIn => "https://api.linkedin.com",
            Self::Facebook => "https://graph.facebook.com",
            Self::Lemmy | Self::Discourse | Self::Mastodon | Self::Feed => return None,
        };
        Url::parse(url).ok()
    }
}

fn is_year_and_month(version: &str) -> bool {
    version.len() == 6 && version.bytes().all(|b| b.is_ascii_digit())
}

fn is_graph_version(version: &str) -> bool {
    let number =
        |part: &str| (1..=3).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
    let parts = version
        .strip_prefix('v')
        .and_then(|rest| rest.split_once('.'));
    parts.is_some_and(|(major, minor)| number(major) && number(minor))
}

/// Returns true if a User-Agent has the form that Reddit prescribes.
fn is_reddit_user_agent(agent: &str) -> bool {
    let Some((program, rest)) = agent.split_once(" (by /u/") else {
        return false;
    };
    let named = rest.strip_suffix(')').is_some_and(|name| !name.is_empty());
    let parts: Vec<&str> = program.split(':').collect();
    named && parts.len() == 3 && parts.iter().all(|part| !part.trim().is_empty())
}

impl Access {
    /// A setting that has not the form that `kind` prescribes, the form, and the value.
    fn wrong_form(&self, kind: Kind) -> Option<(&'static str, &'static str, &str)> {
        let (version, agent) = (self.api_version.as_deref(), self.user_agent.as_deref());
        let (name, form, value, holds): (_, _, _, fn(&str) -> bool) = match kind {
            Kind::LinkedIn => {
                let form = "six digits such as `202610`";
                ("api_version", form, version, is_year_and_month)
            }
            Kind::Facebook => {
                let form = "a version such as `v25.0`";
                ("api_version", form, version, is_graph_version)
            }
            Kind::Reddit => {
                let form = "`<platform>:<app id>:<version> (by /u/<name>)`";
                ("user_agent", form, agent, is_reddit_user_agent)
            }
            _ => return None,
        };
        let wrong = value.filter(|value| !holds(value))?;
        Some((name, form, wrong))
    }
}

impl PlatformConfig {
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
        if items_url.is_some() && !matches!(kind, Kind::HackerNews | Kind::Bluesky) {
            reject(
                "items_url",
                &format!("not a setting of kind `{}`", kind.as_str()),
            );
        }
        if poll_interval.is_some_and(|interval| interval < Duration::from_millis(100)) {
            reject("poll_interval", "must be at least 100ms");
        }
        let base_url = base_url.or_else(|| kind.default_base_url());
        let (required, is_absent) = match kind {
            Kind::LinkedIn => ("api_version", access.api_version.is_none()),
            Kind::X => ("posts_per_day", access.posts_per_day.is_none()),
            Kind::Reddit => ("user_agent", access.user_agent.is_none()),
            Kind::Feed => ("source", source.is_none()),
            _ => ("base_url", base_url.is_none()),
        };
        if is_absent {
            let reason = format!("is required for kind `{}`", kind.as_str());
            reject(required, &reason);
        }
        if let Some((name, form, value)) = access.wrong_form(kind) {
            reject(name, &format!("expected {form}, not `{value}`"));
        }
        if let (Some(is), Some(given)) = (kind.source(), source)
            && is != given
        {
            reject(
                "source",
                &format!("kind `{}` is {}", kind.as_str(), is.as_str()),
            );
        }
        let source = kind.source().or(source)?;
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
