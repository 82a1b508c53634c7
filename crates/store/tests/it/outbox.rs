//! The outbox table; `bus` tests what the relay does with it.

use domain::{Id, ScanName};
use events::ScanCreated;
use store::{AsyncConnection, AsyncPgConnection, Floor, outbox};
use test_support::TestDatabase;

use crate::support::{reads, run};

fn event() -> ScanCreated {
    let scan = Id::generate();
    ScanCreated {
        name: ScanName {
            namespace: Id::generate(),
            manager: Id::generate(),
            scan,
        },
        create_time: scan.time(),
    }
}

#[tokio::test]
async fn two_relays_take_different_events_oldest_first() {
    let database = TestDatabase::create().await;
    let (mut one, mut two) = (database.connect().await, database.connect().await);
    outbox::enqueue_all(&mut one, (0..25_000).map(|_| event()))
        .await
        .unwrap();
    assert_eq!(outbox::pending(&mut one, 0).await.unwrap().count, 25_000);
    one.transaction(async |one| {
        let first = outbox::take(one, 0, 3, &std::collections::BTreeSet::new()).await?;
        let ids: Vec<i64> = first.iter().map(|row| row.id).collect();
        assert!(ids.is_sorted());
        let others = two
            .transaction(async |two| {
                outbox::take(two, 0, 3, &std::collections::BTreeSet::new()).await
            })
            .await?;
        assert!(
            others
                .iter()
                .all(|row| !ids.contains(&row.id) && row.id > ids[2])
        );
        outbox::delete(one, &ids).await
    })
    .await
    .unwrap();
    assert_eq!(outbox::pending(&mut two, 0).await.unwrap().count, 24_997);
    assert!(outbox::pending(&mut two, 0).await.unwrap().oldest.is_some());
}

/// Returns the ids of up to 1,000 events.
async fn take(conn: &mut AsyncPgConnection, floor: i64) -> Vec<i64> {
    let rows = conn
        .transaction(async |conn| outbox::take(conn, floor, 1_000, &Default::default()).await)
        .await;
    rows.unwrap().iter().map(|row| row.id).collect()
}

#[tokio::test]
async fn published_events_that_a_snapshot_keeps_are_not_read_again() {
    let database = TestDatabase::create().await;
    let mut dump = database.connect().await;
    run(&mut dump, "BEGIN ISOLATION LEVEL REPEATABLE READ").await;
    run(&mut dump, "SELECT count(*) FROM outbox").await;
    let mut conn = database.connect().await;
    outbox::enqueue_all(&mut conn, (0..5_000).map(|_| event()))
        .await
        .unwrap();
    let mut floor = Floor::of("outbox");
    assert_eq!(floor.get(&mut conn).await.unwrap(), 0);
    loop {
        let ids = take(&mut conn, 0).await;
        if ids.is_empty() {
            break;
        }
        outbox::delete(&mut conn, &ids).await.unwrap();
    }
    for _ in 0..2 {
        floor.raise(&mut conn).await.unwrap();
    }
    outbox::enqueue(&mut conn, &event()).await.unwrap();
    // It counts what it reads.
    let mut relay = database.connect().await;
    run(&mut relay, "BEGIN").await;
    let floor = floor.get(&mut relay).await.unwrap();
    assert_eq!(outbox::pending(&mut relay, floor).await.unwrap().count, 1);
    let found = outbox::take(&mut relay, floor, 10, &Default::default()).await;
    assert_eq!(found.unwrap().len(), 1);
    let blocks = reads(&mut relay).await.blocks;
    assert!(blocks < 50, "{blocks} blocks");
}

#[tokio::test]
async fn event_of_a_long_transaction_is_found_by_the_next_look_at_the_whole_table() {
    let database = TestDatabase::create().await;
    let (mut long, mut conn) = (database.connect().await, database.connect().await);
    run(&mut long, "BEGIN").await;
    outbox::enqueue(&mut long, &event()).await.unwrap();
    outbox::enqueue(&mut conn, &event()).await.unwrap();
    let mut floor = Floor::of("outbox");
    floor.raise(&mut conn).await.unwrap();
    let after_one = floor.get(&mut conn).await.unwrap();
    let after_two = floor.raise(&mut conn).await.unwrap();
    run(&mut long, "COMMIT").await;
    assert_eq!(take(&mut conn, after_one).await.len(), 2);
    assert_eq!(take(&mut conn, after_two).await.len(), 1);
    let after_three = floor.raise(&mut conn).await.unwrap();
    assert_eq!(take(&mut conn, after_three).await.len(), 2);
}
