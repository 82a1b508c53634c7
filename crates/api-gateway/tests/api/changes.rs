//! PATCH: changes the named fields, by a merge or under a mask, and leaves the others unchanged.

use domain::{key::Role, list::SCAN_FIELDS};
use reqwest::Method;
use serde_json::{Value, json};
use test_support::{instructions, post};

use crate::{
    app::TestApp,
    client::{Answer, Client, manager_body, manual_body},
    scans::record,
};

async fn patch(client: &Client, name: &str, body: &Value) -> Answer {
    client.patch(&format!("/v1/{name}"), body).await
}

async fn masked(client: &Client, name: &str, mask: &str, body: &Value) -> Answer {
    let path = format!("/v1/{name}");
    client
        .send(Method::PATCH, &path, |request| {
            request
                .query(&[("updateMask", mask)])
                .header("content-type", "application/merge-patch+json")
                .body(body.to_string())
        })
        .await
}

/// Applies instructions, as the compiler does.
async fn apply(app: &TestApp, name: &str) {
    app.apply(name, &instructions("backup")).await;
    app.forget_events();
}

#[tokio::test]
async fn nickname_of_a_namespace_can_be_changed() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let before = acme.get(&format!("/v1/{namespace}")).await.body;
    let answer = patch(
        &acme,
        &namespace,
        &json!({"nickname": " other ", "name": "x"}),
    )
    .await;
    assert_eq!(
        (answer.status, &answer.body["nickname"]),
        (200, &json!("other"))
    );
    assert!(answer.body["updateTime"].as_str() > before["updateTime"].as_str());
    assert_eq!(answer.body["createTime"], before["createTime"]);
    let unchanged = patch(&acme, &namespace, &json!({})).await;
    assert_eq!(unchanged.body, answer.body);
    for (mask, body, details) in [
        ("nickname", json!({}), ("nickname", "required")),
        ("*", json!({}), ("nickname", "required")),
        ("colour", json!({}), ("updateMask", "unknown_field")),
        (
            "nickname",
            json!({"nickname": ""}),
            ("nickname", "too_short"),
        ),
        ("name", json!({"colour": 1}), ("colour", "unknown_field")),
    ] {
        let answer = masked(&acme, &namespace, mask, &body).await;
        assert_eq!(answer.details(), [details], "{mask} {body}");
    }
}

#[tokio::test]
async fn changed_input_is_compiled_while_the_old_instructions_stay_in_use() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let manager = acme.manager(&namespace).await;
    apply(&app, &manager).await;

    let answer = patch(
        &acme,
        &manager,
        &json!({"input": {"focus": {"type": "CRISIS"}}}),
    )
    .await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.body["state"], "PENDING_APPLY");
    assert_eq!(answer.body["input"]["focus"]["type"], "CRISIS");
    assert_eq!(
        answer.body["input"]["urls"],
        json!(["https://example.com/backup"])
    );
    assert_eq!(answer.body["instructions"]["include"][0]["text"], "backup");
    assert_eq!(app.events(), ["manager.submitted"]);
    assert_eq!(app.database.count("feed_watchers").await, 1);
    let answer = acme.post(&format!("/v1/{manager}:apply"), &json!({})).await;
    assert_eq!(
        (answer.status, &answer.body["state"]),
        (200, &json!("PENDING_APPLY"))
    );
    assert_eq!(app.events(), ["manager.submitted", "manager.submitted"]);
    let generations = app.database.texts("generation::text", "managers").await;
    assert_eq!(generations, ["3"]);
}

#[tokio::test]
async fn sensitivity_can_be_set_read_and_changed() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let mut body = manager_body();
    body["input"]["sensitivity"] = json!("PRECISE");
    let path = format!("/v1/{namespace}/managers");
    let manager = acme.made(&path, &body).await;
    let read = acme.get(&format!("/v1/{manager}")).await;
    assert_eq!(read.body["input"], body["input"]);
    apply(&app, &manager).await;

    // Sensitivity is part of the input: changing only it compiles again and keeps the other fields.
    let broad = json!({"input": {"sensitivity": "BROAD"}});
    let answer = patch(&acme, &manager, &broad).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.body["state"], "PENDING_APPLY");
    assert_eq!(answer.body["input"]["sensitivity"], "BROAD");
    assert_eq!(answer.body["input"]["urls"], body["input"]["urls"]);
    assert_eq!(answer.body["instructions"]["include"][0]["text"], "backup");
    assert_eq!(app.events(), ["manager.submitted"]);
    let generations = app.database.texts("generation::text", "managers").await;
    assert_eq!(generations, ["2"]);

    let mask = "input.sensitivity";
    let answer = masked(&acme, &manager, mask, &body).await;
    assert_eq!(answer.body["input"]["sensitivity"], "PRECISE");
    for (mask, cleared) in [
        (None, json!({"input": {"sensitivity": null}})),
        (Some(mask), json!({})),
    ] {
        let answer = match mask {
            None => patch(&acme, &manager, &cleared).await,
            Some(mask) => {
                patch(&acme, &manager, &broad).await;
                masked(&acme, &manager, mask, &cleared).await
            }
        };
        assert_eq!(answer.body["input"]["sensitivity"], "BALANCED", "{cleared}");
    }
}

#[tokio::test]
async fn sells_of_the_input_leaves_a_manager_automatic() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let manager = acme.manager(&namespace).await;
    let sells = json!({"summary": "Backups for families.", "offers": ["online backup"]});
    let given = patch(&acme, &manager, &json!({"input": {"sells": sells}})).await;
    assert_eq!(given.status, 200, "{}", given.body);
    assert_eq!(
        (&given.body["mode"], &given.body["state"]),
        (&json!("AUTOMATIC"), &json!("PENDING_APPLY"))
    );
    let read = acme.get(&format!("/v1/{manager}")).await;
    assert_eq!(read.body["input"]["sells"], sells);

    let wrong = json!({"input": {"sells": {"offers": ["drives", "Drives"]}}});
    let refused = patch(&acme, &manager, &wrong).await;
    let details = [("input.sells.offers[1]", "duplicate")];
    assert_eq!(
        (refused.status, refused.details().as_slice()),
        (400, &details[..])
    );
    let removed = masked(&acme, &manager, "input.sells", &json!({})).await;
    assert_eq!(removed.body["input"].get("sells"), None);
}

#[tokio::test]
async fn manager_can_switch_to_manual_mode_and_back() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let manager = acme.manager(&namespace).await;
    apply(&app, &manager).await;
    let body =
        json!({"instructions": {"threshold": 2, "include": [{"text": "restore", "weight": 2}]}});
    let answer = patch(&acme, &manager, &body).await;
    assert_eq!(
        (answer.status, &answer.body["mode"]),
        (200, &json!("MANUAL"))
    );
    assert_eq!(answer.body.get("input"), None);
    assert_eq!(answer.body["instructions"]["threshold"], 2.0);
    assert_eq!(
        answer.body["instructions"]["feeds"],
        json!(["hackernews:newest"])
    );

    for (source, issue) in [("NETWORK", "conflict")] {
        let answer = patch(&acme, &manager, &json!({"source": {"type": source}})).await;
        assert_eq!(answer.details(), [("instructions.feeds[0]", issue)]);
    }
    let body = json!({"instructions": {"feeds": ["hackernews:oldest", "nowhere:newest"]}});
    let expected = [
        ("instructions.feeds[0]", "invalid_format"),
        ("instructions.feeds[1]", "not_found"),
    ];
    assert_eq!(patch(&acme, &manager, &body).await.details(), expected);
    let answer = patch(&acme, &manager, &json!({"instructions": null})).await;
    assert_eq!(answer.details(), [("instructions", "required")]);

    let body = json!({"input": {"type": "STRUCTURED", "urls": ["https://example.com/"], "focus": {"type": "SALES"}}});
    let answer = patch(&acme, &manager, &body).await;
    assert_eq!(
        (answer.status, &answer.body["mode"]),
        (200, &json!("AUTOMATIC"))
    );
    assert_eq!(app.events(), ["manager.submitted", "manager.submitted"]);
}

#[tokio::test]
async fn sells_of_a_manual_manager_is_kept_changed_and_removed() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let body = manual_body(&json!({
        "include": [{"text": "backup", "weight": 1}],
        "sells": {"summary": " Backups for families. ", "offers": ["online backup", "backup drives"]}
    }));
    let created = acme
        .post(&format!("/v1/{namespace}/managers"), &body)
        .await
        .body;
    let manager = created["name"].as_str().unwrap();
    let mut sells =
        json!({"summary": "Backups for families.", "offers": ["online backup", "backup drives"]});
    assert_eq!(created["instructions"]["sells"], sells);

    let renamed = patch(&acme, manager, &json!({"nickname": "other"})).await;
    assert_eq!(renamed.body["instructions"]["sells"], sells);

    sells["offers"] = json!(["online backup"]);
    let offers = json!({"instructions": {"sells": {"offers": sells["offers"]}}});
    let merged = patch(&acme, manager, &offers).await;
    assert_eq!(merged.body["instructions"]["sells"], sells);

    sells["summary"] = json!("Backups.");
    let summary = json!({"instructions": {"sells": {"summary": sells["summary"]}}});
    let by_mask = masked(&acme, manager, "instructions.sells.summary", &summary).await;
    assert_eq!(by_mask.body["instructions"]["sells"], sells);

    let wrong =
        json!({"instructions": {"sells": {"summary": "a\nb", "offers": ["drives", "Drives"]}}});
    let expected = [
        ("instructions.sells.summary", "invalid_format"),
        ("instructions.sells.offers[1]", "duplicate"),
    ];
    assert_eq!(patch(&acme, manager, &wrong).await.details(), expected);

    let removed = patch(&acme, manager, &json!({"instructions": {"sells": null}})).await;
    assert_eq!(removed.body["instructions"].get("sells"), None);
}

#[tokio::test]
async fn disabling_and_changed_notices_take_effect_at_once() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let manager = acme.manager(&namespace).await;
    let hook = acme.connection(&namespace).await;
    apply(&app, &manager).await;
    let answer = patch(&acme, &manager, &json!({"enable": false})).await;
    assert_eq!(
        (&answer.body["enable"], &answer.body["state"]),
        (&json!(false), &json!("APPLIED"))
    );
    assert_eq!(app.database.count("feed_watchers").await, 0);
    let notices = json!([{"type": "HTTP_REQUEST", "connection": hook}]);
    let answer = patch(
        &acme,
        &manager,
        &json!({"enable": null, "notices": notices}),
    )
    .await;
    assert_eq!(
        (&answer.body["enable"], &answer.body["notices"]),
        (&json!(true), &notices)
    );
    assert_eq!(app.database.count("feed_watchers").await, 1);
    assert_eq!(app.events(), ["manager.changed", "manager.changed"]);
    assert_eq!(
        app.database.texts("version::text", "plan_version").await,
        ["3"]
    );

    let gone = format!("{namespace}/connections/{}", domain::Id::generate());
    let body = json!({"nickname": "", "notices": [{"type": "HTTP_REQUEST", "connection": gone}]});
    let expected = [
        ("nickname", "too_short"),
        ("notices[0].connection", "not_found"),
    ];
    assert_eq!(patch(&acme, &manager, &body).await.details(), expected);
    let body = json!({"notices": [{"type": "HTTP_REQUEST", "connection": gone}]});
    assert_eq!(patch(&acme, &manager, &body).await.details(), expected[1..]);
}

#[tokio::test]
async fn fields_of_a_connection_can_be_changed_one_by_one() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let hook = acme.connection(&namespace).await;
    let secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3";
    let body = json!({
        "headers": {"X-Secret": "other", "x-more": "1"}, "method": "PUT", "format": "SLACK", "maxPerSecond": 5,
        "signingSecrets": [secret], "state": "DISABLED"
    });
    let answer = patch(&acme, &hook, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(
        answer.body["headers"],
        json!({"X-Secret": "other", "x-more": "1"})
    );
    assert_eq!(answer.body["stateReason"], "disabled by its owner");
    assert_eq!(answer.body["maxPerSecond"], 5);
    assert!(!answer.body.to_string().contains(secret));
    let sealed = app
        .database
        .texts("encode(signing_secrets_sealed, 'escape')", "connections")
        .await;
    assert!(!sealed[0].contains("MDEyMzQ1"));

    let answer = masked(
        &acme,
        &hook,
        "headers,maxPerSecond",
        &json!({"headers": {"a": "b"}, "method": "POST"}),
    )
    .await;
    assert_eq!(answer.body["headers"], json!({"a": "b"}));
    assert_eq!(
        (answer.body.get("maxPerSecond"), &answer.body["method"]),
        (None, &json!("PUT"))
    );
    for body in [json!({}), json!(null)] {
        let answer = acme
            .send(Method::POST, &format!("/v1/{hook}:enable"), |request| {
                if body.is_null() {
                    request
                } else {
                    request.json(&body)
                }
            })
            .await;
        assert_eq!(
            (answer.status, &answer.body["state"]),
            (200, &json!("ACTIVE"))
        );
        assert_eq!(answer.body.get("stateReason"), None);
    }
    let answer = acme
        .post(&format!("/v1/{hook}:enable"), &json!({"now": true}))
        .await;
    assert_eq!(answer.details(), [("now", "unknown_field")]);
    assert_eq!(
        acme.post(&format!("/v1/{hook}:explode"), &json!({}))
            .await
            .status,
        404
    );
    let answer = acme.get(&format!("/v1/{hook}:enable")).await;
    assert_eq!(
        (answer.status, answer.headers["allow"].to_str().unwrap()),
        (405, "POST")
    );
}

#[tokio::test]
async fn feedback_is_stored_and_can_be_filtered() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let (one, two) = (
        acme.manager(&namespace).await,
        acme.manager(&namespace).await,
    );
    record(&app, &one, &[post("1", "first"), post("2", "second")]).await;
    record(&app, &two, &[post("3", "third")]).await;
    let all = format!("/v1/{namespace}/managers/-/scans");
    let page = acme.get(&all).await.body;
    let titles = |page: &Value| -> Vec<String> {
        let scans = page["scans"].as_array().unwrap();
        scans
            .iter()
            .map(|scan| scan["post"]["title"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(titles(&page), ["third", "second", "first"]);
    let scan = page["scans"][1]["name"].as_str().unwrap();
    let answer = patch(
        &acme,
        scan,
        &json!({"value": false, "labels": ["Hot Lead", "later"]}),
    )
    .await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.body["labels"], json!(["Hot Lead", "later"]));
    for (filter, found) in [
        (r#"labels : "lead""#, vec!["second"]),
        (r#"NOT labels : "lead""#, vec!["third", "first"]),
        ("value = false", vec!["second"]),
    ] {
        let page = acme.get_with(&all, &[("filter", filter)]).await.body;
        assert_eq!(titles(&page), found, "{filter}");
    }
    let answer = acme.get_with(&all, &[("filter", r#"labels = "x""#)]).await;
    assert_eq!(answer.status, 400);
    let answer = acme.get_with(&all, &[("orderBy", "labels")]).await;
    assert_eq!(answer.details(), [("orderBy", "unknown_field")]);
    // The same over several pages.
    let first = acme.get_with(&all, &[("pageSize", "2")]).await.body;
    let token = first["nextPageToken"].as_str().unwrap();
    let second = acme
        .get_with(&all, &[("pageSize", "2"), ("pageToken", token)])
        .await
        .body;
    assert_eq!(titles(&second), ["first"]);
    assert!(SCAN_FIELDS.iter().any(|field| field.name == "labels"));
}

#[tokio::test]
async fn missing_resources_are_reported_before_invalid_fields() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let connection = acme.connection(&namespace).await;
    let id = domain::Id::generate();
    let here = connection.strip_prefix(&format!("{namespace}/")).unwrap();
    for (method, below, kind) in [
        (Method::PATCH, format!("managers/{id}"), "manager"),
        (Method::PATCH, "managers/nonsense".to_owned(), "manager"),
        (Method::PATCH, format!("connections/{id}"), "connection"),
        (Method::PATCH, format!("managers/{id}/scans/{id}"), "scan"),
        (Method::POST, format!("managers/{id}:apply"), "manager"),
        (Method::POST, format!("managers/{id}:backfill"), "manager"),
        (Method::POST, format!("managers/{id}:preview"), "manager"),
        (
            Method::POST,
            format!("connections/{id}:enable"),
            "connection",
        ),
        (
            Method::POST,
            format!("connections/{id}:replay"),
            "connection",
        ),
        (Method::POST, format!("connections/{id}:test"), "connection"),
        (
            Method::POST,
            format!("{here}/deliveries/{id}:retry"),
            "delivery",
        ),
    ] {
        let path = format!("/v1/{namespace}/{below}");
        let send = async |content_type: &'static str, body: &'static str| {
            acme.send(method.clone(), &path, |request| {
                request
                    .header("content-type", content_type)
                    .header("x-test", "perhaps")
                    .body(body)
            })
            .await
        };
        let json = "application/json";
        let answer = send(json, r#"{"colour": 1}"#).await;
        let message = json!(format!("{kind} not found"));
        let expected = (404, &message);
        assert_eq!((answer.status, &answer.body["message"]), expected, "{path}");
        // What is no JSON is refused before the resource is looked up.
        let answer = send(json, "{").await;
        assert_eq!((answer.status, answer.body.get("details")), (400, None));
        assert_eq!(send("text/plain", "{}").await.status, 415, "{path}");
    }
}

#[tokio::test]
async fn concurrent_changes_are_all_kept() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let hook = acme.connection(&namespace).await;
    let changes = (0..10).map(|n| {
        let (acme, hook) = (acme.clone(), hook.clone());
        async move {
            let answer = patch(&acme, &hook, &json!({"headers": {format!("x-{n}"): "1"}})).await;
            assert_eq!(answer.status, 200, "{}", answer.body);
        }
    });
    futures::future::join_all(changes).await;
    let headers = acme.get(&format!("/v1/{hook}")).await.body["headers"].clone();
    assert_eq!(headers.as_object().unwrap().len(), 11, "{headers}");
}

#[tokio::test]
async fn caller_resource_shows_permissions() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let whole = acme.get("/v1/caller").await;
    assert_eq!(
        whole.body,
        json!({
            "account": "acme", "role": "OWNER", "rateLimitPerMinute": 1_000_000, "accountRateLimitPerMinute": 10_000_000,
            "quotas": {
                "namespaces": {"limit": 100, "used": 1},
                "managers": {"limit": 1_000, "used": 0}, "connections": {"limit": 1_000, "used": 0},
                "feeds": {"limit": 2_000, "used": 0}, "contentBytes": {"limit": 20_000_000, "used": 0},
                "scansPerDay": {"limit": 100_000, "used": 0}
            }
        })
    );
    let viewer = app.key("acme", Role::Viewer, Some(&[&namespace])).await;
    let narrowed = viewer.get("/v1/caller").await;
    assert_eq!(narrowed.body["role"], "VIEWER");
    assert_eq!(narrowed.body["namespaces"], json!([namespace]));
}
