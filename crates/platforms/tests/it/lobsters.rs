//! Lobsters on the simulator, and on written answers: no recorded one is at hand.

use std::time::Duration;

use platform_simulator::{Fault, FaultKind, NewPost};
use platforms::{Adapter, PollError, PollLimits, Skipped, lobsters::Lobsters};
use serde_json::{Value, json};

use crate::platform::{Feed, answer, answering, post, posts, title};

const LOBSTERS: &str = "lobsters";

/// Answers page 1 with the given list, and the others with an empty one.
fn written(list: Value) -> Lobsters {
    let base = "https://lobste.rs".parse().unwrap();
    let fetch = answering(move |url| {
        let body = match url.path() {
            "/newest.json" => list.to_string(),
            _ => "[]".to_owned(),
        };
        answer(200, url, body)
    });
    Lobsters::new(LOBSTERS.into(), base, fetch)
}

#[tokio::test]
async fn a_story_carries_every_field() {
    let list = json!([{
        "short_id": "q2wv3x", "short_id_url": "https://lobste.rs/s/q2wv3x",
        "created_at": "2026-11-20T09:12:33.000-06:00", "title": "Kettles in  Rust",
        "url": "https://example.com/kettles", "score": 12, "flags": 0, "comment_count": 3,
        "description": "<p>Hello <strong>there</strong></p>\n", "description_plain": "Hello **there**",
        "comments_url": "https://lobste.rs/s/q2wv3x/kettles_rust",
        "submitter_user": "ana", "user_is_author": true, "tags": ["rust", "show"],
    }, {
        "short_id": "abc123", "created_at": "2026-11-20T09:00:00.000-06:00", "title": "Older form",
        "submitter_user": {"username": "bob", "karma": 3}, "tags": [],
    }]);
    let limits = PollLimits::default();
    let polled = written(list).poll("newest", None, &limits).await.unwrap();
    let json = serde_json::to_value(&polled.posts[1]).unwrap();
    assert_eq!(json["type"], "FORUM_LINK");
    assert_eq!(json["id"], "lobsters:q2wv3x");
    assert_eq!(json["time"], "2026-11-20T15:12:33.000000Z");
    assert_eq!(json["url"], "https://lobste.rs/s/q2wv3x");
    assert_eq!(json["title"], "Kettles in Rust");
    assert_eq!(json["text"], "Hello there");
    let site = json!({"id": "lobsters", "name": "lobsters", "url": "https://lobste.rs/"});
    assert_eq!(json["subforum"], site);
    assert_eq!(json["user"]["name"], "ana");
    assert_eq!(json["user"]["url"], "https://lobste.rs/~ana");
    assert_eq!(polled.posts[0].user.name, "bob");
    assert_eq!(polled.posts[0].text, None);
}

#[tokio::test]
async fn a_story_that_cannot_be_read_stops_no_other_and_is_given_once() {
    let list = json!([
        {"short_id": "bad1", "created_at": 5, "title": "no time"},
        {"short_id": "a/b", "created_at": "2026-11-20T09:00:00Z", "title": "no id"},
        {"short_id": "good", "created_at": "2026-11-20T09:00:00Z", "title": "fine", "submitter_user": "ana"},
    ]);
    let site = written(list);
    let limits = PollLimits::default();
    let first = site.poll("newest", None, &limits).await.unwrap();
    assert_eq!(first.posts.iter().map(title).collect::<Vec<_>>(), ["fine"]);
    let ids = first.skipped.iter().map(|odd: &Skipped| odd.id.as_deref());
    assert_eq!(ids.collect::<Vec<_>>(), [Some("bad1"), Some("a/b")]);
    let again = site.poll("newest", Some(&first.cursor), &limits);
    let again = again.await.unwrap();
    assert_eq!((again.posts.len(), again.skipped.len()), (0, 0));
}

#[tokio::test]
async fn a_burst_over_many_pages_is_read_whole_over_several_polls() {
    let mut feed = Feed::new("lobsters:newest");
    feed.publish(posts(LOBSTERS, 60));
    assert_eq!(feed.titles().await.len(), 60);
    assert!(feed.titles().await.is_empty());
    feed.limits.max_pages = 3;
    feed.publish((0..200).map(|n| post(LOBSTERS, format!("burst {n}"))));
    let mut given = 0;
    loop {
        let polled = feed.poll().await;
        assert_eq!(polled.gap, None);
        given += polled.posts.len();
        if !polled.more {
            break;
        }
    }
    assert_eq!(given, 200);
    assert!(feed.titles().await.is_empty());
}

#[tokio::test]
async fn tag_is_a_separate_feed() {
    let mut feed = Feed::new("lobsters:t/rust");
    let tagged = |tag: &str| NewPost {
        community: Some(tag.into()),
        ..post(LOBSTERS, tag)
    };
    feed.publish([tagged("rust"), tagged("cats")]);
    assert_eq!(feed.titles().await, ["rust"]);
}

#[tokio::test]
async fn faults_are_errors_and_nothing_is_lost() {
    let mut feed = Feed::new("lobsters:newest");
    feed.poll().await;
    for (kind, value) in [
        (FaultKind::Garbage, 0),
        (FaultKind::Reset, 0),
        (FaultKind::Status, 502),
        (FaultKind::RetryAfter, 3),
        (FaultKind::Huge, 20 * 1024 * 1024),
    ] {
        feed.publish([post(LOBSTERS, format!("{kind:?} {value}"))]);
        feed.simulator.fail(Fault::new(LOBSTERS, kind, value));
        let error = feed.try_poll().await.unwrap_err();
        let wait = (kind == FaultKind::RetryAfter).then(|| Duration::from_secs(3));
        assert_eq!(error.retry_after(), wait, "{kind:?}");
        assert_eq!(feed.titles().await, [format!("{kind:?} {value}")]);
    }
    let limits = PollLimits::default();
    let wrong = feed.adapter().poll("t/a,b", None, &limits).await;
    assert!(matches!(wrong, Err(PollError::NotFound(_))));
}

#[tokio::test]
async fn deleted_stories_show_when_asked_again() {
    let mut feed = Feed::new("lobsters:newest");
    let ids = feed.publish([post(LOBSTERS, "stays"), post(LOBSTERS, "goes")]);
    let known: Vec<String> = feed.poll().await.posts.into_iter().map(|p| p.id).collect();
    feed.simulator.delete(ids[1]);
    let asked = [known, vec!["lobsters:../x".into(), "x".into()]].concat();
    let gone = feed.adapter().recheck(&asked).await.unwrap().gone;
    assert_eq!(gone, [format!("lobsters:{}", ids[1])]);
}
