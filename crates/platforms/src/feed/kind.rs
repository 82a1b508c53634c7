//! Facts about feeds that need no request.

use std::sync::Arc;

use url::Url;

use super::{FeedAdapter, address};
use crate::kind::{BuildResult, Parts, PlatformKind, page_below};

pub(crate) const KIND: PlatformKind = PlatformKind {
    newest: |base_url| base_url.map(|_| "newest"),
    takes_any_address: |base_url| base_url.is_none(),
    ..PlatformKind::new(
        "feed",
        |base_url, what| address(base_url, what).is_some(),
        page_of,
        feed_of,
        build,
    )
};

fn page_of(base_url: Option<&Url>, what: &str) -> Option<Url> {
    let Some(base) = base_url else {
        return Url::parse(what).ok();
    };
    let mut url = page_below(base_url, "")?;
    url.set_path(base.path());
    Some(url)
}

fn feed_of(base_url: Option<&Url>, page: &Url) -> Option<String> {
    (base_url == Some(page)).then(|| "newest".to_owned())
}

fn build(parts: &Parts<'_>) -> BuildResult {
    let source = parts.settings.source;
    let source = source.ok_or_else(|| parts.wrong("source is needed for kind `feed`"))?;
    let base_url = parts.settings.base_url.clone();
    let fetch = match base_url {
        Some(_) => parts.direct()?,
        None => parts.guarded(),
    };
    let adapter = FeedAdapter::new(parts.name(), source, base_url, fetch)
        .with_address_key(parts.address_key.clone());
    Ok(Arc::new(adapter))
}
