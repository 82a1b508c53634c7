use serde_json::json;
use store::managers;

use crate::{
    app::TestApp,
    client::{manager_body, manual_body},
};

#[tokio::test]
async fn created_manager_waits_for_the_compiler() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let connection = acme.connection(&namespace).await;
    let mut body = manager_body();
    body["notices"] = json!([{"type": "HTTP_REQUEST", "connection": connection}]);

    let created = acme.post(&format!("/v1/{namespace}/managers"), &body).await;
    assert_eq!(created.status, 201);
    body["input"]["sensitivity"] = json!("BALANCED");
    for (field, value) in [
        ("mode", json!("AUTOMATIC")),
        ("state", json!("PENDING_APPLY")),
        ("input", body["input"].clone()),
        ("notices", body["notices"].clone()),
        ("source", body["source"].clone()),
        ("enable", json!(true)),
    ] {
        assert_eq!(created.body[field], value, "{field}");
    }
    assert_eq!(created.body.get("instructions"), None);

    let name = created.body["name"].as_str().unwrap();
    assert_eq!(acme.get(&format!("/v1/{name}")).await.body, created.body);

    assert_eq!(app.events(), ["manager.submitted"]);
    let mut conn = app.database.connect().await;
    let submission = managers::submission(&mut conn, name.parse().unwrap()).await;
    assert_eq!(submission.unwrap().unwrap().generation, 1);
}

#[tokio::test]
async fn instructions_create_a_manual_manager() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let path = format!("/v1/{namespace}/managers");
    let mut body = manual_body(&json!({
        "feeds": ["hackernews:newest"], "include": [{"text": "backup", "weight": 1.5}], "threshold": 1,
        "names": [{"text": "Acme", "kind": "OWN", "caseSensitive": true}]
    }));

    let created = acme.post(&path, &body).await;
    assert_eq!(
        (created.status, &created.body["mode"]),
        (201, &json!("MANUAL"))
    );
    assert_eq!(created.body["instructions"]["include"][0]["text"], "backup");

    body["input"] = manager_body()["input"].clone();
    let refused = acme.post(&path, &body).await;
    assert_eq!(refused.details(), [("instructions", "conflict")]);

    let object = body.as_object_mut().unwrap();
    object.remove("input");
    object.remove("instructions");
    let refused = acme.post(&path, &body).await;
    assert_eq!(refused.details(), [("input", "required")]);
}

#[tokio::test]
async fn feeds_must_be_of_configured_platforms() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let body = manual_body(&json!({
        "feeds": ["hackernews:newest", "reddit:r/rust", "reddit", "a\u{0}:b"],
        "exclude": ["roadrunner"]
    }));
    let refused = acme.post(&format!("/v1/{namespace}/managers"), &body).await;
    let expected = [
        ("instructions.feeds[1]", "not_found"),
        ("instructions.feeds[2]", "invalid_format"),
        ("instructions.feeds[3]", "invalid_format"),
    ];
    assert_eq!(refused.details(), expected);
}

#[tokio::test]
async fn notice_has_the_filter_of_a_list() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let connection = acme.connection(&namespace).await;
    let notice = |filter: serde_json::Value| json!([{"type": "HTTP_REQUEST", "connection": connection, "filter": filter}]);
    let filter = json!("match.score > 0.8 AND post.text : \"price\"");
    let mut body = manager_body();
    body["notices"] = notice(filter.clone());
    let created = acme.post(&format!("/v1/{namespace}/managers"), &body).await;
    assert_eq!(created.status, 201, "{}", created.body);
    assert_eq!(created.body["notices"], body["notices"]);
    let path = format!("/v1/{}", created.body["name"].as_str().unwrap());
    let renamed = acme.patch(&path, &json!({"nickname": "other"})).await;
    assert_eq!(renamed.body["notices"], body["notices"]);

    let refused = acme
        .patch(
            &path,
            &json!({"notices": notice(json!("post.colour = \"red\""))}),
        )
        .await;
    assert_eq!(refused.status, 400);
    assert_eq!(refused.details(), [("notices[0].filter", "unknown_field")]);
    let message = refused.body["message"].as_str().unwrap();
    assert!(message.contains("column 1"), "{message}");
    for (given, kept) in [
        (json!("  value = true "), Some("value = true")),
        (json!(" "), None),
    ] {
        let changed = acme.patch(&path, &json!({"notices": notice(given)})).await;
        assert_eq!(
            changed.body["notices"][0].get("filter"),
            kept.map(|text| json!(text)).as_ref()
        );
    }
    assert_eq!(acme.get(&path).await.body["notices"][0].get("filter"), None);
}

#[tokio::test]
async fn notices_name_connections_of_the_same_namespace() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let (namespace, other) = (acme.namespace().await, acme.namespace().await);
    let here = acme.connection(&namespace).await;
    let there = acme.connection(&other).await;
    let gone = format!("{namespace}/connections/{}", domain::Id::generate());
    let notice = |name: &str| json!({"type": "HTTP_REQUEST", "connection": name});
    let path = format!("/v1/{namespace}/managers");

    let mut body = manager_body();
    body["notices"] = json!([notice(&here), notice(&there), notice(&gone)]);
    let refused = acme.post(&path, &body).await;
    assert_eq!(refused.status, 400);
    let expected = [
        ("notices[1].connection", "not_found"),
        ("notices[2].connection", "not_found"),
    ];
    assert_eq!(refused.details(), expected);
    assert_eq!(acme.get(&path).await.body, json!({"managers": []}));

    body["notices"] = json!([notice(&here), notice(&here), notice("nonsense"), {"type": "FAX"}]);
    let refused = acme.post(&path, &body).await;
    let expected = [
        ("notices[1].connection", "duplicate"),
        ("notices[2].connection", "invalid_format"),
        ("notices[3].connection", "required"),
        ("notices[3].type", "invalid_enum"),
    ];
    let mut details = refused.details();
    details.sort_unstable();
    assert_eq!(details, expected);
}

/// All invalid fields are reported together, including those that need the database.
#[tokio::test]
async fn missing_connections_are_reported_with_other_invalid_fields() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let here = acme.connection(&namespace).await;
    let path = format!("/v1/{namespace}/managers");
    let notice = |name: &str| json!({"type": "HTTP_REQUEST", "connection": name});
    let gone = || {
        notice(&format!(
            "{namespace}/connections/{}",
            domain::Id::generate()
        ))
    };

    let mut body = manager_body();
    body["nickname"] = json!("");
    body["notices"] = json!([notice(&here), gone(), {"type": "FAX"}]);
    let refused = acme.post(&format!("{path}?colour=red"), &body).await;
    let mut details = refused.details();
    details.sort_unstable();
    let expected = [
        ("colour", "unknown_field"),
        ("nickname", "too_short"),
        ("notices[1].connection", "not_found"),
        ("notices[2].connection", "required"),
        ("notices[2].type", "invalid_enum"),
    ];
    assert_eq!(details, expected);

    let mut body = manager_body();
    let mut notices = vec![gone()];
    for _ in 0..9 {
        notices.push(notice(&acme.connection(&namespace).await));
    }
    notices.push(gone());
    body["notices"] = json!(notices);
    let refused = acme.post(&path, &body).await;
    let expected = [
        ("notices", "too_many"),
        ("notices[0].connection", "not_found"),
    ];
    assert_eq!(refused.details(), expected);
    assert_eq!(acme.get(&path).await.body, json!({"managers": []}));
}

#[tokio::test]
async fn seed_urls_are_public_pages() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let mut body = manager_body();
    body["input"]["urls"] = json!([
        "https://example.com/",
        "ftp://example.com/",
        "http://169.254.169.254/latest",
        "http://localhost/",
        "https://user:secret@example.com/",
        7,
        format!("https://example.com/{}", "x".repeat(2_048))
    ]);
    let refused = acme.post(&format!("/v1/{namespace}/managers"), &body).await;
    let expected = [
        ("input.urls[1]", "invalid_format"),
        ("input.urls[2]", "forbidden_address"),
        ("input.urls[3]", "forbidden_address"),
        ("input.urls[4]", "invalid_format"),
        ("input.urls[5]", "invalid_type"),
        ("input.urls[6]", "too_long"),
    ];
    assert_eq!(refused.details(), expected);
}

#[tokio::test]
async fn manager_may_not_name_a_feed_of_a_platform_that_is_restricted_to_others() {
    let app = TestApp::start_with(|config| {
        config.platforms[0].access.accounts = vec!["globex".to_owned()];
    })
    .await;
    let (acme, globex) = (app.account("acme").await, app.account("globex").await);
    let instructions =
        json!({"feeds": ["hackernews:newest"], "include": [{"text": "kettle", "weight": 1}]});
    let body = manual_body(&instructions);
    for (client, expected) in [(&acme, 400), (&globex, 201)] {
        let namespace = client.namespace().await;
        let answer = client
            .post(&format!("/v1/{namespace}/managers"), &body)
            .await;
        assert_eq!(answer.status, expected, "{}", answer.body);
        if expected == 400 {
            assert_eq!(answer.details(), [("instructions.feeds[0]", "forbidden")]);
        }
    }
    // Neither by an update, nor in a preview.
    let namespace = acme.namespace().await;
    let manager = acme.manager(&namespace).await;
    let draft = json!({"instructions": &instructions});
    let answer = acme.patch(&format!("/v1/{manager}"), &draft).await;
    assert_eq!(answer.details(), [("instructions.feeds[0]", "forbidden")]);
    let draft = json!({"recent": 5, "instructions": &instructions});
    let answer = acme.post(&format!("/v1/{manager}:preview"), &draft).await;
    assert_eq!(answer.details(), [("instructions.feeds[0]", "forbidden")]);
}
