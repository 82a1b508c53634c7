//! Leases of background work: crashes are counted, and suspects are tried one by one.

use std::time::Duration;

use domain::{Id, manager::Mode};
use store::{
    AsyncPgConnection,
    backfills::look_backs,
    feeds,
    feeds::PollOutcome,
    managers, replicas,
    work::{Claimed, Setback, table},
};
use test_support::instructions;
use uuid::Uuid;

use crate::support::{Look, die, number, run, start, watch};

async fn living(conn: &mut AsyncPgConnection) -> Uuid {
    let replica = Uuid::new_v4();
    replicas::beat(conn, replica, "scanner").await.unwrap();
    replica
}

fn crashes<T>(claimed: &Claimed<T>) -> Vec<(&str, u32)> {
    let items = claimed.items.iter();
    items.map(|one| (one.key.as_str(), one.crashes)).collect()
}

fn due(keys: &[&str]) -> Vec<table::Due<()>> {
    let due = keys.iter().map(|key| table::Due {
        key: (*key).to_owned(),
        accounts: vec![Id::NIL],
        item: (),
    });
    due.collect()
}

/// Leases these items to a replica that is then gone.
async fn lease_and_die(conn: &mut AsyncPgConnection, keys: &[&str]) -> Vec<(String, u32)> {
    let replica = living(conn).await;
    let claimed = table::lease(conn, "test", due(keys), &mut Look::of(replica).claim()).await;
    die(conn, replica).await;
    let claimed = claimed.unwrap();
    let leased = crashes(&claimed).into_iter();
    leased.map(|(key, count)| (key.to_owned(), count)).collect()
}

#[tokio::test]
async fn item_of_a_replica_that_stopped_in_good_order_has_not_crashed() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let replica = living(conn).await;
    let claimed = table::lease(conn, "test", due(&["a"]), &mut Look::of(replica).claim()).await;
    assert_eq!(claimed.unwrap().items.len(), 1);
    replicas::leave(conn, replica).await.unwrap();
    assert_eq!(lease_and_die(conn, &["a"]).await, [("a".to_owned(), 0)]);
    assert_eq!(lease_and_die(conn, &["a"]).await, [("a".to_owned(), 1)]);
}

#[tokio::test]
async fn suspects_are_leased_one_by_one_until_they_are_released() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let both = ["a", "b"];
    let of = |leased: &[(&str, u32)]| -> Vec<(String, u32)> {
        let leased = leased.iter();
        leased
            .map(|(key, count)| ((*key).to_owned(), *count))
            .collect()
    };
    assert_eq!(lease_and_die(conn, &both).await, of(&[("a", 0), ("b", 0)]));
    assert_eq!(lease_and_die(conn, &both).await, of(&[("a", 1), ("b", 1)]));
    // Either may have ended both replicas, so they are not tried together again.
    assert_eq!(lease_and_die(conn, &both).await, of(&[("a", 2)]));
    let with_new = ["a", "b", "c"];
    let replica = living(conn).await;
    let mut look = Look::of(replica);
    let claimed = table::lease(conn, "test", due(&with_new), &mut look.claim()).await;
    let claimed = claimed.unwrap();
    assert_eq!(crashes(&claimed), [("a", 3), ("c", 0)]);

    let setback = Setback::after_crashes(3).unwrap();
    let (reason, wait) = (&setback.reason, setback.retry_in);
    table::set_aside(conn, "test", "a", replica, reason, wait)
        .await
        .unwrap();
    table::release(conn, "test", &["c"], replica).await.unwrap();
    assert_eq!(
        lease_and_die(conn, &with_new).await,
        of(&[("b", 2), ("c", 0)])
    );
    // Not due before its time, and then to be tried.
    run(conn, "UPDATE leases SET next_time = now() WHERE key = 'a'").await;
    assert_eq!(lease_and_die(conn, &["a"]).await, of(&[("a", 4)]));
    let rows = "SELECT count(*) AS number FROM leases WHERE key = 'c'";
    assert_eq!(number(conn, rows).await, 1);
    run(
        conn,
        "UPDATE leases SET next_time = now() - interval '40 days'",
    )
    .await;
    assert_eq!(table::purge(conn).await.unwrap(), 3);
}

#[tokio::test]
async fn panics_count_like_crashes() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let replica = living(conn).await;
    for expected in 0..4 {
        let mut look = Look::of(replica);
        let claimed = table::lease(conn, "test", due(&["a"]), &mut look.claim()).await;
        assert_eq!(crashes(&claimed.unwrap()), [("a", expected)]);
        let pause = Duration::ZERO;
        table::count_crash(conn, "test", "a", replica, pause)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn poll_that_ends_resets_the_crashes_of_its_feed() {
    let mut at = start().await;
    let manager = at
        .fixture
        .manager(&mut at.conn, &instructions("a"), &[])
        .await;
    let conn = &mut at.conn;
    watch(conn, manager, &["forum:a", "forum:b"]).await;
    let lease = async |conn: &mut AsyncPgConnection, replica| {
        let claimed = feeds::lease_due(conn, "forum", &mut Look::of(replica).claim()).await;
        let mut items = claimed.unwrap().items;
        items.sort_by(|a, b| a.key.cmp(&b.key));
        items
    };
    for count in [2, 2, 1] {
        let dead = living(conn).await;
        assert_eq!(lease(conn, dead).await.len(), count);
        die(conn, dead).await;
    }
    let replica = living(conn).await;
    let leased = lease(conn, replica).await;
    assert_eq!(leased.len(), 1, "the other one is a suspect too");
    assert_eq!(leased[0].crashes, 3);
    let setback = Setback::after_crashes(3).unwrap();
    let feed = &leased[0].item.name;
    feeds::set_aside(conn, feed, replica, &setback)
        .await
        .unwrap();
    let set_aside = "SELECT count(*) AS number FROM feeds WHERE trouble = 'FAILING' \
                     AND last_error LIKE 'the service stopped 3 times%' AND leased_by IS NULL \
                     AND next_poll_time > now() + interval '30 seconds'";
    assert_eq!(number(conn, set_aside).await, 1);
    // The other one is innocent.
    let leased = lease(conn, replica).await;
    assert_eq!(leased[0].crashes, 2);
    let read = PollOutcome::Read(feeds::Reading::default());
    let next = Duration::ZERO.into();
    feeds::release(conn, &leased[0].item.name, replica, &read, next)
        .await
        .unwrap();
    assert_eq!(lease(conn, replica).await[0].crashes, 0);
}

/// Or the look for work would be repeated at once, for ever.
#[tokio::test]
async fn leased_items_with_unreadable_names_are_no_contention() {
    let mut at = start().await;
    let conn = &mut at.conn;
    for values in [
        "feeds (name, platform, watched, next_poll_time, create_time) VALUES ('forum:', 'forum', true, now(), now())",
        "look_backs (feed, notify, since) VALUES ('forum:', false, now())",
    ] {
        run(conn, format!("INSERT INTO {values}")).await;
    }
    let mut look = Look::of(Uuid::new_v4());
    let found = feeds::lease_due(conn, "forum", &mut look.claim()).await;
    let found = found.unwrap();
    assert_eq!((found.items, found.is_contended), (Vec::new(), false));
    let found = look_backs::lease(conn, &["forum"], &mut look.claim()).await;
    let found = found.unwrap();
    assert_eq!((found.items, found.is_contended), (Vec::new(), false));
    for table in ["feeds", "look_backs"] {
        let leased = format!("SELECT count(*) AS number FROM {table} WHERE leased_by IS NOT NULL");
        assert_eq!(number(conn, &leased).await, 1, "{table}");
    }
}

#[tokio::test]
async fn new_generation_of_a_manager_has_not_crashed() {
    let mut at = start().await;
    at.fixture
        .manager(&mut at.conn, &instructions("a"), &[])
        .await;
    let conn = &mut at.conn;
    let mut counts = Vec::new();
    for round in 0..4 {
        let dead = living(conn).await;
        let mut look = Look::of(dead);
        let claimed = managers::claim(conn, Mode::Manual, &mut look.claim()).await;
        counts.push(claimed.unwrap().items[0].crashes);
        die(conn, dead).await;
        if round == 2 {
            run(conn, "UPDATE managers SET generation = generation + 1").await;
        }
    }
    assert_eq!(counts, [0, 1, 2, 0]);
}
