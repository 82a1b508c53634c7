//! Runs Managers over past posts: new Managers, and those with a requested backfill.
//!
//! First, the stored posts of a feed are matched, for the Managers of an account that wait for the feed
//! ([`Backfills`]). If these do not reach back far enough and the platform does, a look-back reads the feed with a
//! separate cursor ([`LookBacks`]). A replica has capacity for both in addition to that for polls of new posts, and
//! accounts share it. Their requests may use half of a platform's budget. If a replica dies, another one repeats its
//! unfinished step, and creates no Scan twice.
//!
//! Posts that appear during a backfill are left to polls. Stored posts are read only after every poll has ended that
//! may have started without the Manager ([`feeds::wait_for_polls`]). The posts of these polls are stored by then.
//!
//! A Manager whose account has used up its Scans of the day waits until the quota allows more. The posts that polls
//! refused for this reason then become a backfill ([`backfills::catch_up`]).
//!
//! When idle, this costs three small queries a second.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use backbone::{
    Backbone,
    work::{Settings, Work},
};
use domain::FeedName;
use runtime::Config;
use store::{
    AsyncConnection, AsyncPgConnection,
    backfills::{
        self, Waiting,
        look_backs::{self, LookBack},
    },
    feeds,
    work::{Claim, Claimed, Leased, MAX_CRASHES, Setback, table},
};
use tokio_util::sync::CancellationToken;

use crate::{metrics, plans::Plans, poll::Limits, watched::Watched};

mod kept;
mod look_back;
mod record;

const LOOK: Duration = Duration::from_secs(1);
/// Maximum number of steps over stored posts at a time. One account can use two of them.
const STEPS: usize = 3;
/// Maximum number of look-backs at a time. One account can use one of them.
const LOOK_BACKS: usize = 2;
/// Pause after a step, because other work needs the CPU too.
const BREATH: Duration = Duration::from_millis(20);
const RETRY: Duration = Duration::from_secs(15);
const MAX_RETRY: Duration = Duration::from_secs(3_600);
const MAX_FAILURES: u32 = 8;
const MAX_REMATCHES: u32 = 20;

pub(crate) struct Backfill {
    watched: HashMap<String, Watched>,
    config: Arc<Config>,
    backbone: Backbone,
    plans: Arc<Plans>,
    limits: Arc<Limits>,
    next_catch_up: Mutex<Instant>,
    shutdown: CancellationToken,
}

/// Work on stored posts of feeds, for the Managers that wait for them.
pub(crate) struct Backfills(pub(crate) Arc<Backfill>);

/// Work on look-backs, which read older posts of feeds.
pub(crate) struct LookBacks(pub(crate) Arc<Backfill>);

impl Work for Backfills {
    type Item = Waiting;

    fn settings(&self) -> Settings {
        Settings::new(backfills::KIND, LOOK, STEPS)
    }

    async fn claim(
        &self,
        conn: &mut AsyncPgConnection,
        claim: &mut Claim<'_>,
    ) -> Result<Claimed<Waiting>, store::Error> {
        let backfill = &self.0;
        backfill.catch_up(conn).await?;
        let (platforms, quota) = (backfill.platforms(), backfill.scans_per_day());
        let waiting = backfills::waiting(conn, &platforms, claim, quota).await?;
        Ok(table::lease(conn, self.settings().kind, waiting, claim).await?)
    }

    async fn run(&self, leased: &Leased<Waiting>) -> Result<(), store::Error> {
        let backfill = &self.0;
        {
            let connections = &backfill.limits.connections;
            let _share = connections.take(leased.item.account, 1).await;
            let mut conn = backfill.backbone.pool.get().await?;
            feeds::wait_for_polls(&mut conn, leased.item.feed.as_str()).await?;
        }
        let mut did = false;
        if leased.crashes > 0 {
            // One Manager at a time: after a crash, the first one left is the likely cause. After it is set aside, a single
            // one clears the others of suspicion.
            while !backfill.shutdown.is_cancelled() && backfill.match_one(&leased.item).await? {
                did = true;
                if leased.crashes > MAX_CRASHES {
                    break;
                }
            }
        } else {
            did = backfill.match_kept(&leased.item).await?;
        }
        tokio::time::sleep(if did { BREATH } else { LOOK }).await;
        Ok(())
    }

    async fn set_aside(
        &self,
        conn: &mut AsyncPgConnection,
        backbone: &Backbone,
        leased: &Leased<Waiting>,
        setback: &Setback,
    ) -> Result<(), store::Error> {
        let (waiting, quota) = (&leased.item, self.0.scans_per_day());
        let (kind, key, reason) = (self.settings().kind, &leased.key, &setback.reason);
        // In one transaction: otherwise a death in between would set aside the next one, which was not tried.
        conn.transaction(async |conn| {
            let (asked, _) = backfills::waiting_for(conn, waiting, 2, quota).await?;
            if let Some(first) = asked.first() {
                backfills::set_aside(conn, waiting, first.manager, reason, 1).await?;
            }
            let replica = backbone.replica;
            if asked.len() < 2 {
                return Ok(table::release(conn, kind, &[key], replica).await?);
            }
            // The post may be the cause. So the next one stays a suspect: it costs one more process, and not three.
            Ok(table::set_aside(conn, kind, key, replica, reason, Duration::ZERO).await?)
        })
        .await
    }

    fn name(&self, leased: &Leased<Waiting>) -> String {
        leased.item.feed.masked().into_owned()
    }
}

impl Work for LookBacks {
    type Item = LookBack;

    fn settings(&self) -> Settings {
        Settings::new("look_back", LOOK, LOOK_BACKS)
    }

    async fn claim(
        &self,
        conn: &mut AsyncPgConnection,
        claim: &mut Claim<'_>,
    ) -> Result<Claimed<LookBack>, store::Error> {
        Ok(look_backs::lease(conn, &self.0.platforms(), claim).await?)
    }

    async fn run(&self, leased: &Leased<LookBack>) -> Result<(), store::Error> {
        let (backbone, look_back) = (&self.0.backbone, &leased.item);
        let (id, failures) = (look_back.id, look_back.failure_count);
        let work = self.0.look_back(look_back);
        let stored = self.0.limits.in_turn(look_back.account, work).await;
        if let Err(error) = &stored {
            // The platform must not be asked again and again for posts that cannot be stored.
            let wait = backoff(failures);
            let mut conn = backbone.pool.get().await?;
            if error.may_be_refusal() && failures + 1 >= MAX_FAILURES {
                look_backs::give_up(&mut conn, id, &error.to_string()).await?;
            } else {
                look_backs::fail(&mut conn, id, backbone.replica, false, wait).await?;
            }
        }
        stored
    }

    async fn set_aside(
        &self,
        conn: &mut AsyncPgConnection,
        _backbone: &Backbone,
        leased: &Leased<LookBack>,
        setback: &Setback,
    ) -> Result<(), store::Error> {
        Ok(look_backs::give_up(conn, leased.item.id, &setback.reason).await?)
    }

    fn uses_table(&self) -> bool {
        false
    }

    fn name(&self, leased: &Leased<LookBack>) -> String {
        leased.item.feed.masked().into_owned()
    }
}

impl Backfill {
    pub(crate) fn new(
        watched: Vec<Watched>,
        config: Arc<Config>,
        backbone: Backbone,
        plans: Arc<Plans>,
        limits: Arc<Limits>,
        shutdown: CancellationToken,
    ) -> Self {
        let named = watched.into_iter();
        Self {
            watched: named.map(|one| (one.name().to_owned(), one)).collect(),
            config,
            backbone,
            plans,
            limits,
            next_catch_up: Mutex::new(Instant::now()),
            shutdown,
        }
    }

    /// Requests the posts that the quota refused, once a second.
    async fn catch_up(&self, conn: &mut AsyncPgConnection) -> Result<(), store::Error> {
        {
            let next = self.next_catch_up.lock();
            let mut next = next.unwrap_or_else(PoisonError::into_inner);
            if Instant::now() < *next {
                return Ok(());
            }
            *next = Instant::now() + LOOK;
        }
        let (window, quota) = (self.config.scanner.backfill, self.scans_per_day());
        let managers = backfills::catch_up(conn, window, quota).await?;
        if managers > 0 {
            tracing::info!(managers, "managers catch up: their account has scans left");
        }
        Ok(())
    }

    fn platforms(&self) -> Vec<&str> {
        self.watched.keys().map(String::as_str).collect()
    }

    fn scans_per_day(&self) -> u32 {
        self.config.quotas.scans_per_day
    }

    fn report(&self, source: &str, feed: &FeedName, made: usize) {
        if made > 0 {
            metrics::BACKFILLS
                .with_label_values(&[source])
                .inc_by(made as u64);
            tracing::info!(feed.name = %feed.masked(), scans = made, source, "found posts of the past");
        }
    }
}

fn backoff(failures: u32) -> Duration {
    RETRY.saturating_mul(1 << failures.min(16)).min(MAX_RETRY)
}
