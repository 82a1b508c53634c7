//! The end of a connection that the HTTP library ends too abruptly.
//!
//! A body with malformed chunks is, to the library, a client that has gone: unless the handler is
//! done in that very moment, no one answers. And after it has refused what is no HTTP it closes at once, by
//! which the system may take away from the client an answer that it has not read yet (RFC 9112 9.6). So a
//! connection is kept until the library is done with it, gets the answer that it is owed, and is then
//! listened to for a while before it closes.
//!
//! Cost: a flag on each read and write.

use std::{
    cell::RefCell,
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
    time::{Duration, SystemTime},
};

use actix_http::error::DispatchError;
use actix_web::http::header::HttpDate;
use domain::Timestamp;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf},
    time::timeout,
};

/// How the client stands to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// The client has sent nothing since our last response.
    Answered,
    /// The client has sent something, and waits for a response.
    Waits,
    /// The client has closed its side or cannot be reached, or we have closed ours.
    Over,
}

/// A connection that outlives the library's hold on it.
pub(crate) struct Kept<I>(Rc<RefCell<Inner<I>>>);

struct Inner<I> {
    io: I,
    standing: Standing,
}

impl<I> Clone for Kept<I> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> Kept<I> {
    pub(crate) fn new(io: I) -> Self {
        let standing = Standing::Answered;
        Self(Rc::new(RefCell::new(Inner { io, standing })))
    }

    /// Says what the library, which `ended` so with HTTP/1, left unsaid. Takes `at_most` this long.
    ///
    /// A client that sent several requests without waiting may take it for the answer to the first: the
    /// connection has failed for all of them.
    pub(crate) async fn end(mut self, ended: &Result<(), DispatchError>, at_most: Duration) {
        let standing = self.0.borrow().standing;
        let owed = match ended {
            Ok(()) => standing == Standing::Waits,
            Err(DispatchError::Parse(_)) => false,
            Err(_) => return,
        };
        if standing == Standing::Over || ended.is_ok() && !owed {
            return;
        }
        let farewell = async {
            if owed {
                // Gets its body from `wire`.
                let date = HttpDate::from(SystemTime::from(Timestamp::now().to_chrono()));
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
        // A client that is gone needs no response.
        let _ = timeout(at_most, farewell).await;
    }
}

impl<I> Inner<I> {
    fn moved(&mut self, to: Standing) {
        if self.standing != Standing::Over {
            self.standing = to;
        }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Kept<I> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut inner = self.0.borrow_mut();
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut inner.io).poll_read(cx, buffer));
        let some = read.is_ok() && buffer.filled().len() > before;
        inner.moved(if some {
            Standing::Waits
        } else {
            Standing::Over
        });
        Poll::Ready(read)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Kept<I> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut inner = self.0.borrow_mut();
        let written = ready!(Pin::new(&mut inner.io).poll_write(cx, bytes));
        inner.moved(if written.is_ok() {
            Standing::Answered
        } else {
            Standing::Over
        });
        Poll::Ready(written)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.borrow_mut().io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut inner = self.0.borrow_mut();
        inner.moved(Standing::Over);
        Pin::new(&mut inner.io).poll_shutdown(cx)
    }
}
