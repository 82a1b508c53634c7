//! Bodies of requests that can be given up.
//!
//! A server may answer a request before it has read it, and then not read it. hyper keeps the body that it has for as
//! long as the connection lives. So it gets the body in pieces, and when [`Unsent`] is dropped, no further ones.

use std::{
    convert::Infallible,
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError, Weak},
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::sync::oneshot;

pub(crate) const PIECE_BYTES: usize = 16 * 1_024;

pub(crate) struct Body {
    /// The bytes that hyper has not taken yet.
    rest: Weak<Mutex<Bytes>>,
    left: usize,
    has_begun: bool,
    held: Arc<oneshot::Sender<Infallible>>,
}

/// Keeps the bytes that hyper has not taken yet. When it is dropped, hyper gets an error instead of them.
pub(crate) struct Unsent {
    _rest: Arc<Mutex<Bytes>>,
    dropped: oneshot::Receiver<Infallible>,
}

/// Bytes that hyper has until they are sent.
struct Piece {
    bytes: Bytes,
    _held: Arc<oneshot::Sender<Infallible>>,
}

impl Body {
    pub(crate) fn new(bytes: Bytes) -> (Self, Unsent) {
        let (held, dropped) = oneshot::channel();
        let left = bytes.len();
        let rest = Arc::new(Mutex::new(bytes));
        let body = Self {
            rest: Arc::downgrade(&rest),
            left,
            has_begun: false,
            held: Arc::new(held),
        };
        let unsent = Unsent {
            _rest: rest,
            dropped,
        };
        (body, unsent)
    }

    pub(crate) fn empty() -> Self {
        Self::new(Bytes::new()).0
    }
}

impl Unsent {
    /// Waits until hyper has sent all of it, or has let go of it.
    pub(crate) async fn sent(&mut self) {
        let _ = (&mut self.dropped).await;
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let Some(rest) = self.rest.upgrade() else {
            return Poll::Ready(Some(Err(io::ErrorKind::ConnectionAborted.into())));
        };
        let mut rest = rest.lock().unwrap_or_else(PoisonError::into_inner);
        let length = self.left.min(PIECE_BYTES);
        let mut bytes = rest.split_to(length);
        if self.left > length || self.has_begun {
            // A part of the bytes would keep all of them in memory.
            bytes = Bytes::copy_from_slice(&bytes);
        }
        self.left -= length;
        self.has_begun = true;
        let piece = Piece {
            bytes,
            _held: Arc::clone(&self.held),
        };
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
