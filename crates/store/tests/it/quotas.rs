//! Quotas of accounts, also where several transactions want the last place.

use diesel_async::AsyncConnection;
use domain::{FeedName, Timestamp};
use futures::future::join_all;
use store::{
    Error, managers,
    quotas::{self, Change, Limits, Overrides, Resource},
};
use test_support::{Fixture, TestDatabase, instructions};

use crate::support::{Start, number, run, start};

const DEFAULTS: Limits = Limits {
    managers: 3,
    connections: 3,
    feeds: 2,
};

fn feeds(names: &[&str]) -> Vec<FeedName> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

/// Creates a Manager as the gateway does; whether there was room.
async fn create(database: &TestDatabase, fixture: &Fixture) -> bool {
    let mut conn = database.connect().await;
    conn.transaction(async |conn| {
        let (account, kind) = (fixture.account, Resource::Manager);
        if quotas::refuse_creation(conn, account, kind, &DEFAULTS)
            .await?
            .is_some()
        {
            return Ok(false);
        }
        fixture.manager(conn, &instructions("kettle"), &[]).await;
        Ok::<_, Error>(true)
    })
    .await
    .unwrap()
}

/// Applies a new Manager as the compiler does; whether its feeds had room.
async fn watch(database: &TestDatabase, fixture: &Fixture, names: &[&str]) -> bool {
    let mut conn = database.connect().await;
    let mut instructions = instructions("kettle");
    instructions.feeds = feeds(names);
    let name = fixture.manager(&mut conn, &instructions, &[]).await;
    conn.transaction(async |conn| {
        let (account, feeds) = (fixture.account, &instructions.feeds);
        if quotas::refuse_feeds(conn, account, name, feeds, &DEFAULTS)
            .await?
            .is_some()
        {
            return Ok(false);
        }
        managers::apply(conn, name, 1, &instructions, Timestamp::now()).await?;
        Ok::<_, Error>(true)
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn transactions_at_once_create_no_more_than_the_quota() {
    let Start {
        database,
        mut conn,
        fixture,
    } = start().await;
    let attempts = (0..8).map(|_| create(&database, &fixture));
    let made = join_all(attempts).await;
    assert_eq!(made.iter().filter(|made| **made).count(), 3);
    assert_eq!(
        number(&mut conn, "SELECT count(*) AS number FROM managers").await,
        3
    );

    // Another account is counted separately.
    let other = fixture.beside(&mut conn, "globex").await;
    assert!(create(&database, &other).await);
}

#[tokio::test]
async fn transactions_at_once_watch_no_more_feeds_than_the_quota() {
    let Start {
        database,
        mut conn,
        fixture,
    } = start().await;
    let names = ["a:1", "a:2", "a:3", "a:4", "a:5"].map(|name| [name]);
    let attempts = names.iter().map(|name| watch(&database, &fixture, name));
    let made = join_all(attempts).await;
    assert_eq!(made.iter().filter(|made| **made).count(), 2);
    let distinct = "SELECT count(DISTINCT feed) AS number FROM feed_watchers";
    assert_eq!(number(&mut conn, distinct).await, 2);
}

#[tokio::test]
async fn a_lowered_quota_refuses_only_what_grows() {
    let Start {
        database,
        mut conn,
        fixture,
    } = start().await;
    assert!(watch(&database, &fixture, &["a:1", "a:2"]).await);
    let change = Change {
        managers: Some(Some(0)),
        feeds: Some(Some(1)),
        ..Change::default()
    };
    let set = quotas::set(&mut conn, "acme", &change).await.unwrap();
    let expected = Overrides {
        managers: Some(0),
        connections: None,
        feeds: Some(1),
    };
    assert_eq!(set, Some(expected));
    assert!(!create(&database, &fixture).await);

    // The feeds that it has already, and another Manager on one of them.
    assert!(watch(&database, &fixture, &["a:2"]).await);
    assert!(!watch(&database, &fixture, &["a:3"]).await);
    let usage = quotas::usage(&mut conn, fixture.account, &DEFAULTS).await;
    let usage = usage.unwrap();
    assert_eq!((usage.limits.managers, usage.used.managers), (0, 3));
    assert_eq!((usage.limits.connections, usage.used.connections), (3, 0));
    assert_eq!((usage.limits.feeds, usage.used.feeds), (1, 2));

    // Back to the default.
    let change = Change {
        managers: Some(None),
        ..Change::default()
    };
    quotas::set(&mut conn, "acme", &change).await.unwrap();
    run(&mut conn, "DELETE FROM managers").await;
    assert!(create(&database, &fixture).await);
}

#[tokio::test]
async fn a_disabled_manager_watches_nothing_until_it_is_enabled() {
    let Start {
        database,
        mut conn,
        fixture,
    } = start().await;
    let mut instructions = instructions("kettle");
    instructions.feeds = feeds(&["a:1", "a:2", "a:3"]);
    let name = fixture.manager(&mut conn, &instructions, &[]).await;
    run(&mut conn, "UPDATE managers SET enable = false").await;
    let (account, wanted) = (fixture.account, &instructions.feeds);
    let refused = quotas::refuse_feeds(&mut conn, account, name, wanted, &DEFAULTS).await;
    assert_eq!(refused.unwrap(), None);
    managers::apply(&mut conn, name, 1, &instructions, Timestamp::now())
        .await
        .unwrap();

    let refused = quotas::refuse_enabling(&mut conn, account, name, &DEFAULTS).await;
    let refused = refused.unwrap().unwrap();
    assert_eq!(
        (refused.quota, refused.limit, refused.wanted),
        ("feeds", 2, 3)
    );
    let room = Limits {
        feeds: 3,
        ..DEFAULTS
    };
    let refused = quotas::refuse_enabling(&mut conn, account, name, &room).await;
    assert_eq!(refused.unwrap(), None);
    drop(database);
}

#[tokio::test]
async fn quotas_are_listed_and_set_by_the_accounts_name() {
    let mut at = start().await;
    at.fixture.beside(&mut at.conn, "globex").await;
    let change = Change {
        connections: Some(Some(7)),
        ..Change::default()
    };
    assert!(
        quotas::set(&mut at.conn, "globex", &change)
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(
        quotas::set(&mut at.conn, "nobody", &change).await.unwrap(),
        None
    );
    let globex = Overrides {
        connections: Some(7),
        ..Overrides::default()
    };
    let expected = [
        ("acme".to_owned(), Overrides::default()),
        ("globex".to_owned(), globex),
    ];
    assert_eq!(quotas::list(&mut at.conn).await.unwrap(), expected);
}
