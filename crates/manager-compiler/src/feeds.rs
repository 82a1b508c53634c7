//! Which feeds a Manager listens to.
//!
//! A seed URL may be a place to listen to rather than a page about the subject: a Lemmy community, a
//! subreddit, Hacker News, a feed. Where none is, the newest posts of every configured platform of
//! the Manager's source are listened to.

use domain::{FeedName, instructions::MAX_FEEDS};
use url::Url;

use crate::extract::{LinkKind, PageText};

/// A configured platform, as far as naming its feeds goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Platform {
    /// The first part of its feeds' names.
    pub name: String,
    pub kind: PlatformKind,
    /// `FORUM`, `MICROBLOG` or `NETWORK`.
    pub source: String,
    pub base_url: Option<Url>,
}

/// Which adapter serves a platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlatformKind {
    HackerNews,
    Lemmy,
    Discourse,
    Reddit,
    Feed,
    Bluesky,
    Mastodon,
    /// Feeds of others are named by the customer, never guessed.
    Other,
}

impl Platform {
    /// What the URL is on this platform; `None` when it is none of its pages.
    #[must_use]
    pub fn feed_of(&self, url: &Url) -> Option<FeedName> {
        let segments: Vec<&str> = url.path_segments()?.filter(|s| !s.is_empty()).collect();
        let what = match self.kind {
            PlatformKind::HackerNews => hacker_news(url, &segments)?,
            PlatformKind::Lemmy if self.is_host_of(url) => match *segments.as_slice() {
                [] => "newest".to_owned(),
                ["c", community, ..] => format!("c/{}", plain(community)?),
                _ => return None,
            },
            PlatformKind::Discourse if self.is_host_of(url) => match *segments.as_slice() {
                [] | ["latest"] => "latest".to_owned(),
                ["c", .., slug, id] if is_number(id) => format!("c/{}/{id}", plain(slug)?),
                _ => return None,
            },
            PlatformKind::Reddit if is_under(url, "reddit.com") => match *segments.as_slice() {
                ["r", subreddit, ..] => format!("r/{}", plain(subreddit)?),
                _ => return None,
            },
            PlatformKind::Mastodon if self.is_host_of(url) => match *segments.as_slice() {
                ["tags", tag] => format!("tag/{}", plain(tag)?),
                ["public"] | ["public", "local"] => "public".to_owned(),
                _ => return None,
            },
            PlatformKind::Feed if self.base_url.as_ref() == Some(url) => "newest".to_owned(),
            _ => return None,
        };
        format!("{}:{what}", self.name).parse().ok()
    }

    /// The feed of everything new; `None` where a platform has none.
    #[must_use]
    pub fn newest(&self) -> Option<FeedName> {
        let what = match self.kind {
            PlatformKind::HackerNews | PlatformKind::Lemmy => "newest",
            PlatformKind::Discourse => "latest",
            PlatformKind::Reddit => "new",
            PlatformKind::Feed if self.base_url.is_some() => "newest",
            PlatformKind::Bluesky => "jetstream",
            PlatformKind::Mastodon => "public",
            PlatformKind::Feed | PlatformKind::Other => return None,
        };
        format!("{}:{what}", self.name).parse().ok()
    }

    fn is_host_of(&self, url: &Url) -> bool {
        self.base_url.as_ref().is_some_and(|base| {
            base.host() == url.host() && base.port_or_known_default() == url.port_or_known_default()
        })
    }

    /// Takes any feed by its address.
    fn takes_any_feed(&self) -> bool {
        self.kind == PlatformKind::Feed && self.base_url.is_none()
    }
}

/// The feed that a seed URL is by its address alone; such a page is not about the subject and need
/// not be fetched. Platforms of another source than the Manager's are not asked.
#[must_use]
pub fn platform_page(url: &Url, source: &str, platforms: &[Platform]) -> Option<FeedName> {
    let mut own = platforms
        .iter()
        .filter(|platform| platform.source == source);
    own.find_map(|platform| platform.feed_of(url))
}

/// The feed of a fetched seed page that is itself one, or links to one.
#[must_use]
pub fn feed_of_page(
    url: &Url,
    page: &PageText,
    source: &str,
    platforms: &[Platform],
) -> Option<FeedName> {
    let mut own = platforms
        .iter()
        .filter(|platform| platform.source == source);
    let any = own.find(|platform| platform.takes_any_feed())?;
    if page.is_feed {
        return format!("{}:{url}", any.name).parse().ok();
    }
    let link = page.links.iter().find(|link| link.kind == LinkKind::Feed)?;
    format!("{}:{}", any.name, link.href).parse().ok()
}

/// Sorted, without doubles; the newest posts of all platforms of the source where `named` is empty.
#[must_use]
pub fn choose(named: Vec<FeedName>, source: &str, platforms: &[Platform]) -> Vec<FeedName> {
    let mut feeds = named;
    if feeds.is_empty() {
        let own = platforms
            .iter()
            .filter(|platform| platform.source == source);
        feeds = own.filter_map(Platform::newest).collect();
    }
    feeds.sort();
    feeds.dedup();
    feeds.truncate(MAX_FEEDS);
    feeds
}

fn hacker_news(url: &Url, segments: &[&str]) -> Option<String> {
    if url.host_str() != Some("news.ycombinator.com") {
        return None;
    }
    Some(match *segments {
        [] | ["news"] | ["newest"] => "newest".to_owned(),
        ["ask"] => "ask".to_owned(),
        ["show"] | ["shownew"] => "show".to_owned(),
        _ => return None,
    })
}

fn is_under(url: &Url, domain: &str) -> bool {
    let under = |host: &str| {
        host.strip_suffix(domain)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    url.host_str().is_some_and(under)
}

/// A community's or tag's name as it may stand in a feed's.
fn plain(segment: &str) -> Option<&str> {
    let sane = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '@' | '.' | '+' | '%');
    segment.chars().all(sane).then_some(segment)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::{Platform, PlatformKind, choose, feed_of_page, platform_page};
    use crate::extract::{Link, LinkKind, PageText};

    fn platform(name: &str, kind: PlatformKind, source: &str, base_url: &str) -> Platform {
        Platform {
            name: name.to_owned(),
            kind,
            source: source.to_owned(),
            base_url: Url::parse(base_url).ok(),
        }
    }

    fn platforms() -> Vec<Platform> {
        vec![
            platform(
                "hackernews",
                PlatformKind::HackerNews,
                "FORUM",
                "https://hn.algolia.com/api/v1",
            ),
            platform(
                "programming.dev",
                PlatformKind::Lemmy,
                "FORUM",
                "https://programming.dev",
            ),
            platform(
                "reddit",
                PlatformKind::Reddit,
                "FORUM",
                "https://oauth.reddit.com",
            ),
            platform(
                "lwn",
                PlatformKind::Feed,
                "FORUM",
                "https://lwn.example/feed.xml",
            ),
            platform("blogs", PlatformKind::Feed, "NETWORK", ""),
            platform(
                "bluesky",
                PlatformKind::Bluesky,
                "MICROBLOG",
                "wss://jetstream.example",
            ),
        ]
    }

    #[test]
    fn platform_pages_are_told_by_their_address() {
        for (url, expected) in [
            ("https://news.ycombinator.com/", Some("hackernews:newest")),
            ("https://news.ycombinator.com/ask", Some("hackernews:ask")),
            ("https://news.ycombinator.com/item?id=1", None),
            (
                "https://programming.dev/c/rust",
                Some("programming.dev:c/rust"),
            ),
            (
                "https://programming.dev/c/rust@lemmy.ml",
                Some("programming.dev:c/rust@lemmy.ml"),
            ),
            ("https://lemmy.example/c/rust", None),
            (
                "https://old.reddit.com/r/espresso/new/",
                Some("reddit:r/espresso"),
            ),
            ("https://notreddit.com/r/espresso", None),
            ("https://lwn.example/feed.xml", Some("lwn:newest")),
            ("https://brewforge.example/", None),
        ] {
            let feed = platform_page(&Url::parse(url).unwrap(), "FORUM", &platforms());
            assert_eq!(feed.as_ref().map(|f| f.as_str()), expected, "{url}");
        }
    }

    #[test]
    fn pages_may_be_feeds_or_link_to_one() {
        let url = Url::parse("https://blog.example/").unwrap();
        let link = Link {
            href: "https://blog.example/feed.xml".to_owned(),
            text: String::new(),
            kind: LinkKind::Feed,
        };
        let page = PageText {
            links: vec![link],
            ..PageText::default()
        };
        let feed = feed_of_page(&url, &page, "NETWORK", &platforms()).unwrap();
        assert_eq!(feed.as_str(), "blogs:https://blog.example/feed.xml");
        assert_eq!(feed_of_page(&url, &page, "FORUM", &platforms()), None);
    }

    #[test]
    fn without_platform_pages_the_newest_posts_of_the_source_are_taken() {
        let feeds = choose(Vec::new(), "FORUM", &platforms());
        let feeds: Vec<_> = feeds.iter().map(|f| f.as_str()).collect();
        assert_eq!(
            feeds,
            [
                "hackernews:newest",
                "lwn:newest",
                "programming.dev:newest",
                "reddit:new"
            ]
        );
    }
}
