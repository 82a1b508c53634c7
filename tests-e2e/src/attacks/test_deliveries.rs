//! Test deliveries, which are requests that an attacker can cause at once.

use std::sync::Arc;

use futures::future::join_all;
use serde_json::json;

use super::{
    Shared,
    host::{Host, Reply},
    stage::Stage,
};
use crate::suite::Test;

const TESTS: usize = 12;

pub(super) fn tests(shared: &Arc<Shared>) -> Vec<Test> {
    vec![shared.test(
        "test_deliveries_of_an_account_are_four_at_a_time",
        at_a_time,
    )]
}

/// The receiver answers none of them, so each that it gets is open until the dispatcher gives up.
async fn at_a_time(stage: &Stage) {
    let host = Host::start(|_| Reply::Hang).await;
    let a = stage.account("a").await;
    let mut paths = Vec::new();
    for number in 0..TESTS {
        let url = host.url(&format!("/hook/{number}"));
        let name = a.create_connection(&a.namespace, &url, json!({})).await;
        paths.push(format!("/v1/{name}:test"));
    }
    let body = json!({});
    let answers = join_all(paths.iter().map(|path| a.post(path, &body))).await;
    let refused = answers.iter().filter(|answer| answer.status == 429);
    assert_eq!((host.count("/hook"), refused.count()), (4, TESTS - 4));
}
