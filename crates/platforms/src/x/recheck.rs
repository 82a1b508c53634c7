//! Checks whether posts still exist. It costs the same as reading them.

use super::{
    MOST, X,
    tweet::{native_id, post_id},
};
use crate::{PollError, address::below};

pub(super) const BATCH: usize = 100;

pub(super) async fn gone(platform: &X, post_ids: &[String]) -> Result<Vec<String>, PollError> {
    let ids: Vec<&str> = post_ids.iter().filter_map(|id| native_id(id)).collect();
    let mut gone = Vec::new();
    for some in ids.chunks(BATCH) {
        let wanted = u32::try_from(some.len()).unwrap_or(MOST);
        // All or none: a partial budget could not check them all.
        let granted = platform.spend(wanted, wanted).await?;
        let mut url = below(&platform.base_url, "2/tweets");
        url.query_pairs_mut().append_pair("ids", &some.join(","));
        let answer = match platform.get(&url, "tweets").await {
            Ok(answer) => answer,
            Err(error) => {
                platform.was_not_answered(granted, &error).await;
                return Err(error);
            }
        };
        let paid = u32::try_from(answer.data.len()).unwrap_or(granted);
        platform.budget.refund(granted.saturating_sub(paid)).await;
        for problem in answer.problems() {
            let away = ["/resource-not-found", "/not-authorized-for-resource"];
            let away = away.iter().any(|end| problem.r#type.ends_with(end));
            let id = problem.resource_id.as_deref().or(problem.value.as_deref());
            if let Some(id) = id.filter(|id| away && some.contains(id)) {
                gone.push(post_id(id));
            }
        }
    }
    Ok(gone)
}
