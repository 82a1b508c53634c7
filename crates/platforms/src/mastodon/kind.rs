//! Facts about a Mastodon instance that need no request.

use std::sync::Arc;

use domain::Reach;
use url::Url;

use super::{Mastodon, accepts, left};
use crate::{
    Source,
    kind::{BuildResult, PAGES, Parts, PlatformKind, decoded, own_segments, page_below},
};

pub(crate) const KIND: PlatformKind = PlatformKind {
    source: Some(Source::Microblog),
    newest: |_| Some("public"),
    reach: Reach::Posts(PAGES * 40),
    ..PlatformKind::new("mastodon", |_, what| accepts(what), page_of, feed_of, build)
};

fn page_of(base_url: Option<&Url>, what: &str) -> Option<Url> {
    match what.strip_prefix("tag/") {
        Some(tag) => page_below(base_url, &format!("tags/{tag}")),
        None => page_below(base_url, "public"),
    }
}

/// Statuses and profiles map to the instance, whose public timeline contains them.
fn feed_of(base_url: Option<&Url>, page: &Url) -> Option<String> {
    match *own_segments(base_url, page)?.as_slice() {
        ["tags", tag, ..] => Some(format!("tag/{}", decoded(tag))),
        [] | ["public" | "explore", ..] => Some("public".to_owned()),
        [profile, ..] if profile.starts_with('@') => Some("public".to_owned()),
        ["users", _, ..] => Some("public".to_owned()),
        _ => None,
    }
}

fn build(parts: &Parts<'_>) -> BuildResult {
    let fetch = parts.direct_reading(left)?;
    let token = parts.settings.access.token.clone();
    let adapter = Mastodon::new(parts.base_url()?, token, fetch);
    Ok(Arc::new(adapter))
}
