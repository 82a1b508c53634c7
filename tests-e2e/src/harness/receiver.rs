//! A customer's server: follows a script, and records every request.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;

use super::{
    eventually,
    server::{AsyncHandler, Body, Server, answer},
};

/// How a receiver handles a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behaviour {
    Answer(u16),
    /// Accepts the request and never answers.
    Hang,
}

/// A request exactly as it was received.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    pub(crate) method: String,
    pub(crate) path: String,
    /// All headers that were received, in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
    pub(crate) arrived: Instant,
    /// When the sender of a hanging request gave up.
    pub(crate) cut: Option<Instant>,
}

impl Delivery {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Returns the name of the Scan in it.
    pub(crate) fn scan(&self) -> String {
        scan(&self.body)
    }

    pub(crate) fn header(&self, name: &str) -> Vec<&str> {
        let same = self.headers.iter().filter(|(own, _)| own == name);
        same.map(|(_, value)| value.as_str()).collect()
    }
}

/// Returns the name of the Scan in a request.
fn scan(body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap();
    body["name"].as_str().unwrap().to_owned()
}

pub(crate) struct Receiver {
    server: Server,
    state: Arc<State>,
}

struct State {
    /// Delay of each answer.
    delay: Duration,
    script: Mutex<VecDeque<Behaviour>>,
    deliveries: Mutex<Vec<Delivery>>,
}

impl Receiver {
    /// Starts a receiver that answers 204.
    pub(crate) async fn start() -> Self {
        Self::new([], Duration::ZERO).await
    }

    /// Starts a receiver that answers 204, each time after `delay`.
    pub(crate) async fn slow(delay: Duration) -> Self {
        Self::new([], delay).await
    }

    /// Starts a receiver that follows `script`, one request after the other, and answers 204 after that.
    pub(crate) async fn scripted(script: impl IntoIterator<Item = Behaviour>) -> Self {
        Self::new(script, Duration::ZERO).await
    }

    async fn new(script: impl IntoIterator<Item = Behaviour>, delay: Duration) -> Self {
        let state = Arc::new(State {
            delay,
            script: Mutex::new(script.into_iter().collect()),
            deliveries: Mutex::default(),
        });
        let server = Server::start(Handler(Arc::clone(&state))).await;
        Self { server, state }
    }

    pub(crate) fn url(&self) -> String {
        self.server.url("/hooks/earshot?from=earshot")
    }

    /// Returns all requests so far, in the order of their arrival.
    pub(crate) fn deliveries(&self) -> Vec<Delivery> {
        self.state.deliveries.lock().unwrap().clone()
    }

    /// Returns the number of requests so far.
    pub(crate) fn count(&self) -> usize {
        self.state.deliveries.lock().unwrap().len()
    }

    /// Returns how often each Scan arrived.
    pub(crate) fn counts(&self) -> BTreeMap<String, usize> {
        let bodies: Vec<Bytes> = {
            let deliveries = self.state.deliveries.lock().unwrap();
            deliveries.iter().map(|one| one.body.clone()).collect()
        };
        let mut counts = BTreeMap::new();
        for body in bodies {
            *counts.entry(scan(&body)).or_default() += 1;
        }
        counts
    }

    /// Waits until `count` requests have arrived.
    pub(crate) async fn wait_for(&self, count: usize, within: Duration) -> Vec<Delivery> {
        eventually(&format!("{count} requests"), within, async || {
            (self.count() >= count).then(|| self.deliveries())
        })
        .await
    }
}

struct Handler(Arc<State>);

impl AsyncHandler for Handler {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let arrived = Instant::now();
        let (head, body) = request.into_parts();
        let headers = head.headers.iter().map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes());
            (name.as_str().to_owned(), value.into_owned())
        });
        let headers = headers.collect();
        let Ok(body) = body.collect().await else {
            return answer(400, "text/plain", "the body broke off");
        };
        let behaviour = self.0.script.lock().unwrap().pop_front();
        let place = {
            let mut deliveries = self.0.deliveries.lock().unwrap();
            deliveries.push(Delivery {
                method: head.method.to_string(),
                path: head.uri.to_string(),
                headers,
                body: body.to_bytes(),
                arrived,
                cut: None,
            });
            deliveries.len() - 1
        };
        tokio::time::sleep(self.0.delay).await;
        match behaviour {
            Some(Behaviour::Hang) => {
                let _cut = Cut {
                    state: Arc::clone(&self.0),
                    place,
                };
                std::future::pending().await
            }
            Some(Behaviour::Answer(status)) => answer(status, "text/plain", "as scripted"),
            None => answer(204, "text/plain", ""),
        }
    }
}

/// Dropped with the handler, when the sender closes the connection.
struct Cut {
    state: Arc<State>,
    place: usize,
}

impl Drop for Cut {
    fn drop(&mut self) {
        let mut deliveries = self.state.deliveries.lock().unwrap();
        deliveries[self.place].cut = Some(Instant::now());
    }
}
