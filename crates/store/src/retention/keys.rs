//! Tables without partitions, whose old rows are purged in batches.
//!
//! An index on the time serves each batch, so the cost depends on the old rows and not on those that stay.

use chrono::{DateTime, Utc};
use diesel::{
    QueryableByName, sql_query,
    sql_types::{BigInt, Nullable, Text},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use uuid::Uuid;

use crate::QueryResult;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unpartitioned {
    AuditEvents,
    PostKeys,
    ScanKeys,
    /// Keys of near-duplicates.
    ScanLikes,
}

impl Unpartitioned {
    fn as_str(self) -> &'static str {
        match self {
            Self::AuditEvents => "audit_events",
            Self::PostKeys => "post_keys",
            Self::ScanKeys => "scan_keys",
            Self::ScanLikes => "scan_likes",
        }
    }
}

/// A purge of a table's old rows, oldest first.
#[derive(Debug, Clone)]
pub struct Purge {
    table: Unpartitioned,
    before: DateTime<Utc>,
    /// Time of the last deleted row, as text.
    last: Option<String>,
}

impl Purge {
    /// Covers the rows of `table` from before `before`.
    #[must_use]
    pub fn new(table: Unpartitioned, before: DateTime<Utc>) -> Self {
        Self {
            table,
            before,
            last: None,
        }
    }

    /// Deletes the next `limit` rows, and returns their number, which is lower at the end. Served by the index on
    /// the time. It continues after the rows of the batch before: while another session has an old snapshot, their
    /// entries stay in the index, and reading them each time would cost the more the more there are.
    pub async fn delete(&mut self, conn: &mut AsyncPgConnection, limit: i64) -> QueryResult<usize> {
        #[derive(QueryableByName)]
        struct Gone {
            #[diesel(sql_type = BigInt)]
            count: i64,
            #[diesel(sql_type = Nullable<Text>)]
            last: Option<String>,
        }
        let table = self.table.as_str();
        let (column, kind, first, end) = match self.table {
            // Their ids contain the time.
            Unpartitioned::PostKeys => {
                let end = first_id_of(self.before).to_string();
                ("id", "uuid", Uuid::nil().to_string(), end)
            }
            // As its index has it.
            Unpartitioned::AuditEvents => {
                let end = self.before.naive_utc().to_string();
                let column = "(create_time AT TIME ZONE 'UTC')";
                (column, "timestamp", "-infinity".to_owned(), end)
            }
            Unpartitioned::ScanKeys | Unpartitioned::ScanLikes => {
                let end = self.before.to_rfc3339();
                ("create_time", "timestamptz", "-infinity".to_owned(), end)
            }
        };
        let gone: Gone = sql_query(format!(
            "WITH gone AS ( \
                 DELETE FROM {table} WHERE ctid = ANY (ARRAY( \
                     SELECT ctid FROM {table} WHERE {column} >= $1::{kind} AND {column} < $2::{kind} \
                     ORDER BY {column} LIMIT $3)) \
                 RETURNING {column} AS at \
             ) SELECT count(*) AS count, (SELECT at::text FROM gone ORDER BY at DESC LIMIT 1) AS last FROM gone"
        ))
        .bind::<Text, _>(self.last.as_ref().unwrap_or(&first))
        .bind::<Text, _>(end)
        .bind::<BigInt, _>(limit)
        .get_result(conn)
        .await?;
        self.last = gone.last.or(self.last.take());
        Ok(usize::try_from(gone.count).unwrap_or_default())
    }
}

/// Returns the lowest id of that millisecond, because an id begins with its milliseconds.
pub(super) fn first_id_of(time: DateTime<Utc>) -> Uuid {
    let millis = u128::try_from(time.timestamp_millis()).unwrap_or(0);
    Uuid::from_u128(millis << 80)
}

#[cfg(test)]
mod tests {
    use domain::{Id, Timestamp};

    use super::first_id_of;

    #[test]
    fn ids_are_compared_by_their_time() {
        let time: Timestamp = "2026-11-21T01:02:03.004000Z".parse().unwrap();
        let before: Timestamp = "2026-11-21T01:02:03.003999Z".parse().unwrap();
        let first = first_id_of(time.to_chrono());
        for _ in 0..100 {
            assert!(Id::at(time).to_uuid() >= first);
            assert!(Id::at(before).to_uuid() < first);
        }
    }
}
