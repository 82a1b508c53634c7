//! The outbox table; `bus` tests what the relay does with it.

use domain::{Id, ScanName};
use events::ScanCreated;
use store::{AsyncConnection, outbox};
use test_support::TestDatabase;

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
    assert_eq!(outbox::pending(&mut one).await.unwrap().count, 25_000);
    one.transaction(async |one| {
        let first = outbox::take(one, 3, &std::collections::BTreeSet::new()).await?;
        let ids: Vec<i64> = first.iter().map(|row| row.id).collect();
        assert!(ids.is_sorted());
        let others = two
            .transaction(async |two| outbox::take(two, 3, &std::collections::BTreeSet::new()).await)
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
    assert_eq!(outbox::pending(&mut two).await.unwrap().count, 24_997);
    assert!(outbox::pending(&mut two).await.unwrap().oldest.is_some());
}
