//! A reader of a table whose rows come with ascending ids and soon go again remembers where to begin.
//!
//! While a long snapshot is open, such as that of `pg_dump`, the index entries of deleted rows remain, and a look for the
//! first rows reads past all of them. So a reader remembers the lowest id, and looks at the whole table once a minute.

use std::time::{Duration, Instant};

use diesel::{QueryableByName, sql_query, sql_types::BigInt};
use diesel_async::{AsyncPgConnection, RunQueryDsl};

use crate::QueryResult;

const INTERVAL: Duration = Duration::from_secs(60);

/// A reader looks for rows with this id or a higher one.
///
/// A row of a transaction that was open for a whole interval may have a lower id: a later look at the whole table finds
/// it. So does it after a failover, if the database is older than what the reader knows.
#[derive(Debug)]
pub struct Floor {
    table: &'static str,
    /// Lowest ids at the last two looks at the whole table, the earlier one first.
    lowest: (i64, i64),
    looked: Option<Instant>,
}

impl Floor {
    #[must_use]
    pub fn of(table: &'static str) -> Self {
        Self {
            table,
            lowest: (0, 0),
            looked: None,
        }
    }

    /// Returns the floor, after a look at the whole table if the last one was a minute ago.
    pub async fn get(&mut self, conn: &mut AsyncPgConnection) -> QueryResult<i64> {
        if self
            .looked
            .is_none_or(|looked| looked.elapsed() >= INTERVAL)
        {
            self.raise(conn).await?;
        }
        Ok(self.id())
    }

    fn id(&self) -> i64 {
        self.lowest.0.min(self.lowest.1)
    }

    /// Looks at the whole table. An empty one begins with its next id.
    pub async fn raise(&mut self, conn: &mut AsyncPgConnection) -> QueryResult<i64> {
        #[derive(QueryableByName)]
        struct Lowest {
            #[diesel(sql_type = BigInt)]
            id: i64,
        }
        let Lowest { id } = sql_query(format!(
            "SELECT coalesce((SELECT id FROM {0} ORDER BY id LIMIT 1), \
                 pg_sequence_last_value(pg_get_serial_sequence('{0}', 'id')), 0) AS id",
            self.table
        ))
        .get_result(conn)
        .await?;
        self.lowest = (self.lowest.1, id);
        self.looked = Some(Instant::now());
        Ok(self.id())
    }
}
