//! An account sees nothing of a feed from before it watched it.

use std::time::Duration;

use domain::{
    FeedName, ManagerName, Reach, Timestamp,
    stats::{Interval, StatsQuery},
};
use store::{
    AsyncPgConnection, Error, backfills,
    feeds::{self, AccountFeed, DayCounts, FeedGap, FeedHealth, FeedState},
    plans,
    quotas::NEW_FEEDS_PER_DAY,
    recent_posts, stats,
};
use test_support::{Fixture, instructions};

use crate::support::{Start, number, run, start, watch};

const FEED: &str = "blogs:https://b.example/x";

async fn manager(conn: &mut AsyncPgConnection, fixture: &Fixture) -> ManagerName {
    fixture.manager(conn, &instructions("a"), &[]).await
}

/// Polls the feed, with a gap and a skipped post.
async fn poll(conn: &mut AsyncPgConnection, posts: usize) {
    run(
        conn,
        "UPDATE feeds SET last_poll_time = clock_timestamp(), read_time = clock_timestamp(), \
             next_poll_time = clock_timestamp() + interval '1 hour', last_post_time = clock_timestamp(), \
             posts_per_day = 5, gap_count = gap_count + 1, quarantine_count = quarantine_count + 1, \
             quarantine_time = clock_timestamp(), quarantine_reason = 'odd', notice = 'no entries', \
             trouble = 'FAILING', last_error = 'status 500'",
    )
    .await;
    let counts = DayCounts {
        posts,
        quarantined: 1,
        ..DayCounts::default()
    };
    let gap = FeedGap {
        from: None,
        to: Timestamp::now(),
        reason: format!("{posts} posts"),
        is_filled: false,
    };
    let feed = FEED.parse().unwrap();
    feeds::record_day(conn, &feed, &counts, Some(&gap))
        .await
        .unwrap();
    for (seconds, word) in [(60, "minute"), (3_600, "hour"), (86_400, "day")] {
        run(
            conn,
            format!(
                "INSERT INTO feed_stats AS s (feed, interval_seconds, time, posts) \
                 VALUES ('{FEED}', {seconds}, date_trunc('{word}', clock_timestamp(), 'UTC'), {posts}) \
                 ON CONFLICT ON CONSTRAINT feed_stats_pkey DO UPDATE SET posts = s.posts + excluded.posts"
            ),
        )
        .await;
    }
}

async fn health(conn: &mut AsyncPgConnection, manager: ManagerName) -> FeedHealth {
    feeds::health_of(conn, manager).await.unwrap().remove(0)
}

/// Returns posts, number of gaps and listed gaps of each day.
async fn days(conn: &mut AsyncPgConnection, manager: ManagerName) -> Vec<(u64, u64, usize)> {
    let feed = FEED.parse().unwrap();
    let mut days = feeds::days_of(conn, manager.namespace, &[&feed])
        .await
        .unwrap();
    let days = days.remove(FEED).unwrap_or_default();
    { days.iter() }
        .map(|day| (day.posts, day.gap_count, day.gaps.len()))
        .collect()
}

/// Returns the posts in the statistics of each interval.
async fn posts(conn: &mut AsyncPgConnection, manager: ManagerName) -> Vec<u64> {
    let mut posts = Vec::new();
    for (interval, hours) in [(Interval::Hour, 48), (Interval::Day, 72)] {
        let now = Timestamp::now();
        let start = now.minus(Duration::from_hours(hours)).to_string();
        let query = StatsQuery::parse(Some(&start), None, Some(interval.as_str()), now).unwrap();
        let stats = stats::of_manager(conn, manager, query).await.unwrap();
        posts.push(stats.points.iter().filter_map(|point| point.posts).sum());
    }
    posts
}

#[tokio::test]
async fn account_sees_nothing_of_a_feed_from_before_its_first_watch() {
    let Start {
        database: _database,
        mut conn,
        fixture,
    } = start().await;
    let conn = &mut conn;
    let globex = fixture.beside(conn, "globex").await;
    let (first, later) = (manager(conn, &globex).await, manager(conn, &fixture).await);
    watch(conn, first, &[FEED]).await;
    run(
        conn,
        "UPDATE account_feeds SET watch_time = watch_time - interval '3 days'",
    )
    .await;
    poll(conn, 5).await;
    let yesterday = format!(
        "INSERT INTO feed_days (feed, day, posts, late, gone, quarantined, gaps) \
         VALUES ('{FEED}', (now() AT TIME ZONE 'UTC')::date - 1, 9, 0, 0, 0, 0)"
    );
    run(conn, yesterday).await;
    run(
        conn,
        format!("INSERT INTO feed_stats VALUES ('{FEED}', 86400, date_trunc('day', now(), 'UTC') - interval '1 day', 9)"),
    )
    .await;

    watch(conn, later, &[FEED]).await;
    let new = health(conn, later).await;
    assert_eq!(new.state, FeedState::Ok);
    assert_eq!((new.last_poll_time, new.last_post_time), (None, None));
    assert_eq!(
        (new.posts_per_day, new.gaps, new.quarantined_posts),
        (None, 0, 0)
    );
    assert_eq!(
        (new.last_quarantine, new.error, new.notice),
        (None, None, None)
    );
    assert!(
        new.next_poll_time <= Timestamp::now(),
        "as one that was never read"
    );
    assert_eq!(days(conn, later).await, []);
    assert_eq!(posts(conn, later).await, [0, 0]);
    assert_eq!(posts(conn, first).await, [5, 14]);

    poll(conn, 2).await;
    let new = health(conn, later).await;
    assert_eq!(new.state, FeedState::Failing);
    assert_eq!((new.gaps, new.quarantined_posts), (1, 1));
    assert!(new.last_poll_time.is_some() && new.last_post_time.is_some());
    assert!(new.last_quarantine.is_some() && new.error.is_some() && new.notice.is_some());
    assert_eq!(days(conn, later).await, [(2, 1, 1)]);
    assert_eq!(posts(conn, later).await, [2, 2]);

    let old = health(conn, first).await;
    assert_eq!((old.gaps, old.quarantined_posts), (2, 2));
    assert_eq!(days(conn, first).await, [(7, 2, 2), (9, 0, 0)]);
    assert_eq!(posts(conn, first).await, [7, 16]);
}

#[tokio::test]
async fn gap_starts_no_earlier_than_the_accounts_first_watch() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let globex = at.fixture.beside(conn, "globex").await;
    for (fixture, hours) in [(&globex, 240), (&at.fixture, 24)] {
        fixture.connection(conn, "https://receiver.example/").await;
        let watching = manager(conn, fixture).await;
        watch(conn, watching, &[FEED]).await;
        let account = fixture.account.to_uuid();
        let sql = format!(
            "UPDATE account_feeds SET watch_time = now() - interval '{hours} hours' WHERE account_id = '{account}'"
        );
        assert_eq!(run(conn, sql).await, 1);
    }
    run(conn, "UPDATE connections SET events = '{COVERAGE_GAP}'").await;
    let own = at.fixture.account.to_uuid();
    let micros = format!(
        "SELECT (extract(epoch FROM watch_time) * 1000000)::bigint AS number FROM account_feeds \
         WHERE account_id = '{own}'"
    );
    let watch_time = Timestamp::from_micros(number(conn, &micros).await);
    let feed: FeedName = FEED.parse().unwrap();
    let now = Timestamp::now();
    let ago = |hours| now.minus(Duration::from_hours(hours));
    for (from, to, expected) in [
        (Some(ago(48)), now, watch_time),
        (Some(ago(48)), ago(36), None),
        (Some(ago(1)), now, Some(ago(1))),
        (None, now, None),
    ] {
        let gap = FeedGap {
            from,
            to,
            reason: "a pause".to_owned(),
            is_filled: false,
        };
        feeds::record_day(conn, &feed, &DayCounts::default(), Some(&gap))
            .await
            .unwrap();
        for (fixture, expected) in [(&globex, from), (&at.fixture, expected)] {
            let days = feeds::days_of(conn, fixture.namespace, &[&feed])
                .await
                .unwrap();
            let gaps = &days[FEED][0].gaps;
            assert_eq!(gaps.len(), 1);
            assert_eq!((gaps[0].from, gaps[0].to), (expected, to));
            let namespace = fixture.namespace.to_uuid();
            let events = format!("service_events WHERE namespace_id = '{namespace}'");
            let start = "coalesce(details->'gap'->>'from', 'unknown')";
            let starts = at.database.texts(start, &events).await;
            let expected = expected.map_or("unknown".to_owned(), |time| time.to_string());
            assert_eq!(starts, [expected]);
        }
        // A gap within the next hour causes no event.
        for table in ["feed_gaps", "service_events"] {
            run(conn, format!("DELETE FROM {table}")).await;
        }
    }
}

/// Returns the hours for which the feed's stored posts go back, as `:backfill` reports it.
async fn reach_hours(conn: &mut AsyncPgConnection, manager: ManagerName) -> u64 {
    let now = Timestamp::now();
    let window = Duration::from_hours(24);
    let reached = backfills::request(conn, manager, now.minus(window * 30), false, window, |_| {
        Reach::Nothing
    });
    let reach_time = reached.await.unwrap().remove(0).reach_time;
    (now.since(reach_time) + Duration::from_mins(30)).as_secs() / 3_600
}

/// Returns the hours since when the feed's posts are stored, as `:preview` reports it.
async fn kept_hours(conn: &mut AsyncPgConnection, fixture: &Fixture) -> Option<u64> {
    let feeds = [FEED.parse::<FeedName>().unwrap()];
    let window = Duration::from_hours(24);
    let kept = recent_posts::kept_since(conn, fixture.account, &feeds, window);
    let age = Timestamp::now().since(kept.await.unwrap()?);
    Some((age + Duration::from_mins(30)).as_secs() / 3_600)
}

#[tokio::test]
async fn stored_posts_do_not_tell_how_long_others_have_watched() {
    let Start {
        database: _database,
        mut conn,
        fixture,
    } = start().await;
    let conn = &mut conn;
    let globex = fixture.beside(conn, "globex").await;
    let (first, later) = (manager(conn, &globex).await, manager(conn, &fixture).await);
    watch(conn, first, &[FEED]).await;
    for sql in [
        "UPDATE account_feeds SET watch_time = watch_time - interval '60 hours'",
        "UPDATE feeds SET kept_since = now() - interval '70 hours'",
    ] {
        run(conn, sql).await;
    }
    poll(conn, 5).await;
    watch(conn, later, &[FEED]).await;
    assert_eq!(reach_hours(conn, later).await, 0, "not read yet");
    assert_eq!(kept_hours(conn, &fixture).await, None, "not read yet");
    poll(conn, 5).await;
    assert_eq!(reach_hours(conn, later).await, 24);
    assert_eq!(kept_hours(conn, &fixture).await, Some(24));
    assert_eq!(reach_hours(conn, first).await, 70);
    assert_eq!(kept_hours(conn, &globex).await, Some(70));
}

async fn forget(conn: &mut AsyncPgConnection) {
    let mut after = AccountFeed::default();
    while let Some(last) = feeds::forget_left(conn, &after, 1).await.unwrap() {
        after = last;
    }
}

#[tokio::test]
async fn account_keeps_its_own_history_when_its_managers_change() {
    let Start {
        database: _database,
        mut conn,
        fixture,
    } = start().await;
    let conn = &mut conn;
    let globex = fixture.beside(conn, "globex").await;
    let (own, other) = (manager(conn, &fixture).await, manager(conn, &globex).await);
    watch(conn, own, &[FEED]).await;
    watch(conn, other, &[FEED]).await;
    poll(conn, 5).await;
    watch(conn, own, &[FEED, "forum:a"]).await;
    assert_eq!(days(conn, own).await, [(5, 1, 1)]);
    // Also by way of another Manager of the account, and of none.
    watch(conn, own, &[]).await;
    forget(conn).await;
    let next = manager(conn, &fixture).await;
    watch(conn, next, &[FEED]).await;
    forget(conn).await;
    assert_eq!(days(conn, next).await, [(5, 1, 1)]);
    let left = "SELECT count(*) AS number FROM account_feeds WHERE leave_time IS NOT NULL";
    assert_eq!(number(conn, left).await, 1, "the forum");

    // Gone for more than a week.
    watch(conn, next, &[]).await;
    forget(conn).await;
    run(
        conn,
        "UPDATE account_feeds SET leave_time = leave_time - interval '8 days'",
    )
    .await;
    forget(conn).await;
    watch(conn, next, &[FEED]).await;
    assert_eq!(days(conn, next).await, []);
    assert_eq!(days(conn, other).await, [(5, 1, 1)]);
}

#[tokio::test]
async fn manager_that_watched_before_accounts_were_noted_keeps_its_history() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let own = manager(conn, &at.fixture).await;
    watch(conn, own, &[FEED]).await;
    poll(conn, 5).await;
    run(conn, "DELETE FROM account_feeds").await;
    assert_eq!(days(conn, own).await, [(5, 1, 1)]);
    watch(conn, own, &[FEED]).await;
    assert_eq!(
        number(conn, "SELECT count(*) AS number FROM account_feeds").await,
        1
    );
    assert_eq!(days(conn, own).await, [(5, 1, 1)]);
    assert_eq!(health(conn, own).await.gaps, 1);
}

#[tokio::test]
async fn account_may_not_watch_new_feeds_without_end() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let own = manager(conn, &at.fixture).await;
    watch(conn, own, &["forum:a"]).await;
    let others = NEW_FEEDS_PER_DAY - 2;
    for statement in [
        "INSERT INTO feeds (name, platform, watched, next_poll_time, create_time) \
         SELECT 'forum:' || n, 'forum', false, now(), now() FROM generate_series(1, $) AS n",
        "INSERT INTO account_feeds (account_id, feed, watch_time, before) \
         SELECT id, 'forum:' || n, clock_timestamp(), '{}' FROM accounts, generate_series(1, $) AS n",
    ] {
        run(conn, statement.replace('$', &others.to_string())).await;
    }
    let quotas = store::quotas::Limits {
        feeds: 2_000,
        ..test_support::QUOTAS
    };
    let change = async |conn: &mut AsyncPgConnection, feeds: &[&str]| {
        let feeds: Vec<FeedName> = feeds.iter().map(|name| name.parse().unwrap()).collect();
        plans::record_change(conn, own, &feeds, &quotas, Timestamp::now()).await
    };
    change(conn, &["forum:a", "forum:b"]).await.unwrap();
    let Err(Error::QuotaExceeded(exceeded)) = change(conn, &["forum:c"]).await else {
        panic!("it is one too many");
    };
    assert_eq!(
        (exceeded.quota, exceeded.limit, exceeded.wanted),
        ("newFeeds", NEW_FEEDS_PER_DAY, NEW_FEEDS_PER_DAY + 1)
    );
    change(conn, &["forum:a", "forum:7"]).await.unwrap();
    run(
        conn,
        "UPDATE account_feeds SET watch_time = watch_time - interval '1 day'",
    )
    .await;
    change(conn, &["forum:c"]).await.unwrap();
}
