//! `/v1/namespaces/{namespaceId}/managers/{managerId}:backfill`

use actix_web::web::Path;
use domain::{
    FeedName, Timestamp,
    audit::{Action, Entry},
    backfill::CreateBackfill,
};
use serde::Serialize;
use store::backfills;

use super::ManagerPath;
use crate::{
    ApiError, answer::Found, authenticate::Caller, body::RawJson, parent::Parent,
    transaction::Outcome,
};

#[derive(Serialize)]
pub(crate) struct Backfill {
    feeds: Vec<Reached>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Reached {
    feed: FeedName,
    reach_time: Timestamp,
}

/// `POST /v1/namespaces/{namespaceId}/managers/{managerId}:backfill`
///
/// The job is stored in the database, where scanners find it.
pub(crate) async fn create(
    caller: Caller,
    path: Path<ManagerPath>,
    body: RawJson,
) -> Result<Found<Backfill>, ApiError> {
    let namespace = caller.writable(path.namespace_id()).await?;
    let now = Timestamp::now();
    let body = body.read().await?;
    let name = path.name()?;
    let of_platforms = caller.state.clone();
    caller
        .write(async move |conn| {
            Parent::Manager(name).check(conn).await?;
            let draft = body.parse(|json| CreateBackfill::parse(json, now))?;
            let reach = |feed: &FeedName| of_platforms.feeds().reach_of(feed);
            let (start, window) = (draft.start_time, of_platforms.backfill);
            let reached =
                backfills::request(conn, name, start, draft.notify, window, reach).await?;
            let feeds = reached.into_iter().map(|one| Reached {
                feed: one.feed,
                reach_time: one.reach_time,
            });
            let backfill = Backfill {
                feeds: feeds.collect(),
            };
            let entry = Entry::of(Action::Backfill, namespace, name);
            Ok(Outcome::of(Found(backfill), Some(entry)))
        })
        .await
}
