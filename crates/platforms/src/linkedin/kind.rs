//! Facts about LinkedIn that need no request.

use std::sync::Arc;

use domain::Reach;
use url::Url;

use super::{LinkedIn, accepts};
use crate::{
    Adapter, SettingsError, Source,
    kind::{PAGES, Parts, PlatformKind, is_number, is_under, segments},
};

pub(crate) struct Kind;

impl PlatformKind for Kind {
    fn name(&self) -> &'static str {
        "linkedin"
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
        let id = what.strip_prefix("organization/")?;
        Url::parse(&format!("https://www.linkedin.com/company/{id}/posts/")).ok()
    }

    /// An organization is identified by its number; company names are not looked up.
    fn feed_of(&self, _: Option<&Url>, page: &Url) -> Option<String> {
        match *segments(page)?.as_slice() {
            ["company" | "showcase" | "school", id, ..]
                if is_under(page, "linkedin.com") && is_number(id) =>
            {
                Some(format!("organization/{id}"))
            }
            _ => None,
        }
    }

    fn build(&self, parts: &Parts<'_>) -> Result<Arc<dyn Adapter>, SettingsError> {
        let version = parts.settings.access.api_version.clone();
        let version = version.ok_or_else(|| parts.wrong("api_version is needed"))?;
        let (token, fetch) = (parts.token()?, parts.direct()?);
        let adapter = LinkedIn::new(parts.base_url()?, token, version, fetch);
        Ok(Arc::new(adapter))
    }
}
