use std::time::Duration;

use domain::FeedName;
use serde_json::json;
use store::{
    AsyncPgConnection,
    fair::Turns,
    feeds::{self, LeasedFeed, Next, PollOutcome, Reading, Trouble},
    replicas,
    work::{Claim, Claimed, Leased, Room},
};
use test_support::instructions;
use uuid::Uuid;

use crate::support::{self, Start, number, run, start};

/// A database with watched feeds `forum:0`, `forum:1` …; a higher number has been due longer.
async fn with_feeds(count: usize) -> Start {
    let mut at = start().await;
    let manager = at
        .fixture
        .manager(&mut at.conn, &instructions("a"), &[])
        .await;
    let names = many("", count);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    support::watch(&mut at.conn, manager, &names).await;
    run(
        &mut at.conn,
        "UPDATE feeds SET next_poll_time = now() - interval '1 second' * substr(name, 7)::int",
    )
    .await;
    at
}

async fn living(conn: &mut AsyncPgConnection) -> Uuid {
    let replica = Uuid::new_v4();
    replicas::beat(conn, replica, "scanner").await.unwrap();
    replica
}

/// Room for this many quick polls of one account, and as many of others.
fn room(quick: usize) -> Room {
    Room::new(quick * 2, 2, 100)
}

async fn lease(
    conn: &mut AsyncPgConnection,
    replica: Uuid,
    limit: usize,
) -> Vec<Leased<LeasedFeed>> {
    lease_beside(conn, replica, &[], true, limit).await
}

async fn lease_beside(
    conn: &mut AsyncPgConnection,
    replica: Uuid,
    open: &[String],
    take_over: bool,
    limit: usize,
) -> Vec<Leased<LeasedFeed>> {
    lease_into(conn, replica, open, take_over, &mut room(limit))
        .await
        .items
}

async fn lease_into(
    conn: &mut AsyncPgConnection,
    replica: Uuid,
    open: &[String],
    take_over: bool,
    room: &mut Room,
) -> Claimed<LeasedFeed> {
    let turns = &mut Turns::default();
    let mut claim = Claim {
        replica,
        take_over,
        known: open,
        room,
        turns,
    };
    feeds::lease_due(conn, "forum", &mut claim).await.unwrap()
}

async fn next_due(
    conn: &mut AsyncPgConnection,
    replica: Uuid,
    open: &[String],
) -> Option<Duration> {
    next_due_of(conn, "forum", replica, open, true).await
}

async fn next_due_of(
    conn: &mut AsyncPgConnection,
    platform: &str,
    replica: Uuid,
    open: &[String],
    take_over: bool,
) -> Option<Duration> {
    let claim = Claim {
        replica,
        take_over,
        known: open,
        room: &mut room(1),
        turns: &mut Turns::default(),
    };
    feeds::next_due(conn, platform, &claim).await.unwrap()
}

fn names(feeds: &[Leased<LeasedFeed>]) -> Vec<&str> {
    feeds.iter().map(|feed| feed.key.as_str()).collect()
}

#[tokio::test]
async fn feeds_are_leased_longest_due_first() {
    let mut at = with_feeds(5).await;
    let conn = &mut at.conn;
    run(
        conn,
        "UPDATE feeds SET next_poll_time = now() + interval '1 hour' WHERE name = 'forum:4'",
    )
    .await;
    run(
        conn,
        "UPDATE feeds SET watched = false WHERE name = 'forum:3'",
    )
    .await;
    let replica = living(conn).await;
    let wait = next_due(conn, replica, &[]).await.unwrap();
    assert!(wait > Duration::from_secs(3_500), "those due are no news");
    let elsewhere = next_due_of(conn, "blogs", replica, &[], true).await;
    assert_eq!(elsewhere, None);

    let leased = lease(conn, replica, 2).await;
    assert_eq!(names(&leased), ["forum:2", "forum:1"]);
    assert!(
        leased[0].item.late > Duration::from_millis(1_900),
        "{:?}",
        leased[0].item.late
    );
    let open: Vec<String> = names(&leased).into_iter().map(str::to_owned).collect();
    let rest = lease_beside(conn, replica, &open, true, 9).await;
    assert_eq!(names(&rest), ["forum:0"]);
    let open = ["forum:0", "forum:1", "forum:2"].map(str::to_owned);
    let wait = next_due(conn, replica, &open).await.unwrap();
    assert!(wait > Duration::from_secs(3_500), "{wait:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_never_lease_the_same_feed() {
    let mut at = with_feeds(60).await;
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let pool = at.database.pool();
            tokio::spawn(async move {
                let mut conn = pool.get().await.unwrap();
                let replica = living(&mut conn).await;
                let mut leased: Vec<String> = Vec::new();
                // Some are skipped while another replica has them locked, so ask until there is nothing left.
                for _ in 0..30 {
                    let more = lease_beside(&mut conn, replica, &leased, true, 7).await;
                    assert!(more.len() <= 7);
                    leased.extend(more.into_iter().map(|feed| feed.key));
                }
                leased
            })
        })
        .collect();
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.unwrap());
    }
    all.sort_unstable();
    all.dedup();
    let leased = "SELECT count(*) AS number FROM feeds WHERE leased_by IS NOT NULL";
    assert_eq!((all.len(), number(&mut at.conn, leased).await), (60, 60));
}

#[tokio::test]
async fn leases_end_with_the_heartbeat_and_with_the_replica() {
    let mut at = with_feeds(1).await;
    let conn = &mut at.conn;
    let [one, two] = [living(conn).await, living(conn).await];
    let age = |replica: Uuid, seconds: u32| {
        format!(
            "UPDATE replicas SET heartbeat_time = now() - interval '{seconds} seconds' WHERE id = '{replica}'"
        )
    };
    assert_eq!(lease(conn, one, 9).await.len(), 1);
    replicas::beat(conn, one, "scanner").await.unwrap();
    assert!(lease(conn, two, 9).await.is_empty());
    run(conn, age(one, 2)).await;
    let early = lease(conn, two, 9).await;
    let silence = format!(
        "SELECT floor(extract(epoch FROM clock_timestamp() - heartbeat_time))::bigint AS number \
         FROM replicas WHERE id = '{one}'"
    );
    // On a busy machine, it may last longer by now.
    assert!(
        early.is_empty() || number(conn, &silence).await >= 4,
        "two seconds of silence are borne"
    );
    run(conn, age(one, 5)).await;
    assert_eq!(lease(conn, two, 9).await.len(), 1);

    // The old holder comes back too late.
    replicas::beat(conn, one, "scanner").await.unwrap();
    let feed: FeedName = "forum:0".parse().unwrap();
    assert!(!feeds::lock(conn, &feed, one, None).await.unwrap());
    assert!(feeds::lock(conn, &feed, two, None).await.unwrap());
    let outcome = PollOutcome::Read(Reading {
        cursor: Some(json!({"after": 1})),
        ..Reading::default()
    });
    feeds::release(conn, &feed, one, &outcome, Duration::ZERO.into())
        .await
        .unwrap();
    assert!(
        feeds::lock(conn, &feed, two, None).await.unwrap(),
        "the new holder keeps its lease"
    );

    replicas::leave(conn, two).await.unwrap();
    let leased = lease(conn, one, 9).await;
    assert_eq!(leased.len(), 1);
    assert_eq!(
        leased[0].item.cursor, None,
        "what came too late was not stored"
    );
}

#[tokio::test]
async fn a_poll_from_a_cursor_that_the_database_lost_is_refused() {
    let mut at = with_feeds(1).await;
    let conn = &mut at.conn;
    let replica = living(conn).await;
    assert_eq!(lease(conn, replica, 9).await.len(), 1);
    let feed: FeedName = "forum:0".parse().unwrap();
    let cursor = json!({"after": 1, "text": "a\u{0}b", "ids": [["1", 1_700_000_000]]});
    let outcome = PollOutcome::Read(Reading {
        cursor: Some(cursor.clone()),
        ..Reading::default()
    });
    let next = Next {
        poll_in: Duration::ZERO,
        slow: false,
        keeps_lease: true,
    };
    assert!(
        feeds::release(conn, &feed, replica, &outcome, next)
            .await
            .unwrap()
    );
    let held = feeds::lock(conn, &feed, replica, Some(&cursor)).await;
    assert!(held.unwrap(), "what was stored is what is compared");
    // The database is now an older one, with the lease and without the last poll.
    run(conn, "UPDATE feeds SET cursor = NULL".to_owned()).await;
    let held = feeds::lock(conn, &feed, replica, Some(&cursor)).await;
    assert!(!held.unwrap());
    assert!(feeds::lock(conn, &feed, replica, None).await.unwrap());
}

#[tokio::test]
async fn a_lease_that_its_holder_forgot_expires() {
    let mut at = with_feeds(1).await;
    let replica = living(&mut at.conn).await;
    assert_eq!(lease(&mut at.conn, replica, 9).await.len(), 1);
    let open = ["forum:0".to_owned()];
    let again = lease_beside(&mut at.conn, replica, &open, true, 9).await;
    assert!(again.is_empty(), "it is in hand");
    assert_eq!(lease(&mut at.conn, replica, 9).await.len(), 1);
}

#[tokio::test]
async fn feeds_are_not_taken_over_right_after_an_outage() {
    let mut at = with_feeds(1).await;
    let conn = &mut at.conn;
    let [one, two] = [living(conn).await, living(conn).await];
    assert_eq!(lease(conn, one, 9).await.len(), 1);
    // While the database was away, no replica could renew its heartbeat.
    run(
        conn,
        "UPDATE replicas SET heartbeat_time = now() - interval '30 seconds'",
    )
    .await;
    let open = ["forum:0".to_owned()];
    let own = lease_beside(conn, one, &open, true, 9).await;
    assert!(own.is_empty(), "it has the poll open");
    assert_eq!(next_due(conn, one, &open).await, None);
    let other = lease_beside(conn, two, &[], false, 9).await;
    assert!(other.is_empty(), "the holder may be about to beat");
    let wait = next_due_of(conn, "forum", two, &[], false).await;
    assert_eq!(wait, None, "nothing to wake for");
    assert_eq!(lease(conn, two, 9).await.len(), 1, "the holder is dead");
}

#[tokio::test]
async fn a_release_stores_the_outcome_of_the_poll() {
    let mut at = with_feeds(1).await;
    let conn = &mut at.conn;
    let replica = living(conn).await;
    let feed: FeedName = "forum:0".parse().unwrap();
    let read = |gap: bool| {
        PollOutcome::Read(Reading {
            // A stranger's id in it.
            cursor: Some(json!({"after": "a\0b"})),
            gap: gap.then_some(None),
            ..Reading::default()
        })
    };
    let failed = PollOutcome::Failed {
        error: "answered \0 nonsense".to_owned(),
        trouble: Trouble::Failing,
    };
    let cursor = Some(json!({"after": "ab"}));
    let steps = [
        (failed.clone(), None, 1),
        (read(true), cursor.clone(), 0),
        (failed.clone(), cursor.clone(), 1),
        (failed, cursor.clone(), 2),
        (read(false), cursor, 0),
    ];
    for (at_step, (outcome, cursor, failures)) in steps.into_iter().enumerate() {
        assert_eq!(lease(conn, replica, 1).await.len(), 1, "step {at_step}");
        feeds::release(conn, &feed, replica, &outcome, Duration::ZERO.into())
            .await
            .unwrap();
        let leased = lease(conn, replica, 1).await;
        assert_eq!(
            (&leased[0].item.cursor, leased[0].item.failure_count),
            (&cursor, failures),
            "step {at_step}"
        );
    }
    assert_eq!(
        number(conn, "SELECT gap_count AS number FROM feeds").await,
        1
    );
    feeds::release(
        conn,
        &feed,
        replica,
        &read(false),
        Duration::from_secs(60).into(),
    )
    .await
    .unwrap();
    let wait = next_due(conn, replica, &[]).await.unwrap();
    assert!(
        wait > Duration::from_secs(55) && wait <= Duration::from_secs(60),
        "{wait:?}"
    );
}

/// Makes a Manager of `namespace` watch feeds, due the longest first.
async fn watch(at: &mut Start, fixture: &test_support::Fixture, names: &[String], age: u32) {
    let manager = fixture.manager(&mut at.conn, &instructions("a"), &[]).await;
    let feeds: Vec<&str> = names.iter().map(String::as_str).collect();
    support::watch(&mut at.conn, manager, &feeds).await;
    for (n, name) in names.iter().enumerate() {
        let sql = format!(
            "UPDATE feeds SET next_poll_time = now() - interval '{age} s' + interval '{n} ms' WHERE name = '{name}'"
        );
        run(&mut at.conn, sql).await;
    }
}

fn many(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("forum:{prefix}{n}")).collect()
}

#[tokio::test]
async fn many_feeds_of_one_account_leave_capacity_for_others() {
    let mut at = start().await;
    let hostile = at.fixture.clone();
    let other = hostile.beside(&mut at.conn, "globex").await;
    watch(&mut at, &hostile, &many("h", 60), 3_600).await;
    let replica = living(&mut at.conn).await;
    let mut room = Room::new(12, 8, 128);
    let first = lease_into(&mut at.conn, replica, &[], true, &mut room)
        .await
        .items;
    assert_eq!(names(&first), many("h", 6), "half of the places");
    assert!(first.iter().all(|feed| feed.account == hostile.account));
    let open: Vec<String> = first
        .iter()
        .map(|feed| feed.item.name.to_string())
        .collect();
    let more = lease_into(&mut at.conn, replica, &open, true, &mut room).await;
    assert_eq!((more.items, more.is_contended), (Vec::new(), false));

    // None of these has been due as long; both accounts watch one of them.
    watch(
        &mut at,
        &other,
        &["forum:h59".to_owned(), "forum:o".to_owned()],
        1,
    )
    .await;
    let theirs = lease_into(&mut at.conn, replica, &open, true, &mut room)
        .await
        .items;
    let mut found = names(&theirs);
    found.sort_unstable();
    assert_eq!(found, ["forum:h59", "forum:o"]);
    assert!(theirs.iter().all(|feed| feed.account == other.account));
}

#[tokio::test]
async fn slow_feeds_of_one_account_leave_capacity_for_slow_feeds_of_others() {
    let mut at = start().await;
    let hostile = at.fixture.clone();
    let other = hostile.beside(&mut at.conn, "globex").await;
    watch(&mut at, &hostile, &many("h", 30), 3_600).await;
    watch(&mut at, &other, &many("o", 3), 1).await;
    run(&mut at.conn, "UPDATE feeds SET slow = true").await;
    let replica = living(&mut at.conn).await;
    let mut room = Room::new(12, 8, 128);
    // All of these were slow polls, which have now exceeded their time.
    for _ in 0..64 {
        room.take_overdue(hostile.account);
    }
    let leased = lease_into(&mut at.conn, replica, &[], true, &mut room)
        .await
        .items;
    assert_eq!(names(&leased), many("o", 3));
}

#[tokio::test]
async fn a_feed_of_many_managers_counts_for_one_account() {
    let mut at = start().await;
    let one = at.fixture.clone();
    let other = one.beside(&mut at.conn, "globex").await;
    for fixture in [&one, &one, &other, &other] {
        watch(&mut at, fixture, &["forum:shared".to_owned()], 5).await;
    }
    watch(&mut at, &one, &many("own", 2), 60).await;
    let replica = living(&mut at.conn).await;
    let mut room = Room::new(3, 3, 3);
    let leased = lease_into(&mut at.conn, replica, &[], true, &mut room)
        .await
        .items;
    let accounts: Vec<_> = { leased.iter() }
        .map(|feed| (feed.item.name.as_str(), feed.account))
        .collect();
    assert_eq!(
        accounts,
        [("forum:own0", one.account), ("forum:shared", other.account)]
    );
}

#[tokio::test]
async fn feeds_of_a_dead_replica_are_shared_like_others() {
    let mut at = start().await;
    let hostile = at.fixture.clone();
    let other = hostile.beside(&mut at.conn, "globex").await;
    watch(&mut at, &hostile, &many("h", 20), 3_600).await;
    watch(&mut at, &other, &many("o", 1), 1).await;
    let [one, two] = [living(&mut at.conn).await, living(&mut at.conn).await];
    assert_eq!(lease(&mut at.conn, one, 50).await.len(), 21);
    replicas::leave(&mut at.conn, one).await.unwrap();
    let leased = lease(&mut at.conn, two, 3).await;
    let theirs = leased.iter().filter(|feed| feed.account == other.account);
    assert_eq!((leased.len(), theirs.count()), (4, 1));
}

#[tokio::test]
async fn feeds_are_due_after_the_clock_went_back() {
    let mut at = with_feeds(3).await;
    for (feed, polled) in [
        (1, "now() + interval '2 hours'"),
        (2, "now() - interval '1 minute'"),
    ] {
        run(
            &mut at.conn,
            &format!(
                "UPDATE feeds SET last_poll_time = {polled}, next_poll_time = {polled} + interval '5 minutes' \
                 WHERE name = 'forum:{feed}'"
            ),
        )
        .await;
    }
    let found = feeds::by_platform(&mut at.conn).await.unwrap();
    assert_eq!((found[0].due, found[0].ahead), (1, 1));
    assert_eq!(feeds::follow_clock(&mut at.conn).await.unwrap(), 1);
    let found = feeds::by_platform(&mut at.conn).await.unwrap();
    assert_eq!((found[0].due, found[0].ahead), (2, 0));
    let never =
        "SELECT count(*) AS number FROM feeds WHERE last_poll_time IS NULL AND late_time IS NULL";
    assert_eq!(number(&mut at.conn, never).await, 1);
}
