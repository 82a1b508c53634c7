//! The step from Scans to deliveries: once each, and only to Connections that may be sent to.

use std::collections::BTreeSet;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use std::time::Duration;

use diesel::connection::{Instrumentation, InstrumentationEvent};
use domain::{ConnectionName, Post, ScanName, Timestamp, list::SCAN_FIELDS};
use store::deliveries::{Subject, Task, Want};
use store::seal::Sealer;
use store::{AsyncConnection, connections, deliveries, keyed, lanes};
use test_support::{instructions, post};
use uuid::Uuid;

use super::{rows_read, sending};
use crate::support::{list_query, number, record, run};

#[tokio::test]
async fn a_scan_is_fanned_out_once_in_the_order_of_the_notices() {
    let mut at = sending(3).await;
    let scan = at.scan("forum:1").await;
    let (first, last) = (at.connections[0], at.connections[2]);
    let sent = at.fan_out(scan, &[last, first]).await;
    let names: Vec<_> = sent
        .iter()
        .map(|task| task.delivery.connection_name())
        .collect();
    assert_eq!(names, [first, last]);
    assert_eq!(sent[0].url, "https://receiver.example/0");
    assert_eq!(sent[0].headers.0["x-secret"], "hush");
    let (name, post) = subject(&sent[0]);
    assert_eq!(
        (name, post.id.as_str(), sent[0].attempt_count),
        (scan, "forum:1", 0)
    );
    assert_eq!(at.row(sent[0].delivery).await, "IN_FLIGHT 0");

    assert!(
        at.fan_out(scan, &[first, last]).await.is_empty(),
        "the event came twice"
    );
    let replica = at.replica;
    let claimed = at.claim(replica, 10).await;
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].delivery.connection_name(), at.connections[1]);
    assert_eq!(
        number(&mut at.at.conn, "SELECT count(*) AS number FROM deliveries").await,
        3
    );
    // The id contains the application's time; all other times are the database's.
    let by_id = "SELECT count(*) AS number FROM deliveries \
                 WHERE id_time(id) <> create_time OR update_time IN (create_time, next_attempt_time)";
    assert_eq!(number(&mut at.at.conn, by_id).await, 0);
    let gone = ScanName {
        scan: domain::Id::generate(),
        ..scan
    };
    assert!(at.fan_out(gone, &[first]).await.is_empty());
}

#[tokio::test]
async fn post_is_read_once_for_all_deliveries_with_a_permit() {
    let mut at = sending(3).await;
    let new = post("forum:1", "kettle");
    let text_bytes = "kettle".len() + new.text.as_ref().map_or(0, String::len);
    let scan = record(&mut at.at.conn, at.manager, &[new]).await[0];
    let (sealer, last) = (at.at.fixture.sealer.clone(), at.connections[2]);
    let mut sizes = Vec::new();
    let admit = |name, _, bytes| {
        sizes.push(bytes);
        (name != last).then_some(())
    };
    let found = deliveries::fan_out(&mut at.at.conn, &sealer, &[scan], at.replica, admit).await;
    let tasks = found.unwrap().tasks;
    assert_eq!(sizes, [text_bytes; 3]);
    assert_eq!(tasks.len(), 2);
    assert_eq!(tasks[0].0.post_bytes(), text_bytes);
    let [(_, one), (_, other)] = [&tasks[0].0, &tasks[1].0].map(subject);
    assert!(Arc::ptr_eq(one, other));
}

fn subject(task: &Task) -> (ScanName, &Arc<Post>) {
    match &task.subject {
        Subject::Scan { name, post } => (*name, post),
        Subject::Event(event) => panic!("{event:?}"),
    }
}

/// A notice's filter accepts the Scans that a list with this filter has.
#[tokio::test]
async fn scan_is_delivered_where_it_meets_the_filter_of_the_notice() {
    let filters = [
        ("", 3),
        ("post.title : \"KETTLE\"", 2),
        ("post.title : \"kettle\" AND NOT post.title : \"red\"", 1),
        ("post.user.name = \"User\" AND match.score > 0.5", 3),
        ("match.score < 0.5 OR post.id = \"forum:2\"", 1),
        ("createTime < \"2020-01-01T00:00:00Z\"", 0),
        ("post.subforum.name != \"Sub\"", 0),
        ("of a later version", 3),
    ];
    let mut at = sending(filters.len()).await;
    for (position, (filter, _)) in filters.iter().enumerate() {
        let sql = format!(
            "UPDATE manager_notices SET filter = nullif('{filter}', '') WHERE position = {position}"
        );
        run(&mut at.at.conn, sql).await;
    }
    let mut scans = Vec::new();
    for (number, title) in ["a red kettle", "a Kettle", "a pan"]
        .into_iter()
        .enumerate()
    {
        let post = post(&format!("forum:{number}"), title);
        scans.extend(record(&mut at.at.conn, at.manager, &[post]).await);
    }
    at.fan_out_all(&scans).await;
    for ((filter, count), connection) in filters.iter().zip(at.connections.clone()) {
        let id = connection.connection.to_uuid();
        let of_connection = format!("deliveries WHERE connection_id = '{id}'");
        let delivered = at.at.database.texts("scan_id::text", &of_connection).await;
        assert_eq!(delivered.len(), *count, "{filter}");
        if *filter == "of a later version" {
            continue;
        }
        let list = list_query(SCAN_FIELDS, 100, None, filter, "");
        let page = store::scans::list(&mut at.at.conn, at.manager, &list).await;
        let listed = page.unwrap().items.into_iter();
        let listed: BTreeSet<String> = listed
            .map(|scan| scan.name.scan.to_uuid().to_string())
            .collect();
        assert_eq!(
            delivered.into_iter().collect::<BTreeSet<_>>(),
            listed,
            "{filter}"
        );
    }
    let waiting = "scans WHERE fanned_out IS NOT TRUE";
    assert_eq!(at.at.database.count(waiting).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_callers_fan_out_a_scan_once() {
    let mut at = sending(2).await;
    for round in 0..20 {
        let scan = at.scan(&format!("forum:{round}")).await;
        let caller = || {
            let (pool, sealer) = (at.at.database.pool(), at.at.fixture.sealer.clone());
            tokio::spawn(async move {
                let mut conn = pool.get().await.unwrap();
                conn.transaction(async |conn| {
                    let admit = |name, _, _| Some(name);
                    deliveries::fan_out(conn, &sealer, &[scan], Uuid::new_v4(), admit).await
                })
                .await
                .unwrap()
                .tasks
                .len()
            })
        };
        let (one, two) = (caller(), caller());
        let mut sent = [one.await.unwrap(), two.await.unwrap()];
        sent.sort_unstable();
        assert_eq!(sent, [0, 2], "round {round}");
    }
    assert_eq!(
        number(&mut at.at.conn, "SELECT count(*) AS number FROM deliveries").await,
        40
    );
}

#[tokio::test]
async fn the_fan_out_uses_a_generic_plan() {
    let mut at = sending(1).await;
    let sealer = at.at.fixture.sealer.clone();
    for round in 0..20 {
        let scan = at.scan(&format!("forum:{round}")).await;
        let conn = &mut at.at.conn;
        keyed::begin(conn).await.unwrap();
        let admit = |name, _, _| Some(name);
        let found = deliveries::fan_out(conn, &sealer, &[scan], at.replica, admit).await;
        assert_eq!(keyed::end(conn, found).await.unwrap().tasks.len(), 1);
    }
    // It begins with a comment, unlike the one that looks for it.
    let statement = "FROM pg_prepared_statements WHERE statement LIKE '--%WITH marked%'";
    let of = |column| format!("SELECT coalesce(sum({column}), -1)::bigint AS number {statement}");
    let conn = &mut at.at.conn;
    assert_eq!(number(conn, &of("generic_plans")).await, 20);
    assert_eq!(number(conn, &of("custom_plans")).await, 0);
}

#[tokio::test]
async fn many_scans_fan_out_in_one_statement() {
    let mut at = sending(2).await;
    let posts: Vec<_> = (0..30).map(|n| post(&format!("forum:{n}"), "t")).collect();
    let mut scans = record(&mut at.at.conn, at.manager, &posts).await;
    // A Scan that was announced before, and one that is announced twice.
    let [first, second] = at.connections[..] else {
        unreachable!()
    };
    assert_eq!(at.fan_out(scans[0], &[first]).await.len(), 1);
    scans.push(scans[1]);
    let sealer = at.at.fixture.sealer.clone();
    let admit = |name, _, _| (name == first).then_some(());
    let found = deliveries::fan_out(&mut at.at.conn, &sealer, &scans, at.replica, admit)
        .await
        .unwrap();
    assert_eq!(found.tasks.len(), 29);
    let waiting: Vec<_> = found.waiting.iter().map(|due| due.connection).collect();
    assert_eq!(waiting, [second]);
    let all = "SELECT count(*) AS number FROM deliveries";
    assert_eq!(number(&mut at.at.conn, all).await, 60);
}

#[tokio::test]
async fn a_delivery_whose_secrets_cannot_be_opened_waits() {
    let mut at = sending(1).await;
    let scan = at.scan("forum:1").await;
    let stranger = Sealer::new([("other".to_owned(), [1; 32])]).unwrap();
    let admit = |name, _, _| Some(name);
    let found = deliveries::fan_out(&mut at.at.conn, &stranger, &[scan], at.replica, admit)
        .await
        .unwrap();
    assert_eq!((found.tasks.len(), found.waiting.len()), (0, 1));
    let waiting = "SELECT count(*) AS number FROM deliveries WHERE state = 'PENDING'";
    assert_eq!(number(&mut at.at.conn, waiting).await, 1);
}

#[tokio::test]
async fn only_connections_that_accept_deliveries_are_admitted() {
    let mut at = sending(6).await;
    let [disabled, open, limited, behind, clear, chat] = at.connections[..] else {
        unreachable!()
    };
    let id = |name: ConnectionName| name.connection.to_uuid();
    connections::disable(&mut at.at.conn, disabled, "gone", Timestamp::now())
        .await
        .unwrap();
    for sql in [
        format!(
            "UPDATE connection_lanes SET open_until = now() + interval '1 hour', \
             next_due_time = now() + interval '1 hour' WHERE connection_id = '{}'",
            id(open)
        ),
        format!(
            "UPDATE connections SET max_per_second = 5 WHERE id = '{}'",
            id(limited)
        ),
        format!(
            "UPDATE connections SET format = 'DISCORD' WHERE id = '{}'",
            id(chat)
        ),
        format!(
            "UPDATE connection_lanes SET next_due_time = now() WHERE connection_id = '{}'",
            id(behind)
        ),
    ] {
        run(&mut at.at.conn, sql).await;
    }
    let scan = at.scan("forum:1").await;
    let sealer = at.at.fixture.sealer.clone();
    let mut asked = Vec::new();
    let admit = |name, _, _| {
        asked.push(name);
        None::<()>
    };
    let found = deliveries::fan_out(&mut at.at.conn, &sealer, &[scan], at.replica, admit)
        .await
        .unwrap();
    assert_eq!(asked, [clear]);
    let waiting: BTreeSet<_> = found.waiting.iter().map(|due| due.connection).collect();
    assert_eq!(waiting, [limited, behind, clear, chat].into());
    let restrained: Vec<_> = found.waiting.iter().filter(|due| due.restrained).collect();
    assert_eq!(restrained.len(), 2);

    let names: Vec<_> = waiting.iter().copied().collect();
    lanes::mark_due(&mut at.at.conn, &names).await.unwrap();
    assert_eq!(at.due().await, waiting);
    let settled = at.settled().await;
    assert_eq!(settled[0], None, "a disabled one is left alone");
    assert!(
        settled[1].unwrap() > Duration::from_secs(3_500),
        "{settled:?}"
    );
    assert_eq!(settled[4], Some(Duration::ZERO));
    assert_eq!(at.due().await, waiting);

    let replica = at.replica;
    let claimed = at.claim(replica, 10).await;
    let of: BTreeSet<_> = claimed
        .iter()
        .map(|task| task.delivery.connection_name())
        .collect();
    assert_eq!(of, [behind, clear].into(), "none that is restrained");
    // The holder of the lanes' locks knows what may be sent to these Connections.
    let wants: Vec<Want> = at
        .connections
        .iter()
        .map(|connection| Want {
            connection: *connection,
            count: 10,
        })
        .collect();
    let claimed = at
        .at
        .conn
        .transaction(async |conn| deliveries::claim_locked(conn, &sealer, replica, &wants).await)
        .await
        .unwrap();
    assert_eq!(claimed.len(), 4);
    assert_eq!(at.settled().await, [None; 6]);
    assert_eq!(at.due().await, [].into());

    // After it is enabled again, it is checked.
    run(&mut at.at.conn, "UPDATE connections SET state = 'ACTIVE'").await;
    assert_eq!(at.due().await, [disabled].into());
}

/// After a quiet time the planner assumes that nothing waits for its fan-out.
#[tokio::test]
async fn a_scan_is_found_by_key_among_many_without_fan_out() {
    let mut at = sending(1).await;
    let posts: Vec<_> = (0..2_000)
        .map(|n| post(&format!("forum:{n}"), "t"))
        .collect();
    let scans = record(&mut at.at.conn, at.manager, &posts).await;
    let conn = &mut at.at.conn;
    run(conn, "UPDATE scans SET fanned_out = true").await;
    run(conn, "VACUUM ANALYZE scans").await;
    run(conn, "UPDATE scans SET fanned_out = false").await;
    let (sealer, replica) = (&at.at.fixture.sealer, at.replica);
    let read = conn.transaction(async |conn| {
        let before = rows_read(conn, "scans").await;
        let one = &scans[..1];
        deliveries::fan_out(conn, sealer, one, replica, |_, _, _| None::<()>).await?;
        Ok::<_, store::Error>(rows_read(conn, "scans").await - before)
    });
    let read = read.await.unwrap();
    assert!((1..100).contains(&read), "{read} rows were read for one");
}

/// Counts the statements of a connection.
#[derive(Clone, Default)]
struct Statements(Arc<AtomicUsize>);

impl Instrumentation for Statements {
    fn on_connection_event(&mut self, event: InstrumentationEvent<'_>) {
        if matches!(event, InstrumentationEvent::StartQuery { .. }) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[tokio::test]
async fn filters_of_one_account_cost_others_few_statements() {
    const MANAGERS: usize = 40;
    let mut at = sending(10).await;
    let (connections, replica) = (at.connections.clone(), at.replica);
    let conn = &mut at.at.conn;
    let other = at.at.fixture.beside(conn, "other").await;
    let connection = other.connection(conn, "https://other.example/").await;
    let mut scans = Vec::new();
    for number in 0..=MANAGERS {
        let manager = if number < MANAGERS {
            let fixture = &at.at.fixture;
            fixture
                .manager(conn, &instructions("a"), &connections)
                .await
        } else {
            other.manager(conn, &instructions("a"), &[connection]).await
        };
        let post = post(&format!("forum:{number}"), "t");
        scans.extend(record(conn, manager, &[post]).await);
    }
    let theirs = scans[MANAGERS];
    // Each is different, and met.
    run(
        conn,
        "UPDATE manager_notices SET \
             filter = 'post.title : \"t\" OR post.id = \"' || manager_id || ' ' || position || '\"'",
    )
    .await;
    let statements = Statements::default();
    conn.set_instrumentation(statements.clone());

    let sealer = &at.at.fixture.sealer;
    let found = deliveries::fan_out(conn, sealer, &scans, replica, |_, _, _| None::<()>)
        .await
        .unwrap();

    let count = statements.0.load(Ordering::Relaxed);
    assert!((4..=6).contains(&count), "{count} statements");
    assert!(!found.surplus.contains(&theirs));
    assert_eq!(found.surplus.len(), MANAGERS - 8);
    let deliveries = "SELECT count(*) AS number FROM deliveries";
    assert_eq!(number(conn, deliveries).await, 8 * 10 + 1);
    let mut surplus = found.surplus;
    while !surplus.is_empty() {
        let found = deliveries::fan_out(conn, sealer, &surplus, replica, |_, _, _| None::<()>)
            .await
            .unwrap();
        assert!(found.surplus.len() < surplus.len());
        surplus = found.surplus;
    }
    let all = i64::try_from(MANAGERS * 10 + 1).unwrap();
    assert_eq!(number(conn, deliveries).await, all);
}
