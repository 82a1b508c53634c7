//! The account that does its worst, in one dimension or in all of them.
//!
//! It stays within its quotas, and within the rate limits of its keys: it sends as much as is accepted, and waits after
//! a 429 like a client that wants to lose no time.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use diesel::{QueryableByName, sql_query, sql_types::BigInt};
use diesel_async::RunQueryDsl;
use http::Method;
use serde_json::Value;
use tokio::task::JoinSet;

use super::{
    account::Account,
    api::{Api, connection},
    dimension::{Dimension, Size},
    site::Site,
    tally::Tally,
};

const EDITORS: usize = 8;
/// Editors whose keys create resources.
const CREATORS: usize = 4;
const VIEWERS: usize = 20;
/// Longest wait after a refused request.
const PAUSE: Duration = Duration::from_secs(1);
/// How long its rows may take to be deleted.
const PURGE: Duration = Duration::from_secs(60);

pub(super) struct Hostile {
    api: Api,
    pub(super) site: Site,
    pub(super) database_url: String,
    pub(super) account: Account,
    pub(super) size: Size,
    tally: Arc<Tally>,
    created: AtomicUsize,
    prepared: Vec<Pin<Box<dyn Future<Output = ()> + Send>>>,
    storms: JoinSet<()>,
}

impl Hostile {
    pub(super) async fn new(
        api: Api,
        site: Site,
        database_url: &str,
        name: &str,
        size: Size,
    ) -> Result<Self> {
        let account = Account::new(&api, database_url, name, EDITORS + CREATORS, VIEWERS).await?;
        Ok(Self {
            api,
            site,
            database_url: database_url.to_owned(),
            account,
            size,
            tally: Arc::default(),
            created: AtomicUsize::new(0),
            prepared: Vec::new(),
            storms: JoinSet::new(),
        })
    }

    pub(super) fn api(&self) -> &Api {
        &self.api
    }

    pub(super) fn tally(&self) -> &Tally {
        &self.tally
    }

    pub(super) fn shared_tally(&self) -> Arc<Tally> {
        Arc::clone(&self.tally)
    }

    /// Returns the names of `count` feeds of the site.
    pub(super) fn feeds(&self, count: usize, path: impl Fn(usize) -> String) -> Vec<String> {
        (0..count).map(|feed| self.site.feed(&path(feed))).collect()
    }

    /// Begins to do its worst in one dimension, or in all. Returns false if not all that it needs was ready in time.
    pub(super) async fn begin(&mut self, dimension: Dimension, within: Duration) -> Result<bool> {
        let prepared = tokio::time::timeout(within, self.prepare(dimension)).await;
        let is_ready = prepared.is_ok();
        prepared.unwrap_or(Ok(()))?;
        for task in std::mem::take(&mut self.prepared) {
            self.storms.spawn(task);
        }
        Ok(is_ready)
    }

    /// Creates what an attack needs. Its requests start later, because they hold up the account's own.
    async fn prepare(&mut self, dimension: Dimension) -> Result<()> {
        match dimension {
            Dimension::Filters => self.filters().await,
            Dimension::SlowFeeds => self.slow_feeds().await,
            Dimension::SlowPages => self.slow_pages().await,
            Dimension::Endpoints => self.endpoints().await,
            Dimension::Backfills => self.backfills().await,
            Dimension::Replays => self.replays().await,
            Dimension::Previews => self.previews().await,
            Dimension::Tests => self.tests().await,
            Dimension::Explain => self.explain().await,
            Dimension::Items => self.items().await,
            Dimension::Mutes => self.mutes().await,
            Dimension::Pages => self.pages().await,
            Dimension::SlowReaders => self.slow_readers().await,
            Dimension::Deletes => self.deletes().await,
            Dimension::Churn => self.churn().await,
            Dimension::LargePosts => self.large_posts().await,
            Dimension::BadKeys => self.bad_keys().await,
            Dimension::Documents => self.documents().await,
            Dimension::All => {
                let mut each = Dimension::BUSY;
                // Slow feeds delay the account's own first polls, which these two wait for.
                each.sort_by_key(|one| !matches!(one, Dimension::Backfills | Dimension::Previews));
                for one in each {
                    Box::pin(self.prepare(one)).await?;
                }
                Ok(())
            }
        }
    }

    /// Stops, deletes everything, and waits until it is gone. Returns false if rows are left after a while.
    pub(super) async fn end(mut self) -> Result<bool> {
        self.storms.shutdown().await;
        let path = format!("/v1/{}?force=true", self.account.namespace);
        let owner = &self.account.owner;
        let begin = Instant::now();
        loop {
            let answer = self.api.send(Method::DELETE, &path, owner, None).await?;
            match answer.status {
                200 => break,
                // The gateway or the database is still busy with what the account did.
                429 | 503 if begin.elapsed() < PURGE => tokio::time::sleep(PAUSE).await,
                status => bail!("{path}: {status}"),
            }
        }

        #[derive(QueryableByName)]
        struct Row {
            #[diesel(sql_type = BigInt)]
            number: i64,
        }
        let mut conn = store::establish(&self.database_url).await?;
        while begin.elapsed() < PURGE {
            tokio::time::sleep(Duration::from_millis(200)).await;
            // A purge that found nothing more looks again later.
            let row: Row = sql_query(
                "SELECT count(*) AS number FROM purges WHERE next_time < now() + interval '1 s'",
            )
            .get_result(&mut conn)
            .await?;
            if row.number == 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) async fn manager(&self, manager: &Value) -> Result<String> {
        let path = format!("/v1/{}/managers", self.account.namespace);
        self.create(&path, manager).await
    }

    pub(super) async fn connection(&self, path: &str) -> Result<String> {
        let body = connection(&self.site.url(path));
        let path = format!("/v1/{}/connections", self.account.namespace);
        self.create(&path, &body).await
    }

    /// Creates a resource with one of the keys that are only for this, because of the rate limit.
    async fn create(&self, path: &str, body: &Value) -> Result<String> {
        let number = self.created.fetch_add(1, Ordering::Relaxed);
        let key = &self.account.editors[EDITORS + number % CREATORS];
        self.api.create(path, key, body).await
    }

    /// Returns the keys for an attack's write requests.
    pub(super) fn editors(&self) -> Vec<String> {
        self.account.editors[..EDITORS].to_vec()
    }

    /// Prepares requests to `paths` in turns, without a pause, from so many tasks for each key.
    pub(super) fn storm(
        &mut self,
        keys: &[String],
        tasks_per_key: usize,
        method: Method,
        paths: &[String],
        body: Option<Value>,
    ) {
        let api = self.api.clone();
        self.storm_by(&api, keys, tasks_per_key, method, paths, body);
    }

    /// Same as [`Self::storm`], by another client.
    pub(super) fn storm_by(
        &mut self,
        api: &Api,
        keys: &[String],
        tasks_per_key: usize,
        method: Method,
        paths: &[String],
        body: Option<Value>,
    ) {
        let paths: Arc<[String]> = paths.into();
        for task in 0..keys.len() * tasks_per_key {
            let (api, tally) = (api.clone(), Arc::clone(&self.tally));
            let (key, paths) = (keys[task % keys.len()].clone(), Arc::clone(&paths));
            let (method, body) = (method.clone(), body.clone());
            self.prepare_task(async move {
                for path in paths.iter().cycle().skip(task % paths.len()) {
                    let answer = api.send(method.clone(), path, &key, body.as_ref()).await;
                    tally.count(&answer);
                    if !answer.is_ok_and(|answer| answer.status < 300) {
                        tokio::time::sleep(PAUSE).await;
                    }
                }
            });
        }
    }

    /// Adds a task that starts with the attack, and ends with it.
    pub(super) fn prepare_task(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.prepared.push(Box::pin(task));
    }
}
