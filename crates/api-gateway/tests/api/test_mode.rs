use reqwest::Method;
use serde_json::json;
use store::outbox;

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
    let mut conn = app.database.connect().await;
    assert!(
        outbox::take(&mut conn, 1, &std::collections::BTreeSet::new())
            .await
            .unwrap()
            .is_empty()
    );
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
