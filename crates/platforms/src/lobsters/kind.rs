//! Facts about Lobsters, or a site that runs its software, that need no request.

use std::sync::Arc;

use domain::Reach;
use url::Url;

use super::{Lobsters, accepts};
use crate::{
    Source,
    kind::{BuildResult, PAGES, Parts, PlatformKind, decoded, own_segments, page_below},
};

pub(crate) const KIND: PlatformKind = PlatformKind {
    source: Some(Source::Forum),
    newest: |_| Some("newest"),
    newest_has: |_| true,
    reach: Reach::Posts(PAGES * 25),
    // The site asks scrapers for a second between requests.
    requests_per_minute: Some(60),
    ..PlatformKind::new(
        "lobsters",
        |_, what| accepts(what),
        page_below,
        feed_of,
        build,
    )
};

fn feed_of(base_url: Option<&Url>, page: &Url) -> Option<String> {
    match *own_segments(base_url, page)?.as_slice() {
        // The address of a story does not contain its tags.
        [] | ["newest" | "recent" | "active" | "page" | "s", ..] => Some("newest".to_owned()),
        ["t", tag, ..] => Some(format!("t/{}", decoded(tag))),
        _ => None,
    }
}

fn build(parts: &Parts<'_>) -> BuildResult {
    let adapter = Lobsters::new(parts.name(), parts.base_url()?, parts.direct()?);
    Ok(Arc::new(adapter))
}
