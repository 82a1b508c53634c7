//! Removes deleted data that is too large to remove at once, in batches of rows that are already invisible.
//!
//! A deletion enqueues an entry here, in its transaction. Any replica of any service leases entries and runs [`step`]s.
//! Each step is one transaction that locks its entry, deletes a bounded batch, and puts the entry behind the others. So
//! several replicas share the work, and a replica that dies leaves nothing half done. Writers that were active at the
//! deletion may leave rows after the last batch, so an entry stays for ten minutes and is checked again.
//!
//! For a Manager: its Scans, newest first (lists skip these first), with their unfinished deliveries cancelled, its
//! keys of posts, and its statistics. Digests are not cancelled here, because they have Scans of other Managers. For a
//! Connection: unfinished deliveries are cancelled, and statistics and Scans of digests deleted; the log stays until
//! retention. For a Namespace: everything.
//!
//! Cost: a step reads and deletes by primary keys and the indexes named below, at most [`BATCH`] rows of each kind.

use diesel::{
    prelude::*,
    sql_types::{Array, BigInt, Nullable, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use domain::{ConnectionName, Id, ManagerName};
use uuid::Uuid;

use crate::{QueryResult, prepared::query, stats, work::table};

mod batches;

/// Rows of one kind in one step, which take some tens of milliseconds.
pub const BATCH: i64 = 5_000;

/// Kind of deleted resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    Namespace(Id),
    Manager(ManagerName),
    Connection(ConnectionName),
}

/// A purge that is due.
#[derive(Debug, Clone, QueryableByName)]
pub struct Entry {
    #[diesel(sql_type = BigInt)]
    id: i64,
    #[diesel(sql_type = SqlUuid)]
    namespace_id: Uuid,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    manager_id: Option<Uuid>,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    connection_id: Option<Uuid>,
    #[diesel(sql_type = SqlUuid)]
    account_id: Uuid,
}

/// Schedules the rows of `subject` for deletion. Call in the transaction that deletes it, while its Namespace exists.
pub(crate) async fn enqueue(conn: &mut AsyncPgConnection, subject: Subject) -> QueryResult<()> {
    let (namespace, manager, connection) = match subject {
        Subject::Namespace(namespace) => (namespace, None, None),
        Subject::Manager(name) => (name.namespace, Some(name.manager), None),
        Subject::Connection(name) => (name.namespace, None, Some(name.connection)),
    };
    query!(
        "purges/enqueue",
        SqlUuid: namespace.to_uuid(),
        Nullable<SqlUuid>: manager.map(Id::to_uuid),
        Nullable<SqlUuid>: connection.map(Id::to_uuid),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Returns the purges that are due, of each account the longest due first, without those with the keys `known`. A
/// Namespace that the release before deleted counts as an account. A purge that would be due much later than 30 seconds from now is due now: the
/// database's clock went back. Reads a table that is mostly small.
pub async fn due(
    conn: &mut AsyncPgConnection,
    known: &[String],
) -> QueryResult<Vec<table::Due<Entry>>> {
    let entries: Vec<Entry> = query!(
        "purges/due",
        Array<Text>: known,
    )
    .load(conn)
    .await?;
    let due = entries.into_iter().map(|entry| table::Due {
        key: entry.id.to_string(),
        accounts: vec![Id::from_uuid(entry.account_id)],
        item: entry,
    });
    Ok(due.collect())
}

/// Deletes one batch of a purge, in a separate transaction. Returns the number of rows; `None` if another replica works
/// on the purge.
///
/// # Errors
/// If the database does not answer; nothing is lost then.
pub async fn step(conn: &mut AsyncPgConnection, entry: &Entry) -> QueryResult<Option<usize>> {
    conn.transaction(async |conn| {
        let locked = query!(
            "purges/lock",
            BigInt: entry.id,
        )
        .execute(conn)
        .await?;
        if locked == 0 {
            return Ok(None);
        }
        let namespace = Id::from_uuid(entry.namespace_id);
        let purged = match (entry.manager_id, entry.connection_id) {
            (Some(manager), _) => {
                batches::scans_of_manager(conn, entry.namespace_id, manager, BATCH).await?
                    + batches::keys(conn, entry.namespace_id, Some(manager), BATCH).await?
                    + stats::purge_subject(conn, namespace, Id::from_uuid(manager), BATCH).await?
            }
            (None, Some(connection)) => {
                let subject = Id::from_uuid(connection);
                batches::cancel_deliveries(conn, entry.namespace_id, connection, BATCH).await?
                    + batches::digest_scans(conn, entry.namespace_id, Some(connection), BATCH)
                        .await?
                    + stats::purge_subject(conn, namespace, subject, BATCH).await?
            }
            (None, None) => {
                batches::scans_of_namespace(conn, entry.namespace_id, BATCH).await?
                    + batches::keys(conn, entry.namespace_id, None, BATCH).await?
                    + batches::digest_scans(conn, entry.namespace_id, None, BATCH).await?
                    + batches::deliveries(conn, entry.namespace_id, BATCH).await?
                    + stats::purge_namespace(conn, namespace, BATCH).await?
            }
        };
        put_back(conn, entry.id, purged).await?;
        Ok(Some(purged))
    })
    .await
}

/// Puts an entry behind the others if it had rows, postpones it if it had none, and removes it after it has
/// settled.
async fn put_back(conn: &mut AsyncPgConnection, id: i64, purged: usize) -> QueryResult<()> {
    let statement = if purged > 0 {
        query!("purges/put_behind", BigInt: id)
    } else {
        query!("purges/settle", BigInt: id)
    };
    statement.execute(conn).await?;
    Ok(())
}
