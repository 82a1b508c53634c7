//! `/v1/namespaces/{namespaceId}/connections/{connectionId}/replays`, and `:replay`, which creates them.

use actix_web::web::Path;
use domain::{
    Issue, Issues, Replay,
    audit::{Action, Entry},
    list::REPLAY_FIELDS,
    replay::CreateReplay,
};
use serde_json::{Map, Value};
use store::replays;

use super::{ConnectionPath, ReplayPath};
use crate::{
    ApiError,
    answer::{Found, Listed},
    authenticate::Caller,
    body::RawJson,
    pages,
    parent::Parent,
    query::Parameters,
    transaction::Outcome,
};

/// `POST /v1/namespaces/{namespaceId}/connections/{connectionId}:replay`
///
/// The job is stored in the database, where dispatchers process it.
pub(crate) async fn create(
    caller: Caller,
    path: Path<ConnectionPath>,
    body: RawJson,
) -> Result<Found<Replay>, ApiError> {
    let namespace = caller.writable(path.namespace_id()).await?;
    let body = body.read().await?;
    let connection = path.name()?;
    caller
        .write(async move |conn| {
            Parent::Connection(connection).check(conn).await?;
            let draft = body.parse(CreateReplay::parse)?;
            let replay = replays::insert(conn, connection, &draft).await?;
            let replay = replay.ok_or_else(too_many)?;
            let entry = Entry::of(Action::Replay, namespace, replay.name);
            Ok(Outcome::of(Found(replay), Some(entry)))
        })
        .await
}

fn too_many() -> ApiError {
    let hint = format!(
        "{} replays of this connection run already, cancel one or wait",
        replays::MAX_RUNNING
    );
    Issues::one_with_hint("replays", Issue::TooMany, hint).into()
}

/// `GET /v1/namespaces/{namespaceId}/connections/{connectionId}/replays`
pub(crate) async fn list(
    caller: Caller,
    path: Path<ConnectionPath>,
    query: Parameters,
) -> Result<Listed<Replay>, ApiError> {
    let namespace = caller.readable(path.namespace_id()).await?;
    let parent = format!("{namespace}/{}/replays", path.id());
    let connection = path.name()?;
    let query = query.list(&parent, REPLAY_FIELDS);
    let query = &Parent::Connection(connection)
        .before(&caller, query)
        .await?;
    let page = pages::page_of(
        &caller,
        Parent::Connection(connection),
        query,
        async move |conn| replays::cost(conn, connection, query).await,
        async move |conn| replays::list(conn, connection, query).await,
    )
    .await?;
    Ok(Listed {
        key: "replays",
        page,
    })
}

/// `GET /v1/namespaces/{namespaceId}/connections/{connectionId}/replays/{replayId}`
pub(crate) async fn get(
    caller: Caller,
    path: Path<ReplayPath>,
    query: Parameters,
) -> Result<Found<Replay>, ApiError> {
    caller.readable(path.namespace_id()).await?;
    let name = path.name()?;
    let mut conn = caller.connection().await?;
    let found = replays::get(&mut conn, name).await?;
    let found = found.ok_or(ApiError::NotFound("replay"))?;
    query.none()?;
    Ok(Found(found))
}

/// `DELETE /v1/namespaces/{namespaceId}/connections/{connectionId}/replays/{replayId}`
///
/// Cancels the replay. It stays in the list, with its progress.
pub(crate) async fn cancel(
    caller: Caller,
    path: Path<ReplayPath>,
    query: Parameters,
) -> Result<Found<Map<String, Value>>, ApiError> {
    let namespace = caller.writable(path.namespace_id()).await?;
    let name = path.name()?;
    caller
        .write(async move |conn| {
            if replays::cancel(conn, name).await? {
                query.none()?;
                let entry = Entry::of(Action::Cancel, namespace, name);
                Ok(Outcome::of(Found(Map::new()), Some(entry)))
            } else {
                Err(ApiError::NotFound("replay"))
            }
        })
        .await
}
