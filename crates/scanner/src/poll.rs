//! One poll: from the platform's answer to the committed Scans.
//!
//! A poll without new posts costs one transaction of four statements; one with posts two more, one with
//! matches nine more, whatever their number. Nothing is held open while the platform is waited for,
//! save the lease.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use backbone::Backbone;
use domain::{Post, ScanName, Timestamp};
use events::ScanCreated;
use matching::{Candidate, Index, Kept, PostText};
use platforms::{Cursor, Platform, PollError, PollLimits, Polled};
use runtime::Config;
use store::{
    AsyncConnection,
    feeds::{self, LeasedFeed, PollOutcome, Reading, Trouble},
    outbox, plans as plan_store,
    scans::{self, NewScan},
};

use crate::{
    metrics,
    plans::{Plans, backfill_start},
};

const MAX_BACKOFF: Duration = Duration::from_secs(3_600);
/// How many refusals in a row are taken for passing ones.
const SLIPS: u32 = 3;
const STORE_RETRY: Duration = Duration::from_millis(500);
const MAX_STORE_RETRY: Duration = Duration::from_secs(60);
/// Losing against changing plans this often in a row means that something else is wrong.
const MAX_REMATCHES: u32 = 20;

pub(crate) struct Poll {
    pub(crate) platform: Platform,
    pub(crate) config: Arc<Config>,
    pub(crate) backbone: Backbone,
    pub(crate) plans: Arc<Plans>,
    pub(crate) feed: LeasedFeed,
}

/// How the transaction at the end went.
enum Stored {
    Scans(Vec<ScanName>),
    /// Another replica has the feed now; it reads the same posts.
    LeaseLost,
    /// Plans changed since the posts were matched.
    Behind,
}

impl Poll {
    pub(crate) async fn run(self) {
        let begin = Instant::now();
        let cursor = self.feed.cursor.as_ref().and_then(Cursor::from_json);
        if cursor.is_none() && self.feed.cursor.is_some() {
            tracing::warn!(feed.name = %self.feed.name, "the cursor cannot be read: starting anew");
        }
        let limits = PollLimits {
            since: Some(backfill_start(self.config.scanner.backfill)),
            ..PollLimits::default()
        };
        let answer = self
            .platform
            .adapter
            .poll(self.feed.name.what(), cursor.as_ref(), &limits)
            .await;
        let outcome = match answer {
            Ok(polled) => match self.store(polled).await {
                Ok(outcome) => outcome,
                Err(error) => {
                    self.fail_to_store(error.into()).await;
                    "store_failed"
                }
            },
            Err(error) => {
                self.fail(error).await;
                "failed"
            }
        };
        metrics::POLL_DURATION
            .with_label_values(&[self.platform.name.as_str(), outcome])
            .observe(begin.elapsed().as_secs_f64());
    }

    /// Matches, and commits what matched with the cursor; again when plans have changed meanwhile.
    async fn store(&self, polled: Polled) -> Result<&'static str, store::Error> {
        let label = [self.platform.name.as_str()];
        // The operator's interval is kept exactly; the platform's wish counts where there is none.
        let hint = polled
            .next_hint
            .filter(|_| self.platform.poll_interval.is_none());
        let next = if polled.more {
            // It is there to be read: waiting would only let it grow.
            Duration::ZERO
        } else {
            self.interval().max(hint.unwrap_or_default())
        };
        for _ in 0..MAX_REMATCHES {
            let index = self.plans.index();
            let matches = self.find(&index, &polled.posts);
            let matches = self.plans.decide(matches).await;
            match self.commit(&index, &matches, &polled, next).await? {
                Stored::Behind => self.plans.refresh().await?,
                Stored::LeaseLost => {
                    tracing::info!(feed.name = %self.feed.name, "another replica took the feed over");
                    return Ok("lease_lost");
                }
                Stored::Scans(made) => {
                    self.backbone.outbox.wake();
                    metrics::SCANS
                        .with_label_values(&label)
                        .inc_by(made.len() as u64);
                    self.tell(&polled, &made);
                    return Ok("ok");
                }
            }
        }
        let error = anyhow::anyhow!("plans change faster than a poll can be matched");
        self.fail_to_store(error).await;
        Ok("behind")
    }

    fn find<'a>(&self, index: &Index, posts: &'a [Post]) -> Vec<NewScan<'a>> {
        let _timer = metrics::MATCH_DURATION.start_timer();
        let now = Timestamp::now();
        let mut matches = Vec::new();
        for post in posts {
            let text = PostText::from(post);
            let candidate = Candidate::new(post, &text);
            for (manager, decision) in index.matches(&text, &self.feed.name) {
                let kept = self.plans.screens().keep_out(&manager, &candidate, now);
                if let Some(kept) = kept {
                    let reason = match kept {
                        Kept::Muted => "muted",
                        Kept::Language => "language",
                    };
                    metrics::SCREENED.with_label_values(&[reason]).inc();
                    continue;
                }
                matches.push(NewScan {
                    manager,
                    post,
                    matched: matching::explain(decision, &text),
                });
            }
        }
        matches
    }

    async fn commit(
        &self,
        index: &Index,
        matches: &[NewScan<'_>],
        polled: &Polled,
        next: Duration,
    ) -> Result<Stored, store::Error> {
        let outcome = PollOutcome::Read(Reading {
            cursor: polled.cursor.to_json(),
            gap: polled.gap.as_ref().map(|gap| gap.to),
            ..Reading::default()
        });
        let (feed, replica) = (&self.feed.name, self.backbone.replica);
        let mut conn = self.backbone.pool.get().await?;
        conn.transaction(async |conn| {
            if !feeds::lock(conn, feed, replica).await? {
                return Ok(Stored::LeaseLost);
            }
            if !polled.posts.is_empty() && plan_store::version(conn).await? > index.version() {
                return Ok(Stored::Behind);
            }
            let read = polled.posts.len() as u64;
            let made = scans::record_poll(conn, feed, read, matches, Timestamp::now()).await?;
            let events = made.iter().map(|name| ScanCreated {
                name: *name,
                create_time: name.scan.time(),
            });
            outbox::enqueue_all(conn, events).await?;
            feeds::release(conn, feed, replica, &outcome, next.into()).await?;
            Ok(Stored::Scans(made))
        })
        .await
    }

    fn tell(&self, polled: &Polled, made: &[ScanName]) {
        let label = [self.platform.name.as_str()];
        metrics::POSTS
            .with_label_values(&label)
            .inc_by(polled.posts.len() as u64);
        let now = Timestamp::now();
        for post in &polled.posts {
            metrics::DISCOVERY
                .with_label_values(&label)
                .observe(now.since(post.time).as_secs_f64());
        }
        if let Some(gap) = &polled.gap {
            metrics::GAPS.with_label_values(&label).inc();
            tracing::warn!(feed.name = %self.feed.name, reason = gap.reason, from = ?gap.from, to = ?gap.to, "posts may be missing");
        }
        for name in made {
            tracing::info!(scan.name = %name, feed.name = %self.feed.name, "found a post");
        }
        if self.feed.failure_count > 0 {
            tracing::info!(feed.name = %self.feed.name, "the feed answers again");
        }
        tracing::debug!(feed.name = %self.feed.name, posts = polled.posts.len(), scans = made.len(), "polled");
    }

    /// Leaves the cursor and backs off, this feed alone.
    async fn fail(&self, error: PollError) {
        if matches!(error, PollError::Throttled { .. }) {
            metrics::THROTTLED
                .with_label_values(&[&self.platform.name])
                .inc();
        }
        let doubled = self
            .interval()
            .saturating_mul(1 << self.feed.failure_count.min(16));
        // One refusal may be a slip of the platform's; several mean it.
        let settled = error.is_permanent() && self.feed.failure_count >= SLIPS;
        let backoff = if settled {
            MAX_BACKOFF
        } else {
            doubled.min(MAX_BACKOFF)
        };
        let jitter = rand::random_range(0.8..1.2);
        let wait = backoff
            .mul_f64(jitter)
            .max(error.retry_after().unwrap_or_default());
        let reason = format!("{:#}", anyhow::Error::from(error));
        if self.feed.failure_count == 0 {
            tracing::warn!(feed.name = %self.feed.name, error = reason, "a poll failed");
        } else {
            tracing::debug!(feed.name = %self.feed.name, error = reason, "a poll failed again");
        }
        self.release_failed(reason, wait).await;
    }

    /// A failure of ours. The cursor stays, so the next poll reads the same posts again: soon, but the
    /// platform is not asked without a pause for what cannot be stored.
    async fn fail_to_store(&self, error: anyhow::Error) {
        tracing::warn!(feed.name = %self.feed.name, "cannot store a poll: {error:#}");
        let doubled = STORE_RETRY.saturating_mul(1 << self.feed.failure_count.min(16));
        let reason = format!("cannot store a poll: {error:#}");
        self.release_failed(reason, doubled.min(self.interval().max(MAX_STORE_RETRY)))
            .await;
    }

    async fn release_failed(&self, error: String, wait: Duration) {
        let released = async {
            let mut conn = self.backbone.pool.get().await?;
            let outcome = PollOutcome::Failed {
                error,
                trouble: Trouble::Failing,
            };
            feeds::release(
                &mut conn,
                &self.feed.name,
                self.backbone.replica,
                &outcome,
                wait.into(),
            )
            .await?;
            Ok::<_, store::Error>(())
        };
        if let Err(error) = released.await {
            tracing::warn!(feed.name = %self.feed.name, "cannot end a lease: {:#}", anyhow::Error::from(error));
        }
    }

    /// The operator's interval exactly, or the platform's, never below the floor.
    fn interval(&self) -> Duration {
        self.platform.poll_interval.unwrap_or_else(|| {
            self.platform
                .interval()
                .max(self.config.scanner.poll_interval_min)
        })
    }
}
