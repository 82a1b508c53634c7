//! Repeated requests with `Idempotency-Key`.

use diesel_async::RunQueryDsl;
use reqwest::Method;
use serde_json::{Value, json};
use store::roles::Service;
use test_support::Commits;

use crate::{
    app::{TestApp, config, serve},
    client::{Answer, Client, connection_body, manager_body},
};

async fn post(client: &Client, path: &str, key: &str, body: &Value) -> Answer {
    client
        .send(Method::POST, path, |request| {
            request.header("idempotency-key", key).json(body)
        })
        .await
}

fn is_replayed(answer: &Answer) -> bool {
    answer
        .headers
        .get("idempotency-replayed")
        .is_some_and(|value| value == "true")
}

#[tokio::test]
async fn repeated_request_gets_the_first_response() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    for (collection, body, other) in [
        ("managers", manager_body(), json!("another")),
        ("connections", connection_body(), json!("another")),
    ] {
        let path = format!("/v1/{namespace}/{collection}");
        let first = post(&acme, &path, "order-1", &body).await;
        let again = post(&acme, &path, "order-1", &body).await;
        assert_eq!((first.status, again.status), (201, 201));
        assert_eq!(first.body, again.body);
        assert_eq!((is_replayed(&first), is_replayed(&again)), (false, true));

        let mut changed = body.clone();
        changed["nickname"] = other;
        let answer = post(&acme, &path, "order-1", &changed).await;
        assert_eq!(answer.status, 400);
        assert_eq!(answer.details(), [("Idempotency-Key", "conflict")]);

        let second = post(&acme, &path, "order-2", &changed).await;
        assert_eq!(second.status, 201);
        assert_ne!(second.body["name"], first.body["name"]);
        let list = acme.get(&path).await;
        assert_eq!(list.body[collection].as_array().unwrap().len(), 2);
    }
    // Each event is published once.
    let count = app.events().len();
    assert!(count <= 2, "{count}");
}

#[tokio::test]
async fn idempotency_key_belongs_to_one_api_key_and_path() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let globex = app.account("globex").await;
    let body = json!({"nickname": "ours"});
    let first = post(&acme, "/v1/namespaces", "k", &body).await;
    let other = post(&globex, "/v1/namespaces", "k", &body).await;
    assert_eq!((first.status, other.status), (201, 201));
    assert_ne!(first.body["name"], other.body["name"]);
    let name = first.body["name"].as_str().unwrap();
    let path = format!("/v1/{name}/connections");
    assert_eq!(
        post(&acme, &path, "k", &connection_body()).await.status,
        201
    );
    let path = format!("/v1/{name}/managers");
    assert_eq!(post(&acme, &path, "k", &manager_body()).await.status, 201);
}

#[tokio::test]
async fn concurrent_requests_on_two_gateways_create_one_resource() {
    let app = TestApp::start().await;
    let (other, _shutdown) = serve(&config(app.database.url()));
    let acme = app.account("acme").await;
    let body = json!({"nickname": "ours"});
    let requests = (0..12).map(|n| {
        let base = if n % 2 == 0 { &app.base } else { &other };
        let client = acme.at(base);
        let body = body.clone();
        async move { post(&client, "/v1/namespaces", "once", &body).await }
    });
    let answers = futures::future::join_all(requests).await;
    assert!(answers.iter().all(|answer| answer.status == 201));
    assert!(answers.iter().all(|answer| answer.body == answers[0].body));
    assert_eq!(
        answers.iter().filter(|answer| !is_replayed(answer)).count(),
        1
    );
    let list = acme.at(&other).get("/v1/namespaces").await;
    assert_eq!(list.nicknames("namespaces"), ["ours"]);
}

#[tokio::test]
async fn failed_and_test_requests_can_be_repeated_with_the_same_key() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let path = "/v1/namespaces";
    assert_eq!(
        post(&acme, path, "k", &json!({"nickname": 1})).await.status,
        400
    );
    let test = |body: Value| {
        acme.send(Method::POST, path, move |request| {
            request
                .header("idempotency-key", "k")
                .header("x-test", "yes")
                .json(&body)
        })
    };
    let tried = test(json!({"nickname": "tried"})).await;
    assert_eq!((tried.status, is_replayed(&tried)), (201, false));
    let made = post(&acme, path, "k", &json!({"nickname": "made"})).await;
    assert_eq!((made.status, is_replayed(&made)), (201, false));
    // Test mode returns what the real request would return.
    let again = test(json!({"nickname": "made"})).await;
    assert_eq!((again.status, is_replayed(&again)), (201, true));
    assert_eq!(again.body, made.body);
    assert_eq!(test(json!({"nickname": "other"})).await.status, 400);
    let list = acme.get(path).await;
    assert_eq!(list.nicknames("namespaces"), ["made"]);
}

#[tokio::test]
async fn malformed_idempotency_keys_are_refused() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let (longest, longer) = ("x".repeat(255), "x".repeat(256));
    for (key, issue) in [
        (longest.as_bytes(), None),
        (b"!#$%&'()*+,-./:;<=>?@[]^_`{|}~", None),
        (longer.as_bytes(), Some("too_long")),
        (b"", Some("too_short")),
        (b"a b", Some("invalid_format")),
        (b"a\tb", Some("invalid_format")),
        (b"\xff\xfe", Some("invalid_format")),
        ("ключ".as_bytes(), Some("invalid_format")),
    ] {
        let answer = acme
            .send(Method::POST, "/v1/namespaces", |request| {
                request
                    .header("idempotency-key", key)
                    .json(&json!({"nickname": "x"}))
            })
            .await;
        let shown = String::from_utf8_lossy(key).into_owned();
        assert!(!answer.headers.contains_key("idempotency-key"), "{shown}");
        match issue {
            None => assert_eq!(answer.status, 201, "{shown}"),
            Some(issue) => assert_eq!(answer.details(), [("Idempotency-Key", issue)], "{shown}"),
        }
    }
    let answer = acme
        .send(Method::POST, "/v1/namespaces", |request| {
            request
                .header("idempotency-key", "a")
                .header("idempotency-key", "b")
                .json(&json!({}))
        })
        .await;
    assert_eq!(
        answer.details(),
        [("Idempotency-Key", "duplicate"), ("nickname", "required")]
    );
}

#[tokio::test]
async fn stored_responses_are_encrypted() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let path = format!("/v1/{}/connections", acme.namespace().await);
    post(&acme, &path, "secret", &connection_body()).await;
    let mut conn = app.database.connect().await;
    let found = |text: &str| {
        format!("SELECT FROM idempotency_keys WHERE position('{text}'::bytea IN answer) > 0")
    };
    for (text, rows) in [("hush", 0), ("hook", 0)] {
        let count = diesel::sql_query(found(text))
            .execute(&mut conn)
            .await
            .unwrap();
        assert_eq!(count, rows, "{text}");
    }
    let count = diesel::sql_query("SELECT FROM idempotency_keys WHERE length(answer) > 100")
        .execute(&mut conn)
        .await
        .unwrap();
    assert_eq!(count, 1);
}

#[tokio::test]
async fn account_with_too_many_stored_responses_is_told_the_header() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let path = format!("/v1/{namespace}/managers");
    let first = post(&acme, &path, "order-1", &manager_body()).await;
    assert_eq!(first.status, 201);
    app.database
        .run("UPDATE idempotency_days SET bytes = 250000000")
        .await;
    let answer = post(&acme, &path, "order-2", &manager_body()).await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.details(), [("Idempotency-Key", "quota_exceeded")]);
    let again = post(&acme, &path, "order-1", &manager_body()).await;
    assert!(is_replayed(&again));
    assert_eq!(acme.post(&path, &manager_body()).await.status, 201);
}

#[tokio::test]
async fn request_whose_commit_is_not_answered_makes_one_resource() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let commits = Commits::start(&app.database.url_of(Service::Gateway)).await;
    let (base, _shutdown) = serve(&config(commits.url()));
    let losing = acme.at(&base);
    assert_eq!(losing.get("/v1/namespaces").await.status, 200);
    for (collection, body) in [
        ("managers", manager_body()),
        ("connections", connection_body()),
    ] {
        let path = format!("/v1/{namespace}/{collection}");
        let lost = commits.lost();
        commits.lose(true);
        let unanswered = post(&losing, &path, "order-1", &body).await;
        commits.lose(false);
        assert_eq!(unanswered.status, 503, "{}", unanswered.body);
        assert!(commits.lost() > lost);
        assert_eq!(app.database.count(collection).await, 1, "it is stored");

        let repeated = post(&losing, &path, "order-1", &body).await;
        assert_eq!(repeated.status, 201, "{}", repeated.body);
        assert!(is_replayed(&repeated));
        let list = acme.get(&path).await;
        let listed = list.body[collection].as_array().unwrap();
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0]["name"], repeated.body["name"]);
    }
}
