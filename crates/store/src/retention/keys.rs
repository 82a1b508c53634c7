//! Tables without partitions, whose old rows are purged in batches.
//!
//! An index on the time serves each batch, so the cost depends on the old rows and not on those that stay.

use chrono::{DateTime, Utc};
use diesel::{
    QueryableByName,
    sql_types::{BigInt, Nullable, Text},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use uuid::Uuid;

use crate::{QueryResult, prepared::query};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unpartitioned {
    AuditEvents,
    PostKeys,
    ScanKeys,
    /// Keys of near-duplicates.
    ScanLikes,
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
    /// Creates a purge of the rows of `table` from before `before`.
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
        let (first, end) = match self.table {
            // Their ids contain the time.
            Unpartitioned::PostKeys => {
                let end = first_id_of(self.before).to_string();
                (Uuid::nil().to_string(), end)
            }
            Unpartitioned::AuditEvents => {
                let end = self.before.naive_utc().to_string();
                ("-infinity".to_owned(), end)
            }
            Unpartitioned::ScanKeys | Unpartitioned::ScanLikes => {
                ("-infinity".to_owned(), self.before.to_rfc3339())
            }
        };
        let first = self.last.as_ref().unwrap_or(&first);
        let statement = match self.table {
            Unpartitioned::AuditEvents => query!(
                "retention/purge_audit_events",
                Text: first,
                Text: end,
                BigInt: limit,
            ),
            Unpartitioned::PostKeys => query!(
                "retention/purge_post_keys",
                Text: first,
                Text: end,
                BigInt: limit,
            ),
            Unpartitioned::ScanKeys => query!(
                "retention/purge_scan_keys",
                Text: first,
                Text: end,
                BigInt: limit,
            ),
            Unpartitioned::ScanLikes => query!(
                "retention/purge_scan_likes",
                Text: first,
                Text: end,
                BigInt: limit,
            ),
        };
        let gone: Gone = statement.get_result(conn).await?;
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
