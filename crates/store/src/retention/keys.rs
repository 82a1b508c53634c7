//! The key tables, which no partition is dropped of: purged page by page.

use chrono::{DateTime, Utc};
use diesel::{
    QueryableByName, sql_query,
    sql_types::{BigInt, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use uuid::Uuid;

use crate::QueryResult;

/// A stretch of a table's pages on disk: a whole pass takes each row up once, and needs no index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pages {
    next: i64,
    end: i64,
}

/// About 4 MB.
const STRETCH: i64 = 512;

impl Pages {
    /// All pages that `table` has now. What is added meanwhile is young.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn of(conn: &mut AsyncPgConnection, table: &'static str) -> QueryResult<Self> {
        #[derive(QueryableByName)]
        struct Size {
            #[diesel(sql_type = BigInt)]
            pages: i64,
        }
        let size: Size = sql_query(
            "SELECT pg_relation_size($1::regclass) / current_setting('block_size')::bigint AS pages",
        )
        .bind::<Text, _>(table)
        .get_result(conn)
        .await?;
        Ok(Self {
            next: 0,
            end: size.pages,
        })
    }

    /// The next stretch, as a condition on `ctid`; `None` after the last.
    fn take(&mut self) -> Option<String> {
        if self.next >= self.end {
            return None;
        }
        let start = self.next;
        self.next += STRETCH;
        Some(format!(
            "ctid >= '({start},0)' AND ctid < '({},0)'",
            self.next
        ))
    }
}

/// Deletes the keys of Scans made before `before` in the next stretch; `None` after the last one.
///
/// # Errors
/// When the database does not answer.
pub async fn purge_scan_keys(
    conn: &mut AsyncPgConnection,
    pages: &mut Pages,
    before: DateTime<Utc>,
) -> QueryResult<Option<usize>> {
    purge_by_time(conn, "scan_keys", pages, before).await
}

/// Same as [`purge_scan_keys`], for audit events.
///
/// # Errors
/// When the database does not answer.
pub async fn purge_audit_events(
    conn: &mut AsyncPgConnection,
    pages: &mut Pages,
    before: DateTime<Utc>,
) -> QueryResult<Option<usize>> {
    purge_by_time(conn, "audit_events", pages, before).await
}

/// Same as [`purge_scan_keys`], for what tells posts that say the same.
///
/// # Errors
/// When the database does not answer.
pub async fn purge_scan_likes(
    conn: &mut AsyncPgConnection,
    pages: &mut Pages,
    before: DateTime<Utc>,
) -> QueryResult<Option<usize>> {
    purge_by_time(conn, "scan_likes", pages, before).await
}

async fn purge_by_time(
    conn: &mut AsyncPgConnection,
    table: &str,
    pages: &mut Pages,
    before: DateTime<Utc>,
) -> QueryResult<Option<usize>> {
    let Some(stretch) = pages.take() else {
        return Ok(None);
    };
    let sql = format!("DELETE FROM {table} WHERE {stretch} AND create_time < $1");
    let deleted = sql_query(sql)
        .bind::<Timestamptz, _>(before)
        .execute(conn)
        .await?;
    Ok(Some(deleted))
}

/// Same as [`purge_scan_keys`], for posts received before `before`: their ids carry the time.
///
/// # Errors
/// When the database does not answer.
pub async fn purge_post_keys(
    conn: &mut AsyncPgConnection,
    pages: &mut Pages,
    before: DateTime<Utc>,
) -> QueryResult<Option<usize>> {
    let Some(stretch) = pages.take() else {
        return Ok(None);
    };
    let sql = format!("DELETE FROM post_keys WHERE {stretch} AND id < $1");
    let deleted = sql_query(sql)
        .bind::<SqlUuid, _>(first_id_of(before))
        .execute(conn)
        .await?;
    Ok(Some(deleted))
}

/// The lowest id of that millisecond: an id begins with its milliseconds.
pub(super) fn first_id_of(time: DateTime<Utc>) -> Uuid {
    let millis = u128::try_from(time.timestamp_millis()).unwrap_or(0);
    Uuid::from_u128(millis << 80)
}

#[cfg(test)]
mod tests {
    use domain::{Id, Timestamp};

    use super::first_id_of;

    #[test]
    fn ids_are_told_apart_by_their_time() {
        let time: Timestamp = "2026-11-21T01:02:03.004000Z".parse().unwrap();
        let before: Timestamp = "2026-11-21T01:02:03.003999Z".parse().unwrap();
        let first = first_id_of(time.to_chrono());
        for _ in 0..100 {
            assert!(Id::at(time).to_uuid() >= first);
            assert!(Id::at(before).to_uuid() < first);
        }
    }
}
