use std::time::Duration;

use domain::{FeedName, Post, Timestamp};
use store::feed_post_ids::{known, purge_old, record};
use test_support::post;

use crate::support::{number, run, start};

const HOUR: Duration = Duration::from_secs(3_600);

fn aged(id: &str, hours: u32) -> Post {
    Post {
        time: Timestamp::now().minus(HOUR * hours),
        ..post(id, "One")
    }
}

fn feed(name: &str) -> FeedName {
    name.parse().unwrap()
}

#[tokio::test]
async fn ids_of_a_week_are_known_per_feed() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let (a, b) = (feed("forum:a"), feed("forum:b"));
    let now = Timestamp::now();
    let posts = [
        aged("x:1", 0),
        aged("x:2", 0),
        aged("x:3", 120),
        aged("x:4", 200),
    ];
    // The same hour is written twice.
    record(conn, &a, &posts[..1], now).await.unwrap();
    record(conn, &a, &posts[1..], now).await.unwrap();
    record(conn, &b, &[aged("x:5", 0)], now).await.unwrap();
    record(conn, &b, &[], now).await.unwrap();

    let week = known(conn, &a, now.minus(HOUR * 168)).await.unwrap();
    let is_known = |post: &Post| week.contains(&post.id, post.time);
    assert_eq!(posts.each_ref().map(is_known), [true, true, true, false]);
    assert!(!week.contains("x:5", now), "it is of another feed");
    let day = known(conn, &a, now.minus(HOUR * 24)).await.unwrap();
    assert!(day.contains("x:1", now) && !day.contains("x:3", posts[2].time));
}

#[tokio::test]
async fn posts_of_an_hour_with_too_many_ids_count_as_known() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let a = feed("forum:a");
    let old = aged("x:1", 30);
    record(conn, &a, std::slice::from_ref(&old), Timestamp::now())
        .await
        .unwrap();
    let since = old.time.minus(HOUR);
    let few = known(conn, &a, since).await.unwrap();
    assert!(!few.contains("x:2", old.time));
    run(
        conn,
        "UPDATE feed_post_ids SET ids = decode(repeat('00', 800000), 'hex')",
    )
    .await;
    record(conn, &a, std::slice::from_ref(&old), Timestamp::now())
        .await
        .unwrap();
    let full = known(conn, &a, since).await.unwrap();
    assert!(full.contains("x:2", old.time));
    assert!(!full.contains("x:2", old.time.plus(HOUR * 2)));
    let bytes = number(
        conn,
        "SELECT octet_length(ids)::bigint AS number FROM feed_post_ids",
    )
    .await;
    assert_eq!(bytes, 800_000, "it does not grow further");
}

#[tokio::test]
async fn ids_are_removed_after_eight_days() {
    let mut at = start().await;
    let conn = &mut at.conn;
    for (name, days) in [("forum:a", 7), ("forum:b", 9)] {
        for sql in [
            format!(
                "INSERT INTO feeds (name, platform, watched, next_poll_time, create_time) VALUES ('{name}', 'forum', true, now(), now())"
            ),
            format!(
                "INSERT INTO feed_post_ids VALUES ('{name}', now() - interval '{days} days', '')"
            ),
        ] {
            run(conn, sql).await;
        }
    }
    assert_eq!(
        purge_old(conn, "", 1).await.unwrap().as_deref(),
        Some("forum:a")
    );
    assert_eq!(
        purge_old(conn, "forum:a", 1).await.unwrap().as_deref(),
        Some("forum:b")
    );
    assert_eq!(purge_old(conn, "forum:b", 1).await.unwrap(), None);
    let left = number(
        conn,
        "SELECT count(*) AS number FROM feed_post_ids WHERE feed = 'forum:a'",
    )
    .await;
    assert_eq!(left, 1);
    assert_eq!(
        number(conn, "SELECT count(*) AS number FROM feed_post_ids").await,
        1
    );
}
