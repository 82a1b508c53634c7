//! SQLSTATE codes of errors.
//!
//! PostgreSQL translates messages by `lc_messages`, and only the code says what happened. diesel keeps the message and
//! drops the code, except for a few kinds. So what the server sends is also read here, on its way to the driver: an
//! error response has both, and the codes of recent messages are remembered.

use std::{
    collections::{HashMap, VecDeque},
    io,
    pin::Pin,
    sync::{LazyLock, Mutex, PoisonError},
    task::{Context, Poll},
};

use diesel::result::DatabaseErrorInformation;
use futures::future::{BoxFuture, FutureExt, Ready, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};

/// Codes are five letters or digits (<https://www.postgresql.org/docs/current/errcodes-appendix.html>).
pub(crate) type Code = [u8; 5];

/// Number of different messages that are remembered.
const MAX_MESSAGES: usize = 512;
/// Longest error response that is read.
const MAX_BYTES: usize = 16 * 1_024;

static SEEN: LazyLock<Mutex<Seen>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct Seen {
    codes: HashMap<String, Code>,
    oldest_first: VecDeque<String>,
}

impl Seen {
    fn enter(&mut self, message: &str, code: Code) {
        if let Some(known) = self.codes.get_mut(message) {
            *known = code;
            return;
        }
        if self.codes.len() >= MAX_MESSAGES
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.codes.remove(&oldest);
        }
        self.codes.insert(message.to_owned(), code);
        self.oldest_first.push_back(message.to_owned());
    }
}

/// Codes of untranslated messages that contain these words, for connections that are not observed: those over Unix
/// sockets.
const ENGLISH: [(&str, Code); 13] = [
    ("deadlock detected", *b"40P01"),
    ("terminating connection", *b"57P01"),
    ("the database system is", *b"57P03"),
    ("too many connections", *b"53300"),
    ("sorry, too many clients", *b"53300"),
    ("remaining connection slots are reserved", *b"53300"),
    ("No space left on device", *b"53100"),
    ("canceling statement due to lock timeout", *b"55P03"),
    ("canceling statement", *b"57014"),
    ("could not write", *b"58030"),
    ("out of memory", *b"53200"),
    ("permission denied", *b"42501"),
    ("does not exist", *b"42P01"),
];

/// Returns the code of an error of the server; `None` if it is not known.
pub(crate) fn of(information: &(dyn DatabaseErrorInformation + Send + Sync)) -> Option<Code> {
    let message = information.message();
    let seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let seen = seen.codes.get(message).copied();
    seen.or_else(|| {
        let mut known = ENGLISH.iter();
        known.find_map(|(words, code)| message.contains(words).then_some(*code))
    })
}

/// Returns true if `text` ends with a message that had this code.
pub(crate) fn ends_with(text: &str, code: Code) -> bool {
    let seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = seen
        .codes
        .iter()
        .map(|(message, code)| (message.as_str(), code));
    let mut codes = known.chain(ENGLISH.iter().map(|(words, code)| (*words, code)));
    codes.any(|(message, known)| *known == code && !message.is_empty() && text.ends_with(message))
}

/// Finds error responses in what a server sends (<https://www.postgresql.org/docs/current/protocol-message-formats.html>).
#[derive(Default)]
struct Reader {
    /// Type and length of the message that begins.
    head: [u8; 5],
    head_length: usize,
    /// Rest of the message's body.
    left: usize,
    /// The part of an error response that has arrived.
    error: Option<Vec<u8>>,
}

impl Reader {
    fn read(&mut self, mut bytes: &[u8], enter: impl Fn(&str, Code)) {
        while !bytes.is_empty() {
            if self.left == 0 {
                self.head[self.head_length] = bytes[0];
                bytes = &bytes[1..];
                self.head_length += 1;
                if self.head_length == self.head.len() {
                    self.head_length = 0;
                    let [kind, length @ ..] = self.head;
                    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
                    self.left = length.saturating_sub(4);
                    self.error = (kind == b'E').then(Vec::new);
                }
                continue;
            }
            let (part, rest) = bytes.split_at(self.left.min(bytes.len()));
            self.left -= part.len();
            bytes = rest;
            if let Some(error) = &mut self.error {
                let fits = part.len().min(MAX_BYTES - error.len());
                error.extend_from_slice(&part[..fits]);
                if self.left == 0
                    && let Some((message, code)) = message_and_code(error)
                {
                    enter(message, code);
                }
            }
        }
    }
}

/// Reads the fields `M` and `C`.
fn message_and_code(error: &[u8]) -> Option<(&str, Code)> {
    let (mut message, mut code) = (None, None);
    for field in error.split(|byte| *byte == 0) {
        match field.split_first() {
            Some((b'M', text)) => message = std::str::from_utf8(text).ok(),
            Some((b'C', text)) => code = text.try_into().ok(),
            _ => {}
        }
    }
    message.zip(code)
}

/// A connection whose error responses are read.
pub(crate) struct Observed<S> {
    stream: S,
    reader: Reader,
}

impl<S: AsyncRead + Unpin> AsyncRead for Observed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if let Some(new) = buffer.filled().get(before..) {
            self.reader.read(new, |message, code| {
                let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
                seen.enter(message, code);
            });
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Observed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Observes the connections that `T` encrypts.
#[derive(Clone)]
pub(crate) struct Observing<T>(pub(crate) T);

impl<S, T> MakeTlsConnect<S> for Observing<T>
where
    T: MakeTlsConnect<S>,
    T::Stream: Send,
    T::TlsConnect: Send,
    <T::TlsConnect as TlsConnect<S>>::Future: Send + 'static,
{
    type Stream = Observed<T::Stream>;
    type TlsConnect = Observing<T::TlsConnect>;
    type Error = T::Error;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Self::TlsConnect, T::Error> {
        self.0.make_tls_connect(domain).map(Observing)
    }
}

impl<S, T> TlsConnect<S> for Observing<T>
where
    T: TlsConnect<S>,
    T::Future: Send + 'static,
{
    type Stream = Observed<T::Stream>;
    type Error = T::Error;
    type Future = BoxFuture<'static, Result<Self::Stream, T::Error>>;

    fn connect(self, stream: S) -> Self::Future {
        let connected = self.0.connect(stream);
        async move {
            connected.await.map(|stream| Observed {
                stream,
                reader: Reader::default(),
            })
        }
        .boxed()
    }
}

impl<S: TlsStream + Unpin> TlsStream for Observed<S> {
    fn channel_binding(&self) -> ChannelBinding {
        self.stream.channel_binding()
    }
}

/// TLS that encrypts nothing. The driver accepts a type of ours only for connections with TLS, so a plain connection is
/// treated as if it had TLS from its first byte (`sslnegotiation=direct`).
#[derive(Clone, Copy)]
pub(crate) struct Plain;

pub(crate) struct PlainStream<S>(S);

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Plain {
    type Stream = PlainStream<S>;
    type TlsConnect = Self;
    type Error = io::Error;

    fn make_tls_connect(&mut self, _: &str) -> io::Result<Self> {
        Ok(*self)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Plain {
    type Stream = PlainStream<S>;
    type Error = io::Error;
    type Future = Ready<io::Result<PlainStream<S>>>;

    fn connect(self, stream: S) -> Self::Future {
        ready(Ok(PlainStream(stream)))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PlainStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PlainStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for PlainStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::{MAX_MESSAGES, Reader, Seen};

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
        [&[kind][..], &length, body].concat()
    }

    #[test]
    fn error_responses_are_found_in_pieces_of_any_size() {
        let stream = [
            message(b'R', &[0; 4]),
            message(b'D', b"E\0\0\0\x0cMno\0C00000\0\0"),
            message(b'E', b"SFEHLER\0VERROR\0C40P01\0MVerklemmung\0Droutine\0\0"),
            message(b'Z', b"I"),
            message(b'E', b"Mwithout a code\0\0"),
            message(b'E', &[b'x'; 40_000]),
            message(b'3', b""),
            message(b'E', b"C57P01\0Mbeendet\0\0"),
        ]
        .concat();
        for size in [1, 2, 7, 100, stream.len()] {
            let found = RefCell::new(Vec::new());
            let mut reader = Reader::default();
            for piece in stream.chunks(size) {
                reader.read(piece, |message, code| {
                    found.borrow_mut().push((message.to_owned(), code));
                });
            }
            let expected = [
                ("Verklemmung".to_owned(), *b"40P01"),
                ("beendet".to_owned(), *b"57P01"),
            ];
            assert_eq!(found.into_inner(), expected, "pieces of {size}");
        }
    }

    #[test]
    fn a_bounded_number_of_messages_is_remembered() {
        let mut seen = Seen::default();
        for number in 0..2 * MAX_MESSAGES {
            seen.enter(&number.to_string(), *b"22P02");
        }
        seen.enter("1023", *b"22003");
        assert_eq!(
            (seen.codes.len(), seen.oldest_first.len()),
            (MAX_MESSAGES, MAX_MESSAGES)
        );
        assert_eq!(seen.codes.get("1023"), Some(b"22003"));
        assert!(!seen.codes.contains_key("0"));
    }
}
