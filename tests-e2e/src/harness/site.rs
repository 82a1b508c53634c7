//! The customer's website: a product's page.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use http::{Request, Response};
use hyper::body::Incoming;

use super::server::{AsyncHandler, Body, Server, answer};
use crate::customer;

const HTML: &str = "text/html; charset=utf-8";
const SLOW: Duration = Duration::from_secs(2);

pub(crate) struct Site {
    server: Server,
    slow_requests: Arc<AtomicU64>,
}

impl Site {
    pub(crate) async fn start() -> Self {
        let slow_requests = Arc::<AtomicU64>::default();
        let server = Server::start(Pages(Arc::clone(&slow_requests))).await;
        Self {
            server,
            slow_requests,
        }
    }

    /// | Path | |
    /// |---|---|
    /// | `/` | the product's page |
    /// | `/slow` | the same, after two seconds |
    /// | all others | 404 |
    pub(crate) fn url(&self, path: &str) -> String {
        self.server.url(path)
    }

    /// Returns how often the slow page was requested.
    pub(crate) fn slow_requests(&self) -> u64 {
        self.slow_requests.load(Ordering::Relaxed)
    }
}

/// Counts requests of the slow page.
struct Pages(Arc<AtomicU64>);

impl AsyncHandler for Pages {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        match request.uri().path() {
            "/" => answer(200, HTML, customer::PAGE),
            "/slow" => {
                self.0.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(SLOW).await;
                answer(200, HTML, customer::PAGE)
            }
            _ => answer(404, HTML, "<h1>Not found</h1><p>There is no such page.</p>"),
        }
    }
}
