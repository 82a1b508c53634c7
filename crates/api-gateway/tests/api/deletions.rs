//! DELETE: the resource disappears from every response at once.

use serde_json::json;
use test_support::post;

use crate::{
    app::TestApp,
    client::{Answer, Client},
    scans::record,
};

async fn delete(client: &Client, name: &str) -> Answer {
    client.delete(&format!("/v1/{name}")).await
}

#[tokio::test]
async fn deleting_a_namespace_with_content_needs_force() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let empty = acme.namespace().await;
    let answer = delete(&acme, &empty).await;
    assert_eq!((answer.status, answer.body), (200, json!({})));
    assert_eq!(delete(&acme, &empty).await.status, 404);

    let namespace = acme.namespace().await;
    let hook = acme.connection(&namespace).await;
    let manager = acme.manager(&namespace).await;
    record(&app, &manager, &[post("1", "first")]).await;
    assert_eq!(
        delete(&acme, &namespace).await.details(),
        [("force", "not_empty")]
    );
    let answer = delete(&acme, &format!("{namespace}?force=yes")).await;
    assert_eq!(answer.details(), [("force", "invalid_format")]);
    let answer = delete(&acme, &format!("{namespace}?force=true")).await;
    assert_eq!((answer.status, answer.body), (200, json!({})));
    for name in [&namespace, &hook, &manager, &format!("{manager}/scans")] {
        assert_eq!(acme.get(&format!("/v1/{name}")).await.status, 404, "{name}");
    }
    assert_eq!(
        acme.get("/v1/namespaces").await.body,
        json!({"namespaces": []})
    );
}

#[tokio::test]
async fn deleting_a_manager_deletes_its_scans() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let (manager, other) = (
        acme.manager(&namespace).await,
        acme.manager(&namespace).await,
    );
    record(&app, &manager, &[post("1", "first")]).await;
    record(&app, &other, &[post("2", "second")]).await;
    let all = format!("/v1/{namespace}/managers/-/scans");
    let scans = acme.get(&all).await.body;
    let scan = scans["scans"][1]["name"].as_str().unwrap();
    assert!(scan.starts_with(&manager));
    app.forget_events();

    let answer = delete(&acme, &manager).await;
    assert_eq!((answer.status, answer.body), (200, json!({})));
    for name in [&manager, &format!("{manager}/scans"), scan] {
        assert_eq!(acme.get(&format!("/v1/{name}")).await.status, 404, "{name}");
    }
    let answer = acme
        .patch(&format!("/v1/{scan}"), &json!({"value": false}))
        .await;
    assert_eq!(answer.status, 404);
    let left = acme.get(&all).await.body;
    assert_eq!(left["scans"].as_array().unwrap().len(), 1);
    assert_eq!(app.events(), ["manager.changed"]);
    assert_eq!(delete(&acme, &manager).await.status, 404);
}

#[tokio::test]
async fn deleting_a_connection_in_use_needs_force() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let hook = acme.connection(&namespace).await;
    let manager = acme.manager(&namespace).await;
    let answer = acme
        .patch(
            &format!("/v1/{manager}"),
            &json!({"notices": [{"type": "HTTP_REQUEST", "connection": hook}]}),
        )
        .await;
    assert_eq!(answer.status, 200);
    assert_eq!(delete(&acme, &hook).await.details(), [("force", "in_use")]);
    assert_eq!(
        delete(&acme, &format!("{hook}?force=true")).await.body,
        json!({})
    );
    let manager = acme.get(&format!("/v1/{manager}")).await;
    assert_eq!(manager.body["notices"], json!([]));
    assert_eq!(delete(&acme, &hook).await.status, 404);
}
