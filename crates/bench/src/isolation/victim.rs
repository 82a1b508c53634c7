//! The account that others must not hold up. It uses the product at a gentle, even rate and measures each operation.
//!
//! Operations start when they are due, regardless of those before them, so that a slow one hides no other.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{Id, ManagerName};
use http::Method;
use serde_json::{Value, json};
use tokio::{
    sync::oneshot,
    task::{JoinHandle, JoinSet},
};

use super::{
    account::Account,
    api::{Api, connection, manual},
    site::{Site, VICTIMS_WORD},
};
use crate::dispatch::load::Load;

const LIST_EVERY: Duration = Duration::from_millis(125);
const APPLY_EVERY: Duration = Duration::from_millis(500);
const POST_EVERY: Duration = Duration::from_millis(250);
/// Between two looks for a Manager that is applied.
const LOOK: Duration = Duration::from_millis(4);
/// An operation that takes longer has failed. An attack lasts as long as the last operation.
const PATIENCE: Duration = Duration::from_secs(25);
/// Managers that are applied in turns, so many that each has time to finish or fail.
const MANAGERS: u32 = 64;
const SCANS: usize = 10_000;

pub(super) struct Victim {
    api: Api,
    site: Site,
    account: Account,
    /// Path of the list of Scans.
    scans: String,
    managers: Vec<String>,
    applied: Arc<Applied>,
    watcher: JoinHandle<Result<()>>,
    fresh_feeds: AtomicUsize,
}

/// Latencies in milliseconds, sorted, and the operations that failed.
#[derive(Debug, Default)]
pub(super) struct Latencies {
    millis: Vec<f64>,
    pub(super) failed: usize,
}

/// Results of one period.
#[derive(Debug)]
pub(super) struct Observed {
    /// `GET …/scans`.
    pub(super) list: Latencies,
    /// Time from a PATCH of instructions to `APPLIED`.
    pub(super) apply: Latencies,
    /// Time from `APPLIED` to the first request to the new feed.
    pub(super) first_poll: Latencies,
    /// Time from the answer of the feed with a post to its webhook.
    pub(super) delivery: Latencies,
    /// Time from the publication of a post to its webhook, the wait for the poll included.
    pub(super) post: Latencies,
}

impl Observed {
    /// Returns the operations with their names.
    pub(super) fn operations(&self) -> [(&'static str, &Latencies); 5] {
        [
            ("list", &self.list),
            ("apply", &self.apply),
            ("first poll", &self.first_poll),
            ("delivery", &self.delivery),
            ("post to webhook", &self.post),
        ]
    }
}

impl Latencies {
    /// Returns those of two periods with fewer failures or, if these are equal, with the lower p99.
    pub(super) fn better<'a>(&'a self, other: &'a Self) -> &'a Self {
        let by_p99 = self.quantile(99).total_cmp(&other.quantile(99));
        let is_worse = self.failed.cmp(&other.failed).then(by_p99).is_gt();
        if is_worse { other } else { self }
    }

    fn of(results: impl IntoIterator<Item = Option<Duration>>) -> Self {
        let mut latencies = Self::default();
        for result in results {
            match result {
                Some(latency) => latencies.millis.push(latency.as_secs_f64() * 1_000.0),
                None => latencies.failed += 1,
            }
        }
        latencies.millis.sort_by(f64::total_cmp);
        latencies
    }

    pub(super) fn count(&self) -> usize {
        self.millis.len()
    }

    /// Returns the latency that `percent` of the operations do not exceed.
    pub(super) fn quantile(&self, percent: usize) -> f64 {
        let place = (self.millis.len() * percent).div_ceil(100);
        let latency = self.millis.get(place.saturating_sub(1));
        latency.copied().unwrap_or(f64::NAN)
    }
}

impl Victim {
    pub(super) async fn new(api: Api, site: Site, database_url: &str) -> Result<Self> {
        let account = Account::new(&api, database_url, "victim", 6, 0).await?;
        let namespace = account.namespace.clone();
        let key = &account.editors[0];
        let managers_path = format!("/v1/{namespace}/managers");

        let watched = json!({
            "nickname": "watched", "type": "FEED_MANAGER", "source": {"type": "NETWORK"},
            "enable": false, "instructions": {"require": [[VICTIMS_WORD]]},
        });
        let watched = api.create(&managers_path, key, &watched).await?;
        let mut load = Load::of(database_url, account.id).await?;
        let ids: Vec<Id> = (0..SCANS).map(|_| Id::generate()).collect();
        let name: ManagerName = watched.parse()?;
        load.store(name.manager, &ids, true).await?;
        load.settle().await?;

        let endpoint = connection(&site.url("/hook"));
        let path = format!("/v1/{namespace}/connections");
        let endpoint = api.create(&path, key, &endpoint).await?;
        let posts = manual(&[site.feed("/victim.xml")], VICTIMS_WORD, &[endpoint]);
        api.create(&managers_path, key, &posts).await?;
        let mut managers = Vec::new();
        for number in 0..MANAGERS {
            let feed = site.feed(&format!("/fresh/first-{number}.xml"));
            let mut body = manual(&[feed], VICTIMS_WORD, &[]);
            body["enable"] = false.into();
            managers.push(api.create(&managers_path, key, &body).await?);
        }

        let applied = Arc::new(Applied::default());
        let conn = store::establish(database_url).await?;
        let watcher = tokio::spawn(Arc::clone(&applied).watch(conn, account.id));
        Ok(Self {
            scans: format!("/v1/{watched}/scans?pageSize=20"),
            api,
            site,
            account,
            managers,
            applied,
            watcher,
            fresh_feeds: AtomicUsize::new(0),
        })
    }

    /// Uses the product for `span`, and waits for the operations in progress.
    pub(super) async fn observe(&self, span: Duration) -> Result<Observed> {
        let (list, (apply, first_poll), (delivery, post)) =
            tokio::join!(self.lists(span), self.applies(span), self.posts(span));
        ensure!(
            !self.watcher.is_finished(),
            "the look for applied Managers failed"
        );
        Ok(Observed {
            list,
            apply,
            first_poll,
            delivery,
            post,
        })
    }

    async fn lists(&self, span: Duration) -> Latencies {
        let mut tasks = JoinSet::new();
        ticks(span, LIST_EVERY, |due| {
            let (api, path) = (self.api.clone(), self.scans.clone());
            let key = self.account.editors[1].clone();
            tasks.spawn(async move {
                let answer = api.send(Method::GET, &path, &key, None).await;
                let answered = answer.is_ok_and(|answer| answer.status == 200);
                answered.then(|| due.elapsed())
            });
        })
        .await;
        Latencies::of(tasks.join_all().await)
    }

    /// Gives Managers instructions with a feed that was never read. Returns the latencies of applies and first polls.
    async fn applies(&self, span: Duration) -> (Latencies, Latencies) {
        let mut tasks = JoinSet::new();
        ticks(span, APPLY_EVERY, |due| {
            let number = self.fresh_feeds.fetch_add(1, Ordering::Relaxed);
            let apply = Apply {
                api: self.api.clone(),
                site: self.site.clone(),
                applied: Arc::clone(&self.applied),
                // Four keys, because of the rate limit.
                key: self.account.editors[2 + number % 4].clone(),
                manager: self.managers[number % self.managers.len()].clone(),
                path: format!("/fresh/{number}.xml"),
            };
            tasks.spawn(apply.run(due));
        })
        .await;
        let (applied, polled): (Vec<_>, Vec<_>) = tasks.join_all().await.into_iter().unzip();
        (Latencies::of(applied), Latencies::of(polled))
    }

    /// Publishes posts. Returns the latencies from the feed's answer, and from the publication.
    async fn posts(&self, span: Duration) -> (Latencies, Latencies) {
        let mut numbers = Vec::new();
        ticks(span, POST_EVERY, |_| numbers.push(self.site.publish())).await;
        let begin = Instant::now();
        let posts = || numbers.iter().map(|number| self.site.post(*number));
        while posts().any(|post| post.delivered.is_none()) && begin.elapsed() < PATIENCE {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let delivery = posts().map(|post| Some(post.delivered? - post.served?));
        let all = posts().map(|post| Some(post.delivered? - post.published));
        (Latencies::of(delivery), Latencies::of(all))
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

/// Calls `start` for each due time within `span`.
async fn ticks(span: Duration, every: Duration, mut start: impl FnMut(Instant)) {
    let begin = Instant::now();
    let mut due = begin;
    while due < begin + span {
        tokio::time::sleep_until(due.into()).await;
        start(due);
        due += every;
    }
}

/// A change of one Manager's instructions. It is enabled only until its first poll: feeds that are polled twice a second
/// would use up the account's places.
struct Apply {
    api: Api,
    site: Site,
    applied: Arc<Applied>,
    key: String,
    manager: String,
    /// Path of its new feed.
    path: String,
}

impl Apply {
    /// Returns the times until `APPLIED`, and from there to the first poll.
    async fn run(self, due: Instant) -> (Option<Duration>, Option<Duration>) {
        let feed = self.site.feed(&self.path);
        let applied = self.applied.expect(&feed);
        let instructions = json!({"feeds": [feed], "require": [[VICTIMS_WORD]]});
        let body = json!({"enable": true, "instructions": instructions});
        if !self.patch(&body).await {
            return (None, None);
        }
        let Ok(Ok(applied)) = tokio::time::timeout(PATIENCE, applied).await else {
            return (None, None);
        };
        let polled = loop {
            if let Some(polled) = self.site.first_poll(&self.path) {
                // It can be polled before a look finds that it is applied.
                break Some(polled.saturating_duration_since(applied));
            }
            if applied.elapsed() > PATIENCE {
                break None;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        };
        let is_disabled = self.patch(&json!({"enable": false})).await;
        (
            Some(applied.duration_since(due)),
            polled.filter(|_| is_disabled),
        )
    }

    /// Changes the Manager; returns false if that is refused.
    async fn patch(&self, body: &Value) -> bool {
        let path = format!("/v1/{}", self.manager);
        let answer = { self.api.send(Method::PATCH, &path, &self.key, Some(body)) }.await;
        answer.is_ok_and(|answer| answer.status == 200)
    }
}

/// Managers that will be `APPLIED`, by their only feed.
#[derive(Default)]
struct Applied(Mutex<HashMap<String, oneshot::Sender<Instant>>>);

impl Applied {
    fn expect(&self, feed: &str) -> oneshot::Receiver<Instant> {
        let (sender, receiver) = oneshot::channel();
        self.waiting().insert(feed.to_owned(), sender);
        receiver
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, HashMap<String, oneshot::Sender<Instant>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks for them in the database, because a look over the API costs points and waits like any list.
    async fn watch(self: Arc<Self>, mut conn: AsyncPgConnection, namespace: Id) -> Result<()> {
        #[derive(QueryableByName)]
        struct Row {
            #[diesel(sql_type = Text)]
            feed: String,
        }
        loop {
            tokio::time::sleep(LOOK).await;
            let feeds: Vec<String> = {
                let mut waiting = self.waiting();
                waiting.retain(|_, sender| !sender.is_closed());
                waiting.keys().cloned().collect()
            };
            if feeds.is_empty() {
                continue;
            }
            let rows: Vec<Row> = sql_query(
                "SELECT instructions->'feeds'->>0 AS feed FROM managers \
                 WHERE namespace_id = $1 AND state = 'APPLIED' AND instructions->'feeds'->>0 = ANY ($2)",
            )
            .bind::<SqlUuid, _>(namespace.to_uuid())
            .bind::<Array<Text>, _>(feeds)
            .load(&mut conn)
            .await
            .context("look for applied Managers")?;
            let now = Instant::now();
            let mut waiting = self.waiting();
            for row in rows {
                if let Some(sender) = waiting.remove(&row.feed) {
                    // The operation may have given up.
                    let _ = sender.send(now);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latencies(millis: &[u64], failed: usize) -> Latencies {
        let succeeded = millis.iter().map(|ms| Some(Duration::from_millis(*ms)));
        Latencies::of(succeeded.chain((0..failed).map(|_| None)))
    }

    #[test]
    fn better_period_has_fewer_failures_or_else_the_lower_p99() {
        let spoilt = latencies(&[8, 150], 0);
        let calm = latencies(&[9, 16], 0);
        let failed = latencies(&[7], 1);
        let empty = latencies(&[], 0);
        for worse in [&spoilt, &failed, &empty] {
            for best in [worse.better(&calm), calm.better(worse)] {
                assert_eq!(best.millis, calm.millis);
            }
        }
    }
}
