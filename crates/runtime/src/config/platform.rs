//! The configured platforms: `[[platforms]]`.

use std::{collections::BTreeSet, time::Duration};

use domain::{FeedName, manager::SourceType};
use secrecy::SecretString;
use url::Url;

use super::{
    reader::Reader,
    setting::{Setting, one_of},
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

/// The operator's credentials and budgets for a platform. The code that creates the adapters decides which of
/// them a kind needs or accepts.
#[derive(Debug, Clone, Default)]
pub struct Access {
    pub client_id: Option<String>,
    pub client_secret: Option<SecretString>,
    pub token: Option<SecretString>,
    pub user_agent: Option<String>,
    pub api_version: Option<String>,
    pub requests_per_minute: Option<u32>,
    pub posts_per_day: Option<u32>,
    pub erase_deleted: Option<bool>,
}

/// Kind of a platform's adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    HackerNews,
    Lemmy,
    Discourse,
    Reddit,
    Bluesky,
    Mastodon,
    X,
    LinkedIn,
    Facebook,
    Feed,
}

const ABOUT: &str = "One block for each platform to read. In variables a platform is \
    identified by its index: `EARSHOT_PLATFORMS__0__BASE_URL`.";

impl Kind {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HackerNews => "hackernews",
            Self::Lemmy => "lemmy",
            Self::Discourse => "discourse",
            Self::Reddit => "reddit",
            Self::Bluesky => "bluesky",
            Self::Mastodon => "mastodon",
            Self::X => "x",
            Self::LinkedIn => "linkedin",
            Self::Facebook => "facebook",
            Self::Feed => "feed",
        }
    }

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

    /// Required settings of its adapter, except `base_url` and credentials. The scanner checks those; the other
    /// services run without them.
    fn needs(self) -> &'static [&'static str] {
        match self {
            Self::LinkedIn => &["api_version"],
            Self::X => &["posts_per_day"],
            Self::Reddit => &["user_agent"],
            _ => &[],
        }
    }

    /// Format of its API's versions, if it has versions.
    fn version_form(self) -> Option<VersionForm> {
        match self {
            Self::LinkedIn => Some(("six digits such as `202610`", is_year_and_month)),
            Self::Facebook => Some(("a version such as `v25.0`", is_graph_version)),
            _ => None,
        }
    }

    const ALL: [Self; 10] = [
        Self::HackerNews,
        Self::Lemmy,
        Self::Discourse,
        Self::Reddit,
        Self::Bluesky,
        Self::Mastodon,
        Self::X,
        Self::LinkedIn,
        Self::Facebook,
        Self::Feed,
    ];
}

/// A description of the format, and a function that checks it.
type VersionForm = (&'static str, fn(&str) -> bool);

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

impl Setting for Kind {
    const FORM: &'static str = one_of!(
        "hackernews",
        "lemmy",
        "discourse",
        "reddit",
        "bluesky",
        "mastodon",
        "x",
        "linkedin",
        "facebook",
        "feed"
    );

    fn from_text(text: &str) -> Result<Self, String> {
        let mut all = Self::ALL.into_iter();
        all.find(|kind| kind.as_str() == text)
            .ok_or_else(|| format!("unknown kind `{text}`; expected {}", Self::FORM))
    }

    fn show(&self) -> String {
        format!("\"{}\"", self.as_str())
    }
}

impl Setting for SourceType {
    const FORM: &'static str = one_of!("FORUM", "MICROBLOG", "NETWORK");

    fn from_text(text: &str) -> Result<Self, String> {
        [Self::Forum, Self::Microblog, Self::Network]
            .into_iter()
            .find(|source| source.as_str() == text)
            .ok_or_else(|| format!("expected {}, not `{text}`", Self::FORM))
    }

    fn show(&self) -> String {
        format!("\"{}\"", self.as_str())
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

    /// Adds a platform's settings to the reference.
    pub(super) fn describe(reader: &mut Reader) {
        reader.section("platforms", ABOUT);
        Self::read(reader, "platforms[0]");
    }

    fn read(reader: &mut Reader, path: &str) -> Option<Self> {
        let name: Option<String> = reader.required(
            path,
            "name",
            "The first part of its feeds' names: small letters, digits, `.`, `_` and `-`.",
            true,
        );
        let kind: Option<Kind> = reader.required(path, "kind", "The kind of its adapter.", true);
        let source: Option<SourceType> = reader.optional(
            path,
            "source",
            "Its source type for customers. The kind determines it; required if `kind` is `feed`.",
        );
        let base_url: Option<Url> = reader.optional(
            path,
            "base_url",
            "Address of its API. For `hackernews` Algolia's, by default `https://hn.algolia.com/api/v1`; \
             for `lemmy`, `discourse` and `mastodon` the instance; for `feed` one \
             feed, or, if not set, any feed that a customer's page is or links to. The other kinds \
             default to their platform's own.",
        );
        let items_url = reader.optional(
            path,
            "items_url",
            "For `hackernews`: where Firebase serves single items. For `bluesky`: the network's API, \
             `https://public.api.bsky.app`, where authors' handles are looked up.",
        );
        let poll_interval: Option<Duration> = reader.optional(
            path,
            "poll_interval",
            "Used exactly if set; otherwise the interval adapts to the number of posts of each feed.",
        );

        let access = Access::read(reader, path);

        // Without a valid kind, the other settings cannot be checked.
        let Some(kind) = kind else {
            reader.ignore_below(path);
            return None;
        };
        let name = name.filter(|name| {
            let good = FeedName::is_platform_name(name);
            if !good {
                let reason = "expected 1 to 64 of small letters, digits, `.`, `_` and `-`";
                reader.reject(&format!("{path}.name"), reason);
            }
            good
        });
        if items_url.is_some() && !matches!(kind, Kind::HackerNews | Kind::Bluesky) {
            let reason = format!("not a setting of kind `{}`", kind.as_str());
            reader.reject(&format!("{path}.items_url"), reason);
        }
        if poll_interval.is_some_and(|interval| interval < Duration::from_millis(100)) {
            reader.reject(&format!("{path}.poll_interval"), "must be at least 100ms");
        }
        let base_url = base_url.or_else(|| kind.default_base_url());
        if base_url.is_none() && kind != Kind::Feed {
            let reason = format!("is required for kind `{}`", kind.as_str());
            reader.reject(&format!("{path}.base_url"), reason);
        }
        access.check(reader, path, kind);
        let source = match (kind.source(), source) {
            (Some(is), Some(given)) if is != given => {
                let reason = format!("kind `{}` is {}", kind.as_str(), is.as_str());
                reader.reject(&format!("{path}.source"), reason);
                is
            }
            (Some(is), _) => is,
            (None, Some(given)) => given,
            (None, None) => {
                let reason = format!("is required for kind `{}`", kind.as_str());
                reader.reject(&format!("{path}.source"), reason);
                return None;
            }
        };
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
    /// Reports missing settings of `kind`, and those with a wrong format.
    fn check(&self, reader: &mut Reader, path: &str, kind: Kind) {
        for name in kind.needs() {
            let given = match *name {
                "user_agent" => self.user_agent.is_some(),
                "api_version" => self.api_version.is_some(),
                _ => self.posts_per_day.is_some(),
            };
            if !given {
                let reason = format!("is required for kind `{}`", kind.as_str());
                reader.reject(&format!("{path}.{name}"), reason);
            }
        }
        if let (Some(version), Some((form, holds))) = (&self.api_version, kind.version_form())
            && !holds(version)
        {
            let reason = format!("expected {form}, not `{version}`");
            reader.reject(&format!("{path}.api_version"), reason);
        }
        if let Some(agent) = &self.user_agent
            && kind == Kind::Reddit
            && !is_reddit_user_agent(agent)
        {
            let form = "expected `<platform>:<app id>:<version> (by /u/<name>)`";
            reader.reject(
                &format!("{path}.user_agent"),
                format!("{form}, not `{agent}`"),
            );
        }
    }

    fn read(reader: &mut Reader, path: &str) -> Self {
        Self {
            client_id: reader.optional(
                path,
                "client_id",
                "For `reddit` the application's id; for `discourse` the user of the API key. The scanner \
                 needs the credentials, and the compiler too if it must find communities.",
            ),
            client_secret: reader.optional(
                path,
                "client_secret",
                "For `reddit`: the application's secret.",
            ),
            token: reader.optional(
                path,
                "token",
                "Token for the requests: required for `x`, `linkedin` and `facebook`; for \
                 `discourse` an API key; for `mastodon` and `lemmy` if the instance requires one.",
            ),
            user_agent: reader.optional(
                path,
                "user_agent",
                "User-Agent of the requests; required for `reddit`, which prescribes \
                 `<platform>:<app id>:<version> (by /u/<name>)`.",
            ),
            api_version: reader.optional(
                path,
                "api_version",
                "For `linkedin` such as `202610`, for `facebook` such as `v25.0`: versions end after \
                 about a year.",
            ),
            requests_per_minute: reader.optional(
                path,
                "requests_per_minute",
                "Maximum number of requests per minute, over all replicas; by default the platform's \
                 limit.",
            ),
            posts_per_day: reader.optional(
                path,
                "posts_per_day",
                "Required for `x`: the maximum number of billed posts per UTC day.",
            ),
            erase_deleted: reader.optional(
                path,
                "erase_deleted",
                "Whether stored posts are checked again and blanked after they are deleted at their \
                 source. On by default if the platform's terms require it.",
            ),
        }
    }
}
