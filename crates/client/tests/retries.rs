//! Retries, against a server that fails first: which requests are retried, and which are not.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};

use client::{Change, Client, Error};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

/// Answers the requests in turn, one per connection, and records their heads.
async fn server(answers: Vec<String>) -> (Client, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&heads);
    tokio::spawn(async move {
        for answer in answers {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                let mut some = [0; 4_096];
                let read = socket.read(&mut some).await.unwrap();
                head.extend_from_slice(&some[..read]);
            }
            seen.lock()
                .unwrap()
                .push(String::from_utf8_lossy(&head).to_lowercase());
            socket.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    let client = Client::new(base.parse().unwrap(), "esk_hush".into()).unwrap();
    (client, heads)
}

fn answer(status: &str, headers: &str, body: &Value) -> String {
    let body = body.to_string();
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nx-request-id: r-1\r\n{headers}\
         content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

fn busy() -> String {
    let body = json!({"code": 503, "message": "service temporarily unavailable"});
    answer("503 Service Unavailable", "", &body)
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let start = format!("{name}: ");
    head.lines()
        .find_map(|line| line.strip_prefix(start.as_str()))
}

#[tokio::test]
async fn creates_are_retried_with_one_idempotency_key() {
    let made = answer("201 Created", "", &json!({"name": "namespaces/x"}));
    // The third response is lost.
    let (client, heads) = server(vec![busy(), String::new(), made]).await;
    let namespace: Value = client
        .create("namespaces", &json!({"nickname": "x"}))
        .await
        .unwrap();
    assert_eq!(namespace["name"], "namespaces/x");
    let heads = heads.lock().unwrap();
    let keys: Vec<_> = heads
        .iter()
        .map(|head| header(head, "idempotency-key"))
        .collect();
    assert_eq!(keys.len(), 3);
    assert!(
        keys[0].is_some() && keys.iter().all(|key| key == &keys[0]),
        "{keys:?}"
    );
    assert!(
        heads
            .iter()
            .all(|head| header(head, "authorization") == Some("bearer esk_hush"))
    );
}

#[tokio::test]
async fn previews_wait_for_the_rate_limit_and_other_actions_do_not() {
    let limited = || {
        let body = json!({"code": 429, "message": "rate limit exceeded"});
        answer("429 Too Many Requests", "retry-after: 0\r\n", &body)
    };
    let tried = answer("200 OK", "", &json!({"results": []}));
    let (client, heads) = server(vec![limited(), tried, limited()]).await;
    let name = "namespaces/x/managers/y";
    let body = json!({"recent": 1});
    let tried: Value = client.act(name, "preview", &body).await.unwrap();
    assert_eq!(tried, json!({"results": []}));
    let refused = client.act::<Value>(name, "apply", &json!({})).await;
    assert_eq!(refused.unwrap_err().refusal().unwrap().status, 429);
    assert_eq!(heads.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn changes_are_sent_once() {
    let (client, heads) = server(vec![busy()]).await;
    let body = json!({"enable": false});
    let change = Change {
        body: &body,
        mask: None,
    };
    let error = client
        .update::<Value>("namespaces/x", &change)
        .await
        .unwrap_err();
    assert_eq!(error.refusal().unwrap().status, 503);
    assert_eq!(heads.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn refusal_is_read_completely_and_not_retried() {
    let body = json!({
        "code": 400, "message": "invalid request",
        "details": [{"field": "nickname", "issue": "too_short"}]
    });
    let (client, heads) = server(vec![answer("400 Bad Request", "", &body)]).await;
    let error = client.get::<Value>("namespaces").await.unwrap_err();
    let refusal = error.refusal().unwrap();
    assert_eq!(
        (refusal.status, refusal.request_id.as_deref()),
        (400, Some("r-1"))
    );
    assert_eq!(refusal.details[0].field, "nickname");
    assert_eq!(heads.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn api_key_is_not_sent_to_other_hosts() {
    let elsewhere = "location: http://127.0.0.1:1/v1/namespaces\r\n";
    let (client, _) = server(vec![answer("302 Found", elsewhere, &json!({}))]).await;
    let error = client.get::<Value>("namespaces").await.unwrap_err();
    assert_eq!(error.refusal().unwrap().status, 302);
}

#[tokio::test]
async fn response_of_another_page_is_refused() {
    let page = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\n<html>".to_owned();
    let (client, _) = server(vec![page]).await;
    let error = client.get::<Value>("namespaces").await.unwrap_err();
    assert!(matches!(error, Error::Unexpected(_)), "{error}");
}
