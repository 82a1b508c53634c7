use std::time::Duration;

use domain::{Timestamp, stats::Interval};
use serde_json::{Value, json};
use store::stats::{self, Deltas};

use crate::app::TestApp;

/// Appends statistics and folds them at once.
async fn count(app: &TestApp, deltas: &Deltas) {
    let mut conn = app.database.connect().await;
    stats::append(&mut conn, deltas).await.unwrap();
    while stats::fold(&mut conn, 0, 100).await.unwrap() != Some(0) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn statistics_are_returned_for_each_resource() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let manager = acme.manager(&namespace).await;
    let connection = acme.connection(&namespace).await;
    let now = Timestamp::now();
    let mut deltas = Deltas::default();
    deltas.scan(manager.parse().unwrap(), now, Duration::from_millis(12));
    deltas.suppressed(manager.parse().unwrap(), now, 3);
    deltas.succeeded(connection.parse().unwrap(), now, Duration::from_millis(5));
    deltas.failed_attempt(connection.parse().unwrap(), now);
    count(&app, &deltas).await;

    let hour = Interval::Hour.floor(now);
    let before = hour.minus(Duration::from_secs(3_600)).to_string();
    let end = now.plus(Duration::from_secs(1)).to_string();
    let query = [
        ("startTime", before.as_str()),
        ("endTime", end.as_str()),
        ("interval", "1h"),
    ];
    let get = async |name: &str| {
        acme.get_with(&format!("/v1/{name}/stats"), &query)
            .await
            .body
    };

    let of_manager = get(&manager).await;
    assert_eq!(of_manager["interval"], "1h");
    let zero = json!({"p50": 0, "p99": 0});
    let points = of_manager["points"].as_array().unwrap();
    assert_eq!(
        points[0],
        json!({"time": before, "posts": 0, "scans": 0, "suppressed": 0, "scanDelayMs": zero})
    );
    assert_eq!(
        points[1],
        json!({"time": hour, "posts": 0, "scans": 1, "suppressed": 3, "scanDelayMs": {"p50": 12, "p99": 12}})
    );
    let deliveries = json!({"succeeded": 1, "failedAttempts": 1, "exhausted": 0});
    let of_connection = get(&connection).await;
    assert_eq!(
        of_connection["points"][1],
        json!({"time": hour, "deliveries": deliveries, "deliveryDelayMs": {"p50": 5, "p99": 5}})
    );
    let whole = get(&namespace).await;
    let keys: Vec<&String> = whole["points"][1].as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 7, "{keys:?}");
    assert_eq!(whole["points"][1]["scans"], 1);
    assert_eq!(whole["points"][1]["deliveries"], deliveries);
}

#[tokio::test]
async fn invalid_stats_parameters_are_named() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let path = format!("/v1/{namespace}/stats");
    let issues = async |query: &[(&str, &str)]| -> Value {
        let answer = acme.get_with(&path, query).await;
        assert_eq!(answer.status, 400, "{}", answer.body);
        answer.body["details"].clone()
    };
    assert_eq!(
        issues(&[]).await,
        json!([{"field": "startTime", "issue": "required"}])
    );
    let long = [
        ("startTime", "2026-01-01T00:00:00Z"),
        ("endTime", "2026-03-01T00:00:00Z"),
    ];
    assert_eq!(
        issues(&long).await,
        json!([{"field": "interval", "issue": "too_many"}])
    );
    let all = issues(&[
        ("startTime", "then"),
        ("endTime", ""),
        ("interval", "1w"),
        ("x", ""),
    ])
    .await;
    assert_eq!(all.as_array().unwrap().len(), 3, "{all}");
}
