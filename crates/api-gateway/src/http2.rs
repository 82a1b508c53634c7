//! HTTP/2, by hyper, because actix-http limits neither the head of a request nor the number of streams
//! (`docs/adr/0053`).
//!
//! A connection is closed if its first request is not whole within `gateway.head_timeout`. Later, a client that leaves
//! a block of headers unfinished cannot answer pings, so it is disconnected after twice that time. A client that leaves
//! a response unread for the time limit of HTTP/1 ([`sending`]) gets no further request on this connection, and is
//! disconnected after the same time again: a proxy may send the requests of many clients on one connection.

mod sending;

use std::{
    cell::{Cell, RefCell},
    convert::Infallible,
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    rc::Rc,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use actix_http::{
    BoxedPayloadStream, Method, Payload, Request, Response, StatusCode, Uri, Version,
    body::{BodySize, BoxBody, MessageBody},
    error::PayloadError,
    header::{CONTENT_LENGTH, HeaderName, HeaderValue},
};
use actix_service::Service;
use actix_web::web::Bytes;
use futures::TryStreamExt as _;
use http_body_util::BodyDataStream;
use hyper::{
    body::{Body, Frame, Incoming, SizeHint},
    rt::Executor,
    server::conn::http2::Builder,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    task::spawn_local,
    time::{sleep, timeout},
};

use self::sending::{Responses, Sending};
use crate::{connection::Connection, in_flight::Counted};

/// Maximum size of a head, unpacked, with 32 bytes more for each field (RFC 9113 6.5.2): as in [`crate::head`].
const MAX_HEAD_BYTES: u32 = 16 * 1024;
/// Maximum number of requests in progress on a connection. RFC 9113 6.5.2 recommends no smaller number.
const MAX_STREAMS: u32 = 100;
/// Maximum bytes of a response that wait to be sent, for each stream.
const SEND_BUFFER_BYTES: usize = 64 * 1024;

/// Serves `connection` until it ends. After `stop`, or when its client has read nothing of a response for
/// `read_timeout`, only completes the requests in progress; in the latter case for at most `read_timeout`.
pub(crate) async fn serve<S, B>(
    connection: Connection,
    peer: Option<SocketAddr>,
    app: Rc<S>,
    head_timeout: Duration,
    read_timeout: Duration,
    stop: impl Future<Output = ()>,
) where
    S: Service<Request, Response: Into<Response<B>>, Error: Into<Response<BoxBody>>> + 'static,
    B: MessageBody + 'static,
{
    let has_request = Cell::new(false);
    let responses = Rc::new(RefCell::new(Responses::default()));
    let service = service_fn(|request: http::Request<Incoming>| {
        has_request.set(true);
        let is_head = request.method() == http::Method::HEAD;
        let answered = to_actix(request, peer).map(|request| app.call(request));
        let responses = Rc::clone(&responses);
        async move {
            let response = match answered {
                Some(answered) => match answered.await {
                    Ok(response) => response.into().map_into_boxed_body(),
                    Err(response) => response.into(),
                },
                None => Response::bad_request().map_into_boxed_body(),
            };
            let mut responses = responses.borrow_mut();
            Ok::<_, Infallible>(from_actix(response, is_head, &mut responses))
        }
    });
    let mut http2 = Builder::new(Local);
    http2
        .timer(TokioTimer::new())
        .max_header_list_size(MAX_HEAD_BYTES)
        .max_concurrent_streams(MAX_STREAMS)
        .max_send_buf_size(SEND_BUFFER_BYTES)
        .keep_alive_interval(head_timeout)
        .keep_alive_timeout(head_timeout);
    let mut served = pin!(http2.serve_connection(TokioIo::new(connection), service));
    let (mut first, mut stop) = (pin!(sleep(head_timeout)), pin!(stop));
    let mut stuck = pin!(stuck(&responses, read_timeout));
    let (mut is_first, mut stops) = (true, false);
    loop {
        tokio::select! {
            _ = served.as_mut() => return,
            () = first.as_mut(), if is_first => {
                is_first = false;
                if !has_request.get() {
                    return;
                }
            }
            () = stuck.as_mut() => break,
            () = stop.as_mut(), if !stops => {
                stops = true;
                served.as_mut().graceful_shutdown();
            }
        }
    }
    // Other responses may not be stuck, so they have time to end.
    if !stops {
        served.as_mut().graceful_shutdown();
    }
    let _ = timeout(read_timeout, served).await;
}

/// Waits until the client has read nothing of one of the responses for `read_timeout`.
async fn stuck(responses: &RefCell<Responses>, read_timeout: Duration) {
    while !responses.borrow_mut().are_stuck_for(read_timeout) {
        sleep(read_timeout / 4).await;
    }
}

/// Runs tasks on the worker's thread.
#[derive(Clone)]
struct Local;

impl<F: Future<Output: 'static> + 'static> Executor<F> for Local {
    fn execute(&self, task: F) {
        spawn_local(task);
    }
}

/// Returns `None` if a part is not valid for actix, which has an older version of the same types.
fn to_actix(request: http::Request<Incoming>, peer: Option<SocketAddr>) -> Option<Request> {
    let (given, body) = request.into_parts();
    let body = BodyDataStream::new(body);
    let body = body.map_err(|error| PayloadError::Io(io::Error::other(error)));
    let payload: BoxedPayloadStream = Box::pin(body);
    let mut request = Request::with_payload(Payload::Stream { payload });
    let head = request.head_mut();
    head.method = Method::from_bytes(given.method.as_str().as_bytes()).ok()?;
    head.uri = given.uri.to_string().parse::<Uri>().ok()?;
    head.version = Version::HTTP_2;
    head.peer_addr = peer;
    for (name, value) in &given.headers {
        let name = HeaderName::from_bytes(name.as_str().as_bytes()).ok()?;
        let value = HeaderValue::from_bytes(value.as_bytes()).ok()?;
        head.headers.append(name, value);
    }
    Some(request)
}

fn from_actix(
    mut response: Response<BoxBody>,
    is_head: bool,
    responses: &mut Responses,
) -> http::Response<ResponseBody> {
    let counted: Option<Arc<Counted>> = response.extensions_mut().remove();
    let (head, body) = response.into_parts();
    let mut response = http::Response::new(());
    let status = http::StatusCode::from_u16(head.status().as_u16());
    *response.status_mut() = status.unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    // hyper leaves out the headers of HTTP/1.1 connections.
    for (name, value) in head
        .headers()
        .iter()
        .filter(|(name, _)| *name != CONTENT_LENGTH)
    {
        let name = http::HeaderName::from_bytes(name.as_str().as_bytes());
        let value = http::HeaderValue::from_bytes(value.as_bytes());
        if let (Ok(name), Ok(value)) = (name, value) {
            response.headers_mut().append(name, value);
        }
    }
    if is_head && let BodySize::Sized(bytes) = body.size() {
        let headers = response.headers_mut();
        headers.insert(http::header::CONTENT_LENGTH, bytes.into());
    }
    let has_body = !is_head && head.status() != StatusCode::NO_CONTENT;
    response.map(|()| ResponseBody(has_body.then(|| (body, responses.add(counted)))))
}

/// Body of a response; `None` if it has none.
struct ResponseBody(Option<(BoxBody, Arc<Sending>)>);

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let Some((body, sending)) = &mut self.0 else {
            return Poll::Ready(None);
        };
        let next = Pin::new(body).poll_next(cx);
        next.map_ok(|bytes| Frame::data(sending.piece(bytes)))
            .map_err(|error| io::Error::other(error.to_string()))
    }

    fn is_end_stream(&self) -> bool {
        let body = self.0.as_ref();
        body.is_none_or(|(body, _)| body.size().is_eof())
    }

    fn size_hint(&self) -> SizeHint {
        match self.0.as_ref().map(|(body, _)| body.size()) {
            Some(BodySize::Sized(bytes)) => SizeHint::with_exact(bytes),
            Some(BodySize::Stream) => SizeHint::default(),
            Some(BodySize::None) | None => SizeHint::with_exact(0),
        }
    }
}
