//! An open connection: what it is for the pool and hyper, and how one that costs too much ends.

use std::{
    io,
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::{
    client::legacy::connect::{CaptureConnection, Connected, Connection, capture_connection},
    rt::TokioIo,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::{Sleep, sleep},
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::trace::Trace;

/// How long a peer may take no bytes. Otherwise hyper would wait for ever to send the rest of a request that has its
/// response, also to close the connection.
pub(crate) const MAX_STALL: Duration = Duration::from_secs(10);

/// Attached to each response of a connection: the trace that opened it, and its peer.
#[derive(Clone)]
pub(crate) struct Opened {
    pub(crate) by: Arc<Trace>,
    /// `None` behind a proxy.
    pub(crate) address: Option<IpAddr>,
    /// Time from when it takes no new requests.
    pub(crate) retires: Instant,
    pub(crate) is_h2: bool,
    /// Ends the connection, with all requests that it has.
    pub(crate) end: CancellationToken,
}

/// The use of a connection by one request. When it ends, a connection that is too old leaves the pool, and one of HTTP/1.1
/// without a response ends: its request may be in memory for as long as it lives.
pub(crate) struct Checkout {
    connection: CaptureConnection,
    pub(crate) has_response: bool,
}

impl Checkout {
    pub(crate) fn of<B>(request: &mut http::Request<B>) -> Self {
        Self {
            connection: capture_connection(request),
            has_response: false,
        }
    }

    /// Ends the connection because its peer has responded and does not read the request. In HTTP/2 it takes no new requests,
    /// and has this time for those of others.
    pub(crate) fn give_up(self, time: Duration) {
        self.with_connection(|connected, opened| {
            connected.poison();
            let end = opened.end.clone();
            if opened.is_h2 {
                tokio::spawn(async move {
                    sleep(time).await;
                    end.cancel();
                });
            } else {
                end.cancel();
            }
        });
    }

    fn with_connection(&self, work: impl FnOnce(&Connected, &Opened)) {
        let connected = self.connection.connection_metadata();
        let Some(connected) = connected.as_ref() else {
            return;
        };
        let mut extras = http::Extensions::new();
        connected.get_extras(&mut extras);
        if let Some(opened) = extras.get::<Opened>() {
            work(connected, opened);
        }
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        self.with_connection(|connected, opened| {
            let ends = !self.has_response && !opened.is_h2;
            if ends || opened.retires <= Instant::now() {
                connected.poison();
            }
            if ends {
                opened.end.cancel();
            }
        });
    }
}

pub(crate) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A connection, plain or TLS, in the form that hyper needs.
pub(crate) struct Stream {
    io: TokioIo<Box<dyn Io>>,
    opened: Opened,
    end: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Limits the wait until the peer takes bytes.
    stall: Option<Pin<Box<Sleep>>>,
    max_stall: Duration,
    /// Requests name their whole address, for a proxy.
    is_forwarded: bool,
}

impl Stream {
    pub(crate) fn new(
        io: Box<dyn Io>,
        opened: Opened,
        is_forwarded: bool,
        max_stall: Duration,
    ) -> Self {
        Self {
            io: TokioIo::new(io),
            end: Box::pin(opened.end.clone().cancelled_owned()),
            opened,
            stall: None,
            max_stall,
            is_forwarded,
        }
    }

    /// Returns the result of reading or writing, or an error if the connection is to end.
    fn unless_ended<T>(
        &mut self,
        cx: &mut Context<'_>,
        result: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match self.end.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into())),
            Poll::Pending => result,
        }
    }

    fn unless_stalled<T>(
        &mut self,
        cx: &mut Context<'_>,
        result: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.stall = None;
        } else {
            let max_stall = self.max_stall;
            let stall = (self.stall).get_or_insert_with(|| Box::pin(sleep(max_stall)));
            if stall.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        }
        self.unless_ended(cx, result)
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        let connected = Connected::new()
            .proxy(self.is_forwarded)
            .extra(self.opened.clone());
        if self.opened.is_h2 {
            connected.negotiated_h2()
        } else {
            connected
        }
    }
}

impl Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.io).poll_read(cx, buffer);
        self.unless_ended(cx, result)
    }
}

impl Write for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.unless_stalled(cx, result)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.io).poll_flush(cx);
        self.unless_stalled(cx, result)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.io).poll_shutdown(cx);
        self.unless_stalled(cx, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.io).poll_write_vectored(cx, slices);
        self.unless_stalled(cx, result)
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, io::ErrorKind, pin::Pin, sync::Arc};

    use hyper::rt::Write as _;
    use tokio::{
        io::{AsyncReadExt as _, duplex},
        time::{Instant, sleep},
    };
    use tokio_util::sync::CancellationToken;

    use super::{MAX_STALL, Opened, Stream};

    fn stream(io: tokio::io::DuplexStream) -> Stream {
        let opened = Opened {
            by: Arc::default(),
            address: None,
            retires: std::time::Instant::now(),
            is_h2: false,
            end: CancellationToken::new(),
        };
        Stream::new(Box::new(io), opened, false, MAX_STALL)
    }

    async fn write(stream: &mut Stream) -> std::io::Result<usize> {
        poll_fn(|cx| Pin::new(&mut *stream).poll_write(cx, &[0; 8])).await
    }

    #[tokio::test(start_paused = true)]
    async fn peer_that_takes_no_bytes_loses_its_connection() {
        let (ours, mut theirs) = duplex(8);
        let mut stream = stream(ours);
        assert_eq!(write(&mut stream).await.unwrap(), 8);
        // It is slow, but it reads.
        for _ in 0..3 {
            let reading = async {
                sleep(MAX_STALL / 2).await;
                theirs.read_exact(&mut [0; 8]).await.unwrap();
            };
            let (written, ()) = tokio::join!(write(&mut stream), reading);
            assert_eq!(written.unwrap(), 8);
        }
        let begin = Instant::now();
        let error = write(&mut stream).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(begin.elapsed() >= MAX_STALL);
    }

    #[tokio::test(start_paused = true)]
    async fn connection_that_is_given_up_ends_at_once() {
        let (ours, _theirs) = duplex(8);
        let mut stream = stream(ours);
        assert_eq!(write(&mut stream).await.unwrap(), 8);
        let end = stream.opened.end.clone();
        let begin = Instant::now();
        let (written, ()) = tokio::join!(write(&mut stream), async { end.cancel() });
        assert_eq!(written.unwrap_err().kind(), ErrorKind::ConnectionAborted);
        assert_eq!(begin.elapsed(), std::time::Duration::ZERO);
    }
}
