//! The heartbeat that keeps a replica's leases alive.
//!
//! It has a separate connection, so that a busy pool never costs a lease, and a separate task, so that busy
//! work does not either.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use runtime::{Context, Periodic};
use store::{Pool, replicas};
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::patience::with_timeout;

/// A replica whose heartbeats have succeeded for this long, without a break, may treat silent replicas as dead. It is
/// longer than the maximum age of a heartbeat: if the database was unavailable, the others have had time for a new one.
const STEADY: Duration = Duration::from_secs(5);
/// A longer time between two beats counts as a break.
const BREAK: Duration = Duration::from_secs(3);

pub(crate) struct Heartbeat {
    pool: Pool,
    replica: Uuid,
    /// True after the first heartbeat: then the database lists the replica as alive.
    beating: watch::Sender<bool>,
    rhythm: Mutex<Option<Rhythm>>,
}

#[derive(Clone, Copy)]
struct Rhythm {
    since: Instant,
    last: Instant,
}

impl Heartbeat {
    pub(crate) fn new(pool: Pool, replica: Uuid) -> Self {
        Self {
            pool,
            replica,
            beating: watch::Sender::new(false),
            rhythm: Mutex::default(),
        }
    }

    pub(crate) fn beating(&self) -> &watch::Sender<bool> {
        &self.beating
    }

    /// Returns true if leases of silent replicas may be taken over.
    pub(crate) fn is_steady(&self) -> bool {
        let now = Instant::now();
        self.rhythm()
            .is_some_and(|rhythm| now - rhythm.last < BREAK && now - rhythm.since >= STEADY)
    }

    fn record_beat(&self) {
        let now = Instant::now();
        let mut rhythm = self.rhythm();
        let since = rhythm
            .filter(|rhythm| now - rhythm.last < BREAK)
            .map_or(now, |rhythm| rhythm.since);
        *rhythm = Some(Rhythm { since, last: now });
    }

    fn rhythm(&self) -> MutexGuard<'_, Option<Rhythm>> {
        self.rhythm.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Beats every second until `stop`, and then removes the replica.
    pub(crate) async fn run(&self, context: &Context, stop: &CancellationToken) {
        let check = context.health.check("heartbeat");
        let mut rounds = Periodic::new(stop);
        while rounds.every(replicas::HEARTBEAT).await {
            let beaten = with_timeout(&self.pool, async |conn| {
                replicas::beat(conn, self.replica, context.service).await
            });
            let beaten = beaten.await;
            match &beaten {
                Ok(()) => {
                    self.record_beat();
                    self.beating.send_replace(true);
                    check.ok();
                }
                Err(error) => check.degraded(format!("{error:#}")),
            }
            rounds.log_once("renew the heartbeat, which keeps the leases", beaten);
        }
        let left = with_timeout(&self.pool, async |conn| {
            replicas::leave(conn, self.replica).await
        });
        if let Err(error) = left.await {
            tracing::warn!("cannot remove the heartbeat, its leases expire later: {error:#}");
        }
    }
}
