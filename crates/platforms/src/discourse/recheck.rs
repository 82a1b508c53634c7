//! Checks whether topics and replies still exist, one request each.

use super::{
    Discourse,
    shape::{self, Topic},
};
use crate::PollError;

/// Well below the number of requests that an address may make in ten seconds.
pub(super) const BATCH: usize = 20;

pub(super) async fn gone(site: &Discourse, ids: &[String]) -> Result<Vec<String>, PollError> {
    let mut gone = Vec::new();
    for id in ids.iter().take(BATCH) {
        let native = id.strip_prefix(&site.name);
        let native = native.and_then(|rest| rest.strip_prefix(':')?.split_once('/'));
        let answer = match native {
            Some(("t", number)) if number.parse::<u64>().is_ok() => {
                let url = site.below(&format!("t/{number}.json"));
                let topic = site.get::<Topic>(&url, "topic").await;
                topic.map(|topic| topic.is_gone())
            }
            Some(("p", number)) if number.parse::<u64>().is_ok() => {
                let url = site.below(&format!("posts/{number}.json"));
                let post = site.get::<shape::Post>(&url, "post").await;
                post.map(|post| post.is_gone())
            }
            _ => continue,
        };
        match answer {
            Ok(false) => {}
            // 403 may also mean a revoked key: it says nothing about one post.
            Ok(true) | Err(PollError::NotFound(_)) => gone.push(id.clone()),
            Err(error) => return Err(error),
        }
    }
    Ok(gone)
}
