//! Finds and drops old partitions.

use std::time::Duration;

use chrono::{DateTime, Utc};
use diesel::{
    QueryableByName, sql_query,
    sql_types::{Bool, Text, Timestamptz},
};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use domain::Timestamp;

use super::Table;
use crate::{QueryResult, error::is_lock_timeout, prepared::query};

/// Partitions that ended less than this long ago would be created again by [`crate::migrations::ensure_partitions`].
const NEVER_YOUNGER: Duration = Duration::from_secs(7 * 86_400);

/// A partition whose rows are all past retention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    pub table: Table,
    pub name: String,
    pub start: DateTime<Utc>,
    pub end: DateTime<Utc>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    Dropped,
    /// The lock was not free within the time that we make others wait.
    Busy,
    /// Something in it is unfinished or still needed.
    InUse,
    /// Another replica dropped it.
    Gone,
}

/// Returns the partitions of `table` that ended at least `kept` before `now`, oldest first. Compares their bounds,
/// not their names. Pass [`super::earlier_now`].
pub async fn older_than(
    conn: &mut AsyncPgConnection,
    table: Table,
    kept: Duration,
    now: Timestamp,
) -> QueryResult<Vec<Partition>> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = Text)]
        name: String,
        #[diesel(sql_type = Timestamptz)]
        start_time: DateTime<Utc>,
        #[diesel(sql_type = Timestamptz)]
        end_time: DateTime<Utc>,
    }
    let rows: Vec<Row> = query!(
        "retention/older_than",
        Text: table.as_str(),
        Timestamptz: now.minus(kept.max(NEVER_YOUNGER)).to_chrono(),
    )
    .load(conn)
    .await?;
    let partition = |row: Row| Partition {
        table,
        name: row.name,
        start: row.start_time,
        end: row.end_time,
    };
    Ok(rows.into_iter().map(partition).collect())
}

/// Returns the start of the oldest partition of `table`: older rows are not stored.
pub async fn kept_from(
    conn: &mut AsyncPgConnection,
    table: Table,
) -> QueryResult<Option<DateTime<Utc>>> {
    #[derive(QueryableByName)]
    struct First {
        #[diesel(sql_type = diesel::sql_types::Nullable<Timestamptz>)]
        start_time: Option<DateTime<Utc>>,
    }
    let first: First = query!(
        "retention/kept_from",
        Text: table.as_str(),
    )
    .get_result(conn)
    .await?;
    Ok(first.start_time)
}

/// Drops a partition, unless it contains something unfinished or needed: an unfinished delivery, a Scan without
/// deliveries, or a post of a Scan. This is checked under the lock, so that nothing changes meanwhile. One short
/// transaction.
pub async fn drop_partition(
    conn: &mut AsyncPgConnection,
    partition: &Partition,
) -> QueryResult<Dropped> {
    // A first check without the lock does the slow part while others continue.
    if is_in_use(conn, partition).await? {
        return Ok(Dropped::InUse);
    }
    let outcome = conn
        .transaction(async |conn| {
            sql_query("SET LOCAL lock_timeout = '200ms'")
                .execute(conn)
                .await?;
            let table = partition.table.as_str();
            // Locks the parent first, like everyone who reads or writes.
            sql_query(format!("LOCK TABLE ONLY {table} IN ACCESS EXCLUSIVE MODE"))
                .execute(conn)
                .await?;
            let still_there = exists(
                conn,
                "SELECT to_regclass(quote_ident($1)) IS NOT NULL AS found",
                &partition.name,
            );
            if !still_there.await? {
                return Ok(Dropped::Gone);
            }
            // For posts the first check is enough: no Scan of such an old post is created any more, because its key
            // is gone.
            if partition.table != Table::Posts && is_in_use(conn, partition).await? {
                return Ok(Dropped::InUse);
            }
            query!(
                "retention/drop_partition",
                Text: table,
                Text: &partition.name,
            )
            .execute(conn)
            .await?;
            Ok(Dropped::Dropped)
        })
        .await;
    match outcome {
        Err(error) if is_lock_timeout(&error) => Ok(Dropped::Busy),
        other => other,
    }
}

/// Returns true if the partition is still needed. Served by the partial indexes of unfinished rows and, for posts,
/// by `scans_post_receive_time_idx`: the cost does not grow with the Scans that stay.
async fn is_in_use(conn: &mut AsyncPgConnection, partition: &Partition) -> QueryResult<bool> {
    let name = quoted(&partition.name);
    let look = match partition.table {
        Table::Deliveries => {
            format!(
                "FROM {name} WHERE state IN ('PENDING', 'RETRYING') UNION ALL SELECT FROM {name} WHERE state = 'IN_FLIGHT'"
            )
        }
        Table::Scans => format!("FROM {name} WHERE NOT fanned_out"),
        Table::Posts => format!(
            "FROM scans WHERE post_receive_time >= '{}' AND post_receive_time < '{}'",
            partition.start.to_rfc3339(),
            partition.end.to_rfc3339()
        ),
        Table::DeliveryAttempts => return Ok(false),
    };
    let sql = format!("SELECT EXISTS (SELECT {look}) AND $1 <> '' AS found");
    exists(conn, &sql, &partition.name).await
}

async fn exists(conn: &mut AsyncPgConnection, sql: &str, name: &str) -> QueryResult<bool> {
    #[derive(QueryableByName)]
    struct Found {
        #[diesel(sql_type = Bool)]
        found: bool,
    }
    let found: Found = sql_query(sql)
        .bind::<Text, _>(name)
        .get_result(conn)
        .await?;
    Ok(found.found)
}

/// A name from the catalogue, as an identifier.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
