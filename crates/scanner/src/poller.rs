//! Leases the due feeds of one platform and polls them.
//!
//! Idle, this costs one small query per second and platform; it wakes sooner when a feed falls due
//! or plans change.

use std::{collections::HashMap, sync::Arc, time::Duration};

use backbone::Backbone;
use domain::FeedName;
use platforms::Platform;
use runtime::Config;
use store::feeds::{self, LeasedFeed, PollOutcome, Room, Trouble};
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::{metrics, plans::Plans, poll::Poll};

/// Polls of one platform that a replica has open at a time.
const MAX_OPEN: usize = 4;
const MAX_WAIT: Duration = Duration::from_secs(1);
const RETRY: Duration = Duration::from_secs(1);
const AFTER_PANIC: Duration = Duration::from_secs(300);

pub(crate) struct Poller {
    platform: Platform,
    config: Arc<Config>,
    backbone: Backbone,
    plans: Arc<Plans>,
}

impl Poller {
    pub(crate) fn new(
        platform: Platform,
        config: Arc<Config>,
        backbone: Backbone,
        plans: Arc<Plans>,
    ) -> Self {
        Self {
            platform,
            config,
            backbone,
            plans,
        }
    }

    /// Polls until `shutdown`, then finishes what is open.
    pub(crate) async fn run(self, shutdown: CancellationToken) {
        let mut open = JoinSet::new();
        let mut names = HashMap::new();
        let mut changes = self.plans.changes();
        let mut failing = false;
        while !shutdown.is_cancelled() {
            let wait = match self.lease(&names).await {
                Ok((leased, wait)) => {
                    failing = false;
                    for feed in leased {
                        let name = feed.name.clone();
                        names.insert(self.start(&mut open, feed), name);
                    }
                    wait
                }
                Err(error) => {
                    if !std::mem::replace(&mut failing, true) {
                        let error = anyhow::Error::from(error);
                        tracing::warn!(
                            platform = self.platform.name,
                            "cannot lease feeds: {error:#}"
                        );
                    }
                    RETRY
                }
            };
            tokio::select! {
                () = shutdown.cancelled() => break,
                Some(ended) = open.join_next_with_id() => {
                    self.end(ended, &mut names).await;
                }
                Ok(()) = changes.changed() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
        while let Some(ended) = open.join_next_with_id().await {
            self.end(ended, &mut names).await;
        }
    }

    /// Up to `room` due feeds, and how long until another look is worth it.
    async fn lease(
        &self,
        open: &HashMap<Id, FeedName>,
    ) -> Result<(Vec<LeasedFeed>, Duration), store::Error> {
        let room = MAX_OPEN.saturating_sub(open.len());
        if room == 0 {
            return Ok((Vec::new(), MAX_WAIT));
        }
        let mut conn = self.backbone.pool.get().await?;
        let limit = i64::try_from(room).unwrap_or(i64::MAX);
        let room = Room {
            quick: limit,
            slow: limit,
        };
        let mut open: Vec<String> = open.values().map(ToString::to_string).collect();
        let (platform, replica) = (&self.platform.name, self.backbone.replica);
        let take_over = self.backbone.may_take_over();
        let leased =
            feeds::lease_due(&mut conn, platform, replica, &open, take_over, room).await?;
        open.extend(leased.iter().map(|feed| feed.name.to_string()));
        let wait = feeds::next_due(&mut conn, platform, replica, &open, take_over, room).await?;
        Ok((
            leased,
            wait.unwrap_or(MAX_WAIT)
                .clamp(Duration::from_millis(5), MAX_WAIT),
        ))
    }

    /// Forgets a poll. One that panicked would do so again at once: its feed is left alone for a while.
    async fn end(&self, ended: Result<(Id, ()), JoinError>, open: &mut HashMap<Id, FeedName>) {
        let panic = match ended {
            Ok((id, ())) => {
                open.remove(&id);
                return;
            }
            Err(panic) => panic,
        };
        let Some(feed) = open.remove(&panic.id()) else {
            return;
        };
        tracing::error!(feed.name = %feed, "a poll panicked: {panic}");
        let released = async {
            let mut conn = self.backbone.pool.get().await?;
            let outcome = PollOutcome::Failed {
                error: "the poll panicked".to_owned(),
                trouble: Trouble::Failing,
            };
            let replica = self.backbone.replica;
            feeds::release(&mut conn, &feed, replica, &outcome, AFTER_PANIC.into()).await?;
            Ok::<_, store::Error>(())
        };
        if let Err(error) = released.await {
            let error = anyhow::Error::from(error);
            tracing::warn!(feed.name = %feed, "cannot end a lease: {error:#}");
        }
    }

    fn start(&self, open: &mut JoinSet<()>, feed: LeasedFeed) -> Id {
        metrics::POLL_DELAY
            .with_label_values(&[&self.platform.name])
            .observe(feed.late.as_secs_f64());
        let span = tracing::info_span!("poll feed", feed.name = %feed.name, feed.platform = self.platform.name);
        let poll = Poll {
            platform: self.platform.clone(),
            config: Arc::clone(&self.config),
            backbone: self.backbone.clone(),
            plans: Arc::clone(&self.plans),
            feed,
        };
        open.spawn(poll.run().instrument(span)).id()
    }
}
