//! Clients that misuse HTTP/2, written frame by frame.

use std::{sync::Arc, time::Duration};

use runtime::Config;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use test_support::{TIMEOUT, eventually};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::{app::TestApp, tls::Files};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GO_AWAY: u8 = 7;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;

/// The setting of the bytes that a client takes of each response before it makes room for more.
const INITIAL_WINDOW_SIZE: u16 = 4;

/// `accept-encoding: gzip, deflate`, which counts as 60 bytes, as an index of HPACK's table.
const INDEXED: u8 = 0x80 | 16;

#[derive(Debug)]
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

struct RawClient(TlsStream<TcpStream>);

impl RawClient {
    /// Connects and sends the preface and empty settings.
    async fn connect(app: &TestApp, files: &Files) -> Self {
        Self::connect_with(app, files, &[]).await
    }

    /// Connects and sends the preface and `settings`.
    async fn connect_with(app: &TestApp, files: &Files, settings: &[u8]) -> Self {
        runtime::crypto::install();
        let mut roots = RootCertStore::empty();
        let certificate = CertificateDer::from_pem_file(files.at("tls.crt")).unwrap();
        roots.add(certificate).unwrap();
        let mut config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let stream = app.connect().await;
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        let mut client = Self(connector.connect(name, stream).await.unwrap());
        client.0.write_all(PREFACE).await.unwrap();
        client.send(SETTINGS, 0, 0, settings).await;
        client
    }

    /// Sends a frame, as far as the server still reads.
    async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let mut frame = length[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        let _ = self.0.write_all(&frame).await;
    }

    /// Returns the next frame; `None` if the server has closed the connection.
    async fn next(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        let read = timeout(TIMEOUT, self.0.read_exact(&mut head)).await;
        read.expect("a frame or the end").ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.0.read_exact(&mut payload).await.ok()?;
        Some(Frame {
            kind: head[3],
            flags: head[4],
            stream: u32::from_be_bytes([head[5], head[6], head[7], head[8]]),
            payload,
        })
    }

    /// Returns the next frame that `wanted` returns true for.
    async fn find(&mut self, wanted: impl Fn(&Frame) -> bool) -> Frame {
        loop {
            let frame = self.next().await.expect("the connection is open");
            if wanted(&frame) {
                return frame;
            }
        }
    }

    /// Reads until the server closes the connection.
    async fn end(&mut self) {
        while self.next().await.is_some() {}
    }
}

/// Block of headers of a request for `/v1/namespaces`.
fn request(method: u8, key: Option<&str>) -> Vec<u8> {
    let mut block = vec![0x80 | method, 0x80 | 7];
    let mut literal = |name: &[u8], value: &str| {
        block.extend(name);
        block.push(u8::try_from(value.len()).unwrap());
        block.extend(value.as_bytes());
    };
    literal(&[0x04], "/v1/namespaces");
    literal(&[0x01], "127.0.0.1");
    literal(&[0x0f, 31 - 15], "application/json");
    if let Some(key) = key {
        literal(&[0x0f, 23 - 15], &format!("Bearer {key}"));
    }
    block
}

const GET: u8 = 2;
const POST: u8 = 3;

#[tokio::test]
async fn http_2_limits_requests_in_progress_on_a_connection() {
    let (files, _) = Files::new();
    let app = files.gateway().await;
    let key = app.owner_key("acme").await;
    let mut client = RawClient::connect(&app, &files).await;
    let settings = client.find(|frame| frame.kind == SETTINGS).await.payload;
    client.send(SETTINGS, ACK, 0, &[]).await;
    let announced = |id: u16, value: u32| {
        let mut settings = settings.chunks(6);
        let expected = [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
        settings.any(|one| one == expected)
    };
    assert!(announced(3, 100), "MAX_CONCURRENT_STREAMS: {settings:?}");
    assert!(announced(6, 16_384), "MAX_HEADER_LIST_SIZE: {settings:?}");
    // Requests whose bodies do not arrive.
    for number in 0..150 {
        let block = request(POST, Some(key.as_str()));
        client
            .send(HEADERS, END_HEADERS, 2 * number + 1, &block)
            .await;
    }
    let refused = client.find(|frame| frame.kind == RESET).await;
    assert!(refused.stream >= 201, "{refused:?}");
    assert_eq!(refused.payload, 7_u32.to_be_bytes(), "REFUSED_STREAM");
}

#[tokio::test]
async fn http_2_refuses_large_heads_and_endless_ones() {
    let (files, _) = Files::new();
    let app = files.gateway().await;
    let mut client = RawClient::connect(&app, &files).await;
    let mut block = request(GET, None);
    block.extend([INDEXED; 400]);
    let flags = END_HEADERS | END_STREAM;
    client.send(HEADERS, flags, 1, &block).await;
    let refused = client.find(|frame| frame.stream == 1).await;
    // Without the body of our handlers, which did not see it.
    assert_eq!((refused.kind, refused.flags), (HEADERS, flags));
    assert!(
        refused
            .payload
            .windows(2)
            .any(|bytes| bytes[0] == 0x08 || bytes[0] == 0x48)
    );
    // The connection goes on.
    client.send(HEADERS, flags, 3, &request(GET, None)).await;
    let is_body = |frame: &Frame| frame.kind == DATA && frame.stream == 3;
    let body = client.find(is_body).await.payload;
    assert!(String::from_utf8_lossy(&body).contains(r#""code":401"#));

    client
        .send(HEADERS, END_STREAM, 5, &request(GET, None))
        .await;
    for _ in 0..64 {
        client.send(CONTINUATION, 0, 5, &[INDEXED; 16_384]).await;
    }
    client.find(|frame| frame.kind == GO_AWAY).await;
}

#[tokio::test]
async fn http_2_head_must_be_whole_in_time() {
    let (files, _) = Files::new();
    let app = files.gateway().await;
    let without_a_request = async {
        let mut client = RawClient::connect(&app, &files).await;
        client.end().await;
    };
    let after_a_request = async {
        let mut client = RawClient::connect(&app, &files).await;
        let flags = END_HEADERS | END_STREAM;
        client.send(HEADERS, flags, 1, &request(GET, None)).await;
        client.find(|frame| frame.kind == DATA).await;
        client
            .send(HEADERS, END_STREAM, 3, &request(GET, None))
            .await;
        client.end().await;
    };
    tokio::join!(without_a_request, after_a_request);
}

#[tokio::test]
async fn account_with_many_unfinished_bodies_over_http_2_is_refused_more_of_them() {
    let (files, _) = Files::new();
    let change = |config: &mut Config| {
        // The clients answer no pings.
        config.gateway.head_timeout = Duration::from_mins(1);
        config.gateway.body_timeout = Duration::from_mins(5);
    };
    let app = files.gateway_with(change).await;
    let keys = [app.owner_key("acme").await, app.owner_key("other").await];
    let body = [b' '; 2_000];
    let mut unfinished = Vec::new();
    for _ in 0..2 {
        let mut client = RawClient::connect(&app, &files).await;
        for stream in (1..128).step_by(2) {
            let head = request(POST, Some(&keys[0]));
            client.send(HEADERS, END_HEADERS, stream, &head).await;
            client.send(DATA, 0, stream, &body).await;
        }
        unfinished.push(client);
    }
    // Malformed, if it is read at all.
    let code = async |key: &str| {
        let mut client = RawClient::connect(&app, &files).await;
        let head = request(POST, Some(key));
        client.send(HEADERS, END_HEADERS, 1, &head).await;
        client.send(DATA, END_STREAM, 1, &body).await;
        let answer = client.find(|frame| frame.kind == DATA).await.payload;
        let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
        answer["code"].as_u64()
    };
    eventually("the share of the account is used up", async || {
        code(&keys[0]).await == Some(429)
    })
    .await;
    assert_eq!(code(&keys[1]).await, Some(400));
    drop(unfinished);
    eventually("the share is returned", async || {
        code(&keys[0]).await == Some(400)
    })
    .await;
}

#[tokio::test]
async fn http_2_client_that_leaves_a_response_unread_is_disconnected() {
    let (files, _) = Files::new();
    let keep_alive = Duration::from_secs(1);
    let change = |config: &mut Config| config.gateway.keep_alive = keep_alive;
    let app = files.gateway_with(change).await;
    // With room for one byte, the body ends, and most of it stays in the buffers of the stream.
    for room in [0_u32, 1] {
        let settings = [&INITIAL_WINDOW_SIZE.to_be_bytes()[..], &room.to_be_bytes()].concat();
        let mut client = RawClient::connect_with(&app, &files, &settings).await;
        let flags = END_HEADERS | END_STREAM;
        client.send(HEADERS, flags, 1, &request(GET, None)).await;
        client.find(|frame| frame.kind == HEADERS).await;
        // It answers pings, and so would stay for ever.
        let answering = async {
            while let Some(frame) = client.next().await {
                if frame.kind == PING && frame.flags != ACK {
                    client.send(PING, ACK, 0, &frame.payload).await;
                }
            }
        };
        let ended = timeout(TIMEOUT, answering).await;
        ended.expect("it is disconnected");
    }
}

#[tokio::test]
async fn idle_http_2_connection_is_told_to_end_at_the_stop() {
    let (files, _) = Files::new();
    let mut app = files.gateway().await;
    let mut client = RawClient::connect(&app, &files).await;
    let flags = END_HEADERS | END_STREAM;
    client.send(HEADERS, flags, 1, &request(GET, None)).await;
    client.find(|frame| frame.kind == DATA).await;
    app.stop();
    client.find(|frame| frame.kind == GO_AWAY).await;
    // A graceful end waits for the answer to a ping.
    let ping = client.find(|frame| frame.kind == PING).await;
    client.send(PING, ACK, 0, &ping.payload).await;
    client.end().await;
    app.stopped().await.unwrap();
}
