//! Facts about Facebook that need no request.

use std::sync::Arc;

use domain::Reach;
use url::Url;

use super::{Facebook, accepts, left};
use crate::{
    Source,
    kind::{BuildResult, PAGES, Parts, PlatformKind, is_number, is_under, segments},
};

/// Paths that are not Pages.
const OWN: [&str; 13] = [
    "events",
    "groups",
    "hashtag",
    "help",
    "login",
    "login.php",
    "marketplace",
    "permalink.php",
    "photo",
    "policies",
    "share",
    "sharer",
    "watch",
];

pub(crate) const KIND: PlatformKind = PlatformKind {
    source: Some(Source::Network),
    reach: Reach::Posts(PAGES * 25),
    ..PlatformKind::new("facebook", |_, what| accepts(what), page_of, feed_of, build)
};

fn page_of(_: Option<&Url>, what: &str) -> Option<Url> {
    let page = what.strip_prefix("page/")?;
    Url::parse(&format!("https://www.facebook.com/{page}")).ok()
}

fn feed_of(_: Option<&Url>, page: &Url) -> Option<String> {
    if !is_under(page, "facebook.com") {
        return None;
    }
    match *segments(page)?.as_slice() {
        ["profile.php"] => {
            let id = page.query_pairs().find(|(key, _)| key == "id")?.1;
            is_number(&id).then(|| format!("page/{id}"))
        }
        ["people" | "pages", _, id, ..] if is_number(id) => Some(format!("page/{id}")),
        [
            "people" | "pages" | "p" | "search" | "photo.php" | "story.php",
            ..,
        ] => None,
        [name, ..] if !OWN.contains(&name) => Some(format!("page/{name}")),
        _ => None,
    }
}

fn build(parts: &Parts<'_>) -> BuildResult {
    let fetch = parts.direct_reading(left)?;
    let version = parts.settings.access.api_version.clone();
    let (base_url, token) = (parts.base_url()?, parts.token()?);
    let adapter = Facebook::new(parts.name(), base_url, token, version, fetch);
    Ok(Arc::new(adapter))
}
