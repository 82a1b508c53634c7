//! Look-backs: which Managers share one.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use domain::{Id, ManagerName, Timestamp};
use store::{
    AsyncPgConnection,
    backfills::{self, Rest, Waiting, look_backs},
};
use test_support::{Fixture, instructions};
use uuid::Uuid;

use crate::support::{Look, feed, start};

/// Creates a Manager whose backfill goes on with a look-back.
async fn join(conn: &mut AsyncPgConnection, fixture: &Fixture) -> ManagerName {
    let manager = fixture.applied_manager(conn, &instructions("a"), &[]).await;
    let waiting = Waiting {
        feed: feed(),
        notify: true,
        account: fixture.account,
    };
    let now = Timestamp::now();
    let rest = Rest {
        manager,
        reach_time: now,
        look_back: Some((now.minus(Duration::from_secs(60)), now)),
    };
    backfills::matched_kept(conn, &waiting, &[rest])
        .await
        .unwrap();
    manager
}

#[tokio::test]
async fn look_back_serves_the_managers_of_one_account() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let first = at.fixture.beside(conn, "globex").await;
    // Another Namespace of the same account.
    let second = at.fixture.beside(conn, "globex").await;
    assert_eq!(first.account, second.account);
    let mut expected: BTreeMap<Id, BTreeSet<ManagerName>> = BTreeMap::new();
    for fixture in [&at.fixture, &first, &at.fixture, &second] {
        let manager = join(conn, fixture).await;
        expected.entry(fixture.account).or_default().insert(manager);
    }
    let mut look = Look::of(Uuid::new_v4());
    let leased = look_backs::lease(conn, &["hackernews"], &mut look.claim()).await;
    let mut found = BTreeMap::new();
    for leased in leased.unwrap().items {
        let readers = look_backs::readers(conn, leased.item.id).await.unwrap();
        let managers: BTreeSet<_> = readers.into_iter().map(|reader| reader.manager).collect();
        let earlier = found.insert(leased.account, managers);
        assert_eq!(earlier, None, "an account has one look-back of the feed");
    }
    assert_eq!(found, expected);
}
