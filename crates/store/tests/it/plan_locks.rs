//! Changes of plans at once: no one waits for another account's locks, and `feeds.watched` stays right.

use domain::{Instructions, ManagerName, Timestamp};
use store::{
    AsyncConnection, AsyncPgConnection,
    namespaces::{self, Deletion},
    plans,
};
use test_support::{TestDatabase, eventually, instructions, post};

use crate::support::{Start, number, record, run, start, watch};

const FEEDS: [&str; 3] = ["lemmy:newest", "reddit:newest", "stackoverflow:newest"];

async fn until_waiting(database: &TestDatabase, count: i64) {
    let waits = "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    eventually("a transaction waits for a lock", async || {
        database.count(waits).await == count
    })
    .await;
}

/// Feeds whose flag is not what their watchers say.
async fn wrong(conn: &mut AsyncPgConnection) -> i64 {
    let sql = "SELECT count(*) AS number FROM feeds \
               WHERE watched <> EXISTS (SELECT FROM feed_watchers WHERE feed = name)";
    number(conn, sql).await
}

async fn manager(at: &mut Start) -> ManagerName {
    let instructions = instructions("a");
    at.fixture.manager(&mut at.conn, &instructions, &[]).await
}

#[tokio::test]
async fn a_deletion_that_waits_delays_no_change_of_another_account() {
    for held in [
        "SELECT FROM feeds WHERE name = 'lemmy:newest' FOR UPDATE",
        "SELECT FROM scan_clocks FOR UPDATE",
    ] {
        let mut at = start().await;
        let own = Instructions {
            feeds: vec!["lemmy:newest".parse().unwrap()],
            ..instructions("a")
        };
        let large = at.fixture.applied_manager(&mut at.conn, &own, &[]).await;
        record(&mut at.conn, large, &[post("1", "a")]).await;
        let globex = at.fixture.beside(&mut at.conn, "globex").await;
        let other = globex
            .applied_manager(&mut at.conn, &instructions("b"), &[])
            .await;
        let poll = at.database.begin(&[held]).await;
        let (pool, namespace) = (at.database.pool(), at.fixture.namespace);
        let deleting = tokio::spawn(async move {
            let mut conn = pool.get().await.unwrap();
            conn.transaction(async |conn| {
                namespaces::delete(conn, namespace, true, Timestamp::now()).await
            })
            .await
        });
        until_waiting(&at.database, 1).await;
        let before = plans::version(&mut at.conn).await.unwrap().number;
        let mut conn = at.database.pool().get().await.unwrap();
        let version = watch(&mut conn, other, &["hackernews:newest"]).await;
        assert_eq!(version, before + 1, "{held}");
        assert!(!deleting.is_finished());
        drop(poll);
        let deleted = deleting.await.unwrap().unwrap();
        assert_eq!(deleted, Deletion::Done(vec![(large, version + 1)]));
        assert_eq!(wrong(&mut at.conn).await, 0);
    }
}

/// One transaction is open with the first change while the second one runs.
async fn change_at_once(first: &[&[&str]; 2], second: &[&[&str]; 2]) {
    let mut at = start().await;
    let (one, two) = (manager(&mut at).await, manager(&mut at).await);
    watch(&mut at.conn, one, first[0]).await;
    watch(&mut at.conn, two, second[0]).await;
    let mut open = at.database.begin(&[]).await;
    watch(&mut open, one, first[1]).await;
    let pool = at.database.pool();
    let feeds: Vec<String> = second[1].iter().map(|&feed| feed.to_owned()).collect();
    let changing = tokio::spawn(async move {
        let mut conn = pool.get().await.unwrap();
        let feeds: Vec<&str> = feeds.iter().map(String::as_str).collect();
        conn.transaction(async |conn| Ok::<_, store::Error>(watch(conn, two, &feeds).await))
            .await
    });
    until_waiting(&at.database, 1).await;
    run(&mut open, "COMMIT").await;
    changing.await.unwrap().unwrap();
    assert_eq!(wrong(&mut at.conn).await, 0, "{first:?} {second:?}");
}

#[tokio::test]
async fn a_feed_that_one_manager_leaves_while_another_comes_stays_watched() {
    let (leaves, comes): ([&[&str]; 2], [&[&str]; 2]) = ([&FEEDS, &[]], [&[], &FEEDS]);
    change_at_once(&leaves, &comes).await;
    change_at_once(&comes, &leaves).await;
}

#[tokio::test]
async fn a_feed_that_all_managers_leave_at_once_is_not_watched() {
    let leaves: [&[&str]; 2] = [&FEEDS, &[]];
    change_at_once(&leaves, &leaves).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_changes_do_not_deadlock_and_leave_right_flags() {
    let mut at = start().await;
    let mut writers = Vec::new();
    for seed in 1..=4_usize {
        let (manager, pool) = (manager(&mut at).await, at.database.pool());
        writers.push(tokio::spawn(async move {
            let mut conn = pool.get().await.unwrap();
            for round in 0..40_usize {
                let bits = (round + 3) * (seed * 7 + 5) % 8;
                // In either order.
                let mut feeds: Vec<&str> = FEEDS
                    .into_iter()
                    .enumerate()
                    .filter(|(at, _)| bits >> at & 1 == 1)
                    .map(|(_, feed)| feed)
                    .collect();
                if (round + seed) % 2 == 0 {
                    feeds.reverse();
                }
                conn.transaction(async |conn| {
                    watch(conn, manager, &feeds).await;
                    Ok::<_, store::Error>(())
                })
                .await
                .unwrap();
            }
        }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(wrong(&mut at.conn).await, 0);
    assert_eq!(plans::version(&mut at.conn).await.unwrap().number, 160);
}
