use std::{
    collections::{BTreeSet, HashSet},
    time::Duration,
};

use domain::{ConnectionName, DeliveryName, ManagerName, ScanName, Timestamp};
use store::{
    AsyncConnection, AsyncPgConnection, connections,
    deliveries::{self, Attempt, AttemptResult, Task, Verdict, Want},
    lanes, replicas,
    seal::Sealer,
};
use test_support::{instructions, post};
use uuid::Uuid;

use crate::support::{Start, number, record, run, start};

struct Sending {
    at: Start,
    connections: Vec<ConnectionName>,
    manager: ManagerName,
    replica: Uuid,
}

/// A Manager with `count` Connections, and a replica that lives.
async fn sending(count: usize) -> Sending {
    let mut at = start().await;
    let mut connections = Vec::new();
    for n in 0..count {
        let url = format!("https://receiver.example/{n}");
        connections.push(at.fixture.connection(&mut at.conn, &url).await);
    }
    let manager = at
        .fixture
        .manager(&mut at.conn, &instructions("a"), &connections)
        .await;
    let replica = living(&mut at.conn).await;
    Sending {
        at,
        connections,
        manager,
        replica,
    }
}

async fn living(conn: &mut AsyncPgConnection) -> Uuid {
    let replica = Uuid::new_v4();
    replicas::beat(conn, replica, "webhook-dispatcher")
        .await
        .unwrap();
    replica
}

impl Sending {
    async fn scan(&mut self, id: &str) -> ScanName {
        record(&mut self.at.conn, self.manager, &[post(id, "t")]).await[0]
    }

    /// Leaves the deliveries of one Scan waiting.
    async fn waiting(&mut self, id: &str) -> ScanName {
        let scan = self.scan(id).await;
        let sent = self.fan_out(scan, &[]).await;
        assert!(sent.is_empty());
        scan
    }

    async fn fan_out(&mut self, scan: ScanName, admitted: &[ConnectionName]) -> Vec<Task> {
        let sealer = self.at.fixture.sealer.clone();
        let admit = |name, _| admitted.contains(&name).then_some(());
        let scans = [scan];
        let sent = deliveries::fan_out(&mut self.at.conn, &sealer, &scans, self.replica, admit);
        let sent = sent.await.unwrap().tasks.into_iter();
        sent.map(|(task, ())| task).collect()
    }

    /// Up to `count` of each Connection.
    async fn claim(&mut self, replica: Uuid, count: u32) -> Vec<Task> {
        let (conn, sealer) = (&mut self.at.conn, &self.at.fixture.sealer);
        claim(conn, sealer, replica, &self.connections, count).await
    }

    /// How long until each Connection is to be looked at, as it is known after a look.
    async fn settled(&mut self) -> Vec<Option<Duration>> {
        let names = self.connections.clone();
        let settled = self
            .at
            .conn
            .transaction(async |conn| lanes::settle(conn, &names).await)
            .await
            .unwrap();
        let next = |name: &ConnectionName| settled.iter().find(|one| one.connection == *name);
        names.iter().map(|name| next(name).unwrap().next).collect()
    }

    /// Those that are to be looked at now.
    async fn due(&mut self) -> BTreeSet<ConnectionName> {
        let due = lanes::due(&mut self.at.conn, &[], 100).await.unwrap();
        due.into_iter().map(|due| due.connection).collect()
    }

    /// `state attempts next?`, as the row has it.
    async fn row(&mut self, delivery: DeliveryName) -> String {
        let sql = |condition: &str| {
            let id = delivery.delivery.to_uuid();
            format!("SELECT count(*) AS number FROM deliveries WHERE id = '{id}' AND {condition}")
        };
        let conn = &mut self.at.conn;
        let mut row = String::new();
        for state in domain::DeliveryState::ALL {
            if number(conn, &sql(&format!("state = '{}'", state.as_str()))).await == 1 {
                row.push_str(state.as_str());
            }
        }
        let id = delivery.delivery.to_uuid();
        let attempts =
            format!("SELECT attempt_count::bigint AS number FROM deliveries WHERE id = '{id}'");
        row.push_str(&format!(" {}", number(conn, &attempts).await));
        if number(conn, &sql("next_attempt_time IS NOT NULL")).await == 1 {
            row.push_str(" due");
        }
        row
    }
}

async fn claim(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    replica: Uuid,
    connections: &[ConnectionName],
    count: u32,
) -> Vec<Task> {
    let want = |connection: &ConnectionName| Want {
        connection: *connection,
        count,
    };
    let wants: Vec<Want> = connections.iter().map(want).collect();
    let claimed = deliveries::claim(conn, sealer, replica, &wants)
        .await
        .unwrap();
    claimed.into_iter().map(Result::unwrap).collect()
}

fn each(results: &[AttemptResult]) -> Vec<&AttemptResult> {
    results.iter().collect()
}

fn result(task: &Task, verdict: Verdict) -> AttemptResult {
    AttemptResult {
        delivery: task.delivery,
        attempt: Attempt {
            number: task.attempt_count + 1,
            time: Timestamp::now(),
            status_code: Some(503),
            error: Some("a stranger's \0 words".to_owned()),
            latency: Duration::from_millis(12),
            dns: None,
            connect: Some(Duration::from_millis(3)),
            tls: None,
            first_byte: None,
            address: Some("192.0.2.1".to_owned()),
            response_body: Some("\0binary\0".to_owned()),
        },
        verdict,
    }
}

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
    assert_eq!(
        (
            sent[0].scan,
            sent[0].post.id.as_str(),
            sent[0].attempt_count
        ),
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
    // The id tells the application's time, all else the database's.
    let by_id = "SELECT count(*) AS number FROM deliveries \
                 WHERE id_time(id) <> create_time OR update_time IN (create_time, next_attempt_time)";
    assert_eq!(number(&mut at.at.conn, by_id).await, 0);
    let gone = ScanName {
        scan: domain::Id::generate(),
        ..scan
    };
    assert!(at.fan_out(gone, &[first]).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_callers_fan_out_once() {
    let mut at = sending(2).await;
    for round in 0..20 {
        let scan = at.scan(&format!("forum:{round}")).await;
        let caller = || {
            let (pool, sealer) = (at.at.database.pool(), at.at.fixture.sealer.clone());
            tokio::spawn(async move {
                let mut conn = pool.get().await.unwrap();
                conn.transaction(async |conn| {
                    let admit = |name, _| Some(name);
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
async fn many_scans_fan_out_in_one_statement() {
    let mut at = sending(2).await;
    let posts: Vec<_> = (0..30).map(|n| post(&format!("forum:{n}"), "t")).collect();
    let mut scans = record(&mut at.at.conn, at.manager, &posts).await;
    // One that was told before, and one that is told twice.
    let [first, second] = at.connections[..] else {
        unreachable!()
    };
    assert_eq!(at.fan_out(scans[0], &[first]).await.len(), 1);
    scans.push(scans[1]);
    let sealer = at.at.fixture.sealer.clone();
    let admit = |name, _| (name == first).then_some(());
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
async fn what_cannot_be_opened_waits() {
    let mut at = sending(1).await;
    let scan = at.scan("forum:1").await;
    let stranger = Sealer::new([("other".to_owned(), [1; 32])]).unwrap();
    let admit = |name, _| Some(name);
    let found = deliveries::fan_out(&mut at.at.conn, &stranger, &[scan], at.replica, admit)
        .await
        .unwrap();
    assert_eq!((found.tasks.len(), found.waiting.len()), (0, 1));
    let waiting = "SELECT count(*) AS number FROM deliveries WHERE state = 'PENDING'";
    assert_eq!(number(&mut at.at.conn, waiting).await, 1);
}

#[tokio::test]
async fn only_connections_that_may_be_sent_to_are_admitted_and_looked_at() {
    let mut at = sending(5).await;
    let [disabled, open, limited, behind, clear] = at.connections[..] else {
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
            "UPDATE connection_lanes SET next_due_time = now() WHERE connection_id = '{}'",
            id(behind)
        ),
    ] {
        run(&mut at.at.conn, sql).await;
    }
    let scan = at.scan("forum:1").await;
    let sealer = at.at.fixture.sealer.clone();
    let mut asked = Vec::new();
    let admit = |name, _| {
        asked.push(name);
        None::<()>
    };
    let found = deliveries::fan_out(&mut at.at.conn, &sealer, &[scan], at.replica, admit)
        .await
        .unwrap();
    assert_eq!(asked, [clear]);
    let waiting: BTreeSet<_> = found.waiting.iter().map(|due| due.connection).collect();
    assert_eq!(waiting, [limited, behind, clear].into());
    let restrained: Vec<_> = found.waiting.iter().filter(|due| due.restrained).collect();
    assert_eq!(restrained.len(), 1);

    let names: Vec<_> = waiting.iter().copied().collect();
    lanes::note_due(&mut at.at.conn, &names).await.unwrap();
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
    // Who holds the lanes' locks knows what the others may be sent.
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
    assert_eq!(claimed.len(), 3);
    assert_eq!(at.settled().await, [None; 5]);
    assert_eq!(at.due().await, [].into());

    // Enabled again, it is looked at.
    run(&mut at.at.conn, "UPDATE connections SET state = 'ACTIVE'").await;
    assert_eq!(at.due().await, [disabled].into());
}

#[tokio::test]
async fn each_connection_gets_as_much_as_it_may_have_the_longest_due_first() {
    let mut at = sending(2).await;
    let mut scans = Vec::new();
    for n in 0..6 {
        scans.push(at.waiting(&format!("forum:{n}")).await);
    }
    // Older Scans are due later here.
    run(
        &mut at.at.conn,
        "UPDATE deliveries SET next_attempt_time = now() - (create_time - now() + interval '1 hour')",
    )
    .await;
    run(
        &mut at.at.conn,
        format!(
            "UPDATE deliveries SET next_attempt_time = now() + interval '1 hour' WHERE scan_id = '{}'",
            scans[5].scan.to_uuid()
        ),
    )
    .await;
    let replica = at.replica;
    let first = at.connections[0];
    let claimed = at.claim(replica, 3).await;
    assert_eq!(claimed.len(), 6);
    let claimed: Vec<_> = claimed
        .iter()
        .filter(|task| task.delivery.connection_name() == first)
        .map(|task| task.scan)
        .collect();
    assert_eq!(claimed, [scans[4], scans[3], scans[2]]);
    assert_eq!(at.claim(replica, 9).await.len(), 4);
    for wait in at.settled().await {
        assert!(wait.unwrap() > Duration::from_secs(3_500), "{wait:?}");
    }
    let wait = lanes::next_due(&mut at.at.conn).await.unwrap().unwrap();
    assert!(wait > Duration::from_secs(3_500), "{wait:?}");
}

#[tokio::test]
async fn one_accounts_thousands_hide_no_others_one() {
    let mut at = sending(1).await;
    run(
        &mut at.at.conn,
        "INSERT INTO connections (namespace_id, id, nickname, url, method, headers_sealed, create_time, update_time) \
         SELECT namespace_id, gen_random_uuid(), 'n', url, method, headers_sealed, create_time, update_time \
         FROM connections, generate_series(1, 200)",
    )
    .await;
    run(
        &mut at.at.conn,
        "UPDATE connection_lanes SET next_due_time = now() - interval '1 hour'",
    )
    .await;
    let lone = "UPDATE connection_lanes SET account_id = 'ffffffff-0000-0000-0000-000000000000', \
                next_due_time = now() WHERE connection_id IN (SELECT connection_id FROM connection_lanes LIMIT 1)";
    run(&mut at.at.conn, lone).await;
    let due = lanes::due(&mut at.at.conn, &[], 10).await.unwrap();
    assert_eq!(due.len(), 11);
}

#[tokio::test]
async fn a_hint_that_was_moved_on_while_something_came_is_set_again() {
    let mut at = sending(1).await;
    at.waiting("forum:1").await;
    let names = at.connections.clone();
    lanes::note_due(&mut at.at.conn, &names).await.unwrap();
    let replica = at.replica;
    assert_eq!(at.claim(replica, 1).await.len(), 1);
    // Another is about to move the hint on, having seen nothing.
    let settling = at
        .at
        .database
        .begin(&["UPDATE connection_lanes SET next_due_time = NULL"])
        .await;
    at.waiting("forum:2").await;
    let pool = at.at.database.pool();
    let noting = tokio::spawn(async move {
        lanes::note_due(&mut pool.get().await.unwrap(), &names)
            .await
            .unwrap();
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut settling = settling;
    run(&mut settling, "COMMIT").await;
    noting.await.unwrap();
    assert_eq!(at.due().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_never_claim_the_same_delivery() {
    let mut at = sending(2).await;
    let posts: Vec<_> = (0..60).map(|n| post(&format!("forum:{n}"), "t")).collect();
    for scan in record(&mut at.at.conn, at.manager, &posts).await {
        at.fan_out(scan, &[]).await;
    }
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let (pool, sealer) = (at.at.database.pool(), at.at.fixture.sealer.clone());
            let names = at.connections.clone();
            tokio::spawn(async move {
                let mut conn = pool.get().await.unwrap();
                let replica = living(&mut conn).await;
                let mut claimed = Vec::new();
                for _ in 0..30 {
                    let more = claim(&mut conn, &sealer, replica, &names, 7).await;
                    assert!(more.len() <= 14);
                    claimed.extend(more.into_iter().map(|task| task.delivery));
                }
                claimed
            })
        })
        .collect();
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.unwrap());
    }
    let distinct: BTreeSet<_> = all.iter().collect();
    assert_eq!((distinct.len(), all.len()), (120, 120));
}

#[tokio::test]
async fn results_move_deliveries_on() {
    let mut at = sending(4).await;
    at.waiting("forum:1").await;
    let replica = at.replica;
    let tasks = at.claim(replica, 10).await;
    let verdicts = [
        (Verdict::Succeeded, "SUCCEEDED 1"),
        (Verdict::RetryIn(Duration::from_secs(60)), "RETRYING 1 due"),
        (Verdict::Exhausted, "EXHAUSTED 1"),
        (Verdict::Expired, "EXHAUSTED 1"),
    ];
    let results: Vec<_> = tasks
        .iter()
        .zip(verdicts)
        .map(|(task, (verdict, _))| result(task, verdict))
        .collect();
    deliveries::record_results(&mut at.at.conn, replica, &each(&results))
        .await
        .unwrap();
    for (task, (_, row)) in tasks.iter().zip(verdicts) {
        assert_eq!(at.row(task.delivery).await, row);
    }
    let waits = "SELECT extract(epoch FROM next_attempt_time - update_time)::bigint AS number \
                 FROM deliveries WHERE state = 'RETRYING'";
    assert_eq!(number(&mut at.at.conn, waits).await, 60);
    let clean = "SELECT count(*) AS number FROM delivery_attempts \
                 WHERE response_body = 'binary' AND error = 'a stranger''s  words' AND latency_ms = 12";
    assert_eq!(number(&mut at.at.conn, clean).await, 4);

    let expired = "SELECT count(*) AS number FROM deliveries \
                   WHERE state = 'EXHAUSTED' AND last_error = 'expired'";
    assert_eq!(number(&mut at.at.conn, expired).await, 1);

    // Recorded again, as after a lost answer: nothing moves, no attempt is doubled.
    deliveries::record_results(&mut at.at.conn, replica, &each(&results))
        .await
        .unwrap();
    assert_eq!(at.row(tasks[1].delivery).await, "RETRYING 1 due");
    assert_eq!(number(&mut at.at.conn, clean).await, 4);
    deliveries::record_results(&mut at.at.conn, replica, &[])
        .await
        .unwrap();

    run(
        &mut at.at.conn,
        "UPDATE deliveries SET next_attempt_time = now() WHERE state = 'RETRYING'",
    )
    .await;
    let again = at.claim(replica, 10).await;
    assert_eq!(
        (again.len(), again[0].delivery, again[0].attempt_count),
        (1, tasks[1].delivery, 1)
    );
    deliveries::hand_back(&mut at.at.conn, replica, &[again[0].delivery])
        .await
        .unwrap();
    assert_eq!(at.row(again[0].delivery).await, "RETRYING 1 due");
}

#[tokio::test]
async fn who_lost_the_lease_changes_no_state() {
    let mut at = sending(1).await;
    at.waiting("forum:1").await;
    let replica = at.replica;
    let tasks = at.claim(replica, 10).await;
    let name = tasks[0].delivery;
    run(
        &mut at.at.conn,
        "UPDATE replicas SET heartbeat_time = now() - interval '5 seconds'",
    )
    .await;
    let other = living(&mut at.at.conn).await;
    let minute = Duration::from_secs(60);
    assert_eq!(
        deliveries::free_orphans(&mut at.at.conn, other, &[], minute, true)
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(at.row(name).await, "PENDING 0 due");
    assert_eq!(at.claim(other, 10).await.len(), 1);

    let late = [result(&tasks[0], Verdict::Exhausted)];
    deliveries::record_results(&mut at.at.conn, replica, &each(&late))
        .await
        .unwrap();
    deliveries::hand_back(&mut at.at.conn, replica, &[name])
        .await
        .unwrap();
    assert_eq!(at.row(name).await, "IN_FLIGHT 0");
    let attempts = "SELECT count(*) AS number FROM delivery_attempts";
    assert_eq!(
        number(&mut at.at.conn, attempts).await,
        1,
        "it was made all the same"
    );
    deliveries::hand_back(&mut at.at.conn, other, &[name])
        .await
        .unwrap();
    assert_eq!(at.row(name).await, "PENDING 0 due");
}

#[tokio::test]
async fn what_a_living_replica_forgot_is_freed_after_a_while() {
    let mut at = sending(2).await;
    at.waiting("forum:1").await;
    let replica = at.replica;
    let tasks = at.claim(replica, 10).await;
    let in_hand = [tasks[0].delivery.delivery];
    let conn = &mut at.at.conn;
    let minute = Duration::from_secs(60);
    assert_eq!(
        deliveries::free_orphans(conn, replica, &in_hand, minute, true)
            .await
            .unwrap()
            .len(),
        0
    );
    let other = living(conn).await;
    assert_eq!(
        deliveries::free_orphans(conn, other, &[], Duration::ZERO, true)
            .await
            .unwrap()
            .len(),
        0
    );
    let freed = deliveries::free_orphans(conn, replica, &in_hand, Duration::ZERO, false).await;
    assert_eq!(freed.unwrap().len(), 1);
    assert_eq!(at.row(tasks[0].delivery).await, "IN_FLIGHT 0");
    assert_eq!(at.row(tasks[1].delivery).await, "PENDING 0 due");
}

#[tokio::test]
async fn after_an_outage_nobody_steals() {
    let mut at = sending(2).await;
    at.waiting("forum:1").await;
    let replica = at.replica;
    let tasks = at.claim(replica, 10).await;
    let in_hand = [tasks[0].delivery.delivery];
    let conn = &mut at.at.conn;
    let other = living(conn).await;
    // The database was away: nobody could beat.
    run(
        conn,
        "UPDATE replicas SET heartbeat_time = now() - interval '30 seconds'",
    )
    .await;
    let minute = Duration::from_secs(60);
    for (who, take_over) in [(replica, true), (other, false)] {
        let freed = deliveries::free_orphans(conn, who, &in_hand, minute, take_over).await;
        assert_eq!(freed.unwrap().len(), 0, "may take over: {take_over}");
    }
    let freed = deliveries::free_orphans(conn, other, &[], minute, true).await;
    assert_eq!(freed.unwrap().len(), 2, "the holder is dead");
}

#[tokio::test]
async fn one_unreadable_secret_does_not_stop_the_others() {
    let mut at = sending(2).await;
    at.waiting("forum:1").await;
    let broken = at.connections[0];
    let stranger = Sealer::new([("other".to_owned(), [1; 32])]).unwrap();
    let sealed = stranger.seal(b"{}", &broken.to_string());
    let hex: String = sealed.iter().map(|byte| format!("{byte:02x}")).collect();
    let sql = format!(
        "UPDATE connections SET headers_sealed = decode('{hex}', 'hex') WHERE id = '{}'",
        broken.connection.to_uuid()
    );
    run(&mut at.at.conn, sql).await;
    let (replica, sealer) = (at.replica, at.at.fixture.sealer.clone());
    let wants: Vec<Want> = at
        .connections
        .iter()
        .map(|connection| Want {
            connection: *connection,
            count: 10,
        })
        .collect();
    let claimed = deliveries::claim(&mut at.at.conn, &sealer, replica, &wants)
        .await
        .unwrap();
    let sent: HashSet<_> = claimed
        .iter()
        .flatten()
        .map(|task| task.delivery.connection_name())
        .collect();
    assert_eq!((claimed.len(), sent), (2, [at.connections[1]].into()));
}
