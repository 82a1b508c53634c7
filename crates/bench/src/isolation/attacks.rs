//! Attacks of the hostile account, one for each dimension.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use domain::{ConnectionName, Id, ManagerName, Timestamp, instructions::MAX_FEEDS};
use http::Method;
use serde_json::{Value, json};

use super::{
    api::{automatic, manual},
    hostile::Hostile,
    site::HOSTILE_WORD,
};
use crate::dispatch::load::Load;

/// How long the first polls of its feeds may take.
const STOCK: Duration = Duration::from_secs(60);
/// Time from a feed's answer to its stored posts.
const STORED: Duration = Duration::from_secs(1);

impl Hostile {
    pub(super) async fn filters(&mut self) -> Result<()> {
        let manager = self.manager(&manual(&[], HOSTILE_WORD, &[])).await?;
        let name: ManagerName = manager.parse()?;
        let ids: Vec<Id> = (0..self.size.scans).map(|_| Id::generate()).collect();
        let mut load = Load::of(&self.database_url, self.account.id).await?;
        load.store(name.manager, &ids, true).await?;
        let terms = (0..49).map(|n| format!("post.text%20:%20%22nowhere{n}%22"));
        let filter = terms.collect::<Vec<_>>().join("%20OR%20");
        let path = format!("/v1/{manager}/scans?filter={filter}");
        let keys = self.account.viewers.clone();
        self.storm(&keys, 3, Method::GET, &[path], None);
        Ok(())
    }

    pub(super) async fn slow_feeds(&self) -> Result<()> {
        let feeds = self.feeds(self.size.slow_feeds, |feed| format!("/slow/{feed}.xml"));
        for feeds in feeds.chunks(MAX_FEEDS) {
            self.manager(&manual(feeds, HOSTILE_WORD, &[])).await?;
        }
        Ok(())
    }

    pub(super) async fn slow_pages(&mut self) -> Result<()> {
        let mut paths = Vec::new();
        for page in 0..100 {
            let page = self.site.url(&format!("/silent/{page}"));
            let manager = self.manager(&automatic(&page)).await?;
            paths.push(format!("/v1/{manager}:apply"));
        }
        let keys = self.editors();
        self.storm(&keys, 1, Method::POST, &paths, None);
        Ok(())
    }

    pub(super) async fn endpoints(&self) -> Result<()> {
        let mut connections = Vec::new();
        for endpoint in 0..10 {
            let path = match endpoint % 2 {
                0 => format!("/hang/delivery-{endpoint}"),
                _ => "/500".to_owned(),
            };
            connections.push(self.connection(&path).await?);
        }
        for feed in 0..2 {
            let feed = self.site.feed(&format!("/noisy/{feed}.xml"));
            let manager = manual(&[feed], HOSTILE_WORD, &connections);
            self.manager(&manager).await?;
        }
        Ok(())
    }

    /// The posts are stored already when the Managers are created, so that backfills find them, and no poll.
    pub(super) async fn backfills(&mut self) -> Result<()> {
        let feeds = self.stock("backfill").await?;
        let endpoint = self.connection("/ok").await?;
        let mut paths = Vec::new();
        for _ in 0..self.size.backfills {
            let manager = manual(&feeds, HOSTILE_WORD, std::slice::from_ref(&endpoint));
            let manager = self.manager(&manager).await?;
            paths.push(format!("/v1/{manager}:backfill"));
        }
        let body = json!({"notify": true});
        let keys = self.editors();
        self.storm(&keys, 2, Method::POST, &paths, Some(body));
        Ok(())
    }

    pub(super) async fn replays(&mut self) -> Result<()> {
        let mut names: Vec<ConnectionName> = Vec::new();
        for _ in 0..5 {
            names.push(self.connection("/ok").await?.parse()?);
        }
        let mut load = Load::of(&self.database_url, self.account.id).await?;
        load.history(&names, self.size.replayed).await?;
        let start = Timestamp::now().minus(Duration::from_secs(3_600));
        let paths: Vec<String> = names
            .iter()
            .map(|name| format!("/v1/{name}:replay"))
            .collect();
        let body = json!({"startTime": start.to_string()});
        let keys = self.editors();
        self.storm(&keys, 1, Method::POST, &paths, Some(body));
        Ok(())
    }

    pub(super) async fn previews(&mut self) -> Result<()> {
        let feeds = self.stock("preview").await?;
        let manager = self.manager(&manual(&feeds, "nothing", &[])).await?;
        let terms = (0..490).map(|n| json!({"text": format!("nowhere{n}"), "weight": 1.0}));
        let include: Vec<Value> = terms.collect();
        let draft = json!({"include": include, "threshold": 1.0});
        let body = json!({"recent": 100, "instructions": draft});
        let keys = self.editors();
        let path = format!("/v1/{manager}:preview");
        self.storm(&keys, 4, Method::POST, &[path], Some(body));
        Ok(())
    }

    pub(super) async fn tests(&mut self) -> Result<()> {
        let mut paths = Vec::new();
        for endpoint in 0..10 {
            let connection = self.connection(&format!("/hang/test-{endpoint}")).await?;
            paths.push(format!("/v1/{connection}:test"));
        }
        let keys = self.editors();
        self.storm(&keys, 4, Method::POST, &paths, None);
        Ok(())
    }

    /// Has ten feeds read that have 1,000 posts together, by a Manager that matches none of them.
    async fn stock(&self, name: &str) -> Result<Vec<String>> {
        let paths = (0..10).map(|feed| format!("/stock/{name}-{feed}-{}.xml", self.account.id));
        let paths: Vec<String> = paths.collect();
        let feeds: Vec<String> = paths.iter().map(|path| self.site.feed(path)).collect();
        self.manager(&manual(&feeds, "nothing", &[])).await?;
        let begin = Instant::now();
        while !paths
            .iter()
            .all(|path| self.site.first_poll(path).is_some())
        {
            ensure!(begin.elapsed() < STOCK, "the feeds of {name} are not read");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        tokio::time::sleep(STORED).await;
        Ok(feeds)
    }
}
