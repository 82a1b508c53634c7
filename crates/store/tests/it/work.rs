//! Leases of background work: crashes are counted, and suspects are tried one by one.

use std::time::Duration;

use domain::{
    Id, ManagerName, Timestamp,
    manager::{ApplyError, ApplyErrorCode, ManagerChange, Mode, Origin},
};
use store::{
    AsyncPgConnection,
    backfills::look_backs,
    erasure, feeds,
    feeds::{LeasedFeed, Next, PollOutcome, Trouble},
    managers,
    managers::Generation,
    replicas,
    work::{Claimed, Leased, Setback, table},
};
use test_support::{QUOTAS, instructions};
use uuid::Uuid;

use crate::support::{Look, Start, die, number, run, start, watch};

async fn living(conn: &mut AsyncPgConnection) -> Uuid {
    let replica = Uuid::new_v4();
    replicas::beat(conn, replica, "scanner").await.unwrap();
    replica
}

/// Lets an hour pass for the crashes of these rows.
async fn pass_an_hour(conn: &mut AsyncPgConnection, table: &str) {
    let earlier = "clear_time = clear_time - interval '61 minutes'";
    run(conn, format!("UPDATE {table} SET {earlier}")).await;
}

/// A Manager that watches these feeds.
async fn watching(feeds: &[&str]) -> Start {
    let mut at = start().await;
    let manager = at
        .fixture
        .manager(&mut at.conn, &instructions("a"), &[])
        .await;
    watch(&mut at.conn, manager, feeds).await;
    at
}

/// Leases all feeds that are due, by name.
async fn lease_feeds(conn: &mut AsyncPgConnection, replica: Uuid) -> Vec<Leased<LeasedFeed>> {
    let claimed = feeds::lease_due(conn, "forum", &mut Look::of(replica).claim()).await;
    let mut items = claimed.unwrap().items;
    items.sort_by(|a, b| a.key.cmp(&b.key));
    items
}

/// Lets replicas die with all feeds that they can lease.
async fn die_with_feeds(conn: &mut AsyncPgConnection, counts: &[usize]) {
    for count in counts {
        let dead = living(conn).await;
        assert_eq!(lease_feeds(conn, dead).await.len(), *count);
        die(conn, dead).await;
    }
}

async fn end_poll(
    conn: &mut AsyncPgConnection,
    leased: &Leased<LeasedFeed>,
    replica: Uuid,
    outcome: &PollOutcome,
) {
    let (feed, next) = (&leased.item.name, Duration::ZERO.into());
    feeds::release(conn, feed, replica, outcome, next)
        .await
        .unwrap();
}

fn failed() -> PollOutcome {
    PollOutcome::Failed {
        error: "503".to_owned(),
        trouble: Trouble::Failing,
    }
}

fn read() -> PollOutcome {
    PollOutcome::Read(feeds::Reading::default())
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
async fn feed_that_ended_is_no_suspect_and_forgets_its_crashes_an_hour_later() {
    let mut at = watching(&["forum:a", "forum:b"]).await;
    let conn = &mut at.conn;
    die_with_feeds(conn, &[2, 2, 1]).await;
    let replica = living(conn).await;
    let leased = lease_feeds(conn, replica).await;
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
    let leased = lease_feeds(conn, replica).await.remove(0);
    assert_eq!((leased.crashes, leased.is_suspect), (2, true));
    end_poll(conn, &leased, replica, &read()).await;
    let leased = lease_feeds(conn, replica).await.remove(0);
    let found = (leased.crashes, leased.is_suspect);
    assert_eq!(found, (2, false), "its server may answer otherwise");
    pass_an_hour(conn, "feeds").await;
    end_poll(conn, &leased, replica, &read()).await;
    // The death of a process that did not have it in hand changes nothing.
    let gateway = Uuid::new_v4();
    replicas::beat(conn, gateway, "api-gateway").await.unwrap();
    die(conn, gateway).await;
    assert_eq!(lease_feeds(conn, replica).await[0].crashes, 0);
}

#[tokio::test]
async fn feed_that_fails_between_its_crashes_is_set_aside() {
    let mut at = watching(&["forum:a"]).await;
    let conn = &mut at.conn;
    die_with_feeds(conn, &[1, 1]).await;
    let dead = living(conn).await;
    let leased = lease_feeds(conn, dead).await.remove(0);
    end_poll(conn, &leased, dead, &failed()).await;
    assert_eq!(lease_feeds(conn, dead).await[0].crashes, 2);
    die(conn, dead).await;
    let replica = living(conn).await;
    let crashes = lease_feeds(conn, replica).await[0].crashes;
    assert!(Setback::after_crashes(crashes).is_some(), "{crashes}");
}

#[tokio::test]
async fn suspect_that_failed_leaves_its_place_to_the_next_one() {
    let mut at = watching(&["forum:a", "forum:b", "forum:c"]).await;
    let conn = &mut at.conn;
    die_with_feeds(conn, &[3, 3]).await;
    let replica = living(conn).await;
    for count in 1..=3 {
        let leased = lease_feeds(conn, replica).await;
        assert_eq!(leased.len(), count);
        let suspects = leased.iter().filter(|one| one.is_suspect).count();
        assert_eq!(suspects, 1);
        for one in &leased {
            end_poll(conn, one, replica, &failed()).await;
        }
    }
}

#[tokio::test]
async fn feed_that_ended_between_its_crashes_rests_for_four_minutes_at_most() {
    let mut at = watching(&["forum:a"]).await;
    let conn = &mut at.conn;
    run(
        conn,
        "UPDATE feeds SET crash_count = 10, clear_time = now()",
    )
    .await;
    die_with_feeds(conn, &[1]).await;
    let replica = living(conn).await;
    let crashes = lease_feeds(conn, replica).await[0].crashes;
    let setback = Setback::after_crashes(crashes).unwrap();
    assert_eq!(setback.retry_in, Duration::from_secs(4 * 60));
}

#[tokio::test]
async fn stream_that_was_read_forgets_its_crashes() {
    let mut at = watching(&["forum:a"]).await;
    let conn = &mut at.conn;
    die_with_feeds(conn, &[1, 1]).await;
    let dead = living(conn).await;
    let leased = lease_feeds(conn, dead).await.remove(0);
    assert_eq!(leased.crashes, 2);
    let next = Next {
        keeps_lease: true,
        ..Next::from(Duration::ZERO)
    };
    let kept = feeds::release(conn, &leased.item.name, dead, &read(), next).await;
    assert!(kept.unwrap());
    die(conn, dead).await;
    let replica = living(conn).await;
    assert_eq!(lease_feeds(conn, replica).await[0].crashes, 1);
}

/// It would fail for good, so its last crash is one at which it was alone in hand.
#[tokio::test]
async fn look_back_that_fails_or_goes_on_between_its_crashes_is_a_suspect_again() {
    for fails in [true, false] {
        let mut at = start().await;
        let conn = &mut at.conn;
        let values = "(feed, notify, since) VALUES ('forum:a', false, now())";
        run(conn, format!("INSERT INTO look_backs {values}")).await;
        let lease = async |conn: &mut AsyncPgConnection, replica| {
            let mut look = Look::of(replica);
            let claimed = look_backs::lease(conn, &["forum"], &mut look.claim()).await;
            claimed.unwrap().items.remove(0)
        };
        let mut found = Vec::new();
        for round in 0..5 {
            let dead = living(conn).await;
            let mut leased = lease(conn, dead).await;
            found.push((leased.crashes, leased.is_suspect));
            if round == 2 {
                let (id, wait) = (leased.item.id, Duration::ZERO);
                if fails {
                    look_backs::fail(conn, id, dead, false, wait).await.unwrap();
                } else {
                    let cursor = serde_json::json!("later");
                    look_backs::go_on(conn, id, cursor, None, wait)
                        .await
                        .unwrap();
                }
                leased = lease(conn, dead).await;
                found.push((leased.crashes, leased.is_suspect));
            }
            die(conn, dead).await;
        }
        let before = [(0, false), (1, false), (2, true)];
        assert_eq!(found[..3], before);
        assert_eq!(found[3..], [(1, false), (2, true), (3, true)]);
    }
}

#[tokio::test]
async fn walk_that_rests_or_fails_between_its_crashes_is_set_aside() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let (wait, pass) = (Duration::ZERO, Duration::from_secs(3_600));
    for crashes in 0..3 {
        let dead = living(conn).await;
        let mut look = Look::of(dead);
        let claimed = erasure::lease(conn, "lemmy", &look.claim()).await.unwrap();
        assert_eq!(claimed.items[0].crashes, crashes);
        if crashes == 1 {
            erasure::release(conn, "lemmy", dead, wait).await.unwrap();
        } else {
            let place = Some(&claimed.items[0].item);
            erasure::advance(conn, "lemmy", dead, place, wait, pass)
                .await
                .unwrap();
        }
        run(conn, "UPDATE rechecks SET next_time = now()").await;
        let claimed = erasure::lease(conn, "lemmy", &look.claim()).await.unwrap();
        assert_eq!(claimed.items[0].crashes, crashes);
        die(conn, dead).await;
    }
    let mut look = Look::of(living(conn).await);
    let claimed = erasure::lease(conn, "lemmy", &look.claim()).await.unwrap();
    assert_eq!(claimed.items[0].crashes, 3);
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

async fn resubmit(conn: &mut AsyncPgConnection, name: ManagerName, input: &str) {
    let current = managers::lock(conn, name).await.unwrap().unwrap();
    let change = ManagerChange {
        origin: Some(Origin::Instructions(instructions(input))),
        ..ManagerChange::default()
    };
    managers::update(conn, current, &change, &QUOTAS, Timestamp::now())
        .await
        .unwrap();
}

/// Claims the only Manager that waits, by a replica that is then gone.
async fn claim_and_die(conn: &mut AsyncPgConnection) -> Leased<Generation> {
    let replica = living(conn).await;
    let mut look = Look::of(replica);
    let claimed = managers::claim(conn, Mode::Manual, &mut look.claim()).await;
    die(conn, replica).await;
    claimed.unwrap().items.remove(0)
}

#[tokio::test]
async fn manager_that_is_applied_again_keeps_its_crashes_for_an_hour_and_with_its_input() {
    let mut at = start().await;
    let name = at
        .fixture
        .manager(&mut at.conn, &instructions("a"), &[])
        .await;
    let conn = &mut at.conn;
    for expected in 0..3 {
        assert_eq!(claim_and_die(conn).await.crashes, expected);
    }
    resubmit(conn, name, "a").await;
    let mut leased = claim_and_die(conn).await;
    assert_eq!(leased.crashes, 3, "its last generation was in hand");
    let error = ApplyError {
        code: ApplyErrorCode::InvalidInstructions,
        message: "it is set aside".to_owned(),
    };
    for (expected, is_later) in [(1, false), (0, true)] {
        let (generation, now) = (leased.item.generation, Timestamp::now());
        let was_failed = managers::fail(conn, name, generation, &error, now).await;
        assert!(was_failed.unwrap());
        if is_later {
            pass_an_hour(conn, "managers").await;
        }
        resubmit(conn, name, "a").await;
        leased = claim_and_die(conn).await;
        let found = (leased.crashes, leased.is_suspect);
        assert_eq!(found, (expected, false));
    }
    assert_eq!(claim_and_die(conn).await.crashes, 1);
    resubmit(conn, name, "b").await;
    assert_eq!(claim_and_die(conn).await.crashes, 0, "the input is new");
    assert_eq!(claim_and_die(conn).await.crashes, 1);
}

#[tokio::test]
async fn death_after_a_manager_was_compiled_is_no_crash_of_it() {
    let mut at = start().await;
    let name = at
        .fixture
        .manager(&mut at.conn, &instructions("a"), &[])
        .await;
    let conn = &mut at.conn;
    let leased = claim_and_die(conn).await;
    let (generation, plan) = (leased.item.generation, instructions("a"));
    let applied = managers::apply(conn, name, generation, &plan, &QUOTAS, Timestamp::now()).await;
    assert!(applied.unwrap().is_some());
    resubmit(conn, name, "a").await;
    assert_eq!(claim_and_die(conn).await.crashes, 0);
}
