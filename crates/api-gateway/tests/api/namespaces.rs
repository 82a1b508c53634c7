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
async fn accounts_list_only_their_own_namespaces() {
    let app = TestApp::start().await;
    let (acme, globex) = (app.account("acme").await, app.account("globex").await);
    let (first, second) = (acme.namespace().await, acme.namespace().await);
    globex.namespace().await;

    let names = |body: &serde_json::Value| -> Vec<String> {
        let items = body["namespaces"].as_array().unwrap();
        items
            .iter()
            .map(|one| one["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let listed = acme.get("/v1/namespaces").await;
    assert_eq!(names(&listed.body), [second.clone(), first.clone()]);

    let narrowed = app.key("acme", Role::Owner, Some(&[&first])).await;
    let listed = narrowed.get("/v1/namespaces").await;
    assert_eq!(names(&listed.body), std::slice::from_ref(&first));
    assert_eq!(narrowed.get(&format!("/v1/{first}")).await.status, 200);
    assert_eq!(narrowed.get(&format!("/v1/{second}")).await.status, 403);
}

#[tokio::test]
async fn only_unrestricted_owners_create_namespaces() {
    let app = TestApp::start().await;
    let namespace = app.account("acme").await.namespace().await;
    let body = json!({"nickname": "x"});
    for (role, namespaces) in [
        (Role::Editor, None),
        (Role::Viewer, None),
        (Role::Owner, Some([namespace.as_str()])),
    ] {
        let client = app
            .key("acme", role, namespaces.as_ref().map(|names| &names[..]))
            .await;
        assert_eq!(client.post("/v1/namespaces", &body).await.status, 403);
    }
}
