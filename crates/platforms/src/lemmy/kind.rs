//! Facts about a Lemmy instance that need no request.

use std::sync::Arc;

use domain::Reach;
use url::Url;

use super::{Lemmy, accepts};
use crate::{
    Source,
    kind::{BuildResult, PAGES, Parts, PlatformKind, decoded, own_segments, page_below},
};

pub(crate) const KIND: PlatformKind = PlatformKind {
    source: Some(Source::Forum),
    newest: |_| Some("newest"),
    // An instance's own feed has only its own communities.
    newest_has: |what| !what.contains('@'),
    reach: Reach::Posts(PAGES * 50),
    comments_of,
    holds_comments,
    ..PlatformKind::new("lemmy", |_, what| accepts(what), page_of, feed_of, build)
};

fn page_of(base_url: Option<&Url>, what: &str) -> Option<Url> {
    let path = match what {
        "newest" | "comments" => "",
        list if holds_comments(list) => list.strip_suffix("/comments")?,
        community => community,
    };
    page_below(base_url, path)
}

fn feed_of(base_url: Option<&Url>, page: &Url) -> Option<String> {
    match *own_segments(base_url, page)?.as_slice() {
        // The address of a post or comment does not contain its community.
        [] | ["post" | "comment", ..] => Some("newest".to_owned()),
        ["c", community, ..] => Some(format!("c/{}", decoded(community))),
        _ => None,
    }
}

fn comments_of(what: &str) -> Option<String> {
    match what {
        "newest" => Some("comments".to_owned()),
        comments if holds_comments(comments) => None,
        place => Some(format!("{place}/comments")),
    }
}

fn holds_comments(what: &str) -> bool {
    // A community may have this name too.
    match what.split_once('/') {
        Some((_, place)) => place.ends_with("/comments"),
        None => what == "comments",
    }
}

fn build(parts: &Parts<'_>) -> BuildResult {
    let token = parts.settings.access.token.clone();
    let adapter = Lemmy::new(parts.base_url()?, parts.direct()?).with_token(token);
    Ok(Arc::new(adapter))
}
