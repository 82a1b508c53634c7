//! Selects the feeds that a Manager watches.
//!
//! A seed URL may be a feed instead of a page about the subject: a Lemmy community, a subreddit, Hacker News, an RSS
//! feed, or a post in one of them. If none is, the Manager watches the newest posts of every configured
//! platform of its source.

use domain::{
    FeedName,
    instructions::MAX_FEEDS,
    screen::{Kinds, PostKind},
};
use platforms::PlatformKind;
use url::Url;

use crate::extract::{LinkKind, PageText};

/// A configured platform, with the data needed to name its feeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Platform {
    /// The first part of its feeds' names.
    pub name: String,
    pub kind: &'static PlatformKind,
    /// `FORUM`, `MICROBLOG` or `NETWORK`.
    pub source: String,
    pub base_url: Option<Url>,
}

impl Platform {
    /// Returns the feed for a URL on this platform: a place, a post in one, or a user; `None` when the URL is not one
    /// of its pages, or has no feed.
    pub fn feed_of(&self, url: &Url) -> Option<FeedName> {
        self.feed(&(self.kind.feed_of)(self.base_url.as_ref(), url)?)
    }

    /// Returns the feed of all new posts; `None` where a platform has none.
    pub fn newest(&self) -> Option<FeedName> {
        self.feed((self.kind.newest)(self.base_url.as_ref())?)
    }

    /// Returns the feed `what`, if the platform's adapter accepts it.
    fn feed(&self, what: &str) -> Option<FeedName> {
        let taken = (self.kind.accepts)(self.base_url.as_ref(), what);
        let name = format!("{}:{what}", self.name);
        taken.then(|| name.parse().ok()).flatten()
    }

    /// Returns whether the platform accepts any feed by its address.
    fn takes_any_feed(&self) -> bool {
        (self.kind.takes_any_address)(self.base_url.as_ref())
    }
}

/// Returns the feed of a seed URL, if its address alone is sufficient. Such a page is not about the subject and need
/// not be fetched. Ignores platforms of another source than the Manager's.
pub fn platform_page(url: &Url, source: &str, platforms: &[Platform]) -> Option<FeedName> {
    let mut own = platforms
        .iter()
        .filter(|platform| platform.source == source);
    own.find_map(|platform| platform.feed_of(url))
}

/// Returns the feed of a fetched seed page that is itself one, or links to one.
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

/// Returns feeds, sorted and without duplicates; the newest posts of all platforms of the source if `named` is empty.
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

/// Returns the feeds that deliver posts of these kinds. Comments are separate feeds: those that belong to the given
/// feeds are added.
///
/// # Errors
/// Returns an error when no feed remains.
pub fn of_kinds(
    feeds: Vec<FeedName>,
    kinds: &Kinds,
    platforms: &[Platform],
) -> Result<Vec<FeedName>, &'static str> {
    let kind_of = |feed: &FeedName| {
        let mut all = platforms.iter();
        let own = all.find(|platform| platform.name == feed.platform());
        own.map(|platform| platform.kind)
    };
    let (comments, posts): (Vec<FeedName>, Vec<FeedName>) = feeds
        .into_iter()
        .partition(|feed| kind_of(feed).is_some_and(|kind| (kind.holds_comments)(feed.what())));
    let mut chosen = Vec::new();
    if kinds.has(PostKind::Comment) {
        chosen.extend(posts.iter().filter_map(|feed| {
            let what = (kind_of(feed)?.comments_of)(feed.what())?;
            format!("{}:{what}", feed.platform()).parse().ok()
        }));
        chosen.extend(comments);
        chosen.sort();
        chosen.dedup();
    }
    if kinds.has(PostKind::Post) {
        chosen.splice(0..0, posts);
    }
    if chosen.is_empty() {
        return Err(if kinds.has(PostKind::Comment) {
            "none of the feeds has readable comments, and `kinds` includes no other kind"
        } else {
            "the feeds have only comments, and `kinds` does not include them"
        });
    }
    // Posts come first, in case there are too many feeds.
    chosen.truncate(MAX_FEEDS);
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use domain::screen::Kinds;
    use platforms::registry;
    use url::Url;

    use super::{Platform, choose, feed_of_page, of_kinds, platform_page};
    use crate::extract::{Link, LinkKind, PageText};

    fn platform(name: &str, kind: &str, source: &str, base_url: &str) -> Platform {
        Platform {
            name: name.to_owned(),
            kind: registry::kind(kind).unwrap(),
            source: source.to_owned(),
            base_url: Url::parse(base_url).ok(),
        }
    }

    fn platforms() -> Vec<Platform> {
        vec![
            platform(
                "hackernews",
                "hackernews",
                "FORUM",
                "https://hn.algolia.com/api/v1",
            ),
            platform(
                "programming.dev",
                "lemmy",
                "FORUM",
                "https://programming.dev",
            ),
            platform("reddit", "reddit", "FORUM", "https://oauth.reddit.com"),
            platform("lwn", "feed", "FORUM", "https://lwn.example/feed.xml"),
            platform("blogs", "feed", "NETWORK", ""),
            platform("bluesky", "bluesky", "MICROBLOG", "wss://jetstream.example"),
        ]
    }

    #[test]
    fn platform_pages_are_recognised_by_their_address() {
        for (url, expected) in [
            ("https://news.ycombinator.com/", Some("hackernews:newest")),
            ("https://news.ycombinator.com/ask", Some("hackernews:ask")),
            (
                "https://news.ycombinator.com/item?id=1",
                Some("hackernews:newest"),
            ),
            ("https://news.ycombinator.com/user?id=pg", None),
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
            (
                "https://www.reddit.com/r/espresso/comments/1abc/which_machine/",
                Some("reddit:r/espresso"),
            ),
            (
                "https://www.reddit.com/r/tea+rust/",
                Some("reddit:r/tea+rust"),
            ),
            ("https://www.reddit.com/r/%2e%2e/", None),
            ("https://redd.it/1abc", None),
            (
                "https://programming.dev/post/123",
                Some("programming.dev:newest"),
            ),
            ("https://programming.dev/u/ana", None),
            ("https://lwn.example/feed.xml", Some("lwn:newest")),
            ("https://brewforge.example/", None),
        ] {
            let feed = platform_page(&Url::parse(url).unwrap(), "FORUM", &platforms());
            assert_eq!(feed.as_ref().map(|f| f.as_str()), expected, "{url}");
        }
    }

    #[test]
    fn newest_feed_is_accepted_by_its_adapter() {
        for kind in registry::KINDS {
            let own = platform("p", kind.name, "FORUM", "https://a.example/feed");
            let base = own.base_url.as_ref();
            let accepted = (kind.newest)(base).map(|what| (kind.accepts)(base, what));
            assert_eq!(own.newest().map(|_| true), accepted, "{kind:?}");
        }
        assert_eq!(platform("p", "reddit", "FORUM", "").newest(), None);
        assert_eq!(platform("p", "feed", "FORUM", "").newest(), None);
    }

    #[test]
    fn comments_join_the_posts_that_they_belong_to() {
        let chosen = |feeds: &[&str], kinds: &[&str]| {
            let feeds = feeds.iter().map(|feed| feed.parse().unwrap()).collect();
            let kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
            let chosen = of_kinds(feeds, &Kinds::stored(&kinds), &platforms());
            chosen.map(|feeds| feeds.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        let posts = [
            "hackernews:newest",
            "hackernews:ask",
            "programming.dev:c/rust",
            "lwn:newest",
        ];
        assert_eq!(chosen(&posts, &["POST"]).unwrap(), posts);
        let comments = ["hackernews:comments", "programming.dev:c/rust/comments"];
        assert_eq!(chosen(&posts, &["COMMENT"]).unwrap(), comments);
        let both = chosen(&posts, &["POST", "COMMENT"]).unwrap();
        assert_eq!(
            (&both[..4], &both[4..]),
            (
                &posts.map(str::to_owned)[..],
                &comments.map(str::to_owned)[..]
            )
        );
        // Named feeds are kept or removed by their kind.
        assert!(chosen(&comments, &["POST"]).is_err());
        assert_eq!(chosen(&comments, &["COMMENT", "POST"]).unwrap(), comments);
        assert!(chosen(&["lwn:newest"], &["COMMENT"]).is_err());
        let reddit = chosen(&["reddit:r/a+b"], &["POST", "COMMENT"]).unwrap();
        assert_eq!(reddit, ["reddit:r/a+b", "reddit:r/a+b/comments"]);
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
    fn newest_posts_of_the_source_are_watched_without_platform_pages() {
        let feeds = choose(Vec::new(), "FORUM", &platforms());
        let feeds: Vec<_> = feeds.iter().map(|f| f.as_str()).collect();
        assert_eq!(
            feeds,
            ["hackernews:newest", "lwn:newest", "programming.dev:newest",]
        );
    }
}
