//! Leases the due feeds of one platform and polls them.
//!
//! Each platform has a poller and places of its own, so no platform waits for another. Of its places,
//! [`QUICK`] are for polls that are young, of feeds that were not slow last time: a poll that takes long gives
//! its place up, and its feed's next one has to take one of the [`SLOW_FEEDS`] places. So whoever answers
//! slowly, or makes feeds that do, holds up others for seconds once, and then only those like it.
//!
//! Idle, this costs two small queries per second and platform; it wakes sooner when a feed falls due
//! or plans change.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use backbone::Backbone;
use domain::FeedName;
use runtime::Config;
use store::feeds::{self, LeasedFeed, PollOutcome, Room, Trouble};
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    metrics,
    plans::Plans,
    poll::{Poll, SLOW},
    watched::Watched,
};

/// Young polls of one platform that a replica has open at a time.
const QUICK: usize = 6;
/// Polls, beside these, of feeds that were slow.
const SLOW_FEEDS: usize = 4;
/// All of them, with those that have become slow.
const MAX_OPEN: usize = 64;
/// Between two looks at most: feeds of a dead replica are free when its heartbeat is four seconds old, and are to be taken
/// over within five.
const MAX_WAIT: Duration = Duration::from_millis(500);
const RETRY: Duration = Duration::from_secs(1);
const AFTER_PANIC: Duration = Duration::from_secs(300);

/// A poll in hand.
struct Open {
    feed: FeedName,
    since: Instant,
    /// By its feed's last poll.
    is_slow: bool,
}

pub(crate) struct Poller {
    watched: Watched,
    config: Arc<Config>,
    backbone: Backbone,
    plans: Arc<Plans>,
}

impl Poller {
    pub(crate) fn new(
        watched: Watched,
        config: Arc<Config>,
        backbone: Backbone,
        plans: Arc<Plans>,
    ) -> Self {
        Self {
            watched,
            config,
            backbone,
            plans,
        }
    }

    /// Polls until `shutdown`, then finishes what is open.
    pub(crate) async fn run(self, shutdown: CancellationToken) {
        let mut open = JoinSet::new();
        let mut names = HashMap::<Id, Open>::new();
        let mut changes = self.plans.changes();
        let mut failing = false;
        while !shutdown.is_cancelled() {
            let wait = match self.lease(&names).await {
                Ok((leased, wait)) => {
                    failing = false;
                    for feed in leased {
                        let polled = Open {
                            feed: feed.name.clone(),
                            since: Instant::now(),
                            is_slow: feed.slow,
                        };
                        names.insert(self.start(&mut open, feed, &shutdown), polled);
                    }
                    wait
                }
                Err(error) => {
                    if !std::mem::replace(&mut failing, true) {
                        let error = anyhow::Error::from(error);
                        tracing::warn!(
                            platform = self.watched.name(),
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

    /// As many due feeds as there is room for, and how long until another look is worth it.
    async fn lease(
        &self,
        open: &HashMap<Id, Open>,
    ) -> Result<(Vec<LeasedFeed>, Duration), store::Error> {
        let room = room(open.values());
        if room.quick + room.slow == 0 {
            return Ok((Vec::new(), MAX_WAIT));
        }
        let mut conn = self.backbone.pool.get().await?;
        let mut open: Vec<String> = open.values().map(|open| open.feed.to_string()).collect();
        let (platform, replica) = (self.watched.name(), self.backbone.replica);
        let take_over = self.backbone.may_take_over();
        let leased = feeds::lease_due(&mut conn, platform, replica, &open, take_over, room).await?;
        open.extend(leased.iter().map(|feed| feed.name.to_string()));
        let slow = leased.iter().filter(|feed| feed.slow).count();
        let left = Room {
            quick: room.quick - number(leased.len() - slow),
            slow: room.slow - number(slow),
        };
        let wait = feeds::next_due(&mut conn, platform, replica, &open, take_over, left).await?;
        Ok((
            leased,
            wait.unwrap_or(MAX_WAIT)
                .clamp(Duration::from_millis(5), MAX_WAIT),
        ))
    }

    /// Forgets a poll. One that panicked would do so again at once: its feed is left alone for a while.
    async fn end(&self, ended: Result<(Id, ()), JoinError>, open: &mut HashMap<Id, Open>) {
        let panic = match ended {
            Ok((id, ())) => {
                open.remove(&id);
                return;
            }
            Err(panic) => panic,
        };
        let Some(Open { feed, .. }) = open.remove(&panic.id()) else {
            return;
        };
        tracing::error!(feed.name = %feed.masked(), "a poll panicked: {panic}");
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
            tracing::warn!(feed.name = %feed.masked(), "cannot end a lease: {error:#}");
        }
    }

    fn start(&self, open: &mut JoinSet<()>, feed: LeasedFeed, shutdown: &CancellationToken) -> Id {
        metrics::POLL_DELAY
            .with_label_values(&[self.watched.name()])
            .observe(feed.late.as_secs_f64());
        let poll = Poll {
            watched: self.watched.clone(),
            config: Arc::clone(&self.config),
            backbone: self.backbone.clone(),
            plans: Arc::clone(&self.plans),
            feed,
            shutdown: shutdown.clone(),
        };
        open.spawn(poll.run()).id()
    }
}

/// How many more feeds may be polled, beside those that are.
fn room<'a>(open: impl Iterator<Item = &'a Open>) -> Room {
    let (mut all, mut quick, mut slow) = (0, 0, 0);
    for poll in open {
        all += 1;
        if poll.is_slow {
            slow += 1;
        } else if poll.since.elapsed() < SLOW {
            quick += 1;
        }
    }
    let left = MAX_OPEN.saturating_sub(all);
    Room {
        quick: number(QUICK.saturating_sub(quick).min(left)),
        slow: number(SLOW_FEEDS.saturating_sub(slow).min(left)),
    }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(count: usize, age: Duration, is_slow: bool) -> Vec<Open> {
        let since = Instant::now().checked_sub(age).unwrap();
        let feed = |n| format!("forum:{n}").parse().unwrap();
        let poll = |n| Open {
            feed: feed(n),
            since,
            is_slow,
        };
        (0..count).map(poll).collect()
    }

    #[test]
    fn slow_polls_never_take_the_places_of_quick_ones() {
        let room_beside = |polls: &[Vec<Open>]| room(polls.iter().flatten());
        let both = |quick, slow| Room { quick, slow };
        assert_eq!(room_beside(&[]), both(6, 4));
        let (young, old) = (Duration::ZERO, SLOW * 2);
        assert_eq!(room_beside(&[open(6, young, false)]), both(0, 4));
        assert_eq!(room_beside(&[open(30, old, false)]), both(6, 4));
        assert_eq!(room_beside(&[open(4, young, true)]), both(6, 0));
        assert_eq!(
            room_beside(&[open(60, old, false), open(1, young, true)]),
            both(3, 3)
        );
    }
}
