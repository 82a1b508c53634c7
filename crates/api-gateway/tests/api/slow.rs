//! Clients that take their time, with each thing that a client can take its time with.

use std::time::{Duration, Instant};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};

use crate::{
    app::TestApp,
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

async fn connect(app: &TestApp) -> TcpStream {
    TcpStream::connect(app.base.strip_prefix("http://").unwrap())
        .await
        .unwrap()
}

/// Sends a byte of `text` now and then, until the other side ends it.
async fn drip(stream: &mut TcpStream, text: &str) {
    for byte in text.as_bytes() {
        if stream.write_all(&[*byte]).await.is_err() {
            return;
        }
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn a_head_has_its_time_however_it_drips() {
    let app = impatient().await;
    let mut stream = connect(&app).await;
    let begin = Instant::now();
    let head = format!("GET /v1/namespaces HTTP/1.1\r\nhost: {}", "x".repeat(200));
    let (mut read, mut write) = stream.split();
    let dripping = async {
        for byte in head.as_bytes() {
            if write.write_all(&[*byte]).await.is_err() {
                break;
            }
            sleep(Duration::from_millis(100)).await;
        }
    };
    let mut answer = Vec::new();
    tokio::select! {
        () = dripping => panic!("it may drip for ever"),
        read = read.read_to_end(&mut answer) => { read.unwrap(); }
    }
    assert!(begin.elapsed() < 5 * BOUND, "{:?}", begin.elapsed());
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(
        answer.ends_with(r#"{"code":408,"message":"request timeout"}"#),
        "{answer}"
    );
}

#[tokio::test]
async fn a_body_has_its_time_however_it_drips() {
    let app = impatient().await;
    for header in ["content-length: 5000", "transfer-encoding: chunked"] {
        let mut stream = raw_post(&app, header).await;
        let begin = Instant::now();
        let text = "1\r\n \r\n".repeat(5);
        timeout(4 * BOUND, drip(&mut stream, &text)).await.unwrap();
        let (status, _, body) = read_answer(&mut stream).await;
        assert_eq!(status, 408, "{header}: {body}");
        assert!(begin.elapsed() < 6 * BOUND, "{header}");
    }
}

#[tokio::test]
async fn a_connection_without_requests_is_closed() {
    let app = impatient().await;
    let mut stream = connect(&app).await;
    stream
        .write_all(b"GET /openapi.yaml HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    assert_eq!(read_answer(&mut stream).await.0, 200);
    let begin = Instant::now();
    let rest = timeout(5 * BOUND, stream.read_to_end(&mut Vec::new())).await;
    assert_eq!(rest.unwrap().unwrap(), 0);
    assert!(begin.elapsed() > BOUND / 2);
}

#[tokio::test]
async fn who_does_not_read_is_given_up() {
    let app = impatient().await;
    let mut stream = connect(&app).await;
    let wanted = 2_000;
    let requests = "GET /openapi.yaml HTTP/1.1\r\nhost: x\r\n\r\n".repeat(wanted);
    // More answers than the buffers in between hold; requests stall behind them.
    let _ = timeout(5 * BOUND, stream.write_all(requests.as_bytes())).await;
    sleep(4 * BOUND).await;
    let mut answers = Vec::new();
    // Whether it ends with a reset is the system's choice.
    let _ = timeout(20 * BOUND, stream.read_to_end(&mut answers))
        .await
        .unwrap();
    let whole = String::from_utf8_lossy(&answers)
        .matches("openapi: 3.0.3")
        .count();
    assert!(whole < wanted, "{whole} answers");
}

#[tokio::test]
async fn a_body_that_is_longer_than_it_says_is_no_request_of_its_own() {
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
    // And one that is shorter never becomes whole.
    let mut stream = raw_post(&app, "content-length: 17").await;
    stream.write_all(body.as_bytes()).await.unwrap();
    assert_eq!(read_answer(&mut stream).await.0, 408);
}
