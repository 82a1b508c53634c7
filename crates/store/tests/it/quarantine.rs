use domain::FeedName;
use store::feeds::{self, QuarantineKind, Quarantined};
use test_support::instructions;

use crate::support::{number, run, start, watch};

fn odd(id: usize) -> Quarantined {
    Quarantined {
        kind: QuarantineKind::Unreadable,
        post_id: Some(format!("{id}\0{}", "x".repeat(1_000))),
        reason: format!("no\0 {id}"),
    }
}

#[tokio::test]
async fn the_newest_quarantined_posts_of_a_feed_are_listed_and_all_are_counted() {
    let mut at = start().await;
    let manager = at
        .fixture
        .manager(&mut at.conn, &instructions("a"), &[])
        .await;
    let conn = &mut at.conn;
    watch(conn, manager, &["forum:a", "forum:b"]).await;
    let names: [FeedName; 2] = ["forum:a", "forum:b"].map(|name| name.parse().unwrap());
    feeds::quarantine(conn, &names[1], &[odd(0)]).await.unwrap();
    feeds::quarantine(conn, &names[0], &[]).await.unwrap();
    for posts in [1..2, 2..61, 61..120, 120..500, 500..503] {
        let posts: Vec<_> = posts.map(odd).collect();
        feeds::quarantine(conn, &names[0], &posts).await.unwrap();
    }
    let listed = "SELECT count(*) AS number FROM quarantined_posts WHERE feed = 'forum:a'";
    assert_eq!(number(conn, listed).await, 100);
    let oldest = "SELECT min(substr(reason, 4)::bigint) AS number FROM quarantined_posts WHERE feed = 'forum:a'";
    assert_eq!(number(conn, oldest).await, 403);
    let health = feeds::health_of(conn, manager).await.unwrap();
    let counts = health.iter().map(|feed| feed.quarantined_posts);
    assert_eq!(counts.collect::<Vec<_>>(), [502, 1]);
    let (_, reason) = health[0].last_quarantine.clone().unwrap();
    assert_eq!(reason, "cannot be read: no 502");

    let empty = Quarantined {
        kind: QuarantineKind::Unfit,
        reason: "no text".to_owned(),
        ..odd(503)
    };
    feeds::quarantine(conn, &names[0], &[empty]).await.unwrap();
    let health = feeds::health_of(conn, manager).await.unwrap();
    let (_, reason) = health[0].last_quarantine.clone().unwrap();
    assert_eq!(reason, "no text");

    assert_eq!(feeds::purge_quarantine(conn).await.unwrap(), 0);
    run(
        conn,
        "UPDATE quarantined_posts SET quarantine_time = now() - interval '31 days' WHERE feed = 'forum:b'",
    )
    .await;
    assert_eq!(feeds::purge_quarantine(conn).await.unwrap(), 1);
    assert_eq!(number(conn, listed).await, 100);
}
