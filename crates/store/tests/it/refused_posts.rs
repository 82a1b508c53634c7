//! Posts that wait for the quota of their account.

use std::time::Duration;

use domain::{FeedName, ManagerName, Post, Timestamp};
use store::{
    AsyncPgConnection, erasure, managers,
    refused_posts::{self, WriteLimit, Written},
};
use test_support::{instructions, post};

use crate::support::{Start, number, purge_step, run, start};

const ROWS: &str = "SELECT count(*) AS number FROM refused_posts";

fn feed() -> FeedName {
    "bluesky:jetstream".parse().unwrap()
}

fn aged(id: &str, text: &str, minutes: u64) -> Post {
    Post {
        time: Timestamp::now().minus(Duration::from_mins(minutes)),
        ..post(id, text)
    }
}

async fn manager(at: &mut Start) -> ManagerName {
    at.fixture
        .manager(&mut at.conn, &instructions("a"), &[])
        .await
}

async fn keep(conn: &mut AsyncPgConnection, manager: ManagerName, posts: &[Post]) -> usize {
    keep_within(conn, &WriteLimit::default(), &[manager], posts).await
}

async fn keep_within(
    conn: &mut AsyncPgConnection,
    limit: &WriteLimit,
    managers: &[ManagerName],
    posts: &[Post],
) -> usize {
    let mut written = Written::default();
    let dropped = keep_part(conn, limit, &mut written, managers, posts).await;
    limit.count(&written);
    dropped
}

async fn keep_part(
    conn: &mut AsyncPgConnection,
    limit: &WriteLimit,
    transaction: &mut Written,
    managers: &[ManagerName],
    posts: &[Post],
) -> usize {
    let refused: Vec<_> = { posts.iter() }
        .flat_map(|post| managers.iter().map(move |manager| (*manager, post)))
        .collect();
    refused_posts::insert(conn, &feed(), &refused, limit, transaction)
        .await
        .unwrap()
}

async fn ids(conn: &mut AsyncPgConnection, managers: &[ManagerName]) -> Vec<String> {
    let refused = refused_posts::of(conn, &feed(), managers).await.unwrap();
    refused.posts.into_iter().map(|post| post.id).collect()
}

#[tokio::test]
async fn they_wait_for_each_manager_until_they_are_matched_again() {
    let mut at = start().await;
    let (one, two) = (manager(&mut at).await, manager(&mut at).await);
    let posts = [aged("new", "New", 1), aged("old", "Old", 9)];
    keep(&mut at.conn, one, &posts).await;
    keep(&mut at.conn, two, &posts[1..]).await;
    keep(&mut at.conn, two, &posts[1..]).await;
    assert_eq!(ids(&mut at.conn, &[one, two]).await, ["old", "new"]);
    assert_eq!(ids(&mut at.conn, &[two]).await, ["old"]);

    refused_posts::forget(&mut at.conn, &feed(), &[one], &posts)
        .await
        .unwrap();
    assert_eq!(ids(&mut at.conn, &[one, two]).await, ["old"]);
}

#[tokio::test]
async fn many_bytes_come_in_several_pages_and_none_is_missed() {
    let mut at = start().await;
    let waiting = manager(&mut at).await;
    let posts: Vec<Post> = (0..5_u64)
        .map(|n| aged(&format!("post {n}"), "Text", 5 - n))
        .collect();
    keep(&mut at.conn, waiting, &posts).await;
    // As if each had two fifths of a page.
    let bytes = refused_posts::PAGE_BYTES * 2 / 5;
    let grown = format!("UPDATE refused_posts SET bytes = {bytes}");
    run(&mut at.conn, grown).await;
    let (mut pages, mut found) = (Vec::new(), Vec::new());
    loop {
        let page = refused_posts::of(&mut at.conn, &feed(), &[waiting])
            .await
            .unwrap();
        refused_posts::forget(&mut at.conn, &feed(), &[waiting], &page.posts)
            .await
            .unwrap();
        pages.push(page.posts.len());
        found.extend(page.posts.into_iter().map(|post| post.id));
        if !page.more {
            break;
        }
    }
    assert_eq!(pages, [3, 2]);
    let expected: Vec<String> = posts.into_iter().map(|post| post.id).collect();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn an_account_that_waits_with_too_much_loses_its_oldest_and_no_other_does() {
    let mut at = start().await;
    let flooding = manager(&mut at).await;
    let other = at.fixture.beside(&mut at.conn, "other").await;
    let patient = other.manager(&mut at.conn, &instructions("a"), &[]).await;
    keep(&mut at.conn, patient, &[aged("patient", "One", 1)]).await;
    keep(&mut at.conn, flooding, &[aged("first", "First", 1)]).await;
    run(
        &mut at.conn,
        format!(
            "UPDATE refused_posts SET bytes = {}, refuse_time = refuse_time - interval '1 day'",
            refused_posts::MAX_BYTES
        ),
    )
    .await;
    // So large that it always trims.
    let large = "word ".repeat(1_000_000);
    let dropped = keep(&mut at.conn, flooding, &[aged("last", &large, 1)]).await;
    assert_eq!(dropped, 1);
    assert_eq!(ids(&mut at.conn, &[flooding]).await, ["last"]);
    assert_eq!(ids(&mut at.conn, &[patient]).await, ["patient"]);
}

#[tokio::test]
async fn an_account_with_many_managers_writes_no_more_than_its_limit() {
    let mut at = start().await;
    let managers = [
        manager(&mut at).await,
        manager(&mut at).await,
        manager(&mut at).await,
    ];
    let other = at.fixture.beside(&mut at.conn, "other").await;
    let patient = other.manager(&mut at.conn, &instructions("a"), &[]).await;
    let posts: Vec<Post> = (0..4_u64)
        .map(|n| aged(&format!("post {n}"), "Text", n))
        .collect();
    let bytes = serde_json::to_value(&posts[0]).unwrap().to_string().len();
    // Room for two posts of three Managers, and not for a seventh row.
    let limit = WriteLimit::new(i64::try_from(bytes).unwrap() * 13 / 2);
    // Two parts of a transaction, and the first of them again.
    let mut written = Written::default();
    let mut dropped = Vec::new();
    for part in [&posts[..1], &posts[..1], &posts[1..3]] {
        dropped.push(keep_part(&mut at.conn, &limit, &mut written, &managers, part).await);
    }
    limit.count(&written);
    assert_eq!(dropped, [0, 0, 3]);
    for manager in managers {
        assert_eq!(ids(&mut at.conn, &[manager]).await, ["post 1", "post 0"]);
    }
    // In the next poll too, and for this account alone.
    let dropped = keep_within(&mut at.conn, &limit, &managers, &posts[3..]).await;
    assert_eq!(dropped, 3);
    assert_eq!(number(&mut at.conn, ROWS).await, 6);
    let dropped = keep_within(&mut at.conn, &limit, &[patient], &posts).await;
    assert_eq!(dropped, 0);
}

#[tokio::test]
async fn they_go_with_their_time_their_manager_and_their_author() {
    let mut at = start().await;
    let (waiting, deleted) = (manager(&mut at).await, manager(&mut at).await);
    keep(
        &mut at.conn,
        waiting,
        &[aged("young", "One", 1), aged("late", "Two", 1)],
    )
    .await;
    run(
        &mut at.conn,
        "UPDATE refused_posts SET refuse_time = refuse_time - interval '7 days 1 minute' \
         WHERE post ->> 'id' = 'late'",
    )
    .await;
    assert_eq!(refused_posts::purge_old(&mut at.conn).await.unwrap(), 1);
    assert_eq!(ids(&mut at.conn, &[waiting]).await, ["young"]);

    keep(&mut at.conn, deleted, &[aged("its", "Three", 1)]).await;
    managers::delete(&mut at.conn, deleted, Timestamp::now())
        .await
        .unwrap();
    while purge_step(&mut at.conn).await.is_some() {}
    assert_eq!(number(&mut at.conn, ROWS).await, 1);

    erasure::erase(&mut at.conn, &["young".to_owned()])
        .await
        .unwrap();
    assert_eq!(number(&mut at.conn, ROWS).await, 0);
}
