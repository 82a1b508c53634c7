//! Checks whether posts still exist, one request each.
//!
//! An instance knows a post by a local number, which is part of the address of a post written there. A post
//! from another instance has an address of that instance, and cannot be checked here.

use serde::Deserialize;
use url::Url;

use super::Lemmy;
use crate::null;
use crate::{PollError, address::below};

/// One request each.
pub(super) const BATCH: usize = 20;

#[derive(Deserialize)]
struct Answer {
    post_view: Option<Found>,
    comment_view: Option<Found>,
}

#[derive(Deserialize)]
struct Found {
    post: Option<Thing>,
    comment: Option<Thing>,
}

#[derive(Deserialize)]
struct Thing {
    #[serde(default, deserialize_with = "null::or_default")]
    deleted: bool,
    #[serde(default, deserialize_with = "null::or_default")]
    removed: bool,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
}

pub(super) async fn gone(platform: &Lemmy, ids: &[String]) -> Result<Vec<String>, PollError> {
    let mut gone = Vec::new();
    for id in ids.iter().take(BATCH) {
        if let Some((kind, number)) = local(&platform.base_url, id)
            && is_gone(platform, kind, number).await?
        {
            gone.push(id.clone());
        }
    }
    Ok(gone)
}

async fn is_gone(platform: &Lemmy, kind: &str, number: u64) -> Result<bool, PollError> {
    let mut url = below(&platform.base_url, &format!("api/v3/{kind}"));
    url.query_pairs_mut().append_pair("id", &number.to_string());
    let answer = platform.get(&url).await?;
    if matches!(answer.status, 400 | 404) {
        let refusal = answer.json::<Refusal>();
        let error = refusal.map(|refusal| refusal.error).unwrap_or_default();
        // The instance has purged the post. Any other 404 may come from the server in front of it.
        if matches!(
            &*error,
            "couldnt_find_post" | "couldnt_find_comment" | "couldnt_find_object" | "not_found"
        ) {
            return Ok(true);
        }
    }
    super::refusal(&answer, kind)?;
    let answer: Answer = answer.success(kind)?.json()?;
    let found = answer.post_view.and_then(|view| view.post);
    let found = found.or(answer.comment_view.and_then(|view| view.comment));
    let thing = found.ok_or_else(|| PollError::Malformed(format!("a {kind} is missing")))?;
    Ok(thing.deleted || thing.removed)
}

/// `post` or `comment`, and its number on this instance.
fn local<'a>(base: &Url, id: &'a str) -> Option<(&'a str, u64)> {
    let url = Url::parse(id).ok()?;
    let here =
        url.host() == base.host() && url.port_or_known_default() == base.port_or_known_default();
    let mut parts = id.rsplit('/');
    let number = parts.next()?.parse().ok()?;
    let kind = parts.next()?;
    (here && matches!(kind, "post" | "comment")).then_some((kind, number))
}
