//! Facts about Reddit that need no request.

use std::sync::Arc;

use domain::Reach;
use url::Url;

use super::{Reddit, accepts, left};
use crate::{
    Source,
    kind::{BuildResult, Parts, PlatformKind, decoded, is_under, segments},
};

pub(crate) const KIND: PlatformKind = PlatformKind {
    source: Some(Source::Forum),
    // No listing goes further back.
    reach: Reach::Posts(1_000),
    comments_of: |what| (!holds_comments(what)).then(|| format!("{what}/comments")),
    holds_comments,
    must_erase: true,
    ..PlatformKind::new("reddit", |_, what| accepts(what), page_of, feed_of, build)
};

fn page_of(_: Option<&Url>, what: &str) -> Option<Url> {
    let list = if holds_comments(what) { "" } else { "new/" };
    Url::parse(&format!("https://www.reddit.com/{what}/{list}")).ok()
}

fn feed_of(_: Option<&Url>, page: &Url) -> Option<String> {
    match *segments(page)?.as_slice() {
        ["r", subreddits, ..] if is_under(page, "reddit.com") => {
            Some(format!("r/{}", decoded(subreddits)))
        }
        _ => None,
    }
}

fn holds_comments(what: &str) -> bool {
    // A subreddit may have this name too.
    match what.split_once('/') {
        Some((_, place)) => place.ends_with("/comments"),
        None => what == "comments",
    }
}

fn build(parts: &Parts<'_>) -> BuildResult {
    let access = &parts.settings.access;
    let id = access.client_id.clone();
    let id = id.ok_or_else(|| parts.wrong("client_id is needed"))?;
    let secret = access.client_secret.clone();
    let secret = secret.ok_or_else(|| parts.wrong("client_secret is needed"))?;
    // Its format is checked where it is configured.
    if access.user_agent.is_none() {
        return Err(parts.wrong("user_agent is needed"));
    }
    let fetch = parts.direct_reading(left)?;
    let adapter = Reddit::new(parts.name(), parts.base_url()?, id, secret, fetch);
    Ok(Arc::new(adapter))
}
