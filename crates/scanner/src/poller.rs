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

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use backbone::Backbone;
use domain::{FeedName, Id as AccountId};
use runtime::Config;
use store::{
    fair::Turns,
    feeds::{self, LeasedFeed, PollOutcome, Room, Trouble},
};
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    metrics,
    plans::Plans,
    poll::{Poll, SLOW},
    watched::Watched,
};

/// Maximum number of young polls of one platform that a replica runs at a time.
const QUICK: usize = 12;
/// Maximum number of polls of slow feeds in addition.
const SLOW_FEEDS: usize = 8;
/// Maximum number of all polls, including those that have become slow.
const MAX_OPEN: usize = 128;
/// Minimum wait before another query, when something may be due.
const MIN_WAIT: Duration = Duration::from_millis(5);
/// Maximum wait between two queries. Feeds of a dead replica are free when its heartbeat is four seconds old, and
/// must be taken over within five.
const MAX_WAIT: Duration = Duration::from_millis(500);
const RETRY: Duration = Duration::from_secs(1);
const AFTER_PANIC: Duration = Duration::from_secs(300);

/// A poll in progress.
struct Open {
    feed: FeedName,
    /// Account that the poll counts for.
    account: AccountId,
    since: Instant,
    /// True if the feed's last poll was slow.
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

    /// Polls until `shutdown`, then completes the open polls.
    pub(crate) async fn run(self, shutdown: CancellationToken) {
        let mut open = JoinSet::new();
        let mut names = HashMap::<Id, Open>::new();
        let mut turns = Turns::default();
        let mut changes = self.plans.changes();
        let mut failing = false;
        while !shutdown.is_cancelled() {
            // A query costs the same for one free place or many.
            for ended in ended(&mut open) {
                self.end(ended, &mut names).await;
            }
            let wait = match self.lease(&names, &mut turns).await {
                Ok((leased, wait)) => {
                    failing = false;
                    for feed in leased {
                        let polled = Open {
                            feed: feed.name.clone(),
                            account: feed.account,
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

    /// Leases as many due feeds as there is capacity for, and returns them with the time until the next query.
    async fn lease(
        &self,
        open: &HashMap<Id, Open>,
        turns: &mut Turns,
    ) -> Result<(Vec<LeasedFeed>, Duration), store::Error> {
        let mut room = room(open.values());
        if room.is_full() {
            return Ok((Vec::new(), MAX_WAIT));
        }
        let mut conn = self.backbone.pool.get().await?;
        let open: Vec<String> = open.values().map(|open| open.feed.to_string()).collect();
        let (platform, replica) = (self.watched.name(), self.backbone.replica);
        let take_over = self.backbone.may_take_over();
        let next = feeds::next_due(&mut conn, platform, replica, &open, take_over, &room).await?;
        let leased = feeds::lease_due(
            &mut conn, platform, replica, &open, take_over, &mut room, turns,
        )
        .await?;
        let wait = if leased.is_contended {
            MIN_WAIT
        } else {
            next.unwrap_or(MAX_WAIT).clamp(MIN_WAIT, MAX_WAIT)
        };
        Ok((leased.feeds, wait))
    }

    /// Removes an ended poll. A poll that panicked would do so again at once, so its feed is paused for a while.
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

/// Returns all polls that have ended, without waiting for another.
fn ended(open: &mut JoinSet<()>) -> Vec<Result<(Id, ()), JoinError>> {
    std::iter::from_fn(|| open.try_join_next_with_id()).collect()
}

/// Returns the capacity that open polls leave.
fn room<'a>(open: impl Iterator<Item = &'a Open>) -> Room {
    let mut room = Room::new(QUICK, SLOW_FEEDS, MAX_OPEN);
    for poll in open {
        if poll.is_slow || poll.since.elapsed() < SLOW {
            room.take(poll.account, poll.is_slow);
        } else {
            room.take_overdue(poll.account);
        }
    }
    room
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(number: u128) -> AccountId {
        AccountId::from_uuid(uuid::Uuid::from_u128(number))
    }

    fn open(account: AccountId, count: usize, age: Duration, is_slow: bool) -> Vec<Open> {
        let since = Instant::now().checked_sub(age).unwrap();
        let poll = |n| Open {
            feed: format!("forum:{n}").parse().unwrap(),
            account,
            since,
            is_slow,
        };
        (0..count).map(poll).collect()
    }

    /// Returns how many more quick and slow feeds of `account` may be polled next to `polls`.
    fn room_beside(polls: &[Vec<Open>], account: AccountId) -> (usize, usize) {
        let more = |slow| {
            let mut room = room(polls.iter().flatten());
            let mut count = 0;
            while room.admits(account, slow) {
                room.take(account, slow);
                count += 1;
            }
            count
        };
        (more(false), more(true))
    }

    #[tokio::test]
    async fn ended_polls_are_freed_before_a_query() {
        let mut open = JoinSet::new();
        let polls: Vec<_> = (0..MAX_OPEN).map(|_| open.spawn(async {})).collect();
        open.spawn(std::future::pending());
        while !polls.iter().all(tokio::task::AbortHandle::is_finished) {
            tokio::task::yield_now().await;
        }
        assert_eq!((ended(&mut open).len(), open.len()), (MAX_OPEN, 1));
    }

    #[test]
    fn slow_polls_never_take_the_capacity_of_quick_ones() {
        let one = account(1);
        assert_eq!(room_beside(&[], one), (6, 4));
        let (young, old) = (Duration::ZERO, SLOW * 2);
        assert_eq!(room_beside(&[open(one, 6, young, false)], one), (0, 4));
        assert_eq!(room_beside(&[open(one, 30, old, false)], one), (6, 4));
        assert_eq!(room_beside(&[open(one, 4, young, true)], one), (6, 0));
        assert_eq!(
            room_beside(&[open(one, 60, old, false), open(one, 1, young, true)], one),
            (3, 3)
        );
    }

    #[test]
    fn slow_feeds_of_one_account_leave_scanner_capacity_for_others() {
        let (one, other, third) = (account(1), account(2), account(3));
        let (young, old) = (Duration::ZERO, SLOW * 2);
        let worst = [
            open(one, 6, young, false),
            open(one, 4, young, true),
            open(one, 54, old, false),
        ];
        assert_eq!(room_beside(&worst, one), (0, 0));
        assert_eq!(room_beside(&worst, other), (3, 2));
        let mut both = Vec::from(worst);
        both.push(open(other, 3, young, false));
        both.push(open(other, 2, young, true));
        assert_eq!(room_beside(&both, third), (2, 1));
    }
}
