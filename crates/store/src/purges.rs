//! Deleted data that is too large to remove at once: removed in batches of rows that are already invisible.
//!
//! A deletion enqueues an entry here, in its transaction. Any replica of any service leases entries and runs
//! [`step`]s. Each step is one transaction that locks its entry, deletes a bounded batch, and puts the entry behind the
//! others. So several replicas share the work, and a replica that dies leaves nothing half done. Writers that were in flight at the
//! deletion may leave rows after the last batch, so an entry stays for [`SETTLE`] and is checked again.
//!
//! For a Manager: its Scans, newest first (lists skip these first), with their unfinished deliveries cancelled, its
//! keys of posts, and its statistics. For a Connection: unfinished deliveries are cancelled, and statistics
//! deleted; the log stays until retention. For a Namespace: everything.
//!
//! Cost: a step reads and deletes by primary keys and the indexes named below, at most [`BATCH`] rows of each kind.

use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, BigInt, Nullable, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use domain::{ConnectionName, Id, ManagerName};
use uuid::Uuid;

use crate::{QueryResult, stats, work::table};

mod batches;

use batches::Scope;

/// Rows of one kind in one step, which take some tens of milliseconds.
pub const BATCH: i64 = 5_000;
/// How long an entry stays: longer than any writer's transaction.
pub const SETTLE: &str = "interval '10 minutes'";
/// Time between checks while an entry settles.
const LOOK_AGAIN: &str = "interval '30 seconds'";

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
}

/// Schedules the rows of `subject` for deletion. Call in the transaction that deletes it.
pub(crate) async fn enqueue(conn: &mut AsyncPgConnection, subject: Subject) -> QueryResult<()> {
    let (namespace, manager, connection) = match subject {
        Subject::Namespace(namespace) => (namespace, None, None),
        Subject::Manager(name) => (name.namespace, Some(name.manager), None),
        Subject::Connection(name) => (name.namespace, None, Some(name.connection)),
    };
    sql_query("INSERT INTO purges (namespace_id, manager_id, connection_id) VALUES ($1, $2, $3)")
        .bind::<SqlUuid, _>(namespace.to_uuid())
        .bind::<Nullable<SqlUuid>, _>(manager.map(|id| id.to_uuid()))
        .bind::<Nullable<SqlUuid>, _>(connection.map(|id| id.to_uuid()))
        .execute(conn)
        .await?;
    Ok(())
}

/// Returns the purges that are due, the longest due first, without those with the keys `known`. A purge that would be due
/// much later than [`LOOK_AGAIN`] is due now: the database's clock went back. Reads a table that is mostly small.
pub async fn due(
    conn: &mut AsyncPgConnection,
    known: &[String],
) -> QueryResult<Vec<table::Due<Entry>>> {
    let entries: Vec<Entry> = sql_query(
        "SELECT id, namespace_id, manager_id, connection_id FROM purges \
         WHERE next_time NOT BETWEEN clock_timestamp() AND clock_timestamp() + interval '1 minute' \
             AND id::text <> ALL ($1) \
             AND NOT EXISTS (SELECT FROM leases AS l WHERE l.kind = 'purge' AND l.key = purges.id::text \
                 AND l.leased_by IS NULL AND l.next_time > clock_timestamp()) \
         ORDER BY next_time LIMIT 100",
    )
    .bind::<Array<Text>, _>(known)
    .load(conn)
    .await?;
    let due = entries.into_iter().map(|entry| table::Due {
        key: entry.id.to_string(),
        // Of accounts that may be gone.
        accounts: vec![Id::NIL],
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
        let locked = sql_query("SELECT FROM purges WHERE id = $1 FOR UPDATE SKIP LOCKED")
            .bind::<BigInt, _>(entry.id)
            .execute(conn)
            .await?;
        if locked == 0 {
            return Ok(None);
        }
        let namespace = Id::from_uuid(entry.namespace_id);
        let purged = match (entry.manager_id, entry.connection_id) {
            (Some(manager), _) => {
                let scope = Scope::Manager(entry.namespace_id, manager);
                batches::scans(conn, scope, BATCH).await?
                    + batches::scan_keys(conn, scope, BATCH).await?
                    + batches::scan_likes(conn, scope, BATCH).await?
                    + batches::refused_posts(conn, scope, BATCH).await?
                    + stats::purge_subject(conn, namespace, Id::from_uuid(manager), BATCH).await?
            }
            (None, Some(connection)) => {
                let subject = Id::from_uuid(connection);
                batches::cancel_deliveries(conn, entry.namespace_id, connection, BATCH).await?
                    + stats::purge_subject(conn, namespace, subject, BATCH).await?
            }
            (None, None) => {
                let scope = Scope::Namespace(entry.namespace_id);
                batches::scans(conn, scope, BATCH).await?
                    + batches::scan_keys(conn, scope, BATCH).await?
                    + batches::scan_likes(conn, scope, BATCH).await?
                    + batches::refused_posts(conn, scope, BATCH).await?
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
        "UPDATE purges SET next_time = clock_timestamp() WHERE id = $1".to_owned()
    } else {
        format!(
            "WITH settled AS ( \
                 DELETE FROM purges WHERE id = $1 AND create_time < clock_timestamp() - {SETTLE} RETURNING id \
             ) UPDATE purges SET next_time = clock_timestamp() + {LOOK_AGAIN} \
             WHERE id = $1 AND NOT EXISTS (SELECT FROM settled)"
        )
    };
    sql_query(statement)
        .bind::<BigInt, _>(id)
        .execute(conn)
        .await?;
    Ok(())
}
