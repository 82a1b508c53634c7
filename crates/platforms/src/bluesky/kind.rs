//! Facts about Bluesky that need no request.

use std::sync::Arc;

use url::Url;

use super::{JETSTREAM, Jetstream, PUBLIC_API, accepts, hosts, is_public};
use crate::{
    Source,
    kind::{BuildResult, Parts, PlatformKind, is_under, segments},
};

pub(crate) const KIND: PlatformKind = PlatformKind {
    source: Some(Source::Microblog),
    newest: |_| Some(JETSTREAM),
    newest_has: |_| true,
    is_streamed: true,
    ..PlatformKind::new(
        "bluesky",
        |_, what| accepts(what),
        |_, _| Url::parse("https://bsky.app/").ok(),
        feed_of,
        build,
    )
};

/// One stream contains all posts.
fn feed_of(_: Option<&Url>, page: &Url) -> Option<String> {
    let is_page = matches!(
        *segments(page)?.as_slice(),
        [] | ["profile" | "hashtag" | "search", ..]
    );
    (is_under(page, "bsky.app") && is_page).then(|| JETSTREAM.to_owned())
}

fn build(parts: &Parts<'_>) -> BuildResult {
    let base_url = parts.base_url()?;
    let agent = parts.settings.access.user_agent.as_deref();
    let adapter = Jetstream::new(hosts(&base_url), agent, Arc::clone(parts.budget));
    let items_url = &parts.settings.items_url;
    let public = || Url::parse(PUBLIC_API).ok();
    let app_view = items_url.clone();
    let app_view = app_view.or_else(|| public().filter(|_| is_public(&base_url)));
    let adapter = match app_view {
        Some(url) => adapter.with_app_view(url, parts.direct()?, items_url.is_some()),
        None => adapter,
    };
    Ok(Arc::new(adapter))
}
