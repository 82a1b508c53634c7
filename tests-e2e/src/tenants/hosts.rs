//! A host of feeds, pages and receivers that both accounts use.
//!
//! Each path exists for both accounts and for the public: a canary in the address says whose content is served. All feeds
//! list the same entries, by the same ids, with different texts. Every request is recorded.

use std::{
    fmt::Write,
    sync::{Arc, Mutex},
};

use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::canary::{self, Side};
use crate::{
    customer,
    harness::{
        now_micros,
        server::{AsyncHandler, Body, Server, answer},
    },
};

/// Number of entries that a feed shows.
const ENTRIES: usize = 12;
/// One request in so many to a receiver fails.
const FAILING: u64 = 7;

/// A request that the host received, in lower case.
pub(super) struct Visit {
    /// Path and query.
    pub(super) target: String,
    pub(super) headers: String,
    pub(super) body: String,
}

impl Visit {
    /// Returns the account that the address is of; `None` is the public.
    pub(super) fn owner(&self) -> Option<Side> {
        canary::find(&self.target).first().map(|found| found.side)
    }

    pub(super) fn is_webhook(&self) -> bool {
        self.target.starts_with("/hook")
    }
}

pub(super) struct Hosts {
    server: Server,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// Time of each entry, oldest first.
    entries: Mutex<Vec<String>>,
    visits: Mutex<Vec<Visit>>,
    hooks: Mutex<u64>,
}

impl Hosts {
    pub(super) async fn start() -> Self {
        let state = Arc::<State>::default();
        let server = Server::start(Handler(Arc::clone(&state))).await;
        Self { server, state }
    }

    pub(super) fn url(&self, path: &str) -> String {
        self.server.url(path)
    }

    /// Adds an entry to all feeds.
    pub(super) fn publish(&self) {
        self.state.entries.lock().unwrap().push(timestamp(0));
    }

    /// Returns the id that all feeds give to their newest entry.
    pub(super) fn newest_id(&self) -> String {
        let count = self.state.entries.lock().unwrap().len();
        self.url(&format!("/entry/{count}"))
    }

    /// Returns the requests since the last call.
    pub(super) fn take(&self) -> Vec<Visit> {
        std::mem::take(&mut self.state.visits.lock().unwrap())
    }
}

/// Returns the time `seconds` before now, in RFC 3339.
pub(super) fn timestamp(seconds: i64) -> String {
    let time = chrono::DateTime::from_timestamp_micros(now_micros() - seconds * 1_000_000);
    let format = "%Y-%m-%dT%H:%M:%S%.6fZ";
    time.unwrap().format(format).to_string()
}

struct Handler(Arc<State>);

impl AsyncHandler for Handler {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let Ok(body) = body.collect().await else {
            return answer(400, "text/plain", "the body broke off");
        };
        let visit = Visit {
            target: head.uri.to_string().to_ascii_lowercase(),
            headers: format!("{:?}", head.headers).to_ascii_lowercase(),
            body: String::from_utf8_lossy(&body.to_bytes()).to_ascii_lowercase(),
        };
        let (owner, host) = (visit.owner(), head.headers["host"].to_str().unwrap());
        self.0.visits.lock().unwrap().push(visit);
        let path = head.uri.path();
        if path.starts_with("/hook") {
            return self.hook(owner);
        }
        if path.starts_with("/page") {
            return page(owner, head.uri.query().unwrap_or_default());
        }
        if !path.starts_with("/feed") {
            return answer(404, "text/plain", "no such page");
        }
        let entries = self.0.entries.lock().unwrap().clone();
        let etag = format!("\"{}\"", word(owner, "etag", entries.len()));
        let known = head.headers.get("if-none-match");
        if known.is_some_and(|known| known.as_bytes() == etag.as_bytes()) {
            return answer(304, "application/atom+xml", "");
        }
        let feed = feed(owner, host, &entries);
        let mut response = answer(200, "application/atom+xml", feed);
        let etag = etag.parse().unwrap();
        response.headers_mut().insert("etag", etag);
        response
    }
}

impl Handler {
    /// Answers a webhook with a canary of its owner, which the delivery's attempts then show.
    fn hook(&self, owner: Option<Side>) -> Response<Body> {
        let count = {
            let mut hooks = self.0.hooks.lock().unwrap();
            *hooks += 1;
            *hooks
        };
        let status = if count.is_multiple_of(FAILING) {
            503
        } else {
            200
        };
        answer(status, "text/plain", word(owner, "receiveranswer", 1))
    }
}

/// Returns a canary of the account, or a harmless word.
fn word(owner: Option<Side>, kind: &str, number: usize) -> String {
    match owner {
        Some(side) => side.content(kind, u64::try_from(number).unwrap()),
        None => format!("public{kind}{number}"),
    }
}

fn feed(owner: Option<Side>, host: &str, entries: &[String]) -> String {
    let word = |kind: &str, number| word(owner, kind, number);
    let title = word("feedtitle", 1);
    let mut feed = format!(
        "<?xml version=\"1.0\"?><feed xmlns=\"http://www.w3.org/2005/Atom\"><title>{title}</title>\
         <id>http://{host}/feed</id><updated>{}</updated>",
        timestamp(0)
    );
    let first = entries.len().saturating_sub(ENTRIES);
    for (index, time) in entries.iter().enumerate().skip(first) {
        let number = index + 1;
        // Some feeds give their entries ids that are unique within the feed only.
        let id = match number % 2 {
            0 => format!("http://{host}/entry/{number}"),
            _ => format!("entry-{number}"),
        };
        write!(
            feed,
            "<entry><id>{id}</id><title>{} kettle</title><author><name>{}</name></author>\
             <link href=\"http://{host}/read/{number}?by={}\"/><updated>{time}</updated>\
             <content type=\"text\">A kettle that boils water, number {number}: {}</content></entry>",
            word("entrytitle", number),
            word("entryauthor", number),
            word("entrylink", number),
            word("entrytext", number),
        )
        .unwrap();
    }
    feed + "</feed>"
}

/// A product's page, which links to a feed of the same owner.
fn page(owner: Option<Side>, query: &str) -> Response<Body> {
    let product = word(owner, "product", 1);
    let link = format!(
        "<link rel=\"alternate\" type=\"application/atom+xml\" href=\"/feed/page?{query}\"></head>"
    );
    let page = customer::PAGE
        .replace("Hivelight", &product)
        .replace("</head>", &link);
    answer(200, "text/html; charset=utf-8", page)
}
