//! Posts of feeds that customers name: other customers neither see them nor replace them with their own posts.

use domain::{FeedName, ManagerName, Post, Timestamp, list::SCAN_FIELDS, preview::Recent};
use store::{
    AsyncPgConnection, erasure, plans, recent_posts,
    scans::{self, Origin, ScanCounter},
};
use test_support::{Fixture, instructions, post};

use crate::support::{Start, feed, list_query, new_scan, number, start};

const PRIVATE: &str = "blogs:https://blog.example/private.xml?token=canary";
const HOSTILE: &str = "blogs:https://blog.example/uploads/b.xml";

fn name(feed: &str) -> FeedName {
    feed.parse().unwrap()
}

async fn watching(
    conn: &mut AsyncPgConnection,
    fixture: &Fixture,
    feeds: &[&FeedName],
) -> ManagerName {
    let manager = fixture.manager(conn, &instructions("a"), &[]).await;
    let feeds: Vec<FeedName> = feeds.iter().map(|feed| (*feed).clone()).collect();
    plans::record_change(
        conn,
        manager,
        &feeds,
        &test_support::QUOTAS,
        Timestamp::now(),
    )
    .await
    .unwrap();
    manager
}

/// Stores what a poll of `feed` brought, with a Scan for the Manager; returns the number of Scans.
async fn poll(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    manager: ManagerName,
    post: &Post,
) -> usize {
    let now = Timestamp::now();
    recent_posts::insert(conn, feed, std::slice::from_ref(post), now, u32::MAX)
        .await
        .unwrap();
    let matches = [new_scan(manager, post)];
    let (origin, mut counter) = (Origin::Poll, ScanCounter::new(u32::MAX));
    let made = scans::record_from(conn, feed, 1, &matches, now, origin, &mut counter).await;
    made.unwrap().made.len()
}

async fn posts_of(conn: &mut AsyncPgConnection, manager: ManagerName) -> Vec<Post> {
    let list = list_query(SCAN_FIELDS, 100, None, "", "createTime");
    let page = scans::list(conn, manager, &list).await.unwrap();
    page.items.into_iter().map(|scan| scan.post).collect()
}

/// Two feeds on one host list an entry under the same id.
fn same_entry() -> (Post, Post) {
    let id = "https://blog.example/entries/1";
    let mut private = post(id, "canary title");
    private.text = Some("canary text".to_owned());
    private.url = "https://blog.example/private/1?token=canary".to_owned();
    let mut forged = post(id, "forged title");
    forged.text = Some("forged text".to_owned());
    forged.url = "https://evil.example/".to_owned();
    (private, forged)
}

#[tokio::test]
async fn feeds_of_customers_neither_reveal_nor_replace_posts_of_each_other() {
    let (private, forged) = same_entry();
    for hostile_is_first in [false, true] {
        let Start {
            database,
            mut conn,
            fixture: acme,
        } = start().await;
        let conn = &mut conn;
        let globex = Fixture::create(conn).await;
        let (own, other) = (name(PRIVATE), name(HOSTILE));
        let victim = watching(conn, &acme, &[&own]).await;
        let attacker = watching(conn, &globex, &[&other]).await;

        let mut polls = [(&own, victim, &private), (&other, attacker, &forged)];
        if hostile_is_first {
            polls.reverse();
        }
        for (feed, manager, post) in polls {
            assert_eq!(poll(conn, feed, manager, post).await, 1);
        }

        let order = format!("hostile first: {hostile_is_first}");
        // A Manager gets one Scan of an id, whichever feed brings it. Managers of one feed share its post.
        assert_eq!(poll(conn, &other, victim, &forged).await, 0, "{order}");
        let second = watching(conn, &acme, &[&own]).await;
        assert_eq!(poll(conn, &own, second, &private).await, 1, "{order}");
        let stored = number(conn, "SELECT count(*) AS number FROM posts").await;
        assert_eq!(stored, 2, "{order}");
        assert_eq!(
            posts_of(conn, victim).await,
            std::slice::from_ref(&private),
            "{order}"
        );
        assert_eq!(
            posts_of(conn, attacker).await,
            std::slice::from_ref(&forged),
            "{order}"
        );
        // A preview also shows none of the other customer's recent posts.
        let kept =
            recent_posts::by_url(conn, attacker.namespace, std::slice::from_ref(&private.id)).await;
        let kept: Vec<Post> = kept.unwrap().into_iter().map(|kept| kept.post).collect();
        assert_eq!(kept, std::slice::from_ref(&forged), "{order}");
        drop(database);
    }
}

/// A platform may report deletions only for its own posts, not for a feed that lists its ids.
#[tokio::test]
async fn deletion_at_a_platform_leaves_posts_of_feeds_that_customers_named() {
    let Start {
        database: _database,
        mut conn,
        fixture,
    } = start().await;
    let conn = &mut conn;
    let (own, platform) = (name(PRIVATE), feed());
    let (private, of_platform) = same_entry();
    let victim = watching(conn, &fixture, &[&own]).await;
    let other = watching(conn, &fixture, &[&platform]).await;
    poll(conn, &own, victim, &private).await;
    poll(conn, &platform, other, &of_platform).await;

    let ids = [private.id.clone()];
    assert_eq!(erasure::erase(conn, &ids).await.unwrap(), 1);
    assert_eq!(posts_of(conn, victim).await, [private]);
    assert_eq!(posts_of(conn, other).await[0].title.as_deref(), Some(""));
    let kept = number(conn, "SELECT count(*) AS number FROM recent_posts").await;
    assert_eq!(kept, 1);
}

#[tokio::test]
async fn recent_posts_are_of_feeds_that_the_namespace_watches() {
    let Start {
        database: _database,
        mut conn,
        fixture: acme,
    } = start().await;
    let conn = &mut conn;
    let globex = Fixture::create(conn).await;
    let (own, platform) = (name(PRIVATE), feed());
    let (private, of_platform) = same_entry();
    let victim = watching(conn, &acme, &[&own, &platform]).await;
    poll(conn, &own, victim, &private).await;
    poll(
        conn,
        &platform,
        victim,
        &Post {
            id: "2".to_owned(),
            ..of_platform.clone()
        },
    )
    .await;

    let feeds = [own, platform];
    for (namespace, expected) in [(acme.namespace, 2), (globex.namespace, 0)] {
        let watched = recent_posts::watched(conn, namespace, &feeds)
            .await
            .unwrap();
        let recent = Recent {
            count: 10,
            ..Recent::default()
        };
        let kept = recent_posts::newest(conn, &watched, recent).await.unwrap();
        assert_eq!(kept.len(), expected);
    }
}
