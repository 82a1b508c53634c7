use std::time::Duration;

use domain::{FeedName, Post, Timestamp, preview::Recent};
use serde_json::json;
use store::{
    AsyncPgConnection,
    feeds::{self, AccountFeed, FeedState, PollOutcome, Reading, Trouble},
    recent_posts, replicas,
};
use test_support::{eventually, instructions, post};
use uuid::Uuid;

use crate::support::{Look, Start, number, record, run, start, watch};

const DAY: Duration = Duration::from_secs(86_400);

fn aged(id: usize, age: Duration) -> Post {
    Post {
        time: Timestamp::now().minus(age),
        ..post(&id.to_string(), "One\0")
    }
}

fn name(feed: &str) -> FeedName {
    feed.parse().unwrap()
}

fn recent(count: u32) -> Recent {
    Recent {
        count,
        ..Recent::default()
    }
}

async fn keep(conn: &mut AsyncPgConnection, feed: &str, posts: &[Post]) -> Option<Timestamp> {
    recent_posts::insert(conn, &name(feed), posts, Timestamp::now(), u32::MAX)
        .await
        .unwrap()
}

/// One Manager that watches these feeds.
async fn watching(feeds: &[&str]) -> (Start, domain::ManagerName) {
    let mut at = start().await;
    let manager = at
        .fixture
        .manager(&mut at.conn, &instructions("a"), &[])
        .await;
    watch(&mut at.conn, manager, feeds).await;
    (at, manager)
}

#[tokio::test]
async fn the_newest_posts_of_a_feed_are_kept_and_no_more() {
    let (mut at, _) = watching(&["forum:a", "forum:b"]).await;
    let conn = &mut at.conn;
    let seconds = |n: usize| Duration::from_secs(u64::try_from(n).unwrap());
    let mut cut = None;
    for poll in 0..60 {
        let posts: Vec<Post> = (0..50)
            .map(|n| poll * 50 + n)
            .map(|n| aged(n, seconds(10_000 - n)))
            .collect();
        cut = cut.max(keep(conn, "forum:a", &posts).await);
    }
    // Too old to be stored.
    assert_eq!(keep(conn, "forum:a", &[aged(99_999, DAY * 4)]).await, None);
    let held = number(conn, "SELECT count(*) AS number FROM recent_posts").await;
    assert!((1_000..2_500).contains(&held), "{held}");
    assert!(cut.is_some(), "it was never trimmed");

    // One poll with more posts than are stored.
    let posts: Vec<Post> = (0..1_500)
        .map(|n| aged(n + 20_000, seconds(9_000 - n)))
        .collect();
    let cut = keep(conn, "forum:b", &posts).await.unwrap();
    assert!(cut > posts[499].time && cut <= posts[500].time, "{cut}");

    let newest = recent_posts::newest(conn, &[name("forum:a"), name("forum:b")], recent(3))
        .await
        .unwrap();
    let ids: Vec<&str> = newest.iter().map(|kept| kept.post.id.as_str()).collect();
    assert_eq!(ids, ["2999", "2998", "2997"]);
    assert_eq!(newest[0].post.title.as_deref(), Some("One"));

    // The start of the span belongs to it, and the end does not.
    let span = Recent {
        start_time: Some(newest[2].post.time),
        end_time: Some(newest[0].post.time),
        ..recent(10)
    };
    let within = recent_posts::newest(conn, &[name("forum:a")], span)
        .await
        .unwrap();
    let ids: Vec<&str> = within.iter().map(|kept| kept.post.id.as_str()).collect();
    assert_eq!(ids, ["2998", "2997"]);

    run(
        conn,
        "UPDATE recent_posts SET time = time - interval '3 days'",
    )
    .await;
    assert!(
        recent_posts::newest(conn, &[name("forum:a")], recent(3))
            .await
            .unwrap()
            .is_empty()
    );
    let after = recent_posts::purge(conn, "", 1, u32::MAX).await.unwrap();
    assert_eq!(after.as_deref(), Some("forum:a"));
    let after = recent_posts::purge(conn, "forum:a", 1, u32::MAX)
        .await
        .unwrap();
    assert_eq!(after.as_deref(), Some("forum:b"));
    assert_eq!(
        recent_posts::purge(conn, "forum:b", 1, u32::MAX)
            .await
            .unwrap(),
        None
    );
    assert_eq!(
        number(conn, "SELECT count(*) AS number FROM recent_posts").await,
        0
    );
}

/// Posts of 400 KB, which is more than an adapter lets through.
fn large(range: std::ops::Range<usize>, age: impl Fn(usize) -> Duration) -> Vec<Post> {
    let text = "ab ".repeat(133_000);
    range
        .map(|n| Post {
            text: Some(text.clone()),
            ..aged(n, age(n))
        })
        .collect()
}

#[tokio::test]
async fn a_feed_keeps_posts_up_to_a_number_of_bytes() {
    const HELD: &str =
        "SELECT count(*) AS number FROM recent_posts WHERE octet_length(post::text) > 390000";
    let (mut at, _) = watching(&["forum:a", "forum:b"]).await;
    let conn = &mut at.conn;
    let seconds = |n: usize| Duration::from_secs(u64::try_from(1_000 - n).unwrap());
    // In one poll.
    let posts = large(0..60, seconds);
    let cut = keep(conn, "forum:a", &posts).await.unwrap();
    assert_eq!(number(conn, HELD).await, 50);
    assert!(cut > posts[9].time && cut <= posts[10].time, "{cut}");

    // In several polls, each of which is large enough to trim.
    let mut last = None;
    for poll in 6..9 {
        last = keep(conn, "forum:a", &large(poll * 10..poll * 10 + 11, seconds)).await;
    }
    assert_eq!(number(conn, HELD).await, 50);
    let cut = last.unwrap();
    assert!(cut > posts[40].time && cut <= posts[41].time, "{cut}");
    run(conn, "DELETE FROM recent_posts").await;

    // The author decides the time of a post.
    for poll in 0..3 {
        let posts = large(poll * 30..poll * 30 + 30, |_| Duration::from_hours(1));
        keep(conn, "forum:b", &posts).await;
    }
    assert_eq!(number(conn, HELD).await, 50);
}

#[tokio::test]
async fn feeds_of_an_account_share_its_bytes() {
    const QUOTA: u32 = 8_000_000;
    let (mut at, _) = watching(&["forum:a", "forum:b", "forum:c", "forum:shared"]).await;
    let conn = &mut at.conn;
    let globex = at.fixture.beside(conn, "globex").await;
    let manager = globex
        .manager(conn, &test_support::instructions("a"), &[])
        .await;
    watch(conn, manager, &["forum:shared"]).await;
    let seconds = |n: usize| Duration::from_secs(u64::try_from(1_000 - n).unwrap());
    // Each poll is large enough to trim.
    for poll in 0..5 {
        let posts = large(poll * 10..poll * 10 + 10, seconds);
        for feed in ["forum:a", "forum:b", "forum:c", "forum:shared"] {
            let feed = name(feed);
            let cut = recent_posts::insert(conn, &feed, &posts, Timestamp::now(), QUOTA)
                .await
                .unwrap();
            assert!(poll == 0 || cut.is_some(), "{feed}");
        }
    }
    let bytes = async |conn: &mut AsyncPgConnection, which: &str| {
        let sum = format!("SELECT sum(bytes) AS number FROM recent_posts WHERE {which}");
        number(conn, &sum).await
    };
    // Five posts of 400 KB in each of three feeds. The other account has one feed, and so more to give.
    let own = bytes(conn, "feed <> 'forum:shared'").await;
    assert!((4_800_000..=6_000_000).contains(&own), "{own}");
    let shared = bytes(conn, "feed = 'forum:shared'").await;
    assert!((7_000_000..=8_000_000).contains(&shared), "{shared}");
    let newest = "SELECT count(*) AS number FROM recent_posts WHERE feed = 'forum:a' \
                  AND time > (SELECT max(time) FROM recent_posts) - interval '4 seconds'";
    assert!(number(conn, newest).await >= 4, "the newest stay");
}

#[tokio::test]
async fn feeds_that_bring_no_more_posts_shrink_when_their_account_watches_others() {
    const QUOTA: u32 = 8_000_000;
    const KEPT: &str = "SELECT count(*) AS number FROM recent_posts WHERE feed =";
    let (mut at, manager) = watching(&["forum:a", "forum:left", "forum:shared"]).await;
    let conn = &mut at.conn;
    let globex = at.fixture.beside(conn, "globex").await;
    let other = globex.manager(conn, &instructions("a"), &[]).await;
    watch(conn, other, &["forum:shared"]).await;
    let hours = |n: usize| Duration::from_hours(u64::try_from(20 - n).unwrap());
    let posts = large(0..6, hours);
    for feed in ["forum:a", "forum:left", "forum:shared"] {
        keep(conn, feed, &posts).await;
    }
    run(
        conn,
        "UPDATE feeds SET kept_since = now() - interval '30 hours'",
    )
    .await;
    let purge = async |conn: &mut AsyncPgConnection| {
        let after = recent_posts::purge(conn, "", 100, QUOTA).await.unwrap();
        assert!(after.is_some());
    };
    let kept = async |conn: &mut AsyncPgConnection| {
        let mut counts = Vec::new();
        for feed in ["a", "left", "shared"] {
            counts.push(number(conn, &format!("{KEPT} 'forum:{feed}'")).await);
        }
        counts
    };
    // A third of the quota is more than six posts of 400 KB.
    purge(conn).await;
    assert_eq!(kept(conn).await, [6, 6, 6]);

    // Six feeds, one of which the account has left. Its posts are still those of the account.
    watch(
        conn,
        manager,
        &["forum:a", "forum:shared", "forum:b", "forum:c", "forum:d"],
    )
    .await;
    feeds::forget_left(conn, &AccountFeed::default(), 100)
        .await
        .unwrap();
    let lock = "SELECT FROM feeds WHERE name = 'forum:left' FOR UPDATE";
    let polling = at.database.begin(&[lock]).await;
    purge(conn).await;
    assert_eq!(
        kept(conn).await,
        [3, 6, 6],
        "a feed that is locked is not waited for"
    );
    drop(polling);
    eventually(
        "the others are purged, but the other account has more to give",
        async || {
            purge(conn).await;
            kept(conn).await == [3, 3, 6]
        },
    )
    .await;

    // What is left is complete since the oldest of them.
    let since = "SELECT count(*) AS number FROM feeds WHERE kept_since > now() - interval '19 hours' \
                 AND kept_since <= (SELECT min(time) FROM recent_posts WHERE feed = name)";
    assert_eq!(number(conn, since).await, 2);
}

#[tokio::test]
async fn watchers_of_either_feed_find_a_shared_post_by_its_address() {
    let (mut at, manager) = watching(&["forum:a", "forum:b"]).await;
    let conn = &mut at.conn;
    let post = aged(7, DAY);
    for feed in ["forum:a", "forum:b", "private:c"] {
        keep(conn, feed, std::slice::from_ref(&post)).await;
    }
    keep(conn, "private:c", &[aged(8, DAY)]).await;
    let feeds = [name("forum:a"), name("forum:b")];
    let newest = recent_posts::newest(conn, &feeds, recent(10)).await;
    assert_eq!(newest.unwrap().len(), 1);
    for url in [
        "http://FORUM.example/7/#top",
        "https://forum.example/7",
        "7",
    ] {
        let found = recent_posts::by_url(conn, manager.namespace, &[url.to_owned()])
            .await
            .unwrap();
        let feeds: Vec<&str> = found.iter().map(|kept| kept.feed.as_str()).collect();
        assert_eq!(feeds, ["forum:a", "forum:b"], "{url}");
    }
    // Posts of feeds that no Manager of this Namespace watches are not returned.
    for url in ["https://forum.example/8", "https://forum.example/9", ""] {
        let found = recent_posts::by_url(conn, manager.namespace, &[url.to_owned()]).await;
        assert!(found.unwrap().is_empty(), "{url}");
    }
}

#[tokio::test]
async fn a_manager_lists_its_feeds_with_their_health() {
    let (mut at, manager) =
        watching(&["forum:a", "forum:b", "forum:c", "forum:d", "forum:e"]).await;
    let conn = &mut at.conn;
    let replica = Uuid::new_v4();
    replicas::beat(conn, replica, "scanner").await.unwrap();
    let leased = feeds::lease_due(conn, "forum", &mut Look::of(replica).claim()).await;
    let leased = leased.unwrap();
    assert_eq!(leased.items.len(), 5);
    let newest = Timestamp::now().minus(DAY);
    let read = Reading {
        cursor: Some(json!({})),
        gap: Some(None),
        posts_per_day: Some(12.5),
        newest_post: Some(newest),
        kept_since: Some(newest),
        kept_cut: None,
        late_in: None,
        late_reading: None,
        notes_ids: false,
        caught_up: true,
        notice: None,
    };
    let failed = |trouble, error: &str| PollOutcome::Failed {
        error: error.to_owned(),
        trouble,
    };
    let hour = Duration::from_secs(3_600).into();
    for (feed, outcome) in [
        ("forum:a", PollOutcome::Read(read)),
        (
            "forum:b",
            failed(Trouble::Failing, "cannot store a poll: secrets of ours"),
        ),
        ("forum:c", failed(Trouble::Blocked, "refused")),
        (
            "forum:d",
            failed(Trouble::BudgetSpent, "the budget is spent"),
        ),
    ] {
        feeds::release(conn, &name(feed), replica, &outcome, hour)
            .await
            .unwrap();
    }
    record(conn, manager, &[aged(1, DAY)]).await;
    run(conn, "UPDATE posts SET feed = 'forum:a'").await;
    run(
        conn,
        "UPDATE feeds SET next_poll_time = now() - interval '1 minute' WHERE name = 'forum:e'",
    )
    .await;

    let health = feeds::health_of(conn, manager).await.unwrap();
    let seen: Vec<_> = health
        .iter()
        .map(|feed| {
            (
                feed.feed.as_str(),
                feed.state,
                feed.error.as_deref(),
                feed.gaps,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("forum:a", FeedState::Ok, None, 1),
            (
                "forum:b",
                FeedState::Failing,
                Some("cannot store a poll"),
                0
            ),
            ("forum:c", FeedState::Blocked, Some("refused"), 0),
            (
                "forum:d",
                FeedState::BudgetSpent,
                Some("the budget is spent"),
                0
            ),
            ("forum:e", FeedState::Late, None, 0),
        ]
    );
    assert_eq!(health[0].posts_per_day, Some(12.5));
    assert_eq!(health[0].last_post_time, Some(newest));
    assert!(health[0].last_poll_time.is_some() && health[4].last_poll_time.is_none());
    assert!(
        (health[0].scans_per_day - 1.0).abs() < 1e-9,
        "{}",
        health[0].scans_per_day
    );
    assert!(health[1].scans_per_day.abs() < 1e-9);

    let all = feeds::by_platform(conn).await.unwrap();
    assert_eq!(all.len(), 1);
    let one = &all[0];
    assert_eq!(
        (one.ok, one.failing, one.blocked, one.budget_spent),
        (2, 1, 1, 1)
    );
    // A failure that is not the feed's does not count as one.
    let failures = "SELECT sum(failure_count)::bigint AS number FROM feeds";
    assert_eq!(number(conn, failures).await, 2);
}
