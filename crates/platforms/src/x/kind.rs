//! Facts about X that need no request.

use std::{sync::Arc, time::Duration};

use domain::Reach;
use url::Url;

use super::{X, accepts, left};
use crate::{
    Source,
    kind::{BuildResult, Parts, PlatformKind, decoded, is_under, segments},
};

/// Paths that are not names of users.
const OWN: [&str; 11] = [
    "home",
    "explore",
    "i",
    "intent",
    "login",
    "messages",
    "notifications",
    "privacy",
    "settings",
    "share",
    "tos",
];

pub(crate) const KIND: PlatformKind = PlatformKind {
    source: Some(Source::Microblog),
    // The limit of recent search.
    reach: Reach::Time(Duration::from_hours(24 * 7)),
    must_erase: true,
    ..PlatformKind::new("x", |_, what| accepts(what), page_of, feed_of, build)
};

fn page_of(_: Option<&Url>, what: &str) -> Option<Url> {
    let mut url = Url::parse("https://x.com/search").ok()?;
    let query = what.strip_prefix("search/").unwrap_or(what);
    url.query_pairs_mut()
        .append_pair("q", query)
        .append_pair("f", "live");
    Some(url)
}

fn feed_of(_: Option<&Url>, page: &Url) -> Option<String> {
    if !(is_under(page, "x.com") || is_under(page, "twitter.com")) {
        return None;
    }
    let word = |name: &str| {
        (1..=15).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    match *segments(page)?.as_slice() {
        ["search"] => {
            let query = page.query_pairs().find(|(key, _)| key == "q")?.1;
            Some(format!("search/{}", query.trim()))
        }
        ["hashtag", tag] => Some(format!("search/#{}", decoded(tag))),
        // The posts of that user.
        [name] | [name, "status", ..] if word(name) && !OWN.contains(&name) => {
            Some(format!("search/from:{name}"))
        }
        _ => None,
    }
}

fn build(parts: &Parts<'_>) -> BuildResult {
    if parts.settings.access.posts_per_day.is_none() {
        return Err(parts.wrong("posts_per_day is needed"));
    }
    let fetch = parts.direct_reading(left)?;
    let budget = Arc::clone(parts.budget);
    let adapter = X::new(parts.base_url()?, parts.token()?, fetch, budget);
    Ok(Arc::new(adapter))
}
