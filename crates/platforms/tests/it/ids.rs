//! The account of ids where items fail, throttle and come late.

use std::time::Duration;

use domain::Timestamp;
use platform_simulator::{Fault, FaultKind, NewPost};
use platforms::{Cursor, IdAccount};
use serde_json::json;

use crate::platform::{Feed, post, title};

/// Makes the ids in a cursor old enough to be checked.
fn aged(cursor: &Cursor) -> Cursor {
    let mut json = cursor.to_json();
    let ago = |minutes| json!(Timestamp::now().minus(Duration::from_mins(minutes)));
    json["ids"]["newestTime"] = ago(11);
    for missing in json["ids"]["missing"].as_array_mut().unwrap() {
        missing["next"] = ago(1);
    }
    Cursor::from_json(&json).unwrap()
}

/// Polls, and accounts for the ids that exist by now. What two checks found together.
async fn account(feed: &mut Feed) -> IdAccount {
    let mut both = IdAccount::default();
    // The newest ids are due when the next newest one is asked for.
    for _ in 0..2 {
        let mut polled = feed.poll().await;
        let adapter = feed.adapter();
        let one = adapter.account("newest", &mut polled, true).await;
        feed.cursor = Some(aged(&polled.cursor));
        both.read += one.read;
        both.missing.extend(one.missing);
        both.posts.extend(one.posts);
        both.up_to = one.up_to.or(both.up_to);
        both.failure = one.failure.or(both.failure);
    }
    both
}

fn fault(kind: FaultKind, value: u64, id: u64) -> Fault {
    Fault::new("hackernews", kind, value).on(&format!("item/{id}.json"))
}

#[tokio::test]
async fn ids_that_cannot_be_requested_are_not_skipped() {
    let mut feed = Feed::new("hackernews:newest");
    account(&mut feed).await;
    let hidden = |n: usize| NewPost {
        hidden: true,
        ..post("hackernews", format!("hidden {n}"))
    };
    let ids = feed.publish((0..4).map(hidden));
    feed.simulator.fail(fault(FaultKind::RetryAfter, 1, ids[1]));
    let first = account(&mut feed).await;
    assert!(first.failure.unwrap().throttled().is_some());
    assert_eq!((first.missing, first.up_to), (vec![ids[0]], Some(ids[0])));

    // One that fails while others can be read counts as missing.
    feed.simulator.fail(fault(FaultKind::Status, 500, ids[2]));
    let second = account(&mut feed).await;
    assert!(second.failure.is_none());
    assert_eq!(
        (second.missing, second.up_to),
        (ids[1..].to_vec(), Some(ids[3]))
    );

    feed.simulator.reveal(ids[2]);
    feed.simulator.delete(ids[3]);
    feed.simulator.reveal(ids[0]);
    // The poll finds what the list shows; the account asks for the rest.
    let mut explained = Vec::new();
    let mut titles = Vec::new();
    let mut gone = 0;
    for _ in 0..3 {
        let mut polled = feed.poll().await;
        let third = feed.adapter().account("newest", &mut polled, true).await;
        titles.extend(polled.posts.iter().chain(&third.posts).map(title));
        explained.extend(third.explained);
        gone += third.gone;
        feed.cursor = Some(aged(&polled.cursor));
    }
    explained.sort_unstable();
    titles.sort_unstable();
    assert_eq!(titles, ["hidden 0", "hidden 2"], "each once");
    assert_eq!(
        (explained, gone),
        (vec![ids[0], ids[2]], 0),
        "a hidden one that is deleted shows nothing"
    );
}

#[tokio::test]
async fn a_job_that_no_search_has_is_read_from_its_item_once() {
    let mut feed = Feed::new("hackernews:newest");
    account(&mut feed).await;
    // Jobs are in no list of stories.
    feed.publish([NewPost {
        community: Some("job".into()),
        index_lag_ms: 3_600_000,
        ..post("hackernews", "a job")
    }]);
    let found = account(&mut feed).await;
    assert_eq!((found.read, found.posts.len()), (1, 1));
    assert_eq!(title(&found.posts[0]), "a job");
    let again = account(&mut feed).await;
    assert_eq!((again.read, again.posts.len()), (0, 0));
}

#[tokio::test]
async fn lists_that_are_parts_of_others_have_no_account() {
    let adapter = Feed::new("hackernews:newest").adapter();
    let lists = ["newest", "ask", "show", "comments", "else"];
    let dense = lists.map(|list| adapter.has_dense_ids(list));
    assert_eq!(dense, [true, false, false, true, false]);
}
