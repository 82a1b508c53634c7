//! Facts about Hacker News that need no request.

use std::{sync::Arc, time::Duration};

use domain::Reach;
use url::Url;

use super::{HackerNews, accepts};
use crate::{
    Source,
    kind::{BuildResult, Parts, PlatformKind, segments},
};

pub(crate) const KIND: PlatformKind = PlatformKind {
    source: Some(Source::Forum),
    newest: |_| Some("newest"),
    newest_has: |_| true,
    // Its search is by time.
    reach: Reach::Time(Duration::MAX),
    // A comment does not say on which list its post is.
    comments_of: |what| (what != "comments").then(|| "comments".to_owned()),
    holds_comments: |what| what == "comments",
    ..PlatformKind::new(
        "hackernews",
        |_, what| accepts(what),
        page_of,
        feed_of,
        build,
    )
};

fn page_of(_: Option<&Url>, what: &str) -> Option<Url> {
    let list = if what == "comments" {
        "newcomments"
    } else {
        what
    };
    Url::parse(&format!("https://news.ycombinator.com/{list}")).ok()
}

fn feed_of(_: Option<&Url>, page: &Url) -> Option<String> {
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

fn build(parts: &Parts<'_>) -> BuildResult {
    let items = parts.settings.items_url.clone();
    let adapter = HackerNews::new(parts.name(), parts.base_url()?, items, parts.direct()?);
    Ok(Arc::new(adapter))
}
