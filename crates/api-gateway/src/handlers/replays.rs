//! `/v1/namespaces/{namespaceId}/connections/{connectionId}/replays`, and `:replay`, which creates them.

use actix_web::web::{Data, Path};
use domain::{
    Id, Issue, Issues, Replay, ReplayName,
    audit::{Action, Entry},
    list::REPLAY_FIELDS,
    replay::CreateReplay,
};
use serde_json::{Map, Value};
use store::{connections, replays};

use super::{ConnectionPath, ReplayPath};
use crate::{
    ApiError,
    answer::{Found, Listed},
    authenticate::Caller,
    body::RawJson,
    pages,
    query::Parameters,
    state::AppState,
    transaction::Outcome,
};

/// `POST /v1/namespaces/{namespaceId}/connections/{connectionId}:replay`
///
/// The job is stored in the database, where dispatchers process it.
pub(crate) async fn create(
    state: Data<AppState>,
    caller: Caller,
    path: Path<ConnectionPath>,
    body: RawJson,
) -> Result<Found<Replay>, ApiError> {
    let namespace = caller.writable(&path.namespace_id).await?;
    let draft = body.parse(CreateReplay::parse).await?;
    let connection = path.name(namespace)?;
    state
        .write(&caller, async move |conn| {
            if !connections::exists(conn, connection).await? {
                return Err(ApiError::NotFound("connection"));
            }
            let replay = replays::insert(conn, connection, &draft).await?;
            let replay = replay.ok_or_else(too_many)?;
            let entry = Entry::of(Action::Replay, namespace, replay.name);
            Ok(Outcome(Found(replay), Some(entry)))
        })
        .await
}

fn too_many() -> ApiError {
    let mut issues = Issues::default();
    let hint = format!(
        "{} replays of this connection run already, cancel one or wait",
        replays::MAX_RUNNING
    );
    issues.add_with_hint("replays", Issue::TooMany, hint);
    issues.into()
}

/// `GET /v1/namespaces/{namespaceId}/connections/{connectionId}/replays`
pub(crate) async fn list(
    caller: Caller,
    path: Path<ConnectionPath>,
    query: Parameters,
) -> Result<Listed<Replay>, ApiError> {
    let namespace = caller.readable(&path.namespace_id).await?;
    let parent = format!("{namespace}/{}/replays", path.connection_id);
    let query = &query.list(&parent, REPLAY_FIELDS)?;
    let connection = path.name(namespace)?;
    let page = pages::page(
        &caller,
        query,
        async move |conn| replays::cost(conn, connection, query).await,
        async move |conn| replays::list(conn, connection, query).await,
    )
    .await?;
    if page.items.is_empty()
        && !connections::exists(&mut *caller.connection().await?, connection).await?
    {
        return Err(ApiError::NotFound("connection"));
    }
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
    let namespace = caller.readable(&path.namespace_id).await?;
    query.none()?;
    let name = path.name(namespace)?;
    let mut conn = caller.connection().await?;
    let found = replays::get(&mut conn, name).await?;
    found.map(Found).ok_or(ApiError::NotFound("replay"))
}

/// `DELETE /v1/namespaces/{namespaceId}/connections/{connectionId}/replays/{replayId}`
///
/// Cancels the replay. It stays in the list, with its progress.
pub(crate) async fn cancel(
    state: Data<AppState>,
    caller: Caller,
    path: Path<ReplayPath>,
    query: Parameters,
) -> Result<Found<Map<String, Value>>, ApiError> {
    let namespace = caller.writable(&path.namespace_id).await?;
    query.none()?;
    let name = path.name(namespace)?;
    state
        .write(&caller, async move |conn| {
            if replays::cancel(conn, name).await? {
                let entry = Entry::of(Action::Cancel, namespace, name);
                Ok(Outcome(Found(Map::new()), Some(entry)))
            } else {
                Err(ApiError::NotFound("replay"))
            }
        })
        .await
}

impl ReplayPath {
    fn name(&self, namespace: Id) -> Result<ReplayName, ApiError> {
        let connection = self.connection_id.parse().ok();
        let replay = self.replay_id.parse().ok();
        Ok(ReplayName {
            namespace,
            connection: connection.ok_or(ApiError::NotFound("connection"))?,
            replay: replay.ok_or(ApiError::NotFound("replay"))?,
        })
    }
}
