use std::time::Duration;

use domain::FeedName;
use serde_json::json;
use store::{
    AsyncPgConnection,
    feeds::{self, LeasedFeed, Next, PollOutcome, Reading, Room, Trouble},
    plans, replicas,
};
use test_support::instructions;
use uuid::Uuid;

use crate::support::{Start, number, run, start};

/// A database with watched feeds `forum:0`, `forum:1` …, the later the longer due.
async fn with_feeds(count: usize) -> Start {
    let mut at = start().await;
    let manager = at
        .fixture
        .manager(&mut at.conn, &instructions("a"), &[])
        .await;
    let names: Vec<FeedName> = (0..count)
        .map(|n| format!("forum:{n}").parse().unwrap())
        .collect();
    plans::record_change(&mut at.conn, manager, &names, domain::Timestamp::now())
        .await
        .unwrap();
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

fn room(quick: i64) -> Room {
    Room { quick, slow: 1 }
}

async fn lease(conn: &mut AsyncPgConnection, replica: Uuid, limit: i64) -> Vec<LeasedFeed> {
    feeds::lease_due(conn, "forum", replica, &[], true, room(limit))
        .await
        .unwrap()
}

async fn next_due(
    conn: &mut AsyncPgConnection,
    replica: Uuid,
    open: &[String],
) -> Option<Duration> {
    feeds::next_due(conn, "forum", replica, open, true, room(1))
        .await
        .unwrap()
}

fn names(feeds: &[LeasedFeed]) -> Vec<&str> {
    feeds.iter().map(|feed| feed.name.as_str()).collect()
}

#[tokio::test]
async fn the_longest_due_come_first_and_others_wait() {
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
    assert_eq!(next_due(conn, replica, &[]).await, Some(Duration::ZERO));
    let elsewhere = feeds::next_due(conn, "blogs", replica, &[], true, room(1)).await;
    assert_eq!(elsewhere.unwrap(), None);

    let leased = feeds::lease_due(conn, "forum", replica, &[], true, room(2))
        .await
        .unwrap();
    assert_eq!(names(&leased), ["forum:2", "forum:1"]);
    assert!(
        leased[0].late > Duration::from_millis(1_900),
        "{:?}",
        leased[0].late
    );
    let open: Vec<String> = names(&leased).into_iter().map(str::to_owned).collect();
    let rest = feeds::lease_due(conn, "forum", replica, &open, true, room(9))
        .await
        .unwrap();
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
                // Some are skipped while another has them locked: ask until there is nothing.
                for _ in 0..30 {
                    let more =
                        feeds::lease_due(&mut conn, "forum", replica, &leased, true, room(7))
                            .await
                            .unwrap();
                    assert!(more.len() <= 7);
                    leased.extend(more.into_iter().map(|feed| feed.name.as_str().to_owned()));
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
    assert!(lease(conn, two, 9).await.is_empty());
    run(conn, age(one, 2)).await;
    assert!(
        lease(conn, two, 9).await.is_empty(),
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
        cursor: json!({"after": 1}),
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
    assert_eq!(leased[0].cursor, None, "what came too late was not stored");
}

#[tokio::test]
async fn a_cursor_that_the_database_lost_is_not_built_upon() {
    let mut at = with_feeds(1).await;
    let conn = &mut at.conn;
    let replica = living(conn).await;
    assert_eq!(lease(conn, replica, 9).await.len(), 1);
    let feed: FeedName = "forum:0".parse().unwrap();
    let cursor = json!({"after": 1, "text": "a\u{0}b", "ids": [["1", 1_700_000_000]]});
    let outcome = PollOutcome::Read(Reading {
        cursor: cursor.clone(),
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
    // The database is an older one now, with the lease and without the last poll.
    run(conn, "UPDATE feeds SET cursor = NULL".to_owned()).await;
    let held = feeds::lock(conn, &feed, replica, Some(&cursor)).await;
    assert!(!held.unwrap());
    assert!(feeds::lock(conn, &feed, replica, None).await.unwrap());
}

#[tokio::test]
async fn a_lease_that_its_holder_forgot_is_taken_again() {
    let mut at = with_feeds(1).await;
    let replica = living(&mut at.conn).await;
    assert_eq!(lease(&mut at.conn, replica, 9).await.len(), 1);
    let open = ["forum:0".to_owned()];
    let again = feeds::lease_due(&mut at.conn, "forum", replica, &open, true, room(9)).await;
    assert!(again.unwrap().is_empty(), "it is in hand");
    assert_eq!(lease(&mut at.conn, replica, 9).await.len(), 1);
}

#[tokio::test]
async fn after_an_outage_nobody_steals() {
    let mut at = with_feeds(1).await;
    let conn = &mut at.conn;
    let [one, two] = [living(conn).await, living(conn).await];
    assert_eq!(lease(conn, one, 9).await.len(), 1);
    // The database was away: nobody could beat.
    run(
        conn,
        "UPDATE replicas SET heartbeat_time = now() - interval '30 seconds'",
    )
    .await;
    let open = ["forum:0".to_owned()];
    let own = feeds::lease_due(conn, "forum", one, &open, true, room(9)).await;
    assert!(own.unwrap().is_empty(), "it has the poll open");
    assert_eq!(next_due(conn, one, &open).await, None);
    let other = feeds::lease_due(conn, "forum", two, &[], false, room(9)).await;
    assert!(other.unwrap().is_empty(), "the holder may be about to beat");
    let wait = feeds::next_due(conn, "forum", two, &[], false, room(1)).await;
    assert_eq!(wait.unwrap(), None, "nothing to wake for");
    assert_eq!(lease(conn, two, 9).await.len(), 1, "the holder is dead");
}

#[tokio::test]
async fn a_release_says_how_the_poll_went() {
    let mut at = with_feeds(1).await;
    let conn = &mut at.conn;
    let replica = living(conn).await;
    let feed: FeedName = "forum:0".parse().unwrap();
    let read = |gap: bool| {
        PollOutcome::Read(Reading {
            // A stranger's id in it.
            cursor: json!({"after": "a\0b"}),
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
            (&leased[0].cursor, leased[0].failure_count),
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
