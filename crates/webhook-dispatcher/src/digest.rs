//! Makes the deliveries of digests, when their hour or day is over ([`store::digests`]).
//!
//! If one is set aside, its lease has the reason, which owners see in the health of the Connection
//! ([`store::connections::health()`]).

use std::{sync::Arc, time::Duration};

use backbone::work::{Settings, Work};
use domain::ConnectionName;
use store::{
    AsyncPgConnection, digests, lanes,
    work::{Claim, Claimed, Leased, table},
};
use tokio::time::Instant;

use crate::Dispatcher;

/// A digest is made this much later than it is due, at most. It is due a quarter of a minute after its period.
const LOOK: Duration = Duration::from_secs(5);
const MAX_OPEN: usize = 8;

pub(crate) struct Digests(pub(crate) Arc<Dispatcher>);

impl Work for Digests {
    type Item = ConnectionName;

    fn settings(&self) -> Settings {
        Settings::new(digests::KIND, LOOK, MAX_OPEN)
    }

    async fn claim(
        &self,
        conn: &mut AsyncPgConnection,
        claim: &mut Claim<'_>,
    ) -> Result<Claimed<ConnectionName>, store::Error> {
        let continued = digests::settle(conn).await?;
        lanes::mark_due(conn, &continued).await?;
        let due = digests::due(conn, claim.known).await?;
        Ok(table::lease(conn, self.settings().kind, due, claim).await?)
    }

    /// If this process dies after the first statement, the look for waiting deliveries finds the digest.
    async fn run(&self, leased: &Leased<ConnectionName>) -> Result<(), store::Error> {
        let mut conn = self.0.backbone.pool.get().await?;
        if digests::make(&mut conn, leased.item).await? {
            lanes::mark_due(&mut conn, &[leased.item]).await?;
            self.0.signals.query_at(Instant::now());
        }
        Ok(())
    }

    fn name(&self, leased: &Leased<ConnectionName>) -> String {
        leased.item.to_string()
    }
}
