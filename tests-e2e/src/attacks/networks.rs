//! Addresses of customers that lead to networks that are denied.

use std::sync::Arc;

use serde_json::json;

use super::{
    Shared,
    host::{Host, ok},
    stage::{Account, Stage},
};
use crate::suite::Test;

pub(super) fn tests(shared: &Arc<Shared>) -> Vec<Test> {
    vec![shared.test_alone("denied_networks_are_not_contacted", denied)]
}

/// Creates a Connection to an address, and tests it where that is possible.
async fn send(account: &Account, url: &str) {
    let body = json!({
        "nickname": "receiver", "type": "HTTP_CONNECTION", "url": url, "method": "POST",
    });
    let answer = account.post(&account.path("connections"), &body).await;
    if answer.status != 201 {
        assert_eq!(answer.status, 400, "{}", answer.json());
        return;
    }
    let name = answer.json()["name"].as_str().unwrap().to_owned();
    let answer = account.post(&format!("/v1/{name}:test"), &json!({})).await;
    assert_eq!(answer.status, 200, "{}", answer.json());
}

async fn denied() {
    let settings = "[outbound]\nallow_cidrs = [\"127.0.0.0/8\"]\ndeny_cidrs = [\"127.0.0.2/32\"]\n\
                    allow_http = true\n";
    let stage = Stage::configured(|_| settings.to_owned()).await;
    let denied = Host::start_at("127.0.0.2:0", |_| ok()).await.unwrap();
    let allowed = Host::start(|_| ok()).await;
    let a = stage.account("a").await;
    send(&a, &allowed.url("/hook")).await;
    assert_eq!(allowed.count("/hook"), 1);
    send(&a, &denied.url("/hook")).await;
    assert_eq!(denied.count("/"), 0, "a denied network was contacted");
}
