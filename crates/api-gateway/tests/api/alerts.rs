//! Alerts about the API fire by their causes.

use std::time::Duration;

use domain::{
    Timestamp,
    key::{ApiKey, Role},
};
use runtime::Health;
use test_support::Alert;

use crate::{app::TestApp, client::Client, tls::Files};

async fn watch(name: &'static str) -> Alert {
    Alert::of_service(name, "api-gateway", &Health::new()).await
}

#[tokio::test]
async fn alerts_fire_when_requests_fail() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    assert_eq!(acme.get("/v1/namespaces").await.status, 200);
    let fast = watch("EarshotApiErrorBudgetFast").await;
    let slow = watch("EarshotApiErrorBudgetSlow").await;
    app.database.go_away().await;
    assert_eq!(acme.get("/v1/namespaces").await.status, 503);
    fast.repeats().fires().await;
    slow.repeats().fires().await;
}

#[tokio::test]
async fn alert_fires_when_the_certificate_has_expired() {
    let (files, _) = Files::new();
    let app = files.gateway().await;
    let alert = watch("EarshotCertificateExpiring").await;
    files.expire();
    alert.fires().await;
    drop(app);
}

#[tokio::test]
async fn alert_fires_when_a_key_in_use_expires_soon() {
    let app = TestApp::start().await;
    let key = ApiKey::generate();
    let expire_time = Timestamp::now().plus(Duration::from_hours(13 * 24));
    app.store_key("acme", &key, Role::Viewer, None, Some(expire_time))
        .await;
    let older = "UPDATE api_keys SET create_time = create_time - interval '90 days'";
    app.database.run(older).await;
    // No one uses it yet.
    let alert = watch("EarshotKeysExpiring").await;
    let client = Client::new(&app.base, Some(key.expose()));
    assert_eq!(client.get("/v1/caller").await.status, 200);
    alert.fires().await;
}
