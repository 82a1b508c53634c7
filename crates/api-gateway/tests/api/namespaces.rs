use domain::key::Role;
use serde_json::json;

use crate::app::TestApp;

#[tokio::test]
async fn namespace_reads_as_it_was_created() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;

    let created = acme
        .post("/v1/namespaces", &json!({"nickname": "  Ours  "}))
        .await;
    assert_eq!(created.status, 201);
    assert_eq!(created.body["nickname"], "Ours");
    assert_eq!(created.body["createTime"], created.body["updateTime"]);

    let name = created.body["name"].as_str().unwrap();
    let read = acme.get(&format!("/v1/{name}")).await;
    assert_eq!((read.status, read.body), (200, created.body));
}

#[tokio::test]
async fn output_only_fields_are_ignored_and_unknown_fields_refused() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let read = acme.get(&format!("/v1/{namespace}")).await.body;
    assert_eq!(acme.post("/v1/namespaces", &read).await.status, 201);

    let body = json!({"nickname": "x", "colour": "red", "account": 1});
    let refused = acme.post("/v1/namespaces", &body).await;
    assert_eq!(refused.status, 400);
    let mut details = refused.details();
    details.sort_unstable();
    assert_eq!(
        details,
        [("account", "unknown_field"), ("colour", "unknown_field")]
    );
}

#[tokio::test]
async fn nickname_length_is_limited() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    for (nickname, issue) in [
        (json!("x".repeat(121)), "too_long"),
        (json!("   "), "too_short"),
        (json!(7), "invalid_type"),
        (json!(null), "required"),
        (json!("nul\u{0}"), "invalid_format"),
    ] {
        let answer = acme
            .post("/v1/namespaces", &json!({"nickname": nickname}))
            .await;
        assert_eq!(answer.status, 400);
        assert_eq!(answer.details(), [("nickname", issue)]);
    }
    let longest = json!({"nickname": "ü".repeat(120)});
    assert_eq!(acme.post("/v1/namespaces", &longest).await.status, 201);
}

#[tokio::test]
async fn only_unrestricted_owners_create_namespaces() {
    let app = TestApp::start().await;
    let namespace = app.account("acme").await.namespace().await;
    let body = json!({"nickname": "x"});
    let restricted = app.key("acme", Role::Owner, Some(&[&namespace])).await;
    for client in [
        &app.key("acme", Role::Editor, None).await,
        &app.key("acme", Role::Viewer, None).await,
        &restricted,
    ] {
        assert_eq!(client.post("/v1/namespaces", &body).await.status, 403);
    }
    restricted.connection(&namespace).await;
}
