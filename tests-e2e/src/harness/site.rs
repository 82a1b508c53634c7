//! The customer's website: a product's pages, and pages that a customer should not use.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};

use super::server::{AsyncHandler, Body, Server, answer};
use crate::customer;

const HTML: &str = "text/html; charset=utf-8";
pub(crate) const HUGE_BYTES: u64 = 100 * 1024 * 1024;
const SLOW: Duration = Duration::from_secs(2);
const CHUNK: &str =
    "<p>Everything that there is to say about hives, and then some more of it.</p>\n";

pub(crate) struct Site {
    server: Server,
    counters: Arc<Counters>,
}

#[derive(Default)]
struct Counters {
    huge_sent: AtomicU64,
    slow_requests: AtomicU64,
}

impl Site {
    pub(crate) async fn start() -> Self {
        let counters = Arc::new(Counters::default());
        let server = Server::start(Pages(Arc::clone(&counters))).await;
        Self { server, counters }
    }

    /// | Path | |
    /// |---|---|
    /// | `/` | the product's page |
    /// | `/slow` | the same, after two seconds |
    /// | `/moved` | a redirect to `/` |
    /// | `/huge` | 100 MB of HTML |
    /// | `/metadata` | a redirect to 169.254.169.254 |
    /// | `/empty` | a page without content |
    /// | all others | 404 |
    pub(crate) fn url(&self, path: &str) -> String {
        self.server.url(path)
    }

    /// Returns how much of the huge page was read by clients.
    pub(crate) fn huge_sent_bytes(&self) -> u64 {
        self.counters.huge_sent.load(Ordering::Relaxed)
    }

    /// Returns how often the slow page was requested.
    pub(crate) fn slow_requests(&self) -> u64 {
        self.counters.slow_requests.load(Ordering::Relaxed)
    }
}

struct Pages(Arc<Counters>);

impl AsyncHandler for Pages {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        match request.uri().path() {
            "/" => answer(200, HTML, customer::PAGE),
            "/slow" => {
                self.0.slow_requests.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(SLOW).await;
                answer(200, HTML, customer::PAGE)
            }
            "/empty" => answer(200, HTML, "<!doctype html><title></title><body></body>"),
            "/moved" => redirect("/"),
            "/metadata" => redirect("http://169.254.169.254/latest/meta-data/"),
            "/huge" => huge(Arc::clone(&self.0)),
            _ => answer(404, HTML, "<h1>Not found</h1><p>There is no such page.</p>"),
        }
    }
}

fn redirect(to: &str) -> Response<Body> {
    let mut response = answer(302, HTML, "");
    response
        .headers_mut()
        .insert("location", to.parse().unwrap());
    response
}

/// Returns a page without `content-length`, so that a client must read it to learn its length.
fn huge(counters: Arc<Counters>) -> Response<Body> {
    let chunk = Bytes::from(CHUNK.repeat(800));
    let length = u64::try_from(chunk.len()).unwrap();
    let mut total = 0;
    let chunks = futures::stream::iter(std::iter::from_fn(move || {
        total += length;
        counters.huge_sent.fetch_add(length, Ordering::Relaxed);
        let frame = Ok::<_, Infallible>(Frame::data(chunk.clone()));
        (total <= HUGE_BYTES + length).then_some(frame)
    }));
    Response::builder()
        .header("content-type", HTML)
        .body(BodyExt::boxed(StreamBody::new(chunks)))
        .unwrap()
}
