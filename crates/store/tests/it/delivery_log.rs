//! The log as clients read it: complete, in order, and equally fast at any depth.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use domain::{
    ConnectionName, Delivery, DeliveryState, Id, ManagerName, ScanName, list::DELIVERY_FIELDS,
};
use store::deliveries;

use crate::{
    rows,
    support::{Start, list_query, run, start, walk},
};

const STATES: &str =
    "(ARRAY['SUCCEEDED', 'EXHAUSTED', 'RETRYING', 'IN_FLIGHT', 'PENDING', 'CANCELLED'])[1 + n % 6]";

struct Log {
    at: Start,
    first: ConnectionName,
    second: ConnectionName,
}

async fn log() -> Log {
    let mut at = start().await;
    let first = at
        .fixture
        .connection(&mut at.conn, "https://a.example/")
        .await;
    let second = at
        .fixture
        .connection(&mut at.conn, "https://b.example/")
        .await;
    let manager = ManagerName {
        namespace: at.fixture.namespace,
        manager: Id::generate(),
    };
    for connection in [first, second] {
        rows::deliveries(
            &mut at.conn,
            connection,
            manager,
            60,
            "now()",
            "1 minute",
            STATES,
        )
        .await;
    }
    Log { at, first, second }
}

#[tokio::test]
async fn every_order_walks_the_whole_log() {
    let mut log = log().await;
    for field in DELIVERY_FIELDS {
        for direction in ["", " desc"] {
            let order = format!("{}{direction}", field.name);
            let items = walk(async |token| {
                let list = list_query(DELIVERY_FIELDS, 7, token, "", &order);
                deliveries::list(&mut log.at.conn, log.first, &list)
                    .await
                    .unwrap()
            })
            .await;
            let names: BTreeSet<String> = items.iter().map(|one| one.name.to_string()).collect();
            assert_eq!((items.len(), names.len()), (60, 60), "{order}");
        }
    }
    let all = walk(async |token| {
        let list = list_query(DELIVERY_FIELDS, 7, token, "", "");
        deliveries::list_all(&mut log.at.conn, log.at.fixture.namespace, &list)
            .await
            .unwrap()
    })
    .await;
    assert_eq!(all.len(), 120);
    assert!(all.is_sorted_by(|a, b| a.create_time >= b.create_time));
    let of_second = all
        .iter()
        .filter(|one| one.name.connection == log.second.connection);
    assert_eq!(of_second.count(), 60);
}

#[tokio::test]
async fn every_field_of_the_delivery_log_filters() {
    let mut log = log().await;
    let all = filtered(&mut log, "").await;
    let one = all[17].clone();
    let time = one.create_time;
    let scan = one.scan.unwrap();
    let matching = |what: &dyn Fn(&Delivery) -> bool| all.iter().filter(|one| what(one)).count();
    for (filter, expected) in [
        (format!("name = \"{}\"", one.name), 1),
        (format!("scan = \"{scan}\""), 1),
        (format!("NOT scan = \"{scan}\""), 59),
        (
            format!("createTime >= \"{time}\""),
            matching(&|one| one.create_time >= time),
        ),
        (
            "state = EXHAUSTED".to_owned(),
            matching(&|one| one.state == DeliveryState::Exhausted),
        ),
        (
            "state = EXHAUSTED OR state = CANCELLED".to_owned(),
            matching(&|one| {
                matches!(
                    one.state,
                    DeliveryState::Exhausted | DeliveryState::Cancelled
                )
            }),
        ),
        ("attemptCount = 1".to_owned(), 60),
        ("attemptCount > 1".to_owned(), 0),
        (
            "lastStatusCode >= 400".to_owned(),
            matching(&|one| one.last_status_code.is_some_and(|code| code >= 400)),
        ),
        (
            "NOT lastStatusCode >= 400".to_owned(),
            matching(&|one| one.last_status_code.is_none_or(|code| code < 400)),
        ),
        (
            "lastError = \"timeout\"".to_owned(),
            matching(&|one| one.last_error.is_some()),
        ),
        (
            format!("nextAttemptTime > \"{time}\""),
            matching(&|one| one.next_attempt_time.is_some_and(|next| next > time)),
        ),
    ] {
        let found = filtered(&mut log, &filter).await;
        assert_eq!(found.len(), expected, "{filter}");
        assert!(
            expected > 0 || filter == "attemptCount > 1",
            "{filter} says nothing"
        );
    }
    let list = list_query(
        DELIVERY_FIELDS,
        100,
        None,
        &format!("scan = \"{scan}\""),
        "",
    );
    let namespace = log.at.fixture.namespace;
    let page = deliveries::list_all(&mut log.at.conn, namespace, &list)
        .await
        .unwrap();
    assert_eq!(page.items, [one]);
}

async fn filtered(log: &mut Log, filter: &str) -> Vec<Delivery> {
    let list = list_query(DELIVERY_FIELDS, 100, None, filter, "");
    let page = deliveries::list(&mut log.at.conn, log.first, &list)
        .await
        .unwrap();
    page.items
}

#[tokio::test]
async fn a_delivery_is_shown_with_its_attempts() {
    let mut log = log().await;
    let one = filtered(&mut log, "").await.remove(3);
    let id = one.name.delivery.to_uuid();
    for number in 1..=130 {
        let sql = format!(
            "INSERT INTO delivery_attempts VALUES ('{id}', {number}, now() + {number} * interval '1 second', 503, NULL, 21, \
                 NULL, 2, NULL, 20, '203.0.113.7', 'busy')"
        );
        run(&mut log.at.conn, sql).await;
    }
    let found = deliveries::get_with_attempts(&mut log.at.conn, one.name)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(found.delivery, one);
    assert_eq!(found.attempts.len(), 100, "the newest");
    assert!(found.attempts.is_sorted_by_key(|attempt| attempt.time));
    let json = serde_json::to_value(&found).unwrap();
    let last = &json["attempts"][99];
    assert_eq!(
        last["phases"],
        serde_json::json!({"connectMs": 2, "firstByteMs": 20})
    );
    assert_eq!(
        (&last["statusCode"], &last["latencyMs"]),
        (&503.into(), &21.into())
    );
    let elsewhere = domain::DeliveryName {
        connection: log.second.connection,
        ..one.name
    };
    let foreign = deliveries::get_with_attempts(&mut log.at.conn, elsewhere)
        .await
        .unwrap();
    assert_eq!(foreign, None);
}

#[tokio::test]
async fn a_reopened_delivery_is_due_with_a_new_schedule() {
    let mut log = log().await;
    for one in filtered(&mut log, "").await {
        let reopened = deliveries::reopen(&mut log.at.conn, one.name)
            .await
            .unwrap()
            .unwrap();
        if one.state == DeliveryState::InFlight {
            assert_eq!(reopened.state, DeliveryState::InFlight, "its lease stands");
        } else {
            assert_eq!(reopened.state, DeliveryState::Pending);
            assert!(reopened.next_attempt_time.is_some());
        }
        assert_eq!(reopened.attempt_count, 1, "attempts are appended");
    }
    let marked = "deliveries WHERE urgent AND schedule_base = 1 AND reopen_time IS NOT NULL AND \
        reopen_asked = (state = 'IN_FLIGHT')";
    assert_eq!(log.at.database.count(marked).await, 60);
}

#[tokio::test]
async fn a_delivery_without_a_scan_is_not_reopened() {
    let mut log = log().await;
    let one = filtered(&mut log, "").await.remove(0);
    let scan: ScanName = one.scan.unwrap();
    run(
        &mut log.at.conn,
        format!("DELETE FROM scans WHERE id = '{}'", scan.scan.to_uuid()),
    )
    .await;
    assert_eq!(
        deliveries::reopen(&mut log.at.conn, one.name)
            .await
            .unwrap(),
        None
    );
    let found = deliveries::get(&mut log.at.conn, one.name).await.unwrap();
    assert_eq!(found, Some(one));
}

/// `cargo test --release -p store -- --ignored --nocapture ten_million`; takes minutes and some 8 GB.
/// `EARSHOT_LOG_ROWS` makes it smaller.
#[tokio::test]
#[ignore = "fills a database with ten million rows"]
async fn a_page_of_ten_million_is_read_within_50_ms() {
    let mut at = start().await;
    #[expect(clippy::disallowed_methods, reason = "a test is no service")]
    let rows: u64 = std::env::var("EARSHOT_LOG_ROWS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(10_000_000);
    let (big, small) = (
        at.fixture
            .connection(&mut at.conn, "https://a.example/")
            .await,
        at.fixture
            .connection(&mut at.conn, "https://b.example/")
            .await,
    );
    let manager = ManagerName {
        namespace: at.fixture.namespace,
        manager: Id::generate(),
    };
    // Over 28 days, which five weeks hold.
    for days in (7..=35).step_by(7) {
        rows::partition(
            &mut at.conn,
            "deliveries",
            &format!("now() - interval '{days} days'"),
        )
        .await;
        rows::partition(
            &mut at.conn,
            "scans",
            &format!("now() - interval '{days} days'"),
        )
        .await;
    }
    let step = 28.0 * 86_400.0 / rows as f64;
    let state = "CASE WHEN n % 1000 = 0 THEN 'EXHAUSTED' ELSE 'SUCCEEDED' END";
    let made = Instant::now();
    let share = rows / 10;
    for part in 0..10 {
        let newest = format!(
            "now() - interval '{} seconds'",
            step * (share * part) as f64
        );
        let step = format!("{step} seconds");
        rows::deliveries(&mut at.conn, big, manager, share, &newest, &step, state).await;
    }
    rows::deliveries(
        &mut at.conn,
        small,
        manager,
        1_000,
        "now()",
        "1 minute",
        state,
    )
    .await;
    run(&mut at.conn, "VACUUM ANALYZE deliveries").await;
    println!("{rows} deliveries made in {:.0?}", made.elapsed());

    let middle = at
        .database
        .texts("to_char(now() AT TIME ZONE 'UTC' - interval '14 days', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')", "(SELECT) AS one")
        .await
        .remove(0);
    let scan = {
        let list = list_query(
            DELIVERY_FIELDS,
            1,
            None,
            &format!("createTime < \"{middle}\""),
            "",
        );
        deliveries::list(&mut at.conn, big, &list)
            .await
            .unwrap()
            .items[0]
            .scan
            .unwrap()
    };
    for (what, filter, order, all) in [
        ("newest first", String::new(), "", false),
        ("oldest first", String::new(), "createTime", false),
        (
            "from the middle",
            format!("createTime < \"{middle}\""),
            "",
            false,
        ),
        (
            "given up, 1 in 1,000",
            "state = EXHAUSTED".to_owned(),
            "",
            false,
        ),
        (
            "given up, with a status",
            "state = EXHAUSTED AND lastStatusCode >= 400".to_owned(),
            "",
            false,
        ),
        ("of one scan", format!("scan = \"{scan}\""), "", false),
        ("all connections", String::new(), "", true),
        (
            "all connections, given up",
            "state = EXHAUSTED".to_owned(),
            "",
            true,
        ),
    ] {
        let mut times = Vec::new();
        let mut token: Option<String> = None;
        for _ in 0..300 {
            let list = list_query(DELIVERY_FIELDS, 100, token.as_deref(), &filter, order);
            let begun = Instant::now();
            let page = if all {
                deliveries::list_all(&mut at.conn, at.fixture.namespace, &list)
                    .await
                    .unwrap()
            } else {
                deliveries::list(&mut at.conn, big, &list).await.unwrap()
            };
            times.push(begun.elapsed());
            token = page.next_page_token;
        }
        times.sort_unstable();
        let (p50, p99) = (times[150], times[297]);
        println!("{what:28} pages of 100: p50 {p50:>8.1?}  p99 {p99:>8.1?}");
        assert!(p99 < Duration::from_millis(50), "{what}: p99 {p99:?}");
    }
}
