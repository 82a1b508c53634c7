//! Requests that would cost more than they weigh.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;
use test_support::{eventually, post};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{app::TestApp, scans::record};

/// For a request whose cost does not depend on what is in it, on a machine that is busy.
const SOON: Duration = Duration::from_secs(5);

#[tokio::test]
async fn filters_cost_no_more_than_their_length() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let manager = acme.manager(&namespace).await;
    let path = format!("/v1/{manager}/scans");
    let comparison = r#"post.text : "a" OR "#;
    let long = [
        "(".repeat(2_048),
        "(".repeat(1_000) + &")".repeat(1_000),
        "NOT ".repeat(512),
        "-".repeat(2_048),
        "\"".repeat(2_048),
        format!("post.text : \"{}\"", "\\".repeat(2_031)),
        format!("post.text : \"{}", "\\\"".repeat(1_000)),
        "a.".repeat(1_024),
        " ".repeat(2_000) + "x",
        "createTime > ".repeat(150),
        comparison.repeat(100) + "value = true",
        comparison.repeat(51) + "value = true",
        "x".repeat(60_000),
        "9".repeat(2_000),
        format!("match.score > {}", "9".repeat(2_000)),
    ];
    for filter in long {
        let begin = Instant::now();
        // Names what fails, and is not larger for it.
        let answer = acme.get_with(&path, &[("filter", &filter)]).await;
        let shown = &filter[..filter.len().min(40)];
        assert!(
            matches!(answer.status, 400 | 431),
            "{shown}: {}",
            answer.status
        );
        assert!(answer.body.to_string().len() < 1_000, "{shown}");
        assert!(begin.elapsed() < SOON, "{shown}: {:?}", begin.elapsed());
    }
}

/// In SQL too: what is searched for is text, with no wildcards to go back and forth by.
#[tokio::test]
async fn the_dearest_filter_over_long_texts_is_answered_soon() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let manager = acme.manager(&namespace).await;
    let posts: Vec<_> = (0..50)
        .map(|n| {
            let mut one = post(&format!("p{n}"), "title");
            one.text = Some("a".repeat(20_000));
            one
        })
        .collect();
    record(&app, &manager, &posts).await;
    let path = format!("/v1/{manager}/scans");
    for word in [
        "%a".repeat(15) + "%b",
        "_".repeat(30),
        "a".repeat(29) + "b",
        "\\\\%".repeat(9),
    ] {
        let comparison = format!(r#"post.text : "{word}""#);
        let filter = vec![comparison.as_str(); 40].join(" OR ");
        let begin = Instant::now();
        let answer = acme.get_with(&path, &[("filter", &filter)]).await;
        assert_eq!(
            (answer.status, &answer.body),
            (200, &json!({"scans": []})),
            "{word}"
        );
        assert!(begin.elapsed() < SOON, "{word}: {:?}", begin.elapsed());
    }
}

#[tokio::test]
async fn packed_bodies_are_not_unpacked() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    for coding in [
        "gzip",
        "br",
        "deflate",
        "zstd",
        "gzip, gzip",
        "identity, gzip",
        "nonsense",
    ] {
        let answer = acme
            .send(Method::POST, "/v1/namespaces", |request| {
                request
                    .header("content-encoding", coding)
                    .header("content-type", "application/json")
                    .body(vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0])
            })
            .await;
        assert_eq!(answer.status, 415, "{coding}");
    }
}

/// Two hundred connections that drip their heads, and a hundred their bodies.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dripping_clients_keep_nobody_from_being_served() {
    let bound = Duration::from_secs(2);
    let app = TestApp::start_with(|config| {
        config.gateway.head_timeout = bound;
        config.gateway.body_timeout = bound;
        config.gateway.keep_alive = bound;
    })
    .await;
    let key = domain::key::ApiKey::generate();
    app.store_key("acme", &key, domain::key::Role::Owner, None, None)
        .await;
    let host = app.base.strip_prefix("http://").unwrap().to_owned();
    let client = crate::client::Client::new(&app.base, Some(key.expose()));
    assert_eq!(client.get("/v1/namespaces").await.status, 200);

    let mut dripping = Vec::new();
    for n in 0..300 {
        let (host, key) = (host.clone(), key.expose());
        dripping.push(tokio::spawn(async move {
            let mut stream = TcpStream::connect(&host).await.unwrap();
            if n % 3 == 0 {
                let head = format!(
                    "POST /v1/namespaces HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
                     content-type: application/json\r\ncontent-length: 9000\r\n\r\n"
                );
                stream.write_all(head.as_bytes()).await.unwrap();
            } else {
                stream.write_all(b"GET / HTTP/1.1\r\nx: ").await.unwrap();
            }
            let (mut read, mut write) = stream.split();
            let drip = async {
                loop {
                    tokio::time::sleep(Duration::from_millis(300)).await;
                    if write.write_all(b" ").await.is_err() {
                        std::future::pending::<()>().await;
                    }
                }
            };
            let mut answer = Vec::new();
            tokio::select! {
                () = drip => {}
                // A reset ends it as well.
                _ = read.read_to_end(&mut answer) => {}
            }
        }));
    }
    let mut served = 0;
    let begin = Instant::now();
    while dripping.iter().any(|one| !one.is_finished()) {
        let begun = Instant::now();
        assert_eq!(client.get("/v1/namespaces").await.status, 200);
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
        served += 1;
        assert!(begin.elapsed() < 20 * bound, "they are not cut off");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(served > 10, "{served}");
    eventually("all is as before", SOON, async || {
        client.get("/v1/namespaces").await.status == 200
    })
    .await;
}
