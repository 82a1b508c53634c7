//! Alerts about the API fire by their causes.

use runtime::Health;
use test_support::Alert;

use crate::{app::TestApp, tls::Files};

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
