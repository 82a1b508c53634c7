use std::time::Duration;

use runtime::Health;
use test_support::{Alert, TestDatabase};

use super::{clean, purge_audit_events};
use crate::metrics::PARTITIONS_KEPT;

const DAY: Duration = Duration::from_secs(86_400);

/// Inserts a row into each partitioned table, `days` old, with the delivery still waiting, the Scan's keys, and a Scan of a
/// digest.
async fn rows(database: &TestDatabase, days: u32) {
    let at = format!("(now() - interval '{days} days')");
    let id = format!(
        "(lpad(to_hex((extract(epoch FROM {at}) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid"
    );
    for table in ["posts", "scans", "deliveries", "delivery_attempts"] {
        database
            .run(&format!("SELECT ensure_partitions('{table}', {at}, 1)"))
            .await;
    }
    for sql in [
        format!(
            "INSERT INTO posts (id, receive_time, post_key, feed, type, time, post_id, title, url, user_id, user_name, user_url) \
             VALUES ({id}, {at}, gen_random_uuid(), 'forum:a', 'FORUM_LINK', {at}, 'a', 'title', '', '', '', '')"
        ),
        format!("INSERT INTO post_keys VALUES (gen_random_uuid(), {id})"),
        format!(
            "INSERT INTO scan_keys VALUES (gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), {at})"
        ),
        format!(
            "INSERT INTO scans (namespace_id, manager_id, id, create_time, update_time, post_id, post_receive_time, value, \
                 matched, fanned_out) \
             VALUES (gen_random_uuid(), gen_random_uuid(), {id}, {at}, {at}, {id}, {at}, true, '{{}}', true)"
        ),
        format!(
            "INSERT INTO deliveries (namespace_id, connection_id, id, create_time, update_time, manager_id, scan_id, state, \
                 next_attempt_time) \
             VALUES (gen_random_uuid(), gen_random_uuid(), {id}, {at}, {at}, gen_random_uuid(), {id}, 'PENDING', now())"
        ),
        format!(
            "INSERT INTO delivery_attempts (delivery_id, number, time, latency_ms) VALUES ({id}, 1, {at}, 1)"
        ),
        format!(
            "INSERT INTO digest_scans (namespace_id, connection_id, manager_id, scan_id, create_time, delivery_id) \
             VALUES (gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), {id}, {at}, {id})"
        ),
    ] {
        assert_eq!(database.run(&sql).await, 1, "{sql}");
    }
}

const TABLES: [&str; 7] = [
    "posts",
    "post_keys",
    "scans",
    "scan_keys",
    "deliveries",
    "delivery_attempts",
    "digest_scans",
];

async fn counts(database: &TestDatabase) -> Vec<i64> {
    let mut counts = Vec::new();
    for table in TABLES {
        counts.push(database.count(table).await);
    }
    counts
}

#[tokio::test]
async fn only_rows_past_retention_are_removed() {
    let database = TestDatabase::create().await;
    rows(&database, 0).await;
    rows(&database, 150).await;
    let mut conn = database.connect().await;
    assert!(clean(&mut conn, 200 * DAY, 200 * DAY).await.unwrap());
    assert_eq!(counts(&database).await, [2; 7], "nothing is past that");
    assert!(clean(&mut conn, 90 * DAY, 30 * DAY).await.unwrap());
    assert_eq!(counts(&database).await, [1; 7]);
    assert_eq!(
        database.count("deliveries WHERE state = 'PENDING'").await,
        1
    );
    assert!(clean(&mut conn, 90 * DAY, 30 * DAY).await.unwrap(), "again");
    assert_eq!(counts(&database).await, [1; 7]);
}

#[tokio::test]
async fn partitions_that_cannot_be_dropped_are_counted() {
    let database = TestDatabase::create().await;
    rows(&database, 150).await;
    database.run("UPDATE scans SET fanned_out = false").await;
    let mut conn = database.connect().await;
    let kept = |table| PARTITIONS_KEPT.with_label_values(&[table]).get();
    let dispatcher = "webhook-dispatcher";
    let alert = Alert::of_service("EarshotRetentionStuck", dispatcher, &Health::new()).await;
    assert!(!clean(&mut conn, 90 * DAY, 30 * DAY).await.unwrap());
    assert_eq!(
        ["posts", "scans", "deliveries"].map(kept),
        [1, 1, 0],
        "a Scan without deliveries needs its post"
    );
    alert.fires().await;
    database.run("UPDATE scans SET fanned_out = true").await;
    assert!(clean(&mut conn, 90 * DAY, 30 * DAY).await.unwrap());
    assert_eq!(["posts", "scans", "deliveries"].map(kept), [0; 3]);
}

#[tokio::test]
async fn deliveries_of_removed_scans_are_not_sent() {
    let database = TestDatabase::create().await;
    rows(&database, 0).await;
    rows(&database, 40).await;
    let mut conn = database.connect().await;
    assert!(clean(&mut conn, 20 * DAY, 90 * DAY).await.unwrap());
    let given_up = "deliveries WHERE state = 'EXHAUSTED' AND last_error = 'scan_expired'";
    assert_eq!(database.count(given_up).await, 1);
    let waiting = "deliveries WHERE state = 'PENDING'";
    assert_eq!(database.count(waiting).await, 1, "its Scan is there");
    assert_eq!(database.count("scans").await, 1);
    assert_eq!(database.count("posts").await, 2, "posts outlive Scans");
}

#[tokio::test]
async fn audit_events_have_a_separate_retention() {
    let database = TestDatabase::create().await;
    database
        .run("INSERT INTO accounts (id, name, create_time) VALUES (gen_random_uuid(), 'acme', now())")
        .await;
    let inserted = database
        .run(
            "INSERT INTO audit_events (account_id, id, create_time, action, resource, fields, actor_type) \
             SELECT id, gen_random_uuid(), now() - day * interval '1 day', 'CREATE', day::text, '{}', 'OPERATOR' \
             FROM accounts, unnest('{0,399,401}'::int[]) AS day",
        )
        .await;
    assert_eq!(inserted, 3);
    let mut conn = database.connect().await;
    assert!(clean(&mut conn, DAY, DAY).await.unwrap());
    assert_eq!(database.count("audit_events").await, 3, "not with Scans");
    purge_audit_events(&mut conn, 400 * DAY).await.unwrap();
    let left = database.texts("resource", "audit_events ORDER BY 1").await;
    assert_eq!(left, ["0", "399"]);
}
