//! Checks whether statuses still exist. Only the instance's own can be checked: the native ids of remote
//! statuses are not known, and Earshot does not contact their servers.

use serde_json::Value;
use url::Url;

use super::{Mastodon, is_id};
use crate::{PollError, adapter::refuse_if_all_gone, address::below};

/// Maximum number of statuses in one request.
pub(super) const BATCH: usize = 20;

pub(super) async fn gone(
    platform: &Mastodon,
    post_ids: &[String],
) -> Result<Vec<String>, PollError> {
    let own = post_ids
        .iter()
        .filter_map(|uri| Some((uri, native_id(&platform.base_url, uri)?)));
    let own: Vec<(&String, String)> = own.collect();
    let mut gone = Vec::new();
    for some in own.chunks(BATCH) {
        let mut url = below(&platform.base_url, "api/v1/statuses");
        let pairs = some.iter().map(|(_, id)| ("id[]", id));
        url.query_pairs_mut().extend_pairs(pairs);
        let answer = platform.get(&url).await?;
        // Before 4.3, each status takes a request.
        let there: Vec<Value> = if matches!(answer.status, 404 | 405) {
            Vec::new()
        } else {
            answer.success("statuses")?.json()?
        };
        for (uri, id) in some {
            // A response may be short for other reasons, so each missing status is requested again alone.
            if !there.iter().any(|status| status["id"] == **id) && is_gone(platform, id).await? {
                gone.push((*uri).clone());
            }
        }
    }
    refuse_if_all_gone(own.len(), gone.len())?;
    Ok(gone)
}

async fn is_gone(platform: &Mastodon, id: &str) -> Result<bool, PollError> {
    let url = below(&platform.base_url, &format!("api/v1/statuses/{id}"));
    match platform.get(&url).await?.success("status") {
        Ok(_) => Ok(false),
        Err(PollError::NotFound(_)) => Ok(true),
        Err(error) => Err(error),
    }
}

/// The native id in the URI of a status of this instance.
fn native_id(base: &Url, uri: &str) -> Option<String> {
    let url = Url::parse(uri).ok()?;
    let own =
        (url.host(), url.port_or_known_default()) == (base.host(), base.port_or_known_default());
    let id = url.path_segments()?.next_back()?;
    (own && url.path().contains("/statuses/") && is_id(id)).then(|| id.to_owned())
}
