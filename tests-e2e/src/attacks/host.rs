//! A web server of the attacker, which records each request.

use std::{
    fmt::Write as _,
    io::Write as _,
    sync::{Arc, Mutex},
    time::Duration,
};

use flate2::{Compression, write::GzEncoder};
use http::{HeaderMap, Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::harness::{
    now_micros,
    server::{AsyncHandler, Body, Server, answer},
};

/// A request that the server received.
#[derive(Debug, Clone)]
pub(super) struct Visit {
    /// Path and query.
    pub(super) target: String,
    pub(super) headers: HeaderMap,
}

/// Behaviour of the server for a request.
pub(super) enum Reply {
    Answer(Response<Body>),
    /// Answers after this time.
    Late(Duration, Response<Body>),
}

pub(super) struct Host {
    server: Server,
    visits: Arc<Mutex<Vec<Visit>>>,
}

impl Host {
    pub(super) async fn start<F>(reply: F) -> Self
    where
        F: Fn(&Visit) -> Reply + Send + Sync + 'static,
    {
        Self::start_at("127.0.0.1:0", reply).await.unwrap()
    }

    /// Starts a server at an address, unless that is in use.
    pub(super) async fn start_at<F>(address: &str, reply: F) -> Option<Self>
    where
        F: Fn(&Visit) -> Reply + Send + Sync + 'static,
    {
        let visits = Arc::<Mutex<Vec<Visit>>>::default();
        let handler = Handler {
            reply,
            visits: Arc::clone(&visits),
        };
        let server = Server::start_at(address, handler).await.ok()?;
        Some(Self { server, visits })
    }

    pub(super) fn url(&self, path: &str) -> String {
        self.server.url(path)
    }

    /// Returns all requests so far, in the order of their arrival.
    pub(super) fn visits(&self) -> Vec<Visit> {
        self.visits.lock().unwrap().clone()
    }

    /// Returns the number of requests whose target begins like this.
    pub(super) fn count(&self, start: &str) -> usize {
        let visits = self.visits.lock().unwrap();
        let same = visits
            .iter()
            .filter(|visit| visit.target.starts_with(start));
        same.count()
    }
}

struct Handler<F> {
    reply: F,
    visits: Arc<Mutex<Vec<Visit>>>,
}

impl<F> AsyncHandler for Handler<F>
where
    F: Fn(&Visit) -> Reply + Send + Sync + 'static,
{
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let (head, body) = request.into_parts();
        if body.collect().await.is_err() {
            return answer(400, "text/plain", "the body broke off");
        }
        let visit = Visit {
            target: head.uri.to_string(),
            headers: head.headers,
        };
        let reply = (self.reply)(&visit);
        self.visits.lock().unwrap().push(visit);
        match reply {
            Reply::Answer(response) => response,
            Reply::Late(wait, response) => {
                tokio::time::sleep(wait).await;
                response
            }
        }
    }
}

pub(super) fn ok() -> Reply {
    Reply::Answer(answer(200, "text/plain", ""))
}

/// Returns a document that is sent compressed, with a header that says so if `is_declared`.
pub(super) fn gzip(content_type: &str, document: &str, is_declared: bool) -> Reply {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(document.as_bytes()).unwrap();
    let mut response = answer(200, content_type, gzip.finish().unwrap());
    if is_declared {
        let headers = response.headers_mut();
        headers.insert("content-encoding", "gzip".parse().unwrap());
    }
    Reply::Answer(response)
}

pub(super) fn redirect(to: &str) -> Reply {
    let mut response = answer(302, "text/plain", "");
    response
        .headers_mut()
        .insert("location", to.parse().unwrap());
    Reply::Answer(response)
}

/// An entry of a feed.
pub(super) struct Entry {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) text: String,
    pub(super) link: String,
}

/// Returns a feed in Atom with these entries, published now.
pub(super) fn atom(title: &str, entries: &[Entry]) -> Response<Body> {
    let now = chrono::DateTime::from_timestamp_micros(now_micros()).unwrap();
    let now = now.to_rfc3339();
    let mut feed = format!(
        "<?xml version=\"1.0\"?><feed xmlns=\"http://www.w3.org/2005/Atom\"><title>{title}</title>\
         <id>urn:x:{title}</id><updated>{now}</updated>"
    );
    for Entry {
        id,
        title,
        text,
        link,
    } in entries
    {
        write!(
            feed,
            "<entry><id>{id}</id><title>{title}</title><link href=\"{link}\"/><updated>{now}</updated>\
             <content type=\"text\">{text}</content></entry>"
        )
        .unwrap();
    }
    answer(200, "application/atom+xml", feed + "</feed>")
}
