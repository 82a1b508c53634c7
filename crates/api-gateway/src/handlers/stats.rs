//! `…/stats`: statistics over time of a Namespace, a Manager, or a Connection.
//!
//! Needs two look-ups by primary key in addition to the Namespace's, and one more for feeds, for any number of
//! points. Sums one row for each feed and point.

use actix_web::web::Path;
use domain::{Timestamp, stats::Stats};
use store::{AsyncPgConnection, stats};

use super::{ConnectionPath, ManagerPath, NamespacePath};
use crate::{
    ApiError, answer::Found, authenticate::Caller, pages, parent::Parent, query::Parameters,
    transaction::Work,
};

/// `GET /v1/namespaces/{namespaceId}/stats`
pub(crate) async fn of_namespace(
    caller: Caller,
    path: Path<NamespacePath>,
    query: Parameters,
) -> Result<Found<Stats>, ApiError> {
    let namespace = caller.readable(path.namespace_id()).await?;
    let query = query.stats(Timestamp::now())?;
    charged(&caller, async move |conn| {
        Ok(stats::of_namespace(conn, namespace, query).await?)
    })
    .await
}

/// `GET /v1/namespaces/{namespaceId}/managers/{managerId}/stats`
pub(crate) async fn of_manager(
    caller: Caller,
    path: Path<ManagerPath>,
    query: Parameters,
) -> Result<Found<Stats>, ApiError> {
    caller.readable(path.namespace_id()).await?;
    let name = path.name()?;
    charged(&caller, async move |conn| {
        Parent::Manager(name).check(conn).await?;
        let query = query.stats(Timestamp::now())?;
        Ok(stats::of_manager(conn, name, query).await?)
    })
    .await
}

/// `GET /v1/namespaces/{namespaceId}/connections/{connectionId}/stats`
pub(crate) async fn of_connection(
    caller: Caller,
    path: Path<ConnectionPath>,
    query: Parameters,
) -> Result<Found<Stats>, ApiError> {
    caller.readable(path.namespace_id()).await?;
    let name = path.name()?;
    charged(&caller, async move |conn| {
        Parent::Connection(name).check(conn).await?;
        let query = query.stats(Timestamp::now())?;
        Ok(stats::of_connection(conn, name, query).await?)
    })
    .await
}

async fn charged<R>(caller: &Caller, read: R) -> Result<Found<Stats>, ApiError>
where
    R: for<'c> Work<&'c mut AsyncPgConnection, Result<Stats, ApiError>, Future: Send> + Send,
{
    let read = async move |conn: &mut AsyncPgConnection| {
        let stats = read(conn).await?;
        let rows = stats.rows;
        Ok((stats, rows))
    };
    pages::rows(caller, read).await.map(Found)
}
