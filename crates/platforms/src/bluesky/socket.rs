//! The open connection to a host. A separate task reads it ahead of the polls.
//!
//! The task answers pings, sends a ping after a silence, and ends if no poll has taken anything for a while:
//! then another process reads the stream.

use std::{sync::Arc, time::Duration};

use domain::{
    Timestamp,
    egress::{Egress, Proxy},
};
use futures::{SinkExt, StreamExt};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::mpsc,
    task::JoinHandle,
    time::timeout,
};
use tokio_rustls::{TlsConnector, rustls::pki_types::ServerName};
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{
        self, Message, client::IntoClientRequest, http::HeaderValue, protocol::WebSocketConfig,
    },
};
use url::Url;

use super::{Waits, event::Event, lag::Lags};
use crate::{Cursor, FetchError, Fetched, PollError, egress};

/// The host is asked to leave out longer records; a normal post has a few thousand bytes.
pub(super) const MAX_RECORD_BYTES: usize = 256 * 1024;
/// A longer message ends the connection.
const MAX_MESSAGE_BYTES: usize = 1024 * 1024;
const MAX_AHEAD: usize = 1_000;
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// Time without a poll after which the connection is closed: another process has taken over the stream.
const UNREAD: Duration = Duration::from_secs(30);

trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Transport for T {}
type Socket = WebSocketStream<Box<dyn Transport>>;

/// An item that the task has read.
pub(super) enum Item {
    Event(Event),
    /// Last item: the reason why the connection ended.
    Ended(PollError),
}

/// An open connection.
pub(super) struct Reader {
    pub(super) items: mpsc::Receiver<Item>,
    /// Name of the host, as the position has it.
    pub(super) host: String,
    /// The position when the stream was opened; `None` after its first event.
    pub(super) resumed: Option<i64>,
    pub(super) lags: Lags,
    /// The cursor that the last poll returned. Only a poll with this cursor may continue here.
    pub(super) given: Option<Cursor>,
    task: JoinHandle<()>,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Reader {
    /// Connects to `url`.
    pub(super) async fn open(
        url: &Url,
        user_agent: &str,
        resumed: Option<i64>,
        waits: Waits,
    ) -> Result<Self, PollError> {
        let socket = match timeout(waits.connect, connect(url, user_agent)).await {
            Ok(connected) => connected?,
            Err(_) => return Err(PollError::Unavailable(FetchError::Timeout)),
        };
        let (sender, items) = mpsc::channel(MAX_AHEAD);
        Ok(Self {
            items,
            host: host_name(url),
            resumed,
            lags: Lags::default(),
            given: None,
            task: tokio::spawn(read_on(socket, sender, waits.silence)),
        })
    }
}

/// The host and the port of `url`.
pub(super) fn host_name(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

async fn connect(url: &Url, user_agent: &str) -> Result<Socket, PollError> {
    let host = url
        .host_str()
        .ok_or_else(|| PollError::Forbidden(url.to_string()))?;
    let port = url.port_or_known_default().unwrap_or(443);
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let egress = egress::current();
    let proxy = egress
        .proxy
        .as_ref()
        .filter(|proxy| proxy.is_used_for(host));
    let mut transport = match proxy {
        None => open(bare, port).await?,
        Some(proxy) => through(egress, proxy, &format!("{host}:{port}")).await?,
    };
    if url.scheme() == "wss" {
        transport = secure(egress, bare, transport).await?;
    }
    let mut request = url.as_str().into_client_request().map_err(ended)?;
    let user_agent = HeaderValue::from_str(user_agent).map_err(failed)?;
    request.headers_mut().insert("user-agent", user_agent);
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE_BYTES))
        .max_frame_size(Some(MAX_MESSAGE_BYTES));
    match client_async_with_config(request, transport, Some(config)).await {
        Ok((socket, _)) => Ok(socket),
        Err(tungstenite::Error::Http(response)) => Err(refused(url, &response)),
        Err(error) => Err(ended(error)),
    }
}

async fn open(host: &str, port: u16) -> Result<Box<dyn Transport>, PollError> {
    let stream = TcpStream::connect((host, port)).await.map_err(failed)?;
    // Pings and pongs are small and must not be delayed.
    stream.set_nodelay(true).map_err(failed)?;
    Ok(Box::new(stream))
}

async fn secure(
    egress: &Egress,
    host: &str,
    transport: Box<dyn Transport>,
) -> Result<Box<dyn Transport>, PollError> {
    let tls = egress::tls(egress, &[b"http/1.1"])?;
    let name = ServerName::try_from(host.to_owned()).map_err(failed)?;
    let connector = TlsConnector::from(Arc::new(tls));
    let secured = connector.connect(name, transport).await;
    Ok(Box::new(secured.map_err(failed)?))
}

/// Connects to `target` through the proxy.
async fn through(
    egress: &Egress,
    proxy: &Proxy,
    target: &str,
) -> Result<Box<dyn Transport>, PollError> {
    let url = proxy.url();
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let mut transport = open(bare, url.port_or_known_default().unwrap_or(80)).await?;
    if url.scheme() == "https" {
        transport = secure(egress, bare, transport).await?;
    }
    let opened = outbound::open_tunnel(&mut transport, target, proxy.authorization()).await;
    opened.map_err(failed)?;
    Ok(transport)
}

/// Error for a response that opens no stream, classified like any other.
fn refused(url: &Url, response: &tungstenite::http::Response<Option<Vec<u8>>>) -> PollError {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let answer = Fetched {
        status: response.status().as_u16(),
        headers: response
            .headers()
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), text(value)))
            .collect(),
        body: Vec::new(),
        final_url: url.clone(),
    };
    match answer.success(url.host_str().unwrap_or_default()) {
        Ok(answer) => PollError::Malformed(format!("status {} and no stream", answer.status)),
        Err(error) => error,
    }
}

async fn read_on(mut socket: Socket, items: mpsc::Sender<Item>, silence: Duration) {
    let mut asked = false;
    loop {
        let next = timeout(silence, socket.next()).await;
        let item = match next {
            Err(_) if asked => Item::Ended(PollError::Unavailable(FetchError::Timeout)),
            Err(_) => {
                asked = true;
                let ping = Message::Ping(tungstenite::Bytes::new());
                match timeout(SEND_TIMEOUT, socket.send(ping)).await {
                    Ok(Ok(())) => continue,
                    Ok(Err(error)) => Item::Ended(ended(error)),
                    Err(_) => Item::Ended(PollError::Unavailable(FetchError::Timeout)),
                }
            }
            Ok(None | Some(Ok(Message::Close(_)))) => {
                Item::Ended(ended(tungstenite::Error::ConnectionClosed))
            }
            Ok(Some(Err(error))) => Item::Ended(ended(error)),
            Ok(Some(Ok(message))) => {
                asked = false;
                match message {
                    Message::Text(text) => Item::Event(Event::read(&text, Timestamp::now())),
                    Message::Binary(_) => Item::Event(Event::unreadable("", "a binary message")),
                    // The response to a ping is sent with the next read.
                    _ => continue,
                }
            }
        };
        let last = matches!(item, Item::Ended(_));
        let taken = timeout(UNREAD, items.send(item)).await;
        if last || !matches!(taken, Ok(Ok(()))) {
            return;
        }
    }
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> PollError {
    PollError::Unavailable(FetchError::Failed(error.into()))
}

fn ended(error: tungstenite::Error) -> PollError {
    match error {
        tungstenite::Error::Capacity(_) => {
            PollError::Malformed(format!("more than {MAX_MESSAGE_BYTES} bytes in a message"))
        }
        tungstenite::Error::Protocol(error) => PollError::Malformed(error.to_string()),
        tungstenite::Error::Utf8(error) => PollError::Malformed(error),
        error => failed(error),
    }
}
