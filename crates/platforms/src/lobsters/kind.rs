//! Facts about Lobsters, or a site that runs its software, that need no request.

use std::sync::Arc;

use domain::Reach;
use url::Url;

use super::{Lobsters, PER_PAGE, accepts, simulator};
use crate::{
    Adapter, SettingsError, Source,
    kind::{PAGES, Parts, PlatformKind, decoded, own_segments, page_below},
    simulator::simulated::Simulated,
};

pub(crate) struct Kind;

impl PlatformKind for Kind {
    fn name(&self) -> &'static str {
        "lobsters"
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

    fn reach(&self) -> Reach {
        let per_page = u32::try_from(PER_PAGE).unwrap_or_default();
        Reach::Posts(PAGES * per_page)
    }

    fn page_of(&self, base_url: Option<&Url>, what: &str) -> Option<Url> {
        page_below(base_url, what)
    }

    fn feed_of(&self, base_url: Option<&Url>, page: &Url) -> Option<String> {
        match *own_segments(base_url, page)?.as_slice() {
            // The address of a story does not contain its tags.
            [] | ["newest" | "recent" | "active" | "page" | "s", ..] => Some("newest".to_owned()),
            ["t", tag, ..] => Some(format!("t/{}", decoded(tag))),
            _ => None,
        }
    }

    /// The site asks scrapers for a second between requests.
    fn requests_per_minute(&self) -> Option<u32> {
        Some(60)
    }

    fn simulated(&self) -> Option<Simulated> {
        Some(simulator::SIMULATED)
    }

    fn build(&self, parts: &Parts<'_>) -> Result<Arc<dyn Adapter>, SettingsError> {
        let adapter = Lobsters::new(parts.name(), parts.base_url()?, parts.direct()?);
        Ok(Arc::new(adapter))
    }
}
