//! The error body for what never becomes a request.
//!
//! Bytes that are no HTTP, heads that are too large and clients that are too slow are refused by the
//! HTTP library itself, with a status and nothing else, and it has no hook for that. So answers are
//! looked at as they leave: a 4xx without a body, which no handler of ours gives, gets the body that all
//! errors have. The library closes the connection after such an answer, so it is always the last thing
//! written; everything else passes through untouched.
//!
//! In addition, a client that stops reading its answer is given up after a while, which the library does not
//! do either.
//!
//! Cost: a look at the last four bytes of each write, and a timer for a write that has to wait.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use actix_web::http::StatusCode;
use domain::Id;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

use crate::error;

const VERSION: &[u8] = b"HTTP/1.";
const END: &[u8] = b"\r\n\r\n";
const EMPTY: &str = "\r\ncontent-length: 0\r\n";

/// A connection whose last answer may need a body.
pub(crate) struct Wire<I> {
    io: I,
    /// Replacement of a bare response, as far as it is not written yet.
    replaced: Vec<u8>,
    written: usize,
    /// HTTP/2 has answers of other shapes, and gives a fault to a stream or a connection, not a body.
    is_text: bool,
    /// How long a write may wait for the client to read.
    patience: Duration,
    /// Runs while a write waits.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<I> Wire<I> {
    pub(crate) fn new(io: I, is_text: bool, patience: Duration) -> Self {
        Self {
            io,
            replaced: Vec::new(),
            written: 0,
            is_text,
            patience,
            stalled: None,
        }
    }

    /// The end of a write that waits, when it has waited for too long.
    fn poll_patience(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let patience = self.patience;
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(io::ErrorKind::TimedOut.into())
    }
}

impl<I: AsyncWrite + Unpin> Wire<I> {
    fn poll_write_replaced(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.replaced.len() {
            let rest = &self.replaced[self.written..];
            let Poll::Ready(written) = Pin::new(&mut self.io).poll_write(cx, rest) else {
                return self.poll_patience(cx).map(Err);
            };
            match written? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.written += count,
            }
            self.stalled = None;
        }
        Poll::Ready(Ok(()))
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Wire<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Wire<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_write_replaced(cx))?;
        match self.is_text.then(|| with_body(bytes)).flatten() {
            Some(replaced) => {
                self.replaced = replaced;
                self.written = 0;
                // Taken; it is written now as far as the socket lets it, and else before the flush.
                if let Poll::Ready(Err(error)) = self.poll_write_replaced(cx) {
                    return Poll::Ready(Err(error));
                }
                Poll::Ready(Ok(bytes.len()))
            }
            None => {
                let Poll::Ready(written) = Pin::new(&mut self.io).poll_write(cx, bytes) else {
                    return self.poll_patience(cx).map(Err);
                };
                self.stalled = None;
                Poll::Ready(written)
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write_replaced(cx))?;
        // TLS writes here what its buffer held back.
        let Poll::Ready(flushed) = Pin::new(&mut self.io).poll_flush(cx) else {
            return self.poll_patience(cx).map(Err);
        };
        Poll::Ready(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write_replaced(cx))?;
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

/// `bytes` with the error body, when the last answer in them is a bare 4xx.
fn with_body(bytes: &[u8]) -> Option<Vec<u8>> {
    if !bytes.ends_with(END) {
        return None;
    }
    let start = bytes
        .windows(VERSION.len())
        .rposition(|window| window == VERSION)?;
    let (before, head) = bytes.split_at(start);
    let head = std::str::from_utf8(head).ok()?;
    let code = head.split(' ').nth(1)?;
    let status: StatusCode = code.parse().ok()?;
    if !status.is_client_error() || !head.contains(EMPTY) {
        return None;
    }
    let body = serde_json::json!({"code": status.as_u16(), "message": error::reason(status)});
    let body = body.to_string();
    let request_id = Id::generate();
    tracing::info!(request.id = %request_id, "no request could be read: {status}");
    let headers = format!(
        "\r\ncontent-length: {}\r\ncontent-type: application/json\r\ncache-control: no-store\r\n\
         x-content-type-options: nosniff\r\nx-request-id: {request_id}\r\n",
        body.len()
    );
    let head = head.replacen(EMPTY, &headers, 1);
    Some([before, head.as_bytes(), body.as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::with_body;

    #[test]
    fn a_bare_error_gets_a_body() {
        let bare = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        let text = String::from_utf8(with_body(bare).unwrap()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, r#"{"code":400,"message":"bad request"}"#);
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())));
        assert!(head.ends_with("connection: close"));
    }

    #[test]
    fn answers_before_it_stay_as_they_are() {
        let first = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        let both = format!("{first}HTTP/1.1 431 Too Large\r\ncontent-length: 0\r\n\r\n");
        let text = String::from_utf8(with_body(both.as_bytes()).unwrap()).unwrap();
        assert!(text.starts_with(first) && text.contains("\"code\":431"));
    }

    #[test]
    fn all_else_passes() {
        for bytes in [
            &b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"[..],
            b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}",
            b"HTTP/1.1 404 Not Found\r\ncontent-length: 40\r\n\r\n",
            b"HTTP/1.1 100 Continue\r\n\r\n",
            b"\xff\r\n\r\n",
            b"",
        ] {
            assert_eq!(with_body(bytes), None);
        }
    }
}
