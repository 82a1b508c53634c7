//! Leases the due feeds of one platform and polls them.
//!
//! Each platform has a separate poller with separate capacity, so no platform waits for another. [`QUICK`] places
//! are for young polls of feeds that were not slow last time. A poll that takes long gives up its place, and the
//! next poll of its feed needs one of the [`SLOW_FEEDS`] places. So an account with slow feeds delays others once
//! for a few seconds, and then only other slow feeds.
//!
//! Accounts share the capacity ([`store::fair`]): for any number of feeds of one account, and any slowness, half of
//! each kind of place is left for the others.
//!
//! When idle, this costs two small queries per second and platform. It wakes sooner if a feed becomes due or plans
//! change.

use std::{sync::Arc, time::Duration};

use backbone::{
    Backbone,
    work::{Settings, Work},
};
use domain::PlanVersion;
use runtime::Config;
use store::{
    AsyncPgConnection,
    feeds::{self, LeasedFeed},
    work::{Claim, Claimed, Leased, Setback},
};
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;

use crate::{
    metrics,
    plans::Plans,
    poll::{Limits, Poll, SLOW},
    watched::Watched,
};

/// Maximum number of young polls of one platform that a replica runs at a time.
const QUICK: usize = 12;
/// Maximum number of polls of slow feeds in addition.
const SLOW_FEEDS: usize = 8;
/// Maximum number of all polls, including those that have become slow.
const MAX_OPEN: usize = 128;
/// Maximum wait between two queries. Feeds of a dead replica are free when its heartbeat is four seconds old, and
/// must be taken over within five.
const MAX_WAIT: Duration = Duration::from_millis(500);

pub(crate) struct Poller {
    watched: Watched,
    config: Arc<Config>,
    backbone: Backbone,
    plans: Arc<Plans>,
    limits: Arc<Limits>,
    /// Signals changed plans, which may have new feeds that are due.
    changes: Mutex<watch::Receiver<PlanVersion>>,
    shutdown: CancellationToken,
}

impl Poller {
    pub(crate) fn new(
        watched: Watched,
        config: Arc<Config>,
        backbone: Backbone,
        plans: Arc<Plans>,
        limits: Arc<Limits>,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            changes: Mutex::new(plans.changes()),
            watched,
            config,
            backbone,
            plans,
            limits,
            shutdown,
        }
    }
}

impl Work for Poller {
    type Item = LeasedFeed;

    fn settings(&self) -> Settings {
        Settings {
            slow: SLOW_FEEDS,
            open: MAX_OPEN,
            slow_after: SLOW,
            ..Settings::new("poll", MAX_WAIT, QUICK)
        }
    }

    async fn claim(
        &self,
        conn: &mut AsyncPgConnection,
        claim: &mut Claim<'_>,
    ) -> Result<Claimed<LeasedFeed>, store::Error> {
        Ok(feeds::lease_due(conn, self.watched.name(), claim).await?)
    }

    async fn run(&self, leased: &Leased<LeasedFeed>) -> Result<(), store::Error> {
        metrics::POLL_DELAY
            .with_label_values(&[self.watched.name()])
            .observe(leased.item.late.as_secs_f64());
        let poll = Poll {
            watched: self.watched.clone(),
            config: Arc::clone(&self.config),
            backbone: self.backbone.clone(),
            plans: Arc::clone(&self.plans),
            feed: leased.item.clone(),
            account: leased.account,
            limits: Arc::clone(&self.limits),
            shutdown: self.shutdown.clone(),
        };
        let pace = &self.limits.site_pace;
        pace.wait(leased.account, &leased.item.name).await;
        poll.run().await;
        Ok(())
    }

    async fn set_aside(
        &self,
        conn: &mut AsyncPgConnection,
        backbone: &Backbone,
        leased: &Leased<LeasedFeed>,
        setback: &Setback,
    ) -> Result<(), store::Error> {
        Ok(feeds::set_aside(conn, &leased.item.name, backbone.replica, setback).await?)
    }

    fn uses_table(&self) -> bool {
        false
    }

    async fn woken(&self) {
        // This cannot fail, because the plans live as long as this value.
        let _ = self.changes.lock().await.changed().await;
    }

    fn name(&self, leased: &Leased<LeasedFeed>) -> String {
        leased.item.name.masked().into_owned()
    }
}
