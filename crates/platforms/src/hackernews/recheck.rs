//! Checks whether posts still exist, one request each. Firebase marks a deleted item as deleted, and has the text of
//! others. Algolia, which is used without Firebase, just does not have it any more.

use domain::Timestamp;
use futures::{StreamExt, TryStreamExt, stream};

use super::{HackerNews, firebase};
use crate::{FetchLimits, PollError, RecheckResult, address::below};

/// One request each.
pub(super) const BATCH: usize = 50;
const AT_ONCE: usize = 8;

pub(super) async fn check(
    platform: &HackerNews,
    ids: &[String],
) -> Result<RecheckResult, PollError> {
    let ids: Vec<String> = ids.iter().take(BATCH).cloned().collect();
    stream::iter(ids)
        .map(|id| look_up(platform, id))
        .buffered(AT_ONCE)
        .try_fold(RecheckResult::default(), |mut all, one| async move {
            all.gone.extend(one.gone);
            all.current.extend(one.current);
            Ok(all)
        })
        .await
}

async fn look_up(platform: &HackerNews, id: String) -> Result<RecheckResult, PollError> {
    let mut result = RecheckResult::default();
    let native = id.strip_prefix(&platform.name);
    let native = native.and_then(|rest| rest.strip_prefix(':')?.parse::<u64>().ok());
    let Some(native) = native else {
        return Ok(result);
    };
    if platform.items_url.is_some() {
        // `null` proves nothing: a failing read also returns it.
        match firebase::item(platform, native).await? {
            Some(item) if item.is_gone() => result.gone.push(id),
            Some(item) => {
                let time = item.time().unwrap_or_else(Timestamp::now);
                let post = item.post(&platform.name, time).ok().flatten();
                result.current.extend(post.filter(|post| post.id == id));
            }
            None => {}
        }
        return Ok(result);
    }
    let url = below(&platform.search_url, &format!("items/{native}"));
    let limits = FetchLimits::default();
    let answer = platform.fetch.get(&url, &[], &limits).await?;
    match answer.success("items") {
        Ok(_) => {}
        Err(PollError::NotFound(_)) => result.gone.push(id),
        Err(error) => return Err(error),
    }
    Ok(result)
}
