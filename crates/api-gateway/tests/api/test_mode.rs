use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    app::TestApp,
    client::{connection_body, manager_body},
};

#[tokio::test]
async fn test_mode_answers_and_stores_nothing() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    for (collection, body) in [
        ("v1/namespaces".to_owned(), json!({"nickname": "test"})),
        (format!("v1/{namespace}/connections"), connection_body()),
        (format!("v1/{namespace}/managers"), manager_body()),
    ] {
        let path = format!("/{collection}");
        let before = acme.get(&path).await.body;
        for on in ["true", "YES"] {
            let answer = acme
                .send(Method::POST, &path, |request| {
                    request.header("x-test", on).json(&body)
                })
                .await;
            assert_eq!(answer.status, 201, "{path}");
            assert_eq!(answer.headers["x-test"], "true");
            let name = answer.body["name"].as_str().unwrap();
            assert_eq!(acme.get(&format!("/v1/{name}")).await.status, 404);
        }
        assert_eq!(acme.get(&path).await.body, before);
    }
    assert!(app.events().is_empty());
}

#[tokio::test]
async fn test_mode_fails_like_the_real_request() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let mut body = manager_body();
    let gone = format!("{namespace}/connections/{}", domain::Id::generate());
    body["notices"] = json!([{"type": "HTTP_REQUEST", "connection": gone}]);
    let answer = acme
        .send(
            Method::POST,
            &format!("/v1/{namespace}/managers"),
            |request| request.header("x-test", "true").json(&body),
        )
        .await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.headers["x-test"], "true");
    assert_eq!(answer.details(), [("notices[0].connection", "not_found")]);
}

#[tokio::test]
async fn invalid_values_of_x_test_are_refused_on_every_operation() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    for word in ["1", "on", ""] {
        let answer = acme
            .send(Method::GET, &format!("/v1/{namespace}"), |request| {
                request.header("x-test", word)
            })
            .await;
        assert_eq!(answer.status, 400);
        assert_eq!(answer.details(), [("x-test", "invalid_enum")]);
    }
    for off in ["false", "NO"] {
        let answer = acme
            .send(Method::POST, "/v1/namespaces", |request| {
                request
                    .header("x-test", off)
                    .json(&json!({"nickname": "real"}))
            })
            .await;
        assert!(answer.headers.get("x-test").is_none());
        let name = answer.body["name"].as_str().unwrap();
        assert_eq!(acme.get(&format!("/v1/{name}")).await.status, 200);
    }
}

#[tokio::test]
async fn test_mode_waits_for_no_lock_that_only_the_real_request_needs() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let connection = acme.connection(&namespace).await;
    let manager = acme.manager(&namespace).await;
    let applied = "UPDATE managers SET instructions = '{\"feeds\": []}'";
    assert_eq!(app.database.run(applied).await, 1);
    let tested = async |method: Method, path: &str, body: &Value| {
        let path = format!("/v1/{path}");
        let answer = acme.send(method, &path, |request| {
            let request = request.header("x-test", "true");
            if body.is_null() {
                request
            } else {
                request.json(body)
            }
        });
        let answer = answer.await;
        assert_eq!(answer.headers["x-test"], "true");
        answer
    };

    let version = app
        .database
        .begin(&["SELECT FROM plan_version FOR UPDATE"])
        .await;
    let mutes = json!({"mutes": [{"type": "TERM", "value": "loud"}]});
    let answer = tested(Method::PATCH, &namespace, &mutes).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.body["mutes"][0]["value"], "loud");
    let answer = tested(Method::PATCH, &manager, &json!({"enable": false})).await;
    assert_eq!(
        (answer.status, &answer.body["enable"]),
        (200, &json!(false))
    );

    let rows = app
        .database
        .begin(&[
            "SELECT FROM managers FOR UPDATE",
            "SELECT FROM connections FOR UPDATE",
        ])
        .await;
    let refused = tested(Method::DELETE, &namespace, &Value::Null).await;
    assert_eq!(refused.details(), [("force", "not_empty")]);
    let paths = [
        manager,
        format!("{connection}?force=true"),
        format!("{namespace}?force=true"),
    ];
    let mut answers = Vec::new();
    for path in &paths {
        let answer = tested(Method::DELETE, path, &Value::Null).await;
        answers.push((answer.status, answer.body));
    }
    drop((version, rows));
    for (path, answer) in paths.iter().zip(answers) {
        let full = format!("/v1/{path}");
        let done = acme.delete(&full).await;
        assert_eq!((done.status, done.body), answer, "{path}");
        assert_eq!(tested(Method::DELETE, path, &Value::Null).await.status, 404);
    }
}

#[tokio::test]
async fn manager_that_is_enabled_in_test_mode_waits_for_no_feed() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let instructions = json!({
        "feeds": ["hackernews:newest"], "include": [{"text": "backup", "weight": 1}], "threshold": 1
    });
    let manager = app.manual_manager(&acme, &namespace, &instructions).await;
    let path = format!("/v1/{manager}");
    let disabled = acme.patch(&path, &json!({"enable": false})).await;
    assert_eq!(disabled.status, 200);
    let failing = "UPDATE feeds SET failure_count = 3";
    assert_eq!(app.database.run(failing).await, 1);

    let enable = json!({"enable": true});
    let tested = async || {
        let answer = acme.send(Method::PATCH, &path, |request| {
            request.header("x-test", "true").json(&enable)
        });
        answer.await
    };
    let poll = app.database.begin(&["SELECT FROM feeds FOR UPDATE"]).await;
    let set_quota = async |quota: &str| {
        let sql = format!("UPDATE accounts SET quota_feeds = {quota}");
        app.database.run(&sql).await
    };
    set_quota("0").await;
    assert_eq!(tested().await.details(), [("enable", "quota_exceeded")]);
    set_quota("NULL").await;
    let answer = tested().await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.body["enable"], true);
    assert_eq!(answer.body["health"]["reasons"], json!(["feeds_failing"]));
    assert_eq!(app.database.count("feed_watchers").await, 0);

    drop(poll);
    let done = acme.patch(&path, &enable).await;
    assert_eq!(done.status, 200, "{}", done.body);
    assert_eq!(done.body["health"], answer.body["health"]);
}
