//! Checks whether posts still exist, one request each. Firebase marks a deleted item as deleted. Algolia, which
//! is used without Firebase, just does not have it any more.

use futures::{StreamExt, TryStreamExt, stream};

use super::{HackerNews, firebase};
use crate::{FetchLimits, PollError, address::below};

/// One request each.
pub(super) const BATCH: usize = 50;
const AT_ONCE: usize = 8;

pub(super) async fn gone(platform: &HackerNews, ids: &[String]) -> Result<Vec<String>, PollError> {
    let ids: Vec<String> = ids.iter().take(BATCH).cloned().collect();
    stream::iter(ids)
        .map(|id| async move {
            let gone = is_gone(platform, &id).await?;
            Ok(gone.then_some(id))
        })
        .buffered(AT_ONCE)
        .try_filter_map(|id| async move { Ok(id) })
        .try_collect()
        .await
}

async fn is_gone(platform: &HackerNews, id: &str) -> Result<bool, PollError> {
    let native = id.strip_prefix(&platform.name);
    let native = native.and_then(|rest| rest.strip_prefix(':')?.parse::<u64>().ok());
    let Some(native) = native else {
        return Ok(false);
    };
    if platform.items_url.is_some() {
        // `null` proves nothing: a failing read also returns it.
        let item = firebase::item(platform, native).await?;
        return Ok(item.is_some_and(|item| item.is_gone()));
    }
    let url = below(&platform.search_url, &format!("items/{native}"));
    let limits = FetchLimits::default();
    let answer = platform.fetch.get(&url, &[], &limits).await?;
    match answer.success("items") {
        Ok(_) => Ok(false),
        Err(PollError::NotFound(_)) => Ok(true),
        Err(error) => Err(error),
    }
}
