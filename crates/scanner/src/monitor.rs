//! Reports the state of the platforms to metrics and health, and purges old data.
//!
//! Every replica reports the database's state of all feeds, so it does not matter which replica polled. A platform
//! with problems makes no replica unready, because the others are still scanned.
//!
//! Cost: one statement over all feeds and one over the oldest work every [`LOOK`], less often if they would take more
//! than a hundredth of the time; one over the catalog every [`SIZES`]; and an hourly pass over stored posts.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use runtime::{Backoff, Check, Config, Context, Periodic, Sparing};
use store::{
    AsyncPgConnection, Pool, QueryResult, backfills, erasure, feed_post_ids,
    feeds::{self, AccountFeed, PlatformFeeds},
    quotas, recent_posts, refused_posts, sizes, waiting,
    work::table,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{metrics, plans::Plans, poll::report_dropped};

const LOOK: Duration = Duration::from_secs(10);
/// Interval of reading the sizes of tables.
const SIZES: Duration = Duration::from_secs(300);
const PURGE: Duration = Duration::from_secs(3_600);
/// Same, after a failure; twice as long after each further one.
const PURGE_AGAIN: Duration = Duration::from_secs(60);
/// Maximum number of feeds that one statement purges, or whose stored posts it purges.
const FEEDS_AT_ONCE: i64 = 100;
/// Daily records are kept as long as posts, which outlive Scans by this time.
const DAYS_OUTLIVE_SCANS: Duration = Duration::from_hours(35 * 24);

pub(crate) struct Monitor {
    platforms: Vec<String>,
    pool: Pool,
    plans: Arc<Plans>,
    days_kept: Duration,
    /// Quota of each account for the posts of all its feeds.
    recent_post_bytes: u32,
    /// Platforms without an adapter, and the reasons.
    unusable: Vec<(String, String)>,
    /// Platforms whose stored posts are looked up at their source.
    rechecked: BTreeSet<String>,
    /// Platforms that are not configured, and whose feeds are watched.
    unconfigured: BTreeSet<String>,
    /// Last reported state of each platform.
    reported: BTreeMap<String, bool>,
}

impl Monitor {
    pub(crate) fn new(
        config: &Config,
        pool: Pool,
        plans: Arc<Plans>,
        unusable: Vec<(String, String)>,
        rechecked: BTreeSet<String>,
    ) -> Self {
        let names = config.platforms.iter();
        Self {
            platforms: names.map(|platform| platform.name.clone()).collect(),
            pool,
            plans,
            days_kept: config.retention.scans + DAYS_OUTLIVE_SCANS,
            recent_post_bytes: config.quotas.recent_post_bytes,
            unusable,
            rechecked,
            unconfigured: BTreeSet::new(),
            reported: BTreeMap::new(),
        }
    }

    pub(crate) async fn run(mut self, context: Context) {
        let checks: BTreeMap<String, Check> = self
            .platforms
            .iter()
            .map(|name| {
                (
                    name.clone(),
                    context.health.check(&format!("platform.{name}")),
                )
            })
            .collect();
        for check in checks.values() {
            check.ok();
        }
        let all_configured = context.health.check("platforms");
        all_configured.ok();
        let mut purge_due = Instant::now() + PURGE.mul_f64(rand::random_range(0.1..1.0));
        let mut purge_again = Backoff::new(PURGE_AGAIN, PURGE);
        let mut sizes_due = Instant::now();
        let mut rounds = Periodic::new(&context.shutdown);
        let mut sparing = Sparing::new(100);
        while rounds.every(LOOK).await {
            let lag = self.plans.fresh_since().elapsed();
            metrics::INDEX_LAG.set(lag.as_secs_f64());
            if let Some(Err(error)) = sparing.run(self.report_all(&checks, &all_configured)).await {
                // Other components report a lost database.
                tracing::debug!("cannot check the feeds: {error:#}");
            }
            if Instant::now() >= sizes_due {
                match self.measure().await {
                    Ok(()) => sizes_due = Instant::now() + SIZES,
                    Err(error) => tracing::debug!("cannot read the sizes of tables: {error:#}"),
                }
            }
            if Instant::now() >= purge_due {
                let pause = match self.purge(&context.shutdown).await {
                    Ok(()) => {
                        purge_again.reset();
                        PURGE
                    }
                    Err(error) => {
                        tracing::warn!("cannot purge what is old: {error:#}");
                        purge_again.next()
                    }
                };
                purge_due = Instant::now() + pause;
            }
        }
    }

    async fn report_all(
        &mut self,
        checks: &BTreeMap<String, Check>,
        all_configured: &Check,
    ) -> Result<(), store::Error> {
        let mut conn = self.pool.get().await?;
        for (platform, reason) in &self.unusable {
            feeds::block_platform(&mut conn, platform, reason).await?;
        }
        let found = feeds::by_platform(&mut conn).await?;
        if found.iter().any(|feeds| feeds.ahead > 0) {
            let feeds = feeds::follow_clock(&mut conn).await?;
            tracing::warn!(feeds, "the clock of the database went back: polling now");
        }
        for oldest in waiting::oldest(&mut conn).await? {
            metrics::WAITING
                .with_label_values(&[&oldest.kind])
                .set(oldest.seconds);
        }
        for age in erasure::ages(&mut conn).await? {
            if self.rechecked.contains(&age.platform) {
                metrics::RECHECK_AGE
                    .with_label_values(&[&age.platform])
                    .set(age.seconds);
            }
        }
        drop(conn);
        self.report_unconfigured(&found, all_configured);
        for name in self.platforms.clone() {
            let feeds = found.iter().find(|feeds| feeds.platform == name);
            self.report(&name, feeds, checks.get(&name));
        }
        Ok(())
    }

    /// Reports watched feeds that no scanner polls, because their platform is not configured, or no longer. All
    /// scanners have the same configuration.
    fn report_unconfigured(&mut self, found: &[PlatformFeeds], check: &Check) {
        let found: BTreeMap<&str, i64> = { found.iter() }
            .filter(|feeds| !self.platforms.contains(&feeds.platform))
            .map(|feeds| {
                let watched = feeds.ok + feeds.failing + feeds.blocked + feeds.budget_spent;
                (feeds.platform.as_str(), watched)
            })
            .collect();
        let before = std::mem::take(&mut self.unconfigured);
        for name in before
            .iter()
            .map(String::as_str)
            .chain(found.keys().copied())
        {
            metrics::FEEDS
                .with_label_values(&[name, "UNCONFIGURED"])
                .set(found.get(name).copied().unwrap_or_default());
        }
        for (name, feeds) in &found {
            if !before.contains(*name) {
                tracing::warn!(
                    platform = name,
                    feeds,
                    "feeds are watched whose platform is not configured: no one polls them"
                );
            }
        }
        self.unconfigured = found.keys().map(|name| (*name).to_owned()).collect();
        if found.is_empty() {
            check.ok();
        } else {
            let names: Vec<&str> = found.into_keys().collect();
            check.degraded(format!("watched, and not configured: {}", names.join(", ")));
        }
    }

    fn report(&mut self, name: &str, feeds: Option<&PlatformFeeds>, check: Option<&Check>) {
        let count = |of: fn(&PlatformFeeds) -> i64| feeds.map_or(0, of);
        for (state, count) in [
            ("OK", count(|feeds| feeds.ok)),
            ("FAILING", count(|feeds| feeds.failing)),
            ("BLOCKED", count(|feeds| feeds.blocked)),
            ("BUDGET_SPENT", count(|feeds| feeds.budget_spent)),
        ] {
            metrics::FEEDS.with_label_values(&[name, state]).set(count);
        }
        let odd = count(|feeds| feeds.odd);
        metrics::ODD_FEEDS.with_label_values(&[name]).set(odd);
        let due = count(|feeds| feeds.due);
        metrics::FEEDS_DUE.with_label_values(&[name]).set(due);
        let unusable = self.unusable.iter().find(|(platform, _)| platform == name);
        let detail = match (unusable, feeds) {
            (Some((_, reason)), _) => Some(reason.clone()),
            (None, Some(feeds)) => detail(feeds),
            (None, None) => None,
        };
        let is_bad = detail.is_some();
        let was_bad = self
            .reported
            .insert(name.to_owned(), is_bad)
            .unwrap_or(false);
        match (&detail, was_bad) {
            (Some(detail), false) => {
                tracing::warn!(platform = name, "the platform fails: {detail}")
            }
            (None, true) => tracing::info!(platform = name, "the platform answers again"),
            _ => {}
        }
        if let Some(check) = check {
            match detail {
                Some(detail) => check.degraded(detail),
                None => check.ok(),
            }
        }
    }

    async fn measure(&self) -> Result<(), store::Error> {
        let mut conn = self.pool.get().await?;
        for size in sizes::by_table(&mut conn).await? {
            metrics::STORED_BYTES
                .with_label_values(&[&size.table])
                .set(size.bytes);
        }
        Ok(())
    }

    /// Purges one kind after the other. One that fails does not stop those behind it.
    async fn purge(&self, shutdown: &CancellationToken) -> anyhow::Result<()> {
        let mut conn = self.pool.get().await?;
        let conn: &mut AsyncPgConnection = &mut conn;
        let results = [
            ("backfills", backfills::purge_done(conn).await.map(drop)),
            ("leases", table::purge(conn).await.map(drop)),
            ("days of quotas", quotas::purge_days(conn).await.map(drop)),
            ("refused posts", purge_refused_posts(conn, shutdown).await),
            (
                "quarantined responses",
                feeds::purge_quarantine(conn).await.map(drop),
            ),
            (
                "days of feeds",
                feeds::purge_days(conn, self.days_kept).await.map(drop),
            ),
            ("feeds", purge_feeds(conn, shutdown).await),
            (
                "recent posts",
                purge_recent_posts(conn, self.recent_post_bytes, shutdown).await,
            ),
            ("ids of posts", purge_post_ids(conn, shutdown).await),
            (
                "failed backfills",
                backfills::retry_failed(conn).await.map(drop),
            ),
        ];
        let failed: Vec<String> = { results.into_iter() }
            .filter_map(|(kind, result)| result.err().map(|error| format!("{kind}: {error}")))
            .collect();
        anyhow::ensure!(failed.is_empty(), "{}", failed.join("; "));
        Ok(())
    }
}

async fn purge_refused_posts(
    conn: &mut AsyncPgConnection,
    shutdown: &CancellationToken,
) -> QueryResult<()> {
    while !shutdown.is_cancelled() {
        let dropped = refused_posts::purge_old(conn).await?;
        report_dropped(dropped);
        if dropped == 0 {
            break;
        }
    }
    Ok(())
}

async fn purge_feeds(
    conn: &mut AsyncPgConnection,
    shutdown: &CancellationToken,
) -> QueryResult<()> {
    while !shutdown.is_cancelled() && feeds::purge_unwatched(conn, FEEDS_AT_ONCE).await? > 0 {}
    let mut after = AccountFeed::default();
    while !shutdown.is_cancelled() {
        match feeds::forget_left(conn, &after, FEEDS_AT_ONCE).await? {
            Some(last) => after = last,
            None => break,
        }
    }
    Ok(())
}

async fn purge_recent_posts(
    conn: &mut AsyncPgConnection,
    bytes: u32,
    shutdown: &CancellationToken,
) -> QueryResult<()> {
    let mut after = String::new();
    while !shutdown.is_cancelled() {
        match recent_posts::purge(conn, &after, FEEDS_AT_ONCE, bytes).await? {
            Some(last) => after = last,
            None => break,
        }
    }
    Ok(())
}

async fn purge_post_ids(
    conn: &mut AsyncPgConnection,
    shutdown: &CancellationToken,
) -> QueryResult<()> {
    let mut after = String::new();
    while !shutdown.is_cancelled() {
        match feed_post_ids::purge_old(conn, &after, FEEDS_AT_ONCE).await? {
            Some(last) => after = last,
            None => break,
        }
    }
    Ok(())
}

/// Problem of a platform; `None` while any of its feeds works.
fn detail(feeds: &PlatformFeeds) -> Option<String> {
    let bad = feeds.failing + feeds.blocked + feeds.budget_spent;
    if feeds.ok > 0 || bad == 0 {
        return None;
    }
    let error = feeds.error.as_deref().unwrap_or("no reason known");
    Some(format!("none of {bad} feeds can be read: {error}"))
}
