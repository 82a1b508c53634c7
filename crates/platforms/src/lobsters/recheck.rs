//! Checks whether stories still exist, one request each. A deleted story is 404; one that was merged into
//! another redirects to it, and is not gone.

use super::{Lobsters, story::is_short_id};
use crate::{PollError, address::below};

/// Number of requests that the site allows in a second.
pub(super) const BATCH: usize = 5;

pub(super) async fn gone(site: &Lobsters, ids: &[String]) -> Result<Vec<String>, PollError> {
    let mut gone = Vec::new();
    for id in ids.iter().take(BATCH) {
        let native = id.strip_prefix(&site.name);
        let native = native.and_then(|rest| rest.strip_prefix(':'));
        let Some(native) = native.filter(|native| is_short_id(native)) else {
            continue;
        };
        let url = below(&site.base_url, &format!("s/{native}.json"));
        match site.get(&url, "story").await {
            Ok(_) => {}
            Err(PollError::NotFound(_)) => gone.push(id.clone()),
            Err(error) => return Err(error),
        }
    }
    Ok(gone)
}
