//! The simulator's control API, as used by other programs.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use platform_simulator::{Published, Simulator};
use platforms::{Adapter, Direct, Fetch, FetchLimits, PollError, PollLimits};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// The status line and the body.
async fn call(simulator: &Simulator, request: &str, body: &Value) -> (String, String) {
    let mut stream = TcpStream::connect(simulator.addr()).await.unwrap();
    let body = body.to_string();
    let head = format!(
        "{request} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

async fn get(simulator: &Simulator, path: &str) -> Value {
    let url = format!("{}{path}", simulator.base_url()).parse().unwrap();
    let client = Direct::new(None).unwrap();
    let answer = client
        .get(&url, &[], &FetchLimits::default())
        .await
        .unwrap();
    serde_json::from_slice(&answer.body).unwrap()
}

#[tokio::test]
async fn control_api_accepts_posts_and_faults_and_returns_served_times() {
    let simulator = Simulator::start("127.0.0.1:0".parse().unwrap()).unwrap();
    let posts = json!([
        {"platform": "hackernews", "title": "a", "author": "ana"},
        {"platform": "lemmy", "title": "b", "author": "ana", "community": "rust"},
        {"platform": "feed:blog", "title": "c", "author": "ana", "time": "2026-01-02T03:04:05Z"},
    ]);
    let (status, body) = call(&simulator, "POST /control/posts", &posts).await;
    assert!(status.contains(" 200 "), "{status}");
    let published: Vec<Published> = serde_json::from_str(&body).unwrap();
    assert_eq!(get(&simulator, "/control/served").await, json!({}));

    let base = format!("{}/lemmy", simulator.base_url()).parse().unwrap();
    let client = std::sync::Arc::new(Direct::new(None).unwrap());
    let lemmy = platforms::lemmy::Lemmy::new(base, client);
    let limits = PollLimits::default();
    let polled = lemmy.poll("newest", None, &limits).await.unwrap();
    assert_eq!(polled.posts[0].id, published[1].post_id);
    let served = get(&simulator, "/control/served").await;
    assert!(served[&published[1].post_id].as_i64().unwrap() >= polled.posts[0].time.micros());
    assert_eq!(served.as_object().unwrap().len(), 1);
    let requests = get(&simulator, "/control/requests").await;
    assert_eq!(requests, json!({"/lemmy/api/v3/post/list": 2}));

    let fault = json!({"platform": "lemmy", "kind": "retry_after", "value": 5});
    let (status, _) = call(&simulator, "POST /control/faults", &fault).await;
    assert!(status.contains(" 204 "), "{status}");
    let throttled = lemmy.poll("newest", None, &limits).await;
    assert!(matches!(throttled, Err(PollError::Throttled { .. })));

    let delete = format!("DELETE /control/posts/{}", published[1].id);
    assert!(
        call(&simulator, &delete, &json!({}))
            .await
            .0
            .contains(" 204 ")
    );
    assert!(
        call(&simulator, &delete, &json!({}))
            .await
            .0
            .contains(" 404 ")
    );
    let (status, _) = call(
        &simulator,
        "POST /control/posts",
        &json!([{"platform": "x"}]),
    )
    .await;
    assert!(status.contains(" 400 "), "{status}");
    call(&simulator, "POST /control/reset", &json!({})).await;
    assert_eq!(get(&simulator, "/control/served").await, json!({}));
}
