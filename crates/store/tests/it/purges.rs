//! Deleted resources disappear at once, and their rows soon after, even during writes.

use std::time::{Duration, Instant};

use domain::{Timestamp, list::SCAN_FIELDS};
use store::{
    AsyncConnection, AsyncPgConnection, connections, digests,
    fair::Turns,
    managers,
    namespaces::{self, Deletion},
    plans, purges,
    roles::Service,
    scans,
    work::{Claim, Room, table},
};
use test_support::{instructions, post};
use uuid::Uuid;

use crate::support::{Start, feed, list_query, new_scan, number, purge_step, record, run, start};

const ROWS: &str = "SELECT (SELECT count(*) FROM scans) + (SELECT count(*) FROM scan_keys) \
                    + (SELECT count(*) FROM deliveries) + (SELECT count(*) FROM delivery_attempts) AS number";

/// Purges until nothing is due; returns the number of steps, and the largest number of rows in one.
async fn purge(at: &mut Start) -> (usize, usize) {
    let (mut steps, mut largest) = (0, 0);
    while let Some(rows) = purge_step(&mut at.conn).await {
        (steps, largest) = (steps + 1, largest.max(rows));
    }
    (steps, largest)
}

#[tokio::test]
async fn a_large_namespace_goes_at_once_and_its_rows_in_batches() {
    const SCANS: i64 = 1_000_000;
    let mut at = start().await;
    let namespace = at.fixture.namespace;
    let hook = at
        .fixture
        .connection(&mut at.conn, "https://receiver.example/hook")
        .await;
    let manager = at
        .fixture
        .applied_manager(&mut at.conn, &instructions("rust"), &[hook])
        .await;
    let (ns, id) = (namespace.to_uuid(), manager.manager.to_uuid());
    record(&mut at.conn, manager, &[post("1", "first")]).await;
    run(
        &mut at.conn,
        format!(
            "INSERT INTO scans SELECT s.namespace_id, s.manager_id, gen_random_uuid(), \
                 s.create_time - n * interval '0.4 seconds', s.update_time, s.post_id, s.post_receive_time, \
                 true, s.matched, true FROM scans AS s, generate_series(1, {SCANS}) AS n"
        ),
    )
    .await;
    run(
        &mut at.conn,
        format!(
            "INSERT INTO scan_keys SELECT '{ns}', '{id}', gen_random_uuid(), clock_timestamp() \
             FROM generate_series(1, {SCANS})"
        ),
    )
    .await;
    run(
        &mut at.conn,
        format!(
            "INSERT INTO deliveries (namespace_id, connection_id, id, create_time, update_time, manager_id, scan_id, \
                 state, next_attempt_time) \
             SELECT '{ns}', '{}', gen_random_uuid(), clock_timestamp(), clock_timestamp(), '{id}', gen_random_uuid(), \
                 'PENDING', clock_timestamp() FROM generate_series(1, 20000)",
            hook.connection.to_uuid()
        ),
    )
    .await;

    let refused = namespaces::delete(&mut at.conn, namespace, false, Timestamp::now()).await;
    assert_eq!(refused.unwrap(), Deletion::Refused);
    let began = Instant::now();
    let deleted = at
        .conn
        .transaction(async |conn| namespaces::delete(conn, namespace, true, Timestamp::now()).await)
        .await
        .unwrap();
    assert!(matches!(deleted, Deletion::Done(gone) if gone.len() == 1));
    println!(
        "a namespace with {SCANS} scans was deleted in {:?}",
        began.elapsed()
    );

    // It is quick because every row still exists, invisibly.
    assert!(number(&mut at.conn, ROWS).await > SCANS);
    let query = list_query(SCAN_FIELDS, 5, None, "", "");
    assert!(
        scans::list(&mut at.conn, manager, &query)
            .await
            .unwrap()
            .items
            .is_empty()
    );
    assert!(
        scans::list_all(&mut at.conn, namespace, &query)
            .await
            .unwrap()
            .items
            .is_empty()
    );
    assert_eq!(managers::get(&mut at.conn, manager).await.unwrap(), None);

    let began = Instant::now();
    let (steps, largest) = purge(&mut at).await;
    println!(
        "{steps} steps of at most {largest} rows in {:?}",
        began.elapsed()
    );
    assert_eq!(number(&mut at.conn, ROWS).await, 0);
    assert!(
        i64::try_from(largest).unwrap() <= 3 * purges::BATCH + 10,
        "{largest}"
    );
    // The entry stays until no writer can still be in flight.
    assert_eq!(
        number(&mut at.conn, "SELECT count(*) AS number FROM purges").await,
        1
    );
    run(
        &mut at.conn,
        "UPDATE purges SET next_time = '-infinity', create_time = '-infinity'",
    )
    .await;
    purge(&mut at).await;
    assert_eq!(
        number(&mut at.conn, "SELECT count(*) AS number FROM purges").await,
        0
    );
}

#[tokio::test]
async fn a_connection_with_many_gathered_scans_goes_at_once_and_they_in_batches() {
    let batch = usize::try_from(purges::BATCH).unwrap();
    let mut at = start().await;
    let url = "https://receiver.example/hook";
    let name = at.fixture.connection(&mut at.conn, url).await;
    let other = at.fixture.connection(&mut at.conn, url).await;
    run(&mut at.conn, "UPDATE connections SET digest = 'HOURLY'").await;
    let gather = format!(
        "INSERT INTO digest_scans (namespace_id, connection_id, manager_id, scan_id, create_time) \
         SELECT namespace_id, id, gen_random_uuid(), gen_random_uuid(), now() - interval '2 hours' \
         FROM connections, generate_series(1, {})",
        4 * batch
    );
    assert_eq!(run(&mut at.conn, gather).await, 8 * batch);

    let now = Timestamp::now();
    let deleted = connections::delete(&mut at.conn, name, true, now).await;
    assert_eq!(deleted.unwrap(), Deletion::Done(vec![]));
    let rows = "SELECT count(*) AS number FROM digest_scans";
    let left = async |at: &mut Start| usize::try_from(number(&mut at.conn, rows).await).unwrap();
    assert_eq!(left(&mut at).await, 8 * batch);
    // They are in no digest.
    let due = digests::due(&mut at.conn, &[]).await.unwrap();
    let due: Vec<_> = due.into_iter().map(|due| due.item).collect();
    assert_eq!(due, [other]);
    assert!(!digests::make(&mut at.conn, name).await.unwrap());
    for service in Service::EACH {
        let url = at.database.url_of(service);
        let mut conn = AsyncPgConnection::establish(&url).await.unwrap();
        assert_eq!(purge_step(&mut conn).await, Some(batch), "{service:?}");
    }
    assert_eq!(purge(&mut at).await.1, 0);
    assert_eq!(left(&mut at).await, 4 * batch);

    let deleted = at
        .conn
        .transaction(async |conn| namespaces::delete(conn, name.namespace, true, now).await)
        .await;
    assert_eq!(deleted.unwrap(), Deletion::Done(vec![]));
    assert_eq!(left(&mut at).await, 4 * batch);
    assert_eq!(purge(&mut at).await.1, batch);
    assert_eq!(left(&mut at).await, 0);
}

#[tokio::test]
async fn scans_recorded_during_a_purge_are_purged_too() {
    let mut at = start().await;
    let manager = at
        .fixture
        .applied_manager(&mut at.conn, &instructions("rust"), &[])
        .await;
    let other = at
        .fixture
        .applied_manager(&mut at.conn, &instructions("rust"), &[])
        .await;
    let (first, second) = (post("1", "first"), post("2", "second"));

    // In flight before the deletion, which waits for it.
    let mut scanner = at.database.connect().await;
    run(&mut scanner, "BEGIN").await;
    record(&mut scanner, manager, std::slice::from_ref(&first)).await;
    let mut gateway = at.database.connect().await;
    let deleting = tokio::spawn(async move {
        gateway
            .transaction(async |conn| managers::delete(conn, manager, Timestamp::now()).await)
            .await
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!deleting.is_finished());
    run(&mut scanner, "COMMIT").await;
    let version = deleting.await.unwrap().unwrap().unwrap();
    assert_eq!(plans::version(&mut at.conn).await.unwrap().number, version);
    purge(&mut at).await;
    assert_eq!(number(&mut at.conn, ROWS).await, 0);

    // An index that still knows the Manager: it gets no Scan, and others get theirs.
    let matches = [new_scan(manager, &second), new_scan(other, &second)];
    let made = scans::record(&mut at.conn, &feed(), &matches, Timestamp::now())
        .await
        .unwrap();
    assert_eq!(
        made.iter()
            .map(|name| name.manager_name())
            .collect::<Vec<_>>(),
        [other]
    );
    let gone = format!(
        "SELECT count(*) AS number FROM scan_keys WHERE manager_id = '{}'",
        manager.manager.to_uuid()
    );
    assert_eq!(number(&mut at.conn, &gone).await, 0);

    // A compiler that was compiling it finds nothing to apply.
    let late = managers::apply(
        &mut at.conn,
        manager,
        1,
        &instructions("rust"),
        &test_support::QUOTAS,
        Timestamp::now(),
    )
    .await;
    assert_eq!(late.unwrap(), None);
    let again = managers::delete(&mut at.conn, manager, Timestamp::now()).await;
    assert_eq!(again.unwrap(), None);
    let watchers = "SELECT count(*) AS number FROM feed_watchers";
    assert_eq!(number(&mut at.conn, watchers).await, 1);
}

#[tokio::test]
async fn a_feed_loses_its_last_watcher_with_its_manager() {
    let mut at = start().await;
    let manager = at
        .fixture
        .applied_manager(&mut at.conn, &instructions("rust"), &[])
        .await;
    managers::delete(&mut at.conn, manager, Timestamp::now())
        .await
        .unwrap();
    let watched = "SELECT count(*) AS number FROM feeds WHERE watched";
    assert_eq!(number(&mut at.conn, watched).await, 0);
}

#[tokio::test]
async fn deliveries_of_a_deleted_connection_or_manager_are_cancelled() {
    let mut at = start().await;
    let hook = at
        .fixture
        .connection(&mut at.conn, "https://receiver.example/hook")
        .await;
    let other = at
        .fixture
        .connection(&mut at.conn, "https://other.example/hook")
        .await;
    let manager = at
        .fixture
        .applied_manager(&mut at.conn, &instructions("rust"), &[hook, other])
        .await;
    let scan = record(&mut at.conn, manager, &[post("1", "first")]).await[0];
    let states = ["PENDING", "RETRYING", "IN_FLIGHT", "SUCCEEDED"];
    for connection in [hook, other] {
        for state in states {
            let due = matches!(state, "PENDING" | "RETRYING");
            run(
                &mut at.conn,
                format!(
                    "INSERT INTO deliveries (namespace_id, connection_id, id, create_time, update_time, manager_id, \
                         scan_id, state, next_attempt_time, leased_by) \
                     VALUES ('{}', '{}', gen_random_uuid(), clock_timestamp(), clock_timestamp(), '{}', '{}', '{state}', \
                         {}, {})",
                    hook.namespace.to_uuid(),
                    connection.connection.to_uuid(),
                    manager.manager.to_uuid(),
                    scan.scan.to_uuid(),
                    if due { "clock_timestamp()" } else { "NULL" },
                    if state == "IN_FLIGHT" { "gen_random_uuid()" } else { "NULL" },
                ),
            )
            .await;
        }
    }
    let now = Timestamp::now();
    let refused = connections::delete(&mut at.conn, hook, false, now)
        .await
        .unwrap();
    assert_eq!(refused, Deletion::Refused);
    let done = connections::delete(&mut at.conn, hook, true, now)
        .await
        .unwrap();
    assert_eq!(done, Deletion::Done(vec![]));
    let kept = managers::get(&mut at.conn, manager).await.unwrap().unwrap();
    let notices: Vec<_> = kept
        .notices
        .iter()
        .map(|notice| notice.connection)
        .collect();
    assert_eq!(notices, [other]);
    purge(&mut at).await;
    let cancelled = |connection: domain::ConnectionName| {
        format!(
            "SELECT count(*) AS number FROM deliveries WHERE connection_id = '{}' AND state = 'CANCELLED'",
            connection.connection.to_uuid()
        )
    };
    assert_eq!(number(&mut at.conn, &cancelled(hook)).await, 3);
    assert_eq!(number(&mut at.conn, &cancelled(other)).await, 0);

    managers::delete(&mut at.conn, manager, now).await.unwrap();
    purge(&mut at).await;
    assert_eq!(number(&mut at.conn, &cancelled(other)).await, 3);
    assert_eq!(
        number(&mut at.conn, "SELECT count(*) AS number FROM scans").await,
        0
    );
}

#[tokio::test]
async fn replicas_share_a_purge() {
    let mut at = start().await;
    let manager = at
        .fixture
        .applied_manager(&mut at.conn, &instructions("rust"), &[])
        .await;
    managers::delete(&mut at.conn, manager, Timestamp::now())
        .await
        .unwrap();
    // Another replica has locked the only entry, and dies.
    let mut other = at.database.connect().await;
    run(&mut other, "BEGIN").await;
    run(&mut other, "SELECT FROM purges FOR UPDATE").await;
    assert_eq!(purge_step(&mut at.conn).await, None);
    run(&mut other, "ROLLBACK").await;
    assert_eq!(purge_step(&mut at.conn).await, Some(0));
}

#[tokio::test]
async fn purges_of_accounts_take_turns() {
    let mut at = start().await;
    let other = at.fixture.beside(&mut at.conn, "globex").await;
    let gone = Uuid::new_v4();
    for (namespace, count, age) in [
        (at.fixture.namespace.to_uuid(), 1_000, "1 hour"),
        (other.namespace.to_uuid(), 1, "1 minute"),
        (gone, 1, "1 second"),
    ] {
        let many = format!(
            "INSERT INTO purges (namespace_id, manager_id, next_time) \
             SELECT '{namespace}', gen_random_uuid(), now() - interval '{age}' FROM generate_series(1, {count})"
        );
        run(&mut at.conn, many).await;
    }
    let mut turns = Turns::default();
    let mut served = Vec::new();
    for _ in 0..4 {
        let due = purges::due(&mut at.conn, &[]).await.unwrap();
        let mut claim = Claim {
            replica: Uuid::new_v4(),
            take_over: true,
            known: &[],
            room: &mut Room::new(1, 0, 1),
            turns: &mut turns,
        };
        let leased = table::lease(&mut at.conn, "purge", due, &mut claim).await;
        let leased = leased.unwrap().items.remove(0);
        served.push(leased.account.to_uuid());
        purges::step(&mut at.conn, &leased.item).await.unwrap();
    }
    let [own, other] = [at.fixture.account, other.account].map(|id| id.to_uuid());
    assert_eq!(served, [own, other, gone, own]);
}

#[tokio::test]
async fn deleted_namespaces_of_an_account_share_its_turn() {
    let mut at = start().await;
    let second = at.fixture.beside(&mut at.conn, "acme").await;
    let other = at.fixture.beside(&mut at.conn, "globex").await;
    for fixture in [&at.fixture, &second, &other] {
        let now = Timestamp::now();
        namespaces::delete(&mut at.conn, fixture.namespace, true, now)
            .await
            .unwrap();
    }
    let due = purges::due(&mut at.conn, &[]).await.unwrap();
    let accounts: Vec<_> = due.iter().flat_map(|one| one.accounts.clone()).collect();
    let own = at.fixture.account;
    assert_eq!(accounts, [own, other.account, own]);
}

#[tokio::test]
async fn a_purge_does_not_wait_for_a_clock_that_went_back() {
    let mut at = start().await;
    let manager = at
        .fixture
        .applied_manager(&mut at.conn, &instructions("rust"), &[])
        .await;
    managers::delete(&mut at.conn, manager, Timestamp::now())
        .await
        .unwrap();
    for (wait, expected) in [("40 seconds", None), ("1 hour", Some(0))] {
        let sql = format!("UPDATE purges SET next_time = clock_timestamp() + interval '{wait}'");
        run(&mut at.conn, sql).await;
        assert_eq!(purge_step(&mut at.conn).await, expected, "{wait}");
    }
}
