//! Pages of large items: they end early, cost more points, and count until the client has read them.

use std::time::Duration;

use domain::Post;
use serde_json::{Value, json};
use test_support::{eventually, post};
use tokio::{
    io::AsyncWriteExt,
    net::{TcpSocket, TcpStream},
    time::timeout,
};

use crate::{
    app::TestApp,
    client::{Answer, Client},
    scans::record,
};

/// Creates a Manager with 15 Scans of about 500 KB, and returns its key and the path of its Scans.
async fn large_scans(app: &TestApp) -> (String, String) {
    let key = app.owner_key("acme").await;
    let acme = Client::new(&app.base, Some(key.clone()));
    let manager = acme.manager(&acme.namespace().await).await;
    let posts: Vec<Post> = (0..15)
        .map(|n| {
            let mut large = post(&n.to_string(), &format!("title {n}"));
            large.text = Some("x".repeat(500_000));
            large
        })
        .collect();
    record(app, &manager, &posts).await;
    (key, format!("/v1/{manager}/scans"))
}

fn remaining(answer: &Answer) -> i64 {
    answer.number("x-ratelimit-remaining")
}

fn names(page: &Value) -> Vec<String> {
    let scans = page["scans"].as_array().unwrap().iter();
    scans.map(|scan| scan["name"].to_string()).collect()
}

#[tokio::test]
async fn pages_of_large_scans_end_early_and_lose_none() {
    let app = TestApp::start().await;
    let (key, path) = large_scans(&app).await;
    let acme = Client::new(&app.base, Some(key));
    let (managers, _) = path.rsplit_once("/managers/").unwrap();
    let all = format!("{managers}/managers/-/scans");
    for (path, order) in [(&path, ""), (&path, "post.title"), (&all, "")] {
        let (mut token, mut found, mut sizes) = (String::new(), Vec::new(), Vec::new());
        loop {
            let query = [
                ("pageSize", "100"),
                ("orderBy", order),
                ("pageToken", &token),
            ];
            let page = acme.get_with(path, &query).await.body;
            sizes.push(names(&page).len());
            found.extend(names(&page));
            let Some(next) = page["nextPageToken"].as_str() else {
                break;
            };
            token = next.to_owned();
        }
        assert_eq!(sizes, [7, 7, 1], "{order}");
        found.sort();
        found.dedup();
        assert_eq!(found.len(), 15, "{order}");
    }
}

#[tokio::test]
async fn large_page_costs_points_by_its_size() {
    let app = TestApp::start_with(|config| config.gateway.rate_limit_per_minute = 600).await;
    let (_, path) = large_scans(&app).await;
    // Another key, so that no points of this minute come back meanwhile.
    let acme = app.account("acme").await;
    let before = acme.get("/v1/caller").await;
    let page = acme.get_with(&path, &[("pageSize", "2")]).await;
    assert_eq!(page.status, 200, "{}", page.body);
    // One for the request, and ten for a megabyte without its first 100 KB.
    assert_eq!(remaining(&before) - remaining(&page), 1 + 10);
    // A page that costs more than is left is refused; a small one is not.
    let mut refused = page;
    while refused.status == 200 {
        refused = acme.get_with(&path, &[("pageSize", "7")]).await;
    }
    assert_eq!(refused.status, 429, "{}", refused.body);
    assert!(refused.headers.contains_key("retry-after"));
    assert_eq!(acme.get("/v1/caller").await.status, 200);
}

/// Sends a request several times and reads nothing. The operating system keeps the first few responses.
async fn never_read(app: &TestApp, request: &str, times: usize) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let address = app.base.strip_prefix("http://").unwrap().parse().unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    stream
        .write_all(request.repeat(times).as_bytes())
        .await
        .unwrap();
    stream
}

/// Returns true if the request was refused because the account's responses are not read. Until they use up its share,
/// other reads can be the reason of a refusal.
fn is_too_many_bytes(answer: &Answer) -> bool {
    answer.body["message"] == "too many bytes of responses wait to be read: read them first"
}

#[tokio::test]
async fn account_that_does_not_read_its_responses_is_refused_until_it_does() {
    let app = TestApp::start().await;
    let (key, path) = large_scans(&app).await;
    let acme = Client::new(&app.base, Some(key.clone()));
    let request = format!(
        "GET {path}?pageSize=100 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\r\n"
    );
    let mut unread = Vec::new();
    for _ in 0..6 {
        unread.push(never_read(&app, &request, 8).await);
    }
    let mut refused = None;
    eventually("the share of the account is used up", async || {
        refused = Some(acme.get(&path).await).filter(is_too_many_bytes);
        refused.is_some()
    })
    .await;
    let refused = refused.unwrap();
    assert_eq!(refused.status, 429);
    assert_eq!(refused.headers["retry-after"], "1");
    // A preview may read as much.
    let manager = path.trim_end_matches("/scans");
    let instructions = json!({"feeds": ["hackernews:newest"], "require": [["title"]]});
    let preview = json!({"recent": 100, "instructions": instructions});
    let refused = acme.post(&format!("{manager}:preview"), &preview).await;
    assert_eq!(refused.status, 429, "{:#}", refused.body);
    // Other accounts, and short responses of this one, are not affected.
    let other = app.account("other").await;
    let namespace = other.namespace().await;
    assert_eq!(
        other
            .get(&format!("/v1/{namespace}/connections"))
            .await
            .status,
        200
    );
    assert_eq!(acme.get("/v1/caller").await.status, 200);

    drop(unread);
    eventually("the share is returned", async || {
        acme.get(&path).await.status == 200
    })
    .await;
    let preview = acme.post(&format!("{manager}:preview"), &preview).await;
    assert_eq!(preview.status, 200, "{:#}", preview.body);
}

#[tokio::test]
async fn account_that_does_not_read_responses_to_changes_makes_none_until_it_does() {
    let app = TestApp::start().await;
    let (key, path) = large_scans(&app).await;
    let acme = Client::new(&app.base, Some(key.clone()));
    let scan = acme.get_with(&path, &[("pageSize", "1")]).await;
    let scan = format!("/v1/{}", scan.body["scans"][0]["name"].as_str().unwrap());
    let body = json!({"value": true});
    let text = body.to_string();
    let request = format!(
        "PATCH {scan} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nx-test: true\r\n\r\n{text}",
        text.len()
    );
    // Each connection has one response of 500 KB at a time.
    let mut unread = Vec::new();
    for _ in 0..40 {
        unread.push(never_read(&app, &request, 20).await);
    }
    let mut refused = None;
    eventually("the share of the account is used up", async || {
        refused = Some(acme.patch(&scan, &body).await).filter(is_too_many_bytes);
        refused.is_some()
    })
    .await;
    let refused = refused.unwrap();
    assert_eq!(refused.status, 429);
    assert_eq!(refused.headers["retry-after"], "1");
    // The response has no reservation. It is refused at once; a list would wait for five seconds.
    eventually("a response is refused at once", async || {
        let at_once = timeout(Duration::from_secs(5), acme.get(&scan)).await;
        at_once.is_ok_and(|answer| is_too_many_bytes(&answer))
    })
    .await;
    app.account("other").await.namespace().await;

    drop(unread);
    eventually("the share is returned", async || {
        acme.patch(&scan, &body).await.status == 200
    })
    .await;
}
