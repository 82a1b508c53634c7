//! A client's connection, which adds what the HTTP library leaves out.
//!
//! actix refuses malformed HTTP, large heads and slow clients with a status and no body, and has no hook for these
//! responses. So a 4xx without a body, which none of our handlers sends, gets the standard error body while it is
//! written. The library closes the connection after such a response, so it is always the last thing written.
//!
//! If a body has malformed chunks, the library acts as if the client had left: unless the handler finishes at that
//! moment, no response is sent. After malformed HTTP the library closes at once, so the operating system may
//! discard a response that the client has not read yet (RFC 9112 9.6). Therefore the connection outlives the
//! library's use of it, sends its last response, and is read for a while before it closes ([`Connection::end`]).
//!
//! actix accepts heads of 128 KiB. Here a larger one than [`crate::head::MAX_HEAD_BYTES`] ends in a byte that no head
//! may have, and the refusal becomes a 431.
//!
//! `docs/adr/0043` explains why this is not left to `actix_web::HttpServer`.

use std::{
    cell::RefCell,
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
    time::{Duration, SystemTime},
};

use actix_http::error::DispatchError;
use actix_web::http::{StatusCode, header::HttpDate};
use domain::{Id, Timestamp};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufWriter, ReadBuf},
    net::TcpStream,
    time::timeout,
};
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

use crate::{error, head::Heads};

/// Plain TCP or TLS.
pub(crate) type Stream = Either<TcpStream, TlsStream<TcpStream>>;

const VERSION: &[u8] = b"HTTP/1.";
const END: &[u8] = b"\r\n\r\n";
const TOO_LARGE: &str = "431 Request Header Fields Too Large";
/// A byte that no head may have.
const INVALID: u8 = 0;
const EMPTY: &str = "\r\ncontent-length: 0\r\n";
/// The library writes one of these headers, or none.
const CONNECTION: [&str; 2] = [
    "\r\nconnection: close\r\n",
    "\r\nconnection: keep-alive\r\n",
];
/// Enough for one error response, so that it is written whole or not at all. Longer writes are not buffered.
const BUFFER_BYTES: usize = 1_024;

/// State of the exchange with the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The client has sent nothing since our last response.
    Answered,
    /// The client has sent something, and waits for a response.
    Waits,
    /// The client has closed its side or cannot be reached, or we have closed ours.
    Over,
}

/// Clones share the connection.
#[derive(Clone)]
pub(crate) struct Connection(Rc<RefCell<Inner>>);

struct Inner {
    io: BufWriter<Pin<Box<TimeoutStream<Stream>>>>,
    state: State,
    /// `None` for HTTP/2, which refuses a stream or a connection without a body.
    http1: Option<Http1>,
}

struct Http1 {
    heads: Heads,
    /// True once a head was too large. Nothing after it is looked at.
    is_too_large: bool,
}

impl Connection {
    /// Wraps `stream`. A client that reads nothing for `write_timeout` is disconnected.
    pub(crate) fn new(stream: Stream, is_http1: bool, write_timeout: Duration) -> Self {
        let mut io = TimeoutStream::new(stream);
        io.set_write_timeout(Some(write_timeout));
        Self(Rc::new(RefCell::new(Inner {
            io: BufWriter::with_capacity(BUFFER_BYTES, Box::pin(io)),
            state: State::Answered,
            http1: is_http1.then(|| Http1 {
                heads: Heads::new(),
                is_too_large: false,
            }),
        })))
    }

    /// Sends the response that the library omitted when HTTP/1 `ended` this way. Takes at most `at_most`.
    ///
    /// A client that pipelined several requests may read it as the response to the first. That is acceptable,
    /// because the connection failed for all of them.
    pub(crate) async fn end(mut self, ended: &Result<(), DispatchError>, at_most: Duration) {
        let state = self.0.borrow().state;
        let owed = match (ended, state) {
            (Ok(()), State::Waits) => true,
            (Err(DispatchError::Parse(_)), State::Answered | State::Waits) => false,
            _ => return,
        };
        let closing = async {
            if owed {
                let date = HttpDate::from(SystemTime::from(Timestamp::now().to_chrono()));
                // `poll_write` adds the body.
                let bare = format!(
                    "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\ndate: {date}\r\n\r\n"
                );
                self.write_all(bare.as_bytes()).await?;
            }
            self.shutdown().await?;
            let mut unread = [0; 1_024];
            while self.read(&mut unread).await? > 0 {}
            io::Result::Ok(())
        };
        // A client that has left needs no response.
        let _ = timeout(at_most, closing).await;
    }
}

impl Inner {
    fn moved(&mut self, to: State) {
        if self.state != State::Over {
            self.state = to;
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut inner = self.0.borrow_mut();
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut inner.io).poll_read(cx, buffer));
        let some = read.is_ok() && buffer.filled().len() > before;
        if let Some(http1) = inner.http1.as_mut().filter(|http1| !http1.is_too_large)
            && let Some(at) = http1.heads.excess(&buffer.filled()[before..])
        {
            http1.is_too_large = true;
            buffer.filled_mut()[before + at] = INVALID;
            buffer.set_filled(before + at + 1);
        }
        inner.moved(if some { State::Waits } else { State::Over });
        Poll::Ready(read)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut inner = self.0.borrow_mut();
        let is_too_large = inner.http1.as_ref().map(|http1| http1.is_too_large);
        let bare = is_too_large.and_then(|_| bare_error(bytes));
        let io = Pin::new(&mut inner.io);
        let written = match bare {
            None => ready!(io.poll_write(cx, bytes)),
            // It fits into the buffer, so all of it is accepted at once.
            Some(0) => {
                let whole = with_body(bytes, is_too_large.unwrap_or_default());
                ready!(io.poll_write(cx, &whole)).map(|_| bytes.len())
            }
            // Responses before the error are written first.
            Some(start) => ready!(io.poll_write(cx, &bytes[..start])),
        };
        inner.moved(match written {
            Ok(_) => State::Answered,
            Err(_) => State::Over,
        });
        Poll::Ready(written)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.borrow_mut().io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut inner = self.0.borrow_mut();
        inner.moved(State::Over);
        Pin::new(&mut inner.io).poll_shutdown(cx)
    }
}

/// Returns the position of the last response in `bytes` if it is a 4xx without a body.
fn bare_error(bytes: &[u8]) -> Option<usize> {
    if !bytes.ends_with(END) {
        return None;
    }
    let mut windows = bytes.windows(VERSION.len());
    let start = windows.rposition(|window| window == VERSION)?;
    let head = std::str::from_utf8(&bytes[start..]).ok()?;
    let is_bare = status(head)?.is_client_error() && head.contains(EMPTY);
    is_bare.then_some(start)
}

fn status(head: &str) -> Option<StatusCode> {
    head.split(' ').nth(1)?.parse().ok()
}

/// Adds the error body to a bare error, which is a 431 if the head was too large, and announces the end of the
/// connection: the library says what the request before it asked for.
fn with_body(head: &[u8], is_too_large: bool) -> Vec<u8> {
    let mut head = String::from_utf8_lossy(head).into_owned();
    if is_too_large {
        head = head.replacen("400 Bad Request", TOO_LARGE, 1);
    }
    let status = status(&head).unwrap_or(StatusCode::BAD_REQUEST);
    let body = serde_json::json!({"code": status.as_u16(), "message": error::reason(status)});
    let body = body.to_string();
    let request_id = Id::generate();
    tracing::info!(request.id = %request_id, "no request could be read: {status}");
    for connection in CONNECTION {
        head = head.replacen(connection, "\r\n", 1);
    }
    let headers = format!(
        "\r\ncontent-length: {}\r\nconnection: close\r\ncontent-type: application/json\r\ncache-control: no-store\r\n\
         x-content-type-options: nosniff\r\nx-request-id: {request_id}\r\n",
        body.len()
    );
    (head.replacen(EMPTY, &headers, 1) + &body).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::{BUFFER_BYTES, bare_error, with_body};

    const BARE: &str = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    const KEPT: &str = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";

    #[test]
    fn a_bare_error_gets_a_body() {
        let text = String::from_utf8(with_body(BARE.as_bytes(), false)).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, r#"{"code":400,"message":"bad request"}"#);
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())));
        assert!(text.len() < BUFFER_BYTES / 2);
    }

    #[test]
    fn a_bare_error_says_once_that_the_connection_ends() {
        let old = BARE.replace("close", "keep-alive");
        for bare in [BARE, KEPT, old.as_str()] {
            let text = String::from_utf8(with_body(bare.as_bytes(), true)).unwrap();
            assert_eq!(text.matches("connection: ").count(), 1, "{text}");
            assert!(text.contains("\r\nconnection: close\r\n"), "{text}");
            assert!(text.starts_with("HTTP/1.1 431 "), "{text}");
        }
    }

    #[test]
    fn responses_before_a_bare_error_are_unchanged() {
        assert_eq!(bare_error(BARE.as_bytes()), Some(0));
        let first = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        let both = format!("{first}{BARE}");
        assert_eq!(bare_error(both.as_bytes()), Some(first.len()));
    }

    #[test]
    fn other_writes_are_unchanged() {
        for bytes in [
            &b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"[..],
            b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}",
            b"HTTP/1.1 404 Not Found\r\ncontent-length: 40\r\n\r\n",
            b"HTTP/1.1 100 Continue\r\n\r\n",
            b"\xff\r\n\r\n",
            b"",
        ] {
            assert_eq!(bare_error(bytes), None);
        }
    }
}
