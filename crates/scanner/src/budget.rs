//! A platform's budget, shared by all replicas.
//!
//! If the operator limits requests, they are leased from the store in portions. Posts that are paid for
//! individually are taken from the store's daily count. If the platform itself reports a limit, every replica stops
//! within a second.
//!
//! A poll that has started waits for its next request, because giving up would waste its earlier ones. A poll that
//! has not started is postponed. Low-priority work, which is not about new posts, leaves half of each limit free.
//! Paid posts are shared by the accounts that watch the platform.
//!
//! It costs one short transaction for each lease of requests, for each low-priority request and for each purchase
//! of paid posts. Without limits, it costs one read by primary key in each second with requests.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use domain::{FeedName, Id};
use platforms::{MAX_PAUSE, Settings, budget::Left};
use store::{
    Pool, platform_budgets,
    rates::{LEASE_MS, LeaseId, Settlement, Wanted},
};
use tokio::sync::Mutex;

use crate::metrics;

/// Maximum age of an answer of the store that says that the platform is not silenced.
const BELIEVED: Duration = Duration::from_secs(1);
/// Time between two checks of a waiting poll.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// Maximum wait for the next request. After it, earlier requests no longer count towards the limit per minute.
pub(crate) const MAX_PATIENCE: Duration = Duration::from_secs(70);
/// Wait when the store does not answer.
const AFTER_ERROR: Duration = Duration::from_secs(2);
/// Wait until an account that has used its share asks again for posts that others leave unused.
const SHARE_RETRY: Duration = Duration::from_secs(600);

/// Requests of one poll, look-back or re-check.
struct Spending {
    made: Cell<u32>,
    is_low: bool,
    /// The feed that is read, if any.
    feed: Option<FeedName>,
    /// Account whose share the last posts were taken from.
    charged: Cell<Option<Id>>,
}

tokio::task_local! {
    static SPENDING: Spending;
}

/// Runs one unit of work with requests, which is either postponed as a whole or runs to its end. Paid posts come
/// from the share of an account that watches `feed`.
pub(crate) async fn undertake<F: Future>(
    is_low: bool,
    feed: Option<&FeedName>,
    work: F,
) -> F::Output {
    let spending = Spending {
        made: Cell::new(0),
        is_low,
        feed: feed.cloned(),
        charged: Cell::new(None),
    };
    SPENDING.scope(spending, work).await
}

pub(crate) struct Budget {
    pool: Pool,
    platform: String,
    credential: String,
    requests_per_minute: Option<u32>,
    posts_per_day: Option<u32>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    lease: Option<Lease>,
    silent_until: Option<Instant>,
    /// Time of the store's last answer.
    looked: Option<Instant>,
    /// Highest remaining number that the platform ever reported, which is its limit.
    most_left: u32,
}

struct Lease {
    id: LeaseId,
    asked: Instant,
    rest: u32,
    spent: Vec<(i64, u32)>,
}

impl Lease {
    /// Returns true if requests need a new lease. The store would let this one last longer, but the request for a new
    /// one finds out whether the platform is silenced.
    fn is_over(&self) -> bool {
        self.rest == 0 || self.asked.elapsed() >= BELIEVED
    }

    fn spend(&mut self) {
        self.rest -= 1;
        let after = i64::try_from(self.asked.elapsed().as_millis()).unwrap_or(LEASE_MS);
        self.spent.push((after + 1, 1));
    }
}

impl Budget {
    pub(crate) fn new(pool: Pool, settings: &Settings) -> Self {
        let access = &settings.access;
        Self {
            pool,
            platform: settings.name.clone(),
            credential: settings.credential(),
            requests_per_minute: access.requests_per_minute.map(|limit| limit.max(1)),
            posts_per_day: access.posts_per_day,
            state: Mutex::default(),
        }
    }

    /// Records that the platform asked for a pause, for everyone who uses this credential.
    pub(crate) async fn silence(&self, time: Duration) {
        let time = time.min(MAX_PAUSE);
        if time.is_zero() {
            return;
        }
        {
            let mut state = self.state.lock().await;
            let until = Instant::now() + time;
            state.silent_until = state.silent_until.max(Some(until));
        }
        self.show(0.0);
        let stored = async {
            let mut conn = self.pool.get().await?;
            platform_budgets::silence(&mut conn, &self.credential, time).await?;
            Ok::<_, store::Error>(())
        };
        if let Err(error) = stored.await {
            let error = anyhow::Error::from(error);
            tracing::warn!(
                platform = self.platform,
                "cannot tell other replicas to leave the platform alone: {error:#}"
            );
        }
    }

    /// Takes one request now, or returns the time until one may be available.
    async fn take(&self, is_low: bool) -> Result<(), Duration> {
        let mut state = self.state.lock().await;
        if let Some(until) = state.silent_until {
            let rest = until.saturating_duration_since(Instant::now());
            if !rest.is_zero() {
                return Err(rest);
            }
            state.silent_until = None;
        }
        let taken = match self.requests_per_minute {
            None => self.check_silence(&mut state).await,
            Some(limit) if is_low => self.take_low(&mut state, limit).await,
            Some(limit) => self.take_leased(&mut state, limit).await,
        };
        taken.unwrap_or_else(|error| {
            let error = anyhow::Error::from(error);
            tracing::debug!(
                platform = self.platform,
                "cannot ask for a budget: {error:#}"
            );
            Err(AFTER_ERROR)
        })
    }

    async fn check_silence(&self, state: &mut State) -> Result<Result<(), Duration>, store::Error> {
        if state
            .looked
            .is_some_and(|looked| looked.elapsed() < BELIEVED)
        {
            return Ok(Ok(()));
        }
        let mut conn = self.pool.get().await?;
        let silent = platform_budgets::silent(&mut conn, &self.credential).await?;
        state.looked = Some(Instant::now());
        Ok(state.set_silence(silent))
    }

    async fn take_leased(
        &self,
        state: &mut State,
        limit: u32,
    ) -> Result<Result<(), Duration>, store::Error> {
        if let Some(lease) = state.lease.as_mut().filter(|lease| !lease.is_over()) {
            lease.spend();
            return Ok(Ok(()));
        }
        let settlement = state.lease.take().map(|lease| Settlement {
            lease: lease.id,
            spent: lease.spent,
        });
        // About as many as one second needs.
        let wanted = Wanted {
            id: rand::random(),
            least: 1,
            most: (limit / 60).max(1),
        };
        let asked = Instant::now();
        let mut conn = self.pool.get().await?;
        let stand = platform_budgets::lease(
            &mut conn,
            &self.credential,
            limit,
            settlement.as_ref(),
            Some(&wanted),
            0,
        )
        .await?;
        if let Err(silent) = state.set_silence(stand.silent) {
            return Ok(Err(silent));
        }
        let Some(grant) = stand.grant else {
            return Ok(Err(AFTER_ERROR));
        };
        self.show(f64::from(grant.free) / f64::from(limit));
        if grant.points == 0 {
            let wait = Duration::from_millis(grant.retry_in_ms.unsigned_abs());
            return Ok(Err(wait.max(Duration::from_millis(100))));
        }
        let mut lease = Lease {
            id: wanted.id,
            asked,
            rest: grant.points,
            spent: Vec::new(),
        };
        lease.spend();
        state.lease = Some(lease);
        Ok(Ok(()))
    }

    /// Leases one request at a time, and never from the second half of the limit. These leases are not settled, so
    /// their requests count a few seconds longer.
    async fn take_low(
        &self,
        state: &mut State,
        limit: u32,
    ) -> Result<Result<(), Duration>, store::Error> {
        let wanted = Wanted {
            id: rand::random(),
            least: 1,
            most: 1,
        };
        let mut conn = self.pool.get().await?;
        let kept = limit / 2;
        let stand = platform_budgets::lease(
            &mut conn,
            &self.credential,
            limit,
            None,
            Some(&wanted),
            kept,
        )
        .await?;
        if let Err(silent) = state.set_silence(stand.silent) {
            return Ok(Err(silent));
        }
        Ok(match stand.grant {
            Some(grant) if grant.points > 0 => Ok(()),
            Some(grant) => {
                Err(Duration::from_millis(grant.retry_in_ms.unsigned_abs()).max(LOOK_AGAIN))
            }
            None => Err(AFTER_ERROR),
        })
    }

    fn show(&self, ratio: f64) {
        metrics::BUDGET
            .with_label_values(&[&self.platform])
            .set(ratio);
    }
}

impl State {
    fn set_silence(&mut self, silent: Duration) -> Result<(), Duration> {
        if silent.is_zero() {
            return Ok(());
        }
        self.silent_until = Some(Instant::now() + silent);
        Err(silent)
    }
}

#[async_trait]
impl platforms::Budget for Budget {
    async fn request(&self) -> Result<(), Duration> {
        let (made, is_low) = SPENDING
            .try_with(|spending| (spending.made.get(), spending.is_low))
            .unwrap_or((0, false));
        let begin = Instant::now();
        loop {
            let Err(wait) = self.take(is_low).await else {
                let _ = SPENDING.try_with(|spending| spending.made.set(made + 1));
                return Ok(());
            };
            if made == 0 || begin.elapsed() + wait > MAX_PATIENCE {
                return Err(wait);
            }
            tokio::time::sleep(wait.min(LOOK_AGAIN)).await;
        }
    }

    async fn posts(&self, wanted: u32) -> Result<u32, Duration> {
        let Some(per_day) = self.posts_per_day else {
            return Ok(wanted);
        };
        let (is_low, feed) = SPENDING
            .try_with(|spending| (spending.is_low, spending.feed.clone()))
            .unwrap_or((false, None));
        // Low-priority work must also leave the second half of a day's posts.
        let open = if is_low { per_day / 2 } else { per_day };
        let taken = async {
            let mut conn = self.pool.get().await?;
            let credential = &self.credential;
            Ok::<_, store::Error>(
                platform_budgets::take_posts(&mut conn, credential, open, wanted, feed.as_ref())
                    .await?,
            )
        };
        match taken.await {
            Ok(posts) => {
                if open == per_day {
                    self.show(f64::from(posts.left) / f64::from(per_day.max(1)));
                }
                let _ = SPENDING.try_with(|spending| spending.charged.set(posts.account));
                match (posts.granted, posts.left) {
                    (0, 0) => Err(posts.day_ends_in),
                    (0, _) => Err(posts.day_ends_in.min(SHARE_RETRY)),
                    (granted, _) => Ok(granted),
                }
            }
            // Posts that cannot be counted are not bought.
            Err(error) => {
                let error = anyhow::Error::from(error);
                tracing::debug!(platform = self.platform, "cannot take posts: {error:#}");
                Err(AFTER_ERROR)
            }
        }
    }

    async fn refund(&self, posts: u32) {
        if self.posts_per_day.is_none() || posts == 0 {
            return;
        }
        let charged = SPENDING.try_with(|spending| spending.charged.get());
        let account = charged.unwrap_or_default();
        let given = async {
            let mut conn = self.pool.get().await?;
            platform_budgets::refund_posts(&mut conn, &self.credential, posts, account).await?;
            Ok::<_, store::Error>(())
        };
        if let Err(error) = given.await {
            let error = anyhow::Error::from(error);
            tracing::debug!(
                platform = self.platform,
                posts,
                "posts count as paid for: {error:#}"
            );
        }
    }

    async fn record_remaining(&self, left: Left) {
        if left.requests == 0 {
            self.silence(left.reset_in).await;
            return;
        }
        if self.requests_per_minute.is_none() && self.posts_per_day.is_none() {
            let mut state = self.state.lock().await;
            state.most_left = state.most_left.max(left.requests);
            self.show(f64::from(left.requests) / f64::from(state.most_left));
        }
    }
}

#[cfg(test)]
mod tests {
    use platforms::Budget as _;
    use runtime::config::Access;
    use test_support::TestDatabase;

    use super::*;

    /// The platform itself is the only one that knows when it answers again.
    #[tokio::test]
    async fn a_platform_that_asks_for_a_day_is_asked_again_after_minutes() {
        let database = TestDatabase::create().await;
        let settings = Settings {
            name: "x".to_owned(),
            kind: "x".to_owned(),
            ..Settings::default()
        };
        let replicas = [(); 2].map(|()| Budget::new(database.pool(), &settings));
        let left = Left {
            requests: 0,
            reset_in: Duration::from_hours(24),
        };
        replicas[0].record_remaining(left).await;
        for budget in &replicas {
            let wait = undertake(false, None, budget.request()).await.unwrap_err();
            assert!(wait <= Duration::from_mins(15), "{wait:?}");
        }
    }

    #[tokio::test]
    async fn low_priority_work_leaves_half_of_a_days_paid_posts() {
        let database = TestDatabase::create().await;
        let settings = Settings {
            name: "x".to_owned(),
            kind: "x".to_owned(),
            access: Access {
                posts_per_day: Some(100),
                ..Access::default()
            },
            ..Settings::default()
        };
        let budget = Budget::new(database.pool(), &settings);
        let low = |wanted| undertake(true, None, budget.posts(wanted));
        assert_eq!(low(40).await, Ok(40));
        assert_eq!(low(40).await, Ok(10));
        assert!(low(1).await.is_err());
        assert_eq!(undertake(false, None, budget.posts(80)).await, Ok(50));
        assert!(undertake(false, None, budget.posts(1)).await.is_err());
    }
}
