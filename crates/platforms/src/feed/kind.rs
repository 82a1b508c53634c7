//! Facts about feeds that need no request.

use std::sync::Arc;

use url::Url;

use super::{Feeds, address};
use crate::{
    Adapter, SettingsError, Source,
    kind::{Parts, PlatformKind, page_below},
};

pub(crate) struct Kind;

impl PlatformKind for Kind {
    fn name(&self) -> &'static str {
        "feed"
    }

    fn source(&self) -> Option<Source> {
        None
    }

    fn accepts(&self, base_url: Option<&Url>, what: &str) -> bool {
        address(base_url, what).is_some()
    }

    fn newest(&self, base_url: Option<&Url>) -> Option<&'static str> {
        base_url.map(|_| "newest")
    }

    fn page_of(&self, base_url: Option<&Url>, what: &str) -> Option<Url> {
        let Some(base) = base_url else {
            return Url::parse(what).ok();
        };
        let mut url = page_below(base_url, "")?;
        url.set_path(base.path());
        Some(url)
    }

    fn feed_of(&self, base_url: Option<&Url>, page: &Url) -> Option<String> {
        (base_url == Some(page)).then(|| "newest".to_owned())
    }

    fn takes_any_address(&self, base_url: Option<&Url>) -> bool {
        base_url.is_none()
    }

    fn build(&self, parts: &Parts<'_>) -> Result<Arc<dyn Adapter>, SettingsError> {
        let source = parts.settings.source;
        let source = source.ok_or_else(|| parts.wrong("source is needed for kind `feed`"))?;
        let base_url = parts.settings.base_url.clone();
        let fetch = match base_url {
            Some(_) => parts.direct()?,
            None => parts.guarded(),
        };
        let adapter = Feeds::new(parts.name(), source, base_url, fetch)
            .with_address_key(parts.address_key.clone());
        Ok(Arc::new(adapter))
    }
}
