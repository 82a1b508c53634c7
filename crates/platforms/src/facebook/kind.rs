//! Facts about Facebook that need no request.

use std::sync::Arc;

use domain::Reach;
use url::Url;

use super::{Facebook, accepts, left};
use crate::{
    Adapter, SettingsError, Source,
    kind::{PAGES, Parts, PlatformKind, is_number, is_under, segments},
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

pub(crate) struct Kind;

impl PlatformKind for Kind {
    fn name(&self) -> &'static str {
        "facebook"
    }

    fn source(&self) -> Option<Source> {
        Some(Source::Network)
    }

    fn accepts(&self, _: Option<&Url>, what: &str) -> bool {
        accepts(what)
    }

    fn reach(&self) -> Reach {
        Reach::Posts(PAGES * 25)
    }

    fn page_of(&self, _: Option<&Url>, what: &str) -> Option<Url> {
        let page = what.strip_prefix("page/")?;
        Url::parse(&format!("https://www.facebook.com/{page}")).ok()
    }

    fn feed_of(&self, _: Option<&Url>, page: &Url) -> Option<String> {
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

    fn build(&self, parts: &Parts<'_>) -> Result<Arc<dyn Adapter>, SettingsError> {
        let fetch = parts.direct_reading(left)?;
        let version = parts.settings.access.api_version.clone();
        let (base_url, token) = (parts.base_url()?, parts.token()?);
        let adapter = Facebook::new(parts.name(), base_url, token, version, fetch);
        Ok(Arc::new(adapter))
    }
}
