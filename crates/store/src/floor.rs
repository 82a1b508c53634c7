//! Remembers where to begin reading `stats_deltas`, whose rows come with ascending ids and are soon deleted.
//!
//! While a long snapshot is open, such as that of `pg_dump`, the index entries of deleted rows remain, and a query for
//! the first rows reads past all of them. So a reader remembers the lowest id, and queries the whole table once a
//! minute.

use std::time::{Duration, Instant};

use diesel::{QueryableByName, sql_types::BigInt};
use diesel_async::{AsyncPgConnection, RunQueryDsl};

use crate::{QueryResult, prepared::query};

const INTERVAL: Duration = Duration::from_secs(60);

/// Lowest id that a reader reads.
///
/// A row of a transaction that was open for a whole interval may have a lower id: a later query of the whole table
/// finds it. The same holds after a failover, if the database is older than what the reader knows.
#[derive(Debug, Default)]
pub struct Floor {
    /// Lowest ids of the whole table in the last two queries, the earlier one first.
    lowest: (i64, i64),
    looked: Option<Instant>,
}

impl Floor {
    /// Returns the floor, after a query of the whole table if the last one was a minute ago.
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

    /// Raises the floor to the lowest id of the whole table, or the last one of an empty table.
    async fn raise(&mut self, conn: &mut AsyncPgConnection) -> QueryResult<()> {
        #[derive(QueryableByName)]
        struct Lowest {
            #[diesel(sql_type = BigInt)]
            id: i64,
        }
        let Lowest { id } = query!("stats/lowest_delta").get_result(conn).await?;
        self.lowest = (self.lowest.1, id);
        self.looked = Some(Instant::now());
        Ok(())
    }
}
