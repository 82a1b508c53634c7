//! Quotas of accounts: what is refused, what stays, and what callers see.

use futures::future::join_all;
use reqwest::Method;
use runtime::Config;
use serde_json::{Value, json};
use store::quotas::{self, Change};

use crate::{
    app::{TestApp, config, serve},
    client::{Client, connection_body, manager_body},
};

fn small(config: &mut Config) {
    config.quotas.namespaces = 2;
    config.quotas.managers = 2;
    config.quotas.connections = 1;
    config.quotas.feeds = 1;
    config.quotas.content_bytes = 5_000;
    config.quotas.scans_per_day = 9;
}

async fn set(app: &TestApp, change: Change) {
    let mut conn = app.database.connect().await;
    let set = quotas::set(&mut conn, "acme", &change).await.unwrap();
    assert!(set.is_some());
}

async fn quotas_of(client: &Client) -> Value {
    client.get("/v1/caller").await.body["quotas"].clone()
}

#[tokio::test]
async fn two_gateways_create_no_more_managers_than_the_quota() {
    let app = TestApp::start_with(small).await;
    let mut other = config(app.database.url());
    small(&mut other);
    let (other, _shutdown) = serve(&other);
    let acme = app.account("acme").await;
    let path = format!("/v1/{}/managers", acme.namespace().await);
    let clients = [acme.at(&app.base), acme.at(&other)];
    let body = manager_body();
    let attempts = (0..8).map(|n| clients[n % 2].post(&path, &body));
    let answers = join_all(attempts).await;
    let made = answers.iter().filter(|answer| answer.status == 201).count();
    assert_eq!(made, 2);
    for refused in answers.iter().filter(|answer| answer.status != 201) {
        assert_eq!(refused.status, 400);
        assert_eq!(refused.details(), [("managers", "quota_exceeded")]);
        let message = refused.body["message"].as_str().unwrap();
        assert!(message.contains("its quota is 2"), "{message}");
    }
    assert_eq!(app.database.count("managers").await, 2);
}

#[tokio::test]
async fn two_gateways_create_no_more_namespaces_than_the_quota() {
    let app = TestApp::start_with(small).await;
    let mut other = config(app.database.url());
    small(&mut other);
    let (other, _shutdown) = serve(&other);
    let acme = app.account("acme").await;
    acme.namespace().await;
    let clients = [acme.at(&app.base), acme.at(&other)];
    let body = &json!({"nickname": "one more"});
    let attempts = clients.map(|client| async move { client.post("/v1/namespaces", body).await });
    let answers = join_all(attempts).await;
    let made = answers.iter().filter(|answer| answer.status == 201).count();
    assert_eq!(made, 1);
    for refused in answers.iter().filter(|answer| answer.status != 201) {
        assert_eq!(refused.status, 400);
        assert_eq!(refused.details(), [("namespaces", "quota_exceeded")]);
        let message = refused.body["message"].as_str().unwrap();
        assert!(message.contains("its quota is 2"), "{message}");
    }
    // Test mode counts too, and stores nothing.
    let tested = async |client: &Client| {
        let send = client.send(Method::POST, "/v1/namespaces", |request| {
            request.header("x-test", "true").json(body)
        });
        send.await
    };
    let refused = tested(&acme).await;
    assert_eq!(refused.details(), [("namespaces", "quota_exceeded")]);
    let change = Change {
        namespaces: Some(Some(3)),
        ..Change::default()
    };
    set(&app, change).await;
    for _ in 0..2 {
        assert_eq!(tested(&acme).await.status, 201);
    }
    assert_eq!(app.database.count("namespaces").await, 2);
    // The quota is per account.
    let globex = app.account("globex").await;
    assert_eq!(globex.post("/v1/namespaces", body).await.status, 201);
}

#[tokio::test]
async fn caller_sees_its_quotas_and_deleting_frees_capacity() {
    let app = TestApp::start_with(small).await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let connection = acme.connection(&namespace).await;
    acme.manager(&namespace).await;
    assert_eq!(
        quotas_of(&acme).await,
        json!({
            "namespaces": {"limit": 2, "used": 1},
            "managers": {"limit": 2, "used": 1}, "connections": {"limit": 1, "used": 1},
            "feeds": {"limit": 1, "used": 0}, "contentBytes": {"limit": 5000, "used": 0}, "scansPerDay": {"limit": 9, "used": 0}
        })
    );

    // All Namespaces of an account count together; another account does not count.
    let second = acme.namespace().await;
    let path = format!("/v1/{second}/connections");
    let refused = acme.post(&path, &connection_body()).await;
    assert_eq!(refused.status, 400);
    assert_eq!(refused.details(), [("connections", "quota_exceeded")]);
    let tested = acme
        .send(Method::POST, &path, |request| {
            request.header("x-test", "true").json(&connection_body())
        })
        .await;
    assert_eq!(tested.details(), [("connections", "quota_exceeded")]);
    let globex = app.account("globex").await;
    globex.connection(&globex.namespace().await).await;

    let deleted = acme.delete(&format!("/v1/{connection}")).await;
    assert_eq!(deleted.status, 200);
    acme.connection(&second).await;
    // A deleted Namespace frees its share of the quota.
    let path = format!("/v1/{second}?force=true");
    assert_eq!(acme.delete(&path).await.status, 200);
    acme.connection(&namespace).await;
}

#[tokio::test]
async fn lowered_quota_keeps_existing_resources() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let manager = acme.manager(&namespace).await;
    acme.manager(&namespace).await;
    let none = Change {
        managers: Some(Some(1)),
        ..Change::default()
    };
    set(&app, none).await;
    assert_eq!(
        quotas_of(&acme).await["managers"],
        json!({"limit": 1, "used": 2})
    );

    let path = format!("/v1/{namespace}/managers");
    assert_eq!(acme.post(&path, &manager_body()).await.status, 400);
    let patched = acme
        .patch(
            &format!("/v1/{manager}"),
            &json!({"nickname": "still ours"}),
        )
        .await;
    assert_eq!(patched.status, 200);
    let applied = acme.post(&format!("/v1/{manager}:apply"), &json!({})).await;
    assert_eq!(applied.status, 200);
}

#[tokio::test]
async fn enabling_a_manager_cannot_exceed_the_quota_of_feeds() {
    let app = TestApp::start_with(small).await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let mut body = manager_body();
    body["enable"] = json!(false);
    let manager = acme.made(&format!("/v1/{namespace}/managers"), &body).await;
    let mut instructions = test_support::instructions("kettle");
    instructions.feeds = vec!["a:1".parse().unwrap(), "a:2".parse().unwrap()];
    app.apply(&manager, &instructions).await;

    let enable = async |enable: bool| {
        acme.patch(&format!("/v1/{manager}"), &json!({"enable": enable}))
            .await
    };
    let refused = enable(true).await;
    assert_eq!(refused.status, 400);
    assert_eq!(refused.details(), [("enable", "quota_exceeded")]);
    assert_eq!(
        acme.get(&format!("/v1/{manager}")).await.body["enable"],
        false
    );

    let two = Change {
        feeds: Some(Some(2)),
        ..Change::default()
    };
    set(&app, two).await;
    assert_eq!(enable(true).await.status, 200);
    assert_eq!(
        quotas_of(&acme).await["feeds"],
        json!({"limit": 2, "used": 2})
    );
    // Repeating this, and disabling and enabling, changes nothing: the Manager already watches these feeds.
    assert_eq!(enable(true).await.status, 200);
    assert_eq!(enable(false).await.status, 200);
    assert_eq!(enable(true).await.status, 200);
}

#[tokio::test]
async fn bytes_of_instructions_and_mutes_cannot_exceed_the_quota() {
    let app = TestApp::start_with(small).await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let manager = acme.manager(&namespace).await;
    let mutes: Vec<Value> = (0..100)
        .map(|n| json!({"type": "TERM", "value": format!("a word {n}")}))
        .collect();
    let path = format!("/v1/{namespace}");
    let half = json!({"mutes": mutes});
    assert_eq!(acme.patch(&path, &half).await.status, 200);
    let used = quotas_of(&acme).await["contentBytes"]["used"].take();
    assert!(used.as_u64() > Some(2_500), "{used}");

    let mut created = manager_body();
    created["mutes"] = json!(mutes);
    let refused = [
        acme.patch(&format!("/v1/{manager}"), &half).await,
        acme.post(&format!("{path}/managers"), &created).await,
        acme.post(
            "/v1/namespaces",
            &json!({"nickname": "more", "mutes": mutes}),
        )
        .await,
    ];
    for refused in refused {
        assert_eq!(refused.status, 400);
        assert_eq!(refused.details(), [("mutes", "quota_exceeded")]);
        let message = refused.body["message"].as_str().unwrap();
        let told = "bytes of instructions and mutes, and its quota is 5000";
        assert!(message.contains(told), "{message}");
    }
    assert_eq!(quotas_of(&acme).await["contentBytes"]["used"], used);
    let terms: Vec<Value> = (0..100)
        .map(|n| json!({"text": format!("another word {n}"), "weight": 1}))
        .collect();
    let instructions = json!({"instructions": {"include": terms, "threshold": 1}});
    let refused = acme.patch(&format!("/v1/{manager}"), &instructions).await;
    assert_eq!(refused.details(), [("instructions", "quota_exceeded")]);
}
