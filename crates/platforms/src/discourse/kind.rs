//! Facts about a Discourse site that need no request.

use std::sync::Arc;

use domain::Reach;
use url::Url;

use super::{Discourse, Key, accepts};
use crate::{
    Source,
    kind::{BuildResult, PAGES, Parts, PlatformKind, is_number, own_segments, page_below},
};

pub(crate) const KIND: PlatformKind = PlatformKind {
    source: Some(Source::Forum),
    newest: |_| Some("latest"),
    newest_has: |_| true,
    reach: Reach::Posts(PAGES * 30),
    // There is no such list for a single category.
    comments_of: |what| (what == "latest").then(|| "posts".to_owned()),
    holds_comments: |what| what == "posts",
    ..PlatformKind::new(
        "discourse",
        |_, what| accepts(what),
        page_of,
        feed_of,
        build,
    )
};

fn page_of(base_url: Option<&Url>, what: &str) -> Option<Url> {
    page_below(base_url, if what == "posts" { "latest" } else { what })
}

fn feed_of(base_url: Option<&Url>, page: &Url) -> Option<String> {
    match *own_segments(base_url, page)?.as_slice() {
        [] | ["latest" | "new" | "top" | "categories"] | ["t", ..] => Some("latest".to_owned()),
        ["posts"] => Some("posts".to_owned()),
        ["c", .., slug, id] if is_number(id) => Some(format!("c/{slug}/{id}")),
        _ => None,
    }
}

fn build(parts: &Parts<'_>) -> BuildResult {
    let access = &parts.settings.access;
    let key = match (&access.token, &access.client_id) {
        (Some(key), Some(username)) => Some(Key {
            key: key.clone(),
            username: username.clone(),
        }),
        (None, None) => None,
        _ => return Err(parts.wrong("token and client_id go together")),
    };
    let adapter = Discourse::new(parts.name(), parts.base_url()?, key, parts.direct()?);
    Ok(Arc::new(adapter))
}
