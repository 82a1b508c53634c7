//! Deletes the data of deleted resources in the background: see [`store::purges`].
//!
//! Every process does this; leases distribute the work. There is a short pause between batches, so that a large purge
//! uses a part of one core and never all connections. A purge that the database refuses delays no other.

use std::time::Duration;

use store::{
    AsyncPgConnection, Pool,
    purges::{self, Entry},
    work::{Claim, Claimed, Leased, table},
};

use crate::work::{Settings, Work};

/// Interval of checks while there is no work; each is one read of a small table.
const INTERVAL: Duration = Duration::from_secs(1);
const BREATH: Duration = Duration::from_millis(20);

pub(crate) struct Purges(pub(crate) Pool);

impl Work for Purges {
    type Item = Entry;

    fn settings(&self) -> Settings {
        Settings::new("purge", INTERVAL, 1)
    }

    async fn claim(
        &self,
        conn: &mut AsyncPgConnection,
        claim: &mut Claim<'_>,
    ) -> Result<Claimed<Entry>, store::Error> {
        let due = purges::due(conn, claim.known).await?;
        Ok(table::lease(conn, self.settings().kind, due, claim).await?)
    }

    async fn run(&self, leased: &Leased<Entry>) -> Result<(), store::Error> {
        let mut conn = self.0.get().await?;
        purges::step(&mut conn, &leased.item).await?;
        drop(conn);
        tokio::time::sleep(BREATH).await;
        Ok(())
    }
}
