//! Requests that are never sent by accident.

use reqwest::Method;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::app::TestApp;

const MAX_BODY: usize = 256 * 1024;

#[tokio::test]
async fn malformed_json_is_refused() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_object = r#"{"a":"#.repeat(40_000);
    let bodies: Vec<Vec<u8>> = vec![
        b"".to_vec(),
        b"{".to_vec(),
        b"{}{}".to_vec(),
        b"nickname=x".to_vec(),
        br#"{"nickname": "a", "nickname": "b"}"#.to_vec(),
        br#"{"nickname": 1e999}"#.to_vec(),
        b"{\"nickname\": \"\xff\"}".to_vec(),
        br#"{"nickname": "\ud800"}"#.to_vec(),
        b"{\"nickname\": \"a\nb\"}".to_vec(),
        b"\xef\xbb\xbf{}".to_vec(),
        deep.into_bytes(),
        deep_object.into_bytes(),
    ];
    for body in bodies {
        let shown = String::from_utf8_lossy(&body[..body.len().min(40)]).into_owned();
        let answer = acme.post_text("/v1/namespaces", body).await;
        assert_eq!(answer.status, 400, "{shown}");
        assert_eq!(answer.body.get("details"), None, "{shown}");
    }
    let answer = acme.post_text("/v1/namespaces", "{").await;
    let message = answer.body["message"].as_str().unwrap();
    assert_eq!(message, message.to_lowercase());
    for body in ["[]", "7", "null", r#""x""#] {
        let answer = acme.post_text("/v1/namespaces", body).await;
        assert_eq!(answer.details(), [("body", "invalid_type")], "{body}");
    }
}

#[tokio::test]
async fn empty_field_names_are_shown_as_quotes() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let body = json!({"nickname": "x", "": 1});
    let answer = acme.post("/v1/namespaces", &body).await;
    assert_eq!(answer.details(), [(r#""""#, "unknown_field")]);
    let message = r#"invalid request: "": unknown field"#;
    assert_eq!(answer.body["message"], message);
    let answer = acme.get("/v1/namespaces?=x").await;
    assert_eq!(answer.details(), [(r#""""#, "unknown_field")]);
}

#[tokio::test]
async fn oversized_body_is_refused() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let fitting = format!(r#"{{"nickname": "x"{}}}"#, " ".repeat(MAX_BODY - 17));
    assert_eq!(fitting.len(), MAX_BODY);
    let larger = format!("{fitting} ");
    assert_eq!(acme.post_text("/v1/namespaces", fitting).await.status, 201);
    // The size is checked before the content type and the JSON.
    for content_type in ["application/json", "text/plain"] {
        let body = larger.clone();
        let answer = acme
            .send(Method::POST, "/v1/namespaces", |request| {
                request.header("content-type", content_type).body(body)
            })
            .await;
        assert_eq!(answer.status, 413);
    }
    // Without a declared length.
    let mut raw = raw_post(&app, "transfer-encoding: chunked").await;
    for _ in 0..40 {
        let chunk = format!("2000\r\n{}\r\n", " ".repeat(0x2000));
        raw.write_all(chunk.as_bytes()).await.unwrap();
    }
    assert_eq!(read_answer(&mut raw).await.0, 413);
}

#[tokio::test]
async fn body_without_a_json_content_type_is_refused() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let body = json!({"nickname": "x"}).to_string();
    for (content_type, status) in [
        (Some("application/json"), 201),
        (Some("application/json; charset=utf-8"), 201),
        (Some("Application/JSON;charset=UTF-8"), 201),
        (Some("application/json; charset=latin1"), 415),
        (Some("text/plain"), 415),
        (Some("application/x-www-form-urlencoded"), 415),
        (Some("nonsense"), 415),
        (None, 415),
    ] {
        let answer = acme
            .send(Method::POST, "/v1/namespaces", |request| {
                let request = request.body(body.clone());
                match content_type {
                    Some(value) => request.header("content-type", value),
                    None => request,
                }
            })
            .await;
        assert_eq!(answer.status, status, "{content_type:?}");
    }
}

#[tokio::test]
async fn many_invalid_fields_get_a_small_response() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let fields: Vec<String> = (0..20_000).map(|n| format!(r#""x{n}":1"#)).collect();
    let body = format!("{{{}}}", fields.join(","));
    let answer = acme.post_text("/v1/namespaces", body).await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.details().len(), 1_000);
}

#[tokio::test]
async fn unusual_accept_encoding_is_accepted() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    for coding in [
        "gzip",
        "br",
        "identity;q=0",
        "*;q=0",
        "gzip;q=0",
        "nonsense",
    ] {
        let answer = acme
            .send(Method::GET, "/v1/namespaces", |request| {
                request.header("accept-encoding", coding)
            })
            .await;
        assert_eq!(answer.status, 200, "{coding}");
    }
}

/// Requests that the HTTP layer refuses with 400, before our code sees them.
pub(crate) const MALFORMED: [&str; 26] = [
    "G@T / HTTP/1.1\r\n\r\n",
    "GET  HTTP/1.1\r\n\r\n",
    "nonsense\r\n\r\n",
    "\u{fc}\u{fc}\r\n\r\n",
    "GET / HTTP/3.7\r\nhost: x\r\n\r\n",
    "GET / http/1.1\r\nhost: x\r\n\r\n",
    "GET / and more HTTP/1.1\r\nhost: x\r\n\r\n",
    "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: x\r\n\r\n",
    "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
    "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: +5\r\n\r\n",
    "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5 5\r\n\r\n",
    "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999999999999999\r\n\r\n",
    "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
    "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: x\r\n\r\n",
    "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip\r\n\r\n",
    "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked, x\r\n\r\n",
    "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: identity, chunked, gzip\r\n\r\n",
    "GET / HTTP/1.1\r\nbad header: x\r\nb ad: y\r\n\r\n",
    "GET / HTTP/1.1\r\nhost: x\r\nno colon\r\n\r\n",
    "GET / HTTP/1.1\r\nhost: x\r\nx-a: b\r\n folded\r\n\r\n",
    "GET / HTTP/1.1\r\nhost: x\r\n: 1\r\n\r\n",
    "GET / HTTP/1.1\r\nhost: x\r\n\u{fc}: 1\r\n\r\n",
    "GET / HTTP/1.1\r\nhost: x\r\nx-a: a\0b\r\n\r\n",
    "GET / HTTP/1.1\r\nhost: x\r\nx-a: a\rb\r\n\r\n",
    "GET / HTTP/1.1\r\nhost: x\r\nx-a: \x07\r\n\r\n",
    "GET / HTTP/1.1\r\nhost: x\r\nx-a: \x7f\r\n\r\n",
];

/// Requests that the HTTP layer refuses get the error body too.
#[tokio::test]
async fn malformed_http_gets_the_error_body() {
    let app = TestApp::start().await;
    let huge = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(300_000));
    // Refused before it is whole.
    let unfinished = format!("GET / HTTP/1.1\r\nx: {}", "x".repeat(16_384));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(120));
    let pipelined = "\r\n".repeat(10_000);
    let large = [&huge, &unfinished, &many, &pipelined].map(|request| (request.as_str(), 431));
    let malformed = MALFORMED.map(|request| (request, 400));
    for (request, expected) in malformed.into_iter().chain(large) {
        let mut stream = app.connect().await;
        // The server may answer and close before it has read everything.
        let _ = stream.write_all(request.as_bytes()).await;
        let (status, head, body) = read_answer(&mut stream).await;
        let shown = &request[..request.len().min(60)];
        assert_eq!(status, expected, "{shown}");
        assert!(head.contains("application/json"), "{shown}: {head}");
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["code"], expected, "{shown}");
        assert!(body["message"].is_string(), "{shown}");
    }
}

/// Otherwise a client that keeps connections sends its next request on one that is about to close.
#[tokio::test]
async fn refused_head_on_a_kept_connection_announces_its_end() {
    let app = TestApp::start().await;
    let large = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(60_000));
    for (request, expected) in [(large.as_str(), 431), (MALFORMED[0], 400)] {
        let mut stream = app.connect().await;
        let first = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
        stream.write_all(first).await.unwrap();
        let (_, head, _) = read_answer(&mut stream).await;
        assert!(!head.contains("connection: close"), "{head}");
        let _ = stream.write_all(request.as_bytes()).await;
        let (status, head, _) = read_answer(&mut stream).await;
        assert_eq!(status, expected);
        assert!(head.contains("connection: close"), "{head}");
    }
}

#[tokio::test]
async fn unusual_paths_are_harmless() {
    let app = TestApp::start().await;
    for target in [
        "/v1/namespaces/%",
        "/v1/namespaces/%00",
        "/v1/namespaces/%ff%fe",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/../../etc/passwd",
        "//",
        "/v1/namespaces?%",
        "/v1/namespaces/\u{fc}",
        "*",
        "http://example.com/v1/namespaces",
        "/v1/namespaces/x:apply",
        "/v1/namespaces#fragment",
    ] {
        let mut stream = app.connect().await;
        let request = format!("GET {target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let (status, _, body) = read_answer(&mut stream).await;
        assert!((400..500).contains(&status), "{target}: {status}");
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["code"], status, "{target}");
    }
}

#[tokio::test]
async fn malformed_chunks_are_answered_at_any_stage_of_the_request() {
    for size in ["zz", "ffffffffffffffffff", "", "-5"] {
        // The key is not cached yet, so the handler is waiting for the database when the chunk arrives.
        let app = TestApp::start().await;
        let key = app.owner_key("raw").await;
        let mut stream = app.connect().await;
        let request = format!(
            "POST /v1/namespaces HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n{size}\r\n{{\"ni\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let (status, head, body) = read_answer(&mut stream).await;
        assert_eq!(status, 400, "{size}: {body}");
        assert!(head.contains("connection: close"), "{head}");
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["code"], 400);
        assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn refused_client_that_still_sends_can_read_the_error() {
    let app = TestApp::start().await;
    let mut stream = app.connect().await;
    stream.write_all(b"NO HTTP\r\n\r\n").await.unwrap();
    assert_eq!(read_answer(&mut stream).await.0, 400);
    // Unread bytes would make the system answer with a reset.
    for _ in 0..64 {
        stream.write_all(&[b'x'; 16_384]).await.unwrap();
    }
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
    stream.shutdown().await.unwrap();
}

/// Opens a connection and sends the head of a POST with a valid key.
pub(crate) async fn raw_post(app: &TestApp, header: &str) -> TcpStream {
    let key = app.owner_key("raw").await;
    let mut stream = app.connect().await;
    let head = format!(
        "POST /v1/namespaces HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\n{header}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

/// Reads the next response: status, head and body.
pub(crate) async fn read_answer(stream: &mut TcpStream) -> (u16, String, String) {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4_096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .and_then(|length| length.parse::<usize>().ok());
            if length.is_some_and(|length| body.len() >= length) {
                let status = head.split(' ').nth(1).unwrap().parse().unwrap();
                return (status, head, body.to_owned());
            }
        }
        let read = stream.read(&mut buffer).await.unwrap();
        assert_ne!(read, 0, "closed after {text:?}");
        bytes.extend_from_slice(&buffer[..read]);
    }
}
