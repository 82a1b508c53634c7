//! Attacks that make the services need much memory.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpSocket,
};

use super::{
    api::{automatic, manual},
    hostile::Hostile,
    site::{HOSTILE_WORD, muted_words, terms},
};

const MANAGERS: usize = 6;
const FEEDS: usize = 4;
/// Connections of clients that do not read.
const SLOW_READERS: usize = 40;
/// How long such a client waits before it looks for the status, and then again.
const UNREAD: Duration = Duration::from_secs(5);

impl Hostile {
    pub(super) async fn explain(&self) -> Result<()> {
        let size = self.size.matching;
        let feeds = self.feeds(2, |feed| format!("/matching/{size}-{feed}.xml"));
        let include = { terms().into_iter() }.map(|term| json!({"text": term, "weight": 1}));
        let include: Vec<Value> = include.collect();
        let manager = json!({
            "nickname": "explain", "type": "FEED_MANAGER", "source": {"type": "NETWORK"},
            "instructions": {"feeds": feeds, "threshold": 1, "include": include},
        });
        for _ in 0..MANAGERS {
            self.manager(&manager).await?;
        }
        Ok(())
    }

    pub(super) async fn items(&mut self) -> Result<()> {
        let size = self.size.items;
        let feeds = self.feeds(10, |feed| format!("/items/{size}-{feed}"));
        self.manager(&manual(&feeds, HOSTILE_WORD, &[])).await?;
        self.compile(|page| format!("/items/{size}-page-{page}"))
            .await
    }

    pub(super) async fn documents(&mut self) -> Result<()> {
        let size = self.size.pieces;
        let feeds = self.feeds(FEEDS, |feed| format!("/changing/{size}-{feed}.xml"));
        self.manager(&manual(&feeds, HOSTILE_WORD, &[])).await?;
        self.compile(|page| format!("/page/{size}-{page}")).await
    }

    pub(super) async fn mutes(&mut self) -> Result<()> {
        let feeds = self.feeds(1, |_| "/fresh/muted.xml".to_owned());
        let mut manager = manual(&feeds, HOSTILE_WORD, &[]);
        let mutes = muted_words().map(|words| json!({"type": "TERM", "value": words}));
        manager["mutes"] = mutes.collect();
        let path = format!("/v1/{}/managers", self.account.namespace);
        let keys = self.editors();
        self.storm(&keys, 1, Method::POST, &[path], Some(manager));
        Ok(())
    }

    pub(super) async fn pages(&mut self) -> Result<()> {
        let path = self.large_scans().await?;
        let keys = self.account.viewers.clone();
        self.storm(&keys, 1, Method::GET, &[path], None);
        Ok(())
    }

    pub(super) async fn slow_readers(&mut self) -> Result<()> {
        let path = self.large_scans().await?;
        let host = self.api().host().to_owned();
        for reader in 0..SLOW_READERS {
            let keys = &self.account.viewers;
            let request = format!(
                "GET {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {}\r\n\r\n",
                keys[reader % keys.len()]
            );
            let (host, tally) = (host.clone(), self.shared_tally());
            self.prepare_task(async move {
                loop {
                    match do_not_read(&host, &request).await {
                        Ok(status) => tally.count_status(status),
                        Err(error) => tally.count_reason(&format!("{error:#}")),
                    }
                }
            });
        }
        Ok(())
    }

    /// The endpoints answer after eight seconds, so that deliveries succeed, but stay in hand.
    pub(super) async fn large_posts(&self) -> Result<()> {
        let mut connections = Vec::new();
        for endpoint in 0..10 {
            connections.push(self.connection(&format!("/late/{endpoint}")).await?);
        }
        let feeds = self.large_feeds();
        self.manager(&manual(&feeds, HOSTILE_WORD, &connections))
            .await?;
        Ok(())
    }

    /// Gets Scans of the largest posts. Returns the path of their list.
    async fn large_scans(&self) -> Result<String> {
        let manager = self
            .manager(&manual(&self.large_feeds(), HOSTILE_WORD, &[]))
            .await?;
        let wanted = self.size.large * FEEDS;
        let begin = Instant::now();
        let owner = &self.account.owner;
        loop {
            let answer = self.api().send(Method::GET, "/v1/caller", owner, None);
            let caller: Value = serde_json::from_slice(&answer.await?.body)?;
            if caller["quotas"]["scansPerDay"]["used"] == json!(wanted) {
                return Ok(format!("/v1/{manager}/scans?pageSize=100"));
            }
            ensure!(
                begin.elapsed() < Duration::from_secs(60),
                "the large posts are not found"
            );
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    fn large_feeds(&self) -> Vec<String> {
        let (size, id) = (self.size.large, self.account.id);
        self.feeds(FEEDS, |feed| format!("/large/{size}-{id}-{feed}.xml"))
    }

    /// Creates Managers that are compiled from a page, and compiles them again and again.
    async fn compile(&mut self, page: impl Fn(usize) -> String) -> Result<()> {
        let mut paths = Vec::new();
        for number in 0..10 {
            let page = self.site.url(&page(number));
            let manager = self.manager(&automatic(&page)).await?;
            paths.push(format!("/v1/{manager}:apply"));
        }
        let keys = self.editors();
        self.storm(&keys, 1, Method::POST, &paths, None);
        Ok(())
    }
}

/// Sends a request, and takes a few kilobytes of the response. Returns its status.
async fn do_not_read(host: &str, request: &str) -> Result<u16> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(4_096)?;
    let mut connection = socket.connect(host.parse()?).await?;
    connection.write_all(request.as_bytes()).await?;
    tokio::time::sleep(UNREAD).await;
    let mut head = [0; 12];
    connection.read_exact(&mut head).await?;
    tokio::time::sleep(UNREAD).await;
    Ok(std::str::from_utf8(&head[9..])?.parse()?)
}
