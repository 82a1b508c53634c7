//! Facts about Hacker News that need no request.

use std::{sync::Arc, time::Duration};

use domain::Reach;
use url::Url;

use super::{HackerNews, accepts};
use crate::{
    Adapter, SettingsError, Source,
    kind::{Parts, PlatformKind, segments},
};

pub(crate) struct Kind;

impl PlatformKind for Kind {
    fn name(&self) -> &'static str {
        "hackernews"
    }

    fn source(&self) -> Option<Source> {
        Some(Source::Forum)
    }

    fn accepts(&self, _: Option<&Url>, what: &str) -> bool {
        accepts(what)
    }

    fn newest(&self, _: Option<&Url>) -> Option<&'static str> {
        Some("newest")
    }

    fn newest_has(&self, _: &str) -> bool {
        true
    }

    /// Its search is by time.
    fn reach(&self) -> Reach {
        Reach::Time(Duration::MAX)
    }

    fn page_of(&self, _: Option<&Url>, what: &str) -> Option<Url> {
        let list = if what == "comments" {
            "newcomments"
        } else {
            what
        };
        Url::parse(&format!("https://news.ycombinator.com/{list}")).ok()
    }

    fn feed_of(&self, _: Option<&Url>, page: &Url) -> Option<String> {
        if page.host_str() != Some("news.ycombinator.com") {
            return None;
        }
        let what = match *segments(page)?.as_slice() {
            [] | ["news" | "newest" | "front" | "item"] => "newest",
            ["ask"] => "ask",
            ["show" | "shownew"] => "show",
            ["newcomments"] => "comments",
            _ => return None,
        };
        Some(what.to_owned())
    }

    /// A comment does not say on which list its post is.
    fn comments_of(&self, what: &str) -> Option<String> {
        (!self.holds_comments(what)).then(|| "comments".to_owned())
    }

    fn holds_comments(&self, what: &str) -> bool {
        what == "comments"
    }

    fn build(&self, parts: &Parts<'_>) -> Result<Arc<dyn Adapter>, SettingsError> {
        let items = parts.settings.items_url.clone();
        let adapter = HackerNews::new(parts.name(), parts.base_url()?, items, parts.direct()?);
        Ok(Arc::new(adapter))
    }
}
