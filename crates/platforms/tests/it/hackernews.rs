//! Hacker News on the simulator.

use std::time::{Duration, Instant};

use platform_simulator::{Fault, FaultKind, NewPost};
use platforms::PollError;

use crate::platform::{Feed, minutes_ago, post, posts, title};

const HN: &str = "hackernews";

#[tokio::test]
async fn the_backfill_comes_first_and_then_only_what_is_new() {
    let mut feed = Feed::new("hackernews:newest");
    feed.publish([
        NewPost {
            time: minutes_ago(60 * 48),
            ..post(HN, "two days old")
        },
        NewPost {
            time: minutes_ago(60),
            ..post(HN, "an hour old")
        },
        post(HN, "just now"),
    ]);

    assert_eq!(feed.titles().await, ["an hour old", "just now"]);
    let before = feed.cursor.clone();
    assert!(feed.titles().await.is_empty());
    assert_eq!(feed.cursor, before, "nothing new, nothing to store");
    feed.publish([post(HN, "later")]);
    assert_eq!(feed.titles().await, ["later"]);
}

#[tokio::test]
async fn first_poll_without_a_backfill_returns_nothing_old() {
    let mut feed = Feed::new("hackernews:newest");
    // Times of Hacker News are whole seconds.
    feed.limits.since = Some(domain::Timestamp::now().minus(Duration::from_secs(1)));
    feed.publish((0..100).map(|n| NewPost {
        time: minutes_ago(1),
        ..post(HN, format!("old {n}"))
    }));
    assert!(feed.titles().await.is_empty());
    feed.publish([post(HN, "new")]);
    assert_eq!(feed.titles().await, ["new"]);
}

#[tokio::test]
async fn a_post_carries_every_field() {
    let mut feed = Feed::new("hackernews:newest");
    let ids = feed.publish([NewPost {
        text: Some("Hello <i>there</i> &amp; you<p>Second".into()),
        ..post(HN, "Ask HN: A &lt; B?")
    }]);
    let given = feed.poll().await.posts.remove(0);
    let json = serde_json::to_value(&given).unwrap();
    let id = ids[0];
    assert_eq!(
        json,
        serde_json::json!({
            "type": "FORUM_LINK",
            "time": given.time.to_string(),
            "id": format!("hackernews:{id}"),
            "title": "Ask HN: A < B?",
            "text": "Hello there & you\n\nSecond",
            "url": format!("https://news.ycombinator.com/item?id={id}"),
            "subforum": {"id": "ask", "name": "Ask HN", "url": "https://news.ycombinator.com/ask"},
            "user": {"id": "ana", "name": "ana", "url": "https://news.ycombinator.com/user?id=ana"},
        })
    );
}

#[tokio::test]
async fn a_burst_beyond_one_answer_is_read_whole() {
    let mut feed = Feed::new("hackernews:newest");
    feed.limits.max_posts = 10_000;
    feed.publish([post(HN, "first")]);
    feed.poll().await;
    feed.publish(posts(HN, 2_500));
    let polled = feed.poll().await;
    assert_eq!((polled.posts.len(), polled.gap), (2_500, None));
    assert!(feed.titles().await.is_empty());
}

#[tokio::test]
async fn posts_beyond_the_limit_are_left_to_the_next_poll() {
    let mut feed = Feed::new("hackernews:newest");
    feed.limits.max_posts = 10;
    feed.publish(posts(HN, 25));
    let mut given = Vec::new();
    for more in [true, true, false] {
        let polled = feed.poll().await;
        assert_eq!((polled.more, polled.gap), (more, None));
        given.extend(polled.posts.iter().map(title));
    }
    let all: Vec<_> = (0..25).map(|n| format!("post {n}")).collect();
    assert_eq!(given, all);
}

#[tokio::test]
async fn posts_that_the_search_does_not_know_yet_are_found() {
    let mut feed = Feed::new("hackernews:newest");
    feed.publish(posts(HN, 5));
    feed.poll().await;
    feed.publish([NewPost {
        index_lag_ms: 150,
        ..post(HN, "not indexed")
    }]);
    assert_eq!(feed.titles().await, ["not indexed"]);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(feed.titles().await.is_empty(), "indexed now, and known");
}

#[tokio::test]
async fn posts_that_a_stale_search_returns_late_are_found() {
    // A busy machine may need longer than a short lag to read the lists.
    for lag in [4, 20].map(Duration::from_secs) {
        let mut feed = Feed::new("hackernews:newest");
        feed.publish((0..100).map(|n| NewPost {
            time: minutes_ago(120),
            ..post(HN, format!("old {n}"))
        }));
        assert_eq!(feed.titles().await.len(), 100);
        let begin = Instant::now();
        // The lists of stories contain no jobs.
        feed.publish([NewPost {
            community: Some("job".into()),
            time: minutes_ago(30),
            index_lag_ms: u64::try_from(lag.as_millis()).unwrap(),
            ..post(HN, "We hire")
        }]);
        feed.publish((0..60).map(|n| NewPost {
            index_lag_ms: 60_000,
            ..post(HN, format!("listed {n}"))
        }));
        let listed = feed.titles().await;
        if begin.elapsed() >= lag {
            continue;
        }
        assert_eq!(listed.len(), 60);
        tokio::time::sleep(lag).await;
        assert_eq!(feed.titles().await, ["We hire"]);
        return;
    }
    panic!("the lists were not read in time");
}

#[tokio::test]
async fn item_that_is_null_at_first_is_requested_again() {
    let mut feed = Feed::new("hackernews:newest");
    feed.publish(posts(HN, 5));
    feed.poll().await;
    feed.publish([NewPost {
        index_lag_ms: 60_000,
        null_reads: 2,
        ..post(HN, "slow")
    }]);
    assert!(feed.titles().await.is_empty());
    assert!(feed.titles().await.is_empty());
    assert_eq!(feed.titles().await, ["slow"]);
    assert!(feed.titles().await.is_empty());
}

#[tokio::test]
async fn late_posts_and_deleted_anchors_change_nothing() {
    let mut feed = Feed::new("hackernews:newest");
    let ids = feed.publish(posts(HN, 200));
    assert_eq!(feed.titles().await.len(), 200);
    for id in &ids[150..] {
        assert!(feed.simulator.delete(*id));
    }
    assert!(feed.titles().await.is_empty());
    feed.publish([
        NewPost {
            time: minutes_ago(5),
            ..post(HN, "late")
        },
        post(HN, "new"),
    ]);
    assert_eq!(feed.titles().await, ["late", "new"]);
}

#[tokio::test]
async fn lists_are_separate_feeds() {
    for (what, expected) in [("ask", "Ask HN: why?"), ("show", "Show HN: this")] {
        let mut feed = Feed::new(&format!("hackernews:{what}"));
        feed.publish(["plain", "Ask HN: why?", "Show HN: this"].map(|title| post(HN, title)));
        assert_eq!(feed.titles().await, [expected]);
    }
    let mut feed = Feed::new("hackernews:newest");
    feed.publish([NewPost {
        community: Some("job".into()),
        ..post(HN, "We hire")
    }]);
    let subforum = feed.poll().await.posts[0].subforum.clone().unwrap();
    assert_eq!(subforum.id, "job");
}

#[tokio::test]
async fn throttling_is_reported_and_loses_nothing() {
    let mut feed = Feed::new("hackernews:newest");
    feed.poll().await;
    feed.publish([post(HN, "meanwhile")]);
    feed.simulator
        .fail(Fault::new(HN, FaultKind::RetryAfter, 7).times(2));
    let error = feed.try_poll().await.unwrap_err();
    assert!(matches!(
        error,
        PollError::Throttled { retry_after: Some(wait) } if wait == Duration::from_secs(7)
    ));
    assert_eq!(feed.titles().await, ["meanwhile"]);
}

#[tokio::test]
async fn search_and_item_api_replace_each_other() {
    let mut feed = Feed::new("hackernews:newest");
    feed.publish(posts(HN, 3));
    feed.poll().await;
    for (path, name) in [("search_by_date", "by lists"), ("newstories", "by search")] {
        feed.publish([post(HN, name)]);
        feed.simulator
            .fail(Fault::new(HN, FaultKind::Status, 503).on(path));
        assert_eq!(feed.titles().await, [name]);
    }
    assert!(feed.titles().await.is_empty());
}

#[tokio::test]
async fn broken_answers_are_errors_and_nothing_is_lost() {
    for (kind, value) in [
        (FaultKind::Garbage, 0),
        (FaultKind::Reset, 0),
        (FaultKind::Status, 500),
        (FaultKind::Huge, 30 * 1024 * 1024),
    ] {
        let mut feed = Feed::new("hackernews:newest");
        feed.poll().await;
        feed.publish([post(HN, "meanwhile")]);
        feed.simulator.fail(Fault::new(HN, kind, value).times(2));
        assert!(feed.try_poll().await.is_err(), "{kind:?}");
        assert_eq!(feed.titles().await, ["meanwhile"], "{kind:?}");
    }
}

#[tokio::test]
async fn comments_are_a_feed_of_their_own() {
    let mut feed = Feed::new("hackernews:comments");
    let story = feed.publish([post(HN, "Ask HN: why?")])[0];
    let ids = feed.publish([NewPost {
        parent: Some(story),
        text: Some("Because <i>of</i> it".into()),
        ..post(HN, "")
    }]);
    let given = feed.poll().await.posts;
    assert_eq!(given.len(), 1);
    let json = serde_json::to_value(&given[0]).unwrap();
    assert_eq!(json["type"], "FORUM_COMMENT");
    assert_eq!(json["id"], format!("hackernews:{}", ids[0]));
    assert_eq!(json["title"], "Ask HN: why?");
    assert_eq!(json["text"], "Because of it");
    feed.watch("hackernews:newest");
    assert_eq!(feed.titles().await, ["Ask HN: why?"]);
}

#[tokio::test]
async fn what_is_gone_shows_when_asked_again() {
    let feed = Feed::new("hackernews:newest");
    let ids = feed.publish([post(HN, "stays"), post(HN, "goes")]);
    feed.simulator.delete(ids[1]);
    let known: Vec<String> = ids.iter().map(|id| format!("hackernews:{id}")).collect();
    let odd = ["hackernews:x".to_owned(), "lemmy:1".to_owned()];
    let asked = [known.clone(), odd.to_vec()].concat();
    feed.simulator.edit(ids[0], "<i>Now</i> with text");
    let found = feed.adapter().recheck(&asked).await.unwrap();
    assert_eq!(found.gone, [known[1].clone()]);
    let [current] = &found.current[..] else {
        panic!("{:?}", found.current);
    };
    assert_eq!(current.id, known[0]);
    assert_eq!(current.text.as_deref(), Some("Now with text"));
    feed.simulator
        .fail(Fault::new(HN, FaultKind::Status, 500).on("/item/"));
    assert!(feed.adapter().recheck(&known).await.is_err());
}
