//! Facts about LinkedIn that need no request.

use std::sync::Arc;

use domain::Reach;
use url::Url;

use super::{LinkedIn, accepts};
use crate::{
    Source,
    kind::{BuildResult, PAGES, Parts, PlatformKind, is_number, is_under, segments},
};

pub(crate) const KIND: PlatformKind = PlatformKind {
    source: Some(Source::Network),
    reach: Reach::Posts(PAGES * 25),
    ..PlatformKind::new("linkedin", |_, what| accepts(what), page_of, feed_of, build)
};

fn page_of(_: Option<&Url>, what: &str) -> Option<Url> {
    let id = what.strip_prefix("organization/")?;
    Url::parse(&format!("https://www.linkedin.com/company/{id}/posts/")).ok()
}

/// An organization is identified by its number; company names are not looked up.
fn feed_of(_: Option<&Url>, page: &Url) -> Option<String> {
    match *segments(page)?.as_slice() {
        ["company" | "showcase" | "school", id, ..]
            if is_under(page, "linkedin.com") && is_number(id) =>
        {
            Some(format!("organization/{id}"))
        }
        _ => None,
    }
}

fn build(parts: &Parts<'_>) -> BuildResult {
    let version = parts.settings.access.api_version.clone();
    let version = version.ok_or_else(|| parts.wrong("api_version is needed"))?;
    let (token, fetch) = (parts.token()?, parts.direct()?);
    let adapter = LinkedIn::new(parts.base_url()?, token, version, fetch);
    Ok(Arc::new(adapter))
}
