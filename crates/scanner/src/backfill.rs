//! Runs Managers over past posts: new Managers, and those with a requested backfill.
//!
//! First, the stored posts of a feed are matched, for all Managers that wait for the feed at once. If these do not
//! reach back far enough and the platform does, a look-back reads the feed with a separate cursor. A replica runs
//! one step at a time, next to the polls of new posts, and within the half of a platform's budget that they leave.
//! Another replica repeats an unfinished step, and creates no Scan twice.
//!
//! New posts during a backfill belong to the polls. Before stored posts are read, every poll that may not have
//! known the Manager has ended ([`feeds::wait_for_polls`]), and the posts that it read are stored by then.
//!
//! A Manager whose account has used up its Scans of the day waits until the quota allows more. The posts that polls
//! refused for this reason then become a backfill ([`backfills::catch_up`]).
//!
//! When idle, this costs three small queries a second.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use backbone::Backbone;
use domain::FeedName;
use runtime::{Config, Periodic};
use store::{
    backfills::{self, look_backs},
    fair::Turns,
    feeds,
};
use tokio_util::sync::CancellationToken;

use crate::{metrics, plans::Plans, watched::Watched};

mod kept;
mod look_back;
mod record;

const LOOK: Duration = Duration::from_secs(1);
/// Pause between steps while there is more to do, because other work needs the CPU too.
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
    turns: Turns,
    next_catch_up: Instant,
}

impl Backfill {
    pub(crate) fn new(
        watched: Vec<Watched>,
        config: Arc<Config>,
        backbone: Backbone,
        plans: Arc<Plans>,
    ) -> Self {
        let named = watched.into_iter();
        Self {
            watched: named.map(|one| (one.name().to_owned(), one)).collect(),
            config,
            backbone,
            plans,
            turns: Turns::default(),
            next_catch_up: Instant::now(),
        }
    }

    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        let mut rounds = Periodic::new(&shutdown);
        let mut wait = Duration::ZERO;
        while rounds.after(wait).await {
            let did = rounds.note("backfill", self.step().await);
            wait = if did == Some(true) { BREATH } else { LOOK };
        }
    }

    /// Returns true if there was something to do.
    async fn step(&mut self) -> Result<bool, store::Error> {
        let quota = self.scans_per_day();
        let mut conn = self.backbone.pool.get().await?;
        if Instant::now() >= self.next_catch_up {
            self.next_catch_up = Instant::now() + LOOK;
            let window = self.config.scanner.backfill;
            let managers = backfills::catch_up(&mut conn, window, quota).await?;
            if managers > 0 {
                tracing::info!(managers, "managers catch up: their account has scans left");
            }
        }
        let platforms: Vec<&str> = self.watched.keys().map(String::as_str).collect();
        let waiting = backfills::next_waiting(&mut conn, &platforms, &self.turns, quota).await?;
        if let Some(waiting) = waiting {
            self.turns.serve(waiting.account);
            feeds::wait_for_polls(&mut conn, waiting.feed.as_str()).await?;
            drop(conn);
            return self.match_kept(&waiting).await;
        }
        let (replica, take_over) = (self.backbone.replica, self.backbone.may_take_over());
        let turns = &self.turns;
        let leased = look_backs::lease(&mut conn, &platforms, replica, take_over, turns).await?;
        drop(conn);
        match leased {
            Some(look_back) => {
                self.turns.serve(look_back.account);
                let (id, failures) = (look_back.id, look_back.failure_count);
                let stored = self.look_back(look_back).await;
                if let Err(error) = &stored {
                    // The platform must not be asked again and again for posts that cannot be stored.
                    let wait = backoff(failures);
                    let mut conn = self.backbone.pool.get().await?;
                    if error.may_be_refusal() && failures + 1 >= MAX_FAILURES {
                        look_backs::give_up(&mut conn, id, &error.to_string()).await?;
                    } else {
                        look_backs::fail(&mut conn, id, replica, false, wait).await?;
                    }
                }
                stored.map(|()| true)
            }
            None => Ok(false),
        }
    }

    fn scans_per_day(&self) -> u32 {
        self.config.quotas.scans_per_day
    }

    fn tell(&self, source: &str, feed: &FeedName, made: usize) {
        if made > 0 {
            self.backbone.outbox.wake();
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
