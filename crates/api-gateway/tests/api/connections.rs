use domain::key::Role;
use serde_json::json;
use store::connections::MAX_RECEIVERS;

use crate::{app::TestApp, client::connection_body};

#[tokio::test]
async fn connection_reads_as_it_was_created() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let path = format!("/v1/{namespace}/connections");

    let created = acme.post(&path, &connection_body()).await;
    assert_eq!(created.status, 201);
    assert_eq!(created.body["method"], "POST");
    assert_eq!(created.body["state"], "ACTIVE");
    assert_eq!(created.body["headers"], json!({"x-secret": "hush"}));

    let name = created.body["name"].as_str().unwrap();
    let read = acme.get(&format!("/v1/{name}")).await;
    let mut expected = created.body.clone();
    expected["health"] = json!({"pending": 0, "breaker": "CLOSED"});
    assert_eq!(read.body, expected);
    let listed = acme.get(&path).await;
    assert_eq!(listed.body, json!({"connections": [expected]}));
}

#[tokio::test]
async fn header_values_are_hidden_from_viewers() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let name = acme.connection(&namespace).await;
    let viewer = app.key("acme", Role::Viewer, None).await;
    let editor = app.key("acme", Role::Editor, None).await;

    let masked = json!({"x-secret": "***"});
    let read = viewer.get(&format!("/v1/{name}")).await;
    assert_eq!(read.body["headers"], masked);
    let listed = viewer.get(&format!("/v1/{namespace}/connections")).await;
    assert_eq!(listed.body["connections"][0]["headers"], masked);
    let read = editor.get(&format!("/v1/{name}")).await;
    assert_eq!(read.body["headers"]["x-secret"], "hush");
}

/// Anyone who knows the address of a hook can post there.
#[tokio::test]
async fn addresses_are_sealed_and_hidden_from_viewers() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let path = format!("/v1/{namespace}/connections");
    let mut body = connection_body();
    body["url"] = json!("https://hooks.slack.com/services/T0/B0/canary?token=canary");
    let name = acme.made(&path, &body).await;
    let viewer = app.key("acme", Role::Viewer, None).await;
    for path in [format!("/v1/{name}"), path.clone()] {
        let read = viewer.get(&path).await.body.to_string();
        assert!(
            read.contains(r#""url":"https://hooks.slack.com""#),
            "{read}"
        );
        assert!(!read.contains("canary"), "{read}");
        let read = acme.get(&path).await.body.to_string();
        assert!(read.contains("canary?token=canary"), "{read}");
    }
    for query in [("filter", r#"url : "canary""#), ("orderBy", "url")] {
        for client in [&viewer, &acme] {
            let answer = client.get_with(&path, &[query]).await;
            assert_eq!(answer.details(), [(query.0, "unknown_field")]);
        }
    }
    let stored = app.database.texts("to_jsonb(c)", "connections AS c").await;
    assert!(!stored.concat().contains("canary"), "{stored:?}");
    // A changed address is sealed too.
    let change = json!({"url": "https://hooks.slack.com/services/other"});
    let changed = acme.patch(&format!("/v1/{name}"), &change).await;
    assert_eq!(changed.body["url"], change["url"]);
    assert_eq!(
        acme.get(&format!("/v1/{name}")).await.body["url"],
        change["url"]
    );
    assert_eq!(app.database.texts("url", "connections").await, [""]);
}

#[tokio::test]
async fn every_failing_field_is_named() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let path = format!("/v1/{namespace}/connections?colour=red");
    let body = json!({
        "nickname": "", "type": "PIGEON", "url": "https://127.0.0.1/", "method": "GET",
        "headers": {"Host": "x", "a b": "x", "ok": "fine"}
    });
    let answer = acme
        .send(reqwest::Method::POST, &path, |request| {
            request.header("x-test", "maybe").json(&body)
        })
        .await;
    assert_eq!(answer.status, 400);
    let mut details = answer.details();
    details.sort_unstable();
    let expected = [
        ("colour", "unknown_field"),
        ("headers.Host", "forbidden"),
        ("headers.a b", "invalid_format"),
        ("method", "invalid_enum"),
        ("nickname", "too_short"),
        ("type", "invalid_enum"),
        ("url", "forbidden_address"),
        ("x-test", "invalid_enum"),
    ];
    assert_eq!(details, expected);
}

#[tokio::test]
async fn plain_http_needs_permission_of_the_operator() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let mut body = connection_body();
    body["url"] = json!("http://hooks.example.com/");
    let answer = acme
        .post(&format!("/v1/{namespace}/connections"), &body)
        .await;
    assert_eq!(answer.details(), [("url", "forbidden")]);
}

#[tokio::test]
async fn service_events_are_chosen_by_those_who_may_write() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let path = format!("/v1/{namespace}/connections");
    let mut body = connection_body();
    body["events"] = json!(["COVERAGE_GAP", "POST_DELETED"]);
    let name = acme.made(&path, &body).await;
    let one = format!("/v1/{name}");
    let viewer = app.key("acme", Role::Viewer, None).await;
    assert_eq!(viewer.get(&one).await.body["events"], body["events"]);

    let change = json!({"events": ["MANAGER_APPLIED"]});
    let other = app.account("other").await;
    for client in [&viewer, &other] {
        assert_eq!(client.patch(&one, &change).await.status, 403);
    }
    assert_eq!(acme.get(&one).await.body["events"], body["events"]);
    let changed = acme.patch(&one, &change).await;
    assert_eq!(changed.body["events"], change["events"]);
    let cleared = acme.patch(&one, &json!({"events": null})).await;
    assert_eq!((cleared.status, cleared.body.get("events")), (200, None));
    let wrong = json!({"events": ["MANAGER_APPLIED", "SCAN"]});
    assert_eq!(
        acme.patch(&one, &wrong).await.details(),
        [("events[1]", "invalid_enum")]
    );
}

/// No quota of Scans limits what each event becomes: a delivery to each of them.
#[tokio::test]
async fn few_connections_of_a_namespace_receive_service_events() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let path = format!("/v1/{namespace}/connections");
    let events = json!({"events": ["MANAGER_APPLIED"]});
    let mut body = connection_body();
    body["events"] = events["events"].clone();
    for _ in 1..MAX_RECEIVERS {
        acme.made(&path, &body).await;
    }
    let without = acme.connection(&namespace).await;
    let patched = format!("/v1/{without}");
    // Two requests for the last one.
    let (created, changed) = tokio::join!(acme.post(&path, &body), acme.patch(&patched, &events));
    let (refused, done) = match created.status {
        201 => (changed, created),
        _ => (created, changed),
    };
    assert!(done.status < 300, "{}", done.body);
    assert_eq!(refused.details(), [("events", "quota_exceeded")]);
    let message = refused.body["message"].as_str().unwrap();
    assert!(
        message.contains("service events, and its quota is 20"),
        "{message}"
    );

    // One that receives some may receive others, and other Namespaces have as many.
    let name = done.body["name"].as_str().unwrap();
    let changed = json!({"events": ["POST_DELETED"]});
    assert_eq!(
        acme.patch(&format!("/v1/{name}"), &changed).await.status,
        200
    );
    let other = acme.namespace().await;
    acme.made(&format!("/v1/{other}/connections"), &body).await;
}
