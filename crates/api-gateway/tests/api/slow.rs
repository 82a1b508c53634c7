//! Clients that are slow at one stage of a request or response.

use std::time::{Duration, Instant};

use test_support::{TIMEOUT, eventually};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};

use crate::{
    app::TestApp,
    client::Client,
    hostile::{raw_post, read_answer},
};

const BOUND: Duration = Duration::from_secs(1);

async fn impatient() -> TestApp {
    TestApp::start_with(|config| {
        config.gateway.head_timeout = BOUND;
        config.gateway.body_timeout = BOUND;
        config.gateway.keep_alive = BOUND;
    })
    .await
}

/// Sends `text` byte by byte, and returns the JSON response that arrives before its end.
async fn drip(stream: &mut TcpStream, text: &str) -> String {
    let (mut read, mut write) = stream.split();
    let dripping = async {
        for byte in text.as_bytes() {
            if write.write_all(&[*byte]).await.is_err() {
                std::future::pending::<()>().await;
            }
            sleep(Duration::from_millis(100)).await;
        }
    };
    // The server reads for a while after its response, so the end of the connection proves nothing.
    let mut answer = Vec::new();
    let answering =
        async { while !answer.ends_with(b"}") && read.read_buf(&mut answer).await.unwrap() > 0 {} };
    tokio::select! {
        () = dripping => panic!("it may drip for ever"),
        () = answering => {}
    }
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn slow_head_is_cut_off_at_its_time_limit() {
    let app = impatient().await;
    let mut stream = app.connect().await;
    let head = format!("GET /v1/namespaces HTTP/1.1\r\nhost: {}", "x".repeat(200));
    let answer = drip(&mut stream, &head).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(
        answer.ends_with(r#"{"code":408,"message":"request timeout"}"#),
        "{answer}"
    );
}

#[tokio::test]
async fn slow_body_is_cut_off_at_its_time_limit() {
    let app = impatient().await;
    for header in ["content-length: 5000", "transfer-encoding: chunked"] {
        let mut stream = raw_post(&app, header).await;
        let answer = drip(&mut stream, &"1\r\n \r\n".repeat(40)).await;
        assert!(answer.starts_with("HTTP/1.1 408 "), "{header}: {answer}");
    }
}

#[tokio::test]
async fn idle_connection_is_closed() {
    let app = impatient().await;
    let mut stream = app.connect().await;
    let begin = Instant::now();
    stream
        .write_all(b"GET /openapi.yaml HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(read_answer(&mut stream).await.0, 200);
    let rest = timeout(TIMEOUT, stream.read_to_end(&mut Vec::new())).await;
    assert_eq!(rest.unwrap().unwrap(), 0);
    assert!(begin.elapsed() > BOUND / 2);
}

/// Opens a connection and makes a request. Returns `None` if the connection is closed without a response.
async fn served(app: &TestApp) -> Option<TcpStream> {
    let mut stream = app.connect().await;
    let request = b"GET /v1/namespaces HTTP/1.1\r\nhost: x\r\n\r\n";
    stream.write_all(request).await.ok()?;
    if stream.peek(&mut [0]).await.ok()? == 0 {
        return None;
    }
    assert_eq!(read_answer(&mut stream).await.0, 401);
    Some(stream)
}

#[tokio::test]
async fn address_has_a_limited_number_of_open_connections() {
    const LIMIT: usize = 256;
    let keep_alive = Duration::from_hours(1);
    let app = TestApp::start_with(|config| config.gateway.keep_alive = keep_alive).await;
    let mut open = Vec::new();
    for _ in 0..LIMIT {
        open.push(served(&app).await.expect("a response"));
    }
    assert!(served(&app).await.is_none());
    drop(open);
    eventually("connections are served again", async || {
        served(&app).await.is_some()
    })
    .await;

    let app = TestApp::start_with(|config| {
        config.gateway.keep_alive = keep_alive;
        config.gateway.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    let mut open = Vec::new();
    for _ in 0..=LIMIT {
        open.push(served(&app).await.expect("a response"));
    }
}

#[tokio::test]
async fn client_that_does_not_read_is_disconnected() {
    let app = impatient().await;
    let mut stream = app.connect().await;
    let wanted = 2_000;
    let requests = "GET /openapi.yaml HTTP/1.1\r\nhost: x\r\n\r\n".repeat(wanted);
    // More responses than the buffers in between can hold, so that requests stall behind them.
    let _ = timeout(5 * BOUND, stream.write_all(requests.as_bytes())).await;
    let disconnected = async {
        while stream.write_all(b"\r\n").await.is_ok() {
            sleep(BOUND / 10).await;
        }
    };
    timeout(TIMEOUT, disconnected)
        .await
        .expect("it is disconnected");
    let mut answers = Vec::new();
    // The operating system chooses whether it ends with a reset.
    let _ = timeout(TIMEOUT, stream.read_to_end(&mut answers))
        .await
        .unwrap();
    let whole = String::from_utf8_lossy(&answers)
        .matches("openapi: 3.0.3")
        .count();
    assert!(whole < wanted, "{whole} answers");
}

#[tokio::test]
async fn excess_of_a_body_is_not_a_second_request() {
    let app = impatient().await;
    let mut stream = raw_post(&app, "content-length: 16").await;
    let body = r#"{"nickname":"x"}"#;
    assert_eq!(body.len(), 16);
    stream
        .write_all(format!("{body}GARBAGE\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).await.unwrap();
    assert!(answers.starts_with("HTTP/1.1 201 "), "{answers}");
    assert!(answers.contains("}HTTP/1.1 400 "), "{answers}");
    // A body that is shorter than declared never becomes complete.
    let mut stream = raw_post(&app, "content-length: 17").await;
    stream.write_all(body.as_bytes()).await.unwrap();
    assert_eq!(read_answer(&mut stream).await.0, 408);
}

#[tokio::test]
async fn account_with_many_unfinished_bodies_is_refused_more_of_them() {
    let app = TestApp::start_with(|config| {
        config.gateway.body_timeout = Duration::from_mins(5);
    })
    .await;
    let raw = app.account("raw").await;
    let mut unfinished = Vec::new();
    for _ in 0..16 {
        let mut stream = raw_post(&app, "content-length: 200000").await;
        stream.write_all(&[b' '; 40_000]).await.unwrap();
        unfinished.push(stream);
    }
    // Malformed, if it is read at all.
    let large = async |client: &Client| {
        let answer = client.post_text("/v1/namespaces", " ".repeat(50_000));
        answer.await.status
    };
    eventually("the share of the account is used up", async || {
        large(&raw).await == 429
    })
    .await;
    // Other accounts, and short bodies of this one, are not affected.
    assert_eq!(large(&app.account("other").await).await, 400);
    raw.namespace().await;
    drop(unfinished);
    eventually("the share is returned", async || large(&raw).await == 400).await;
}
