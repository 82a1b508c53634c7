//! Lemmy on the simulator.

use std::time::Duration;

use platform_simulator::{Fault, FaultKind, NewPost};
use platforms::PollError;

use crate::platform::{Feed, minutes_ago, post, posts, title};

const LEMMY: &str = "lemmy";

fn in_community(community: &str, title: &str) -> NewPost {
    NewPost {
        community: Some(community.into()),
        ..post(LEMMY, title)
    }
}

#[tokio::test]
async fn a_post_carries_every_field() {
    let mut feed = Feed::new("lemmy:newest");
    let ids = feed.publish([NewPost {
        text: Some("Hello **there**\n\n* one\n* two".into()),
        url: Some("https://example.com/".into()),
        ..in_community("selfhosted", "What do you use?")
    }]);
    let given = feed.poll().await.posts.remove(0);
    let base = format!("{}/lemmy", feed.simulator.base_url());
    let json = serde_json::to_value(&given).unwrap();
    let own = format!("{base}/post/{}", ids[0]);
    assert_eq!(json["type"], "FORUM_LINK");
    assert_eq!(
        (&json["id"], &json["url"]),
        (&own.clone().into(), &own.into())
    );
    assert_eq!(json["title"], "What do you use?");
    assert_eq!(json["text"], "Hello there\n\n- one\n- two");
    assert_eq!(json["subforum"]["name"], "selfhosted");
    assert_eq!(json["subforum"]["url"], format!("{base}/c/selfhosted"));
    assert_eq!(json["user"]["name"], "ana");
    assert_eq!(json["user"]["url"], format!("{base}/u/ana"));
}

#[tokio::test]
async fn a_burst_over_many_pages_is_read_whole_behind_pinned_posts() {
    let mut feed = Feed::new("lemmy:newest");
    feed.publish((0..3).map(|n| NewPost {
        featured: true,
        time: minutes_ago(60 * 24 * 300),
        ..post(LEMMY, format!("pinned {n}"))
    }));
    feed.publish(posts(LEMMY, 120));
    let backfill = feed.titles().await;
    assert_eq!(backfill.len(), 120);
    assert!(backfill.iter().all(|title| title.starts_with("post")));
    assert!(feed.titles().await.is_empty());
    feed.publish(posts(LEMMY, 333));
    assert_eq!(feed.titles().await.len(), 333);
    assert!(feed.titles().await.is_empty());
}

#[tokio::test]
async fn while_nothing_is_new_a_poll_is_one_request() {
    for count in [1, 200] {
        let mut feed = Feed::new("lemmy:newest");
        // Fewer than a page in ten minutes.
        feed.publish((0..count).map(|n| NewPost {
            time: minutes_ago(n),
            ..post(LEMMY, format!("post {n}"))
        }));
        feed.poll().await;
        let before = feed.simulator.requests("/lemmy/api/v3/post/list");
        feed.poll().await;
        let after = feed.simulator.requests("/lemmy/api/v3/post/list");
        assert_eq!(after - before, 1, "{count}");
    }
}

#[tokio::test]
async fn late_posts_and_deleted_anchors_change_nothing() {
    let mut feed = Feed::new("lemmy:newest");
    feed.limits.since = minutes_ago(2);
    let ids = feed.publish(posts(LEMMY, 300));
    let backfill = feed.titles().await.len();
    assert!((115..=121).contains(&backfill), "{backfill}");
    for id in &ids[180..] {
        assert!(feed.simulator.delete(*id));
    }
    assert!(
        feed.titles().await.is_empty(),
        "what comes up from below is old"
    );
    feed.publish([
        NewPost {
            time: minutes_ago(1),
            ..post(LEMMY, "federated late")
        },
        post(LEMMY, "new"),
    ]);
    assert_eq!(feed.titles().await, ["federated late", "new"]);
}

#[tokio::test]
async fn community_is_a_separate_feed() {
    let mut feed = Feed::new("lemmy:c/rust");
    feed.publish([in_community("rust", "in"), in_community("cats", "out")]);
    assert_eq!(feed.titles().await, ["in"]);

    let mut missing = Feed::new("lemmy:c/nosuch");
    let error = missing.try_poll().await.unwrap_err();
    assert!(matches!(error, PollError::NotFound(_)), "{error}");
    assert!(error.is_permanent());
}

#[tokio::test]
async fn burst_beyond_the_poll_limit_is_returned_completely() {
    let mut feed = Feed::new("lemmy:newest");
    feed.publish(posts(LEMMY, 60));
    feed.poll().await;
    feed.limits.max_posts = 1_000;
    feed.publish((0..2_500).map(|n| post(LEMMY, format!("burst {n}"))));
    let mut given = 0;
    for more in [true, true, false] {
        let polled = feed.poll().await;
        assert_eq!((polled.more, polled.gap), (more, None));
        given += polled.posts.len();
    }
    assert_eq!(given, 2_500);
}

#[tokio::test]
async fn pages_beyond_a_poll_s_limit_are_read_by_the_next_polls() {
    let mut feed = Feed::new("lemmy:newest");
    feed.publish(posts(LEMMY, 60));
    feed.poll().await;
    feed.limits.max_pages = 2;
    feed.publish((0..500).map(|n| post(LEMMY, format!("burst {n}"))));
    let mut given = 0;
    loop {
        let polled = feed.poll().await;
        assert_eq!(polled.gap, None);
        assert!(polled.posts.len() <= 100);
        given += polled.posts.len();
        if !polled.more {
            break;
        }
    }
    assert_eq!(given, 500);
}

#[tokio::test]
async fn large_posts_are_read_by_several_polls() {
    let mut feed = Feed::new("lemmy:newest");
    feed.publish(posts(LEMMY, 60));
    feed.poll().await;
    let text = "x".repeat(40_000);
    feed.publish((0..300).map(|n| NewPost {
        text: Some(text.clone()),
        ..post(LEMMY, format!("large {n}"))
    }));
    let mut given = Vec::new();
    let mut more = true;
    while more {
        let polled = feed.poll().await;
        assert_eq!(polled.gap, None);
        // 4 MB, and what is left of a page.
        assert!(polled.posts.len() <= 150, "{}", polled.posts.len());
        given.extend(polled.posts.iter().map(title));
        more = polled.more;
    }
    assert_eq!(given.len(), 300);
    given.sort();
    given.dedup();
    assert_eq!(given.len(), 300);
}

#[tokio::test]
async fn failing_page_discards_and_delays_nothing() {
    let mut feed = Feed::new("lemmy:newest");
    feed.publish(posts(LEMMY, 60));
    feed.poll().await;
    feed.publish((0..300).map(|n| post(LEMMY, format!("burst {n}"))));
    feed.limits.max_pages = 3;
    assert_eq!(feed.poll().await.posts.len(), 150);
    feed.limits.max_pages = 400;
    // The position fails, the newest page does not.
    let fault = Fault::new(LEMMY, FaultKind::Status, 500);
    feed.simulator.fail(fault);
    feed.publish([post(LEMMY, "new meanwhile")]);
    let polled = feed.poll().await;
    assert_eq!(
        polled.posts.iter().map(title).collect::<Vec<_>>(),
        ["new meanwhile"]
    );
    assert!(polled.more && polled.next_hint.is_some());
    let polled = feed.poll().await;
    assert_eq!(
        (polled.posts.len(), polled.more, polled.gap),
        (150, false, None)
    );
}

#[tokio::test]
async fn an_odd_character_in_one_post_does_not_stop_its_list() {
    let mut feed = Feed::new("lemmy:newest");
    feed.poll().await;
    feed.publish([post(LEMMY, "before \u{1} after"), post(LEMMY, "plain")]);
    assert_eq!(feed.titles().await.len(), 2);
}

#[tokio::test]
async fn faults_are_errors_and_nothing_is_lost() {
    let mut feed = Feed::new("lemmy:newest");
    feed.poll().await;
    for (kind, value) in [
        (FaultKind::Garbage, 0),
        (FaultKind::Reset, 0),
        (FaultKind::Status, 502),
        (FaultKind::Status, 403),
        (FaultKind::RetryAfter, 3),
        (FaultKind::Huge, 20 * 1024 * 1024),
    ] {
        feed.publish([post(LEMMY, format!("{kind:?} {value}"))]);
        feed.simulator.fail(Fault::new(LEMMY, kind, value));
        let error = feed.try_poll().await.unwrap_err();
        let wait = (kind == FaultKind::RetryAfter).then(|| Duration::from_secs(3));
        assert_eq!(error.retry_after(), wait, "{kind:?}");
        assert_eq!(feed.titles().await, [format!("{kind:?} {value}")]);
    }
}

#[tokio::test]
async fn comments_are_separate_feeds() {
    let mut feed = Feed::new("lemmy:comments");
    let stories = feed.publish([in_community("rust", "Why?"), in_community("cats", "Meow")]);
    feed.publish(stories.iter().map(|story| NewPost {
        parent: Some(*story),
        text: Some(format!("About **{story}**")),
        ..post(LEMMY, "")
    }));
    let given = feed.poll().await.posts;
    assert_eq!(given.len(), 2);
    let json = serde_json::to_value(&given[0]).unwrap();
    assert_eq!(json["type"], "FORUM_COMMENT");
    assert_eq!(json["title"], "Why?");
    assert_eq!(json["text"], format!("About {}", stories[0]));
    assert_eq!(json["subforum"]["name"], "rust");
    assert!(json["id"].as_str().unwrap().contains("/lemmy/comment/"));
    feed.watch("lemmy:c/cats/comments");
    assert_eq!(feed.titles().await, ["Meow"]);
    feed.watch("lemmy:newest");
    assert_eq!(feed.titles().await, ["Why?", "Meow"]);
}

#[tokio::test]
async fn communities_are_found_and_what_is_gone_shows_when_asked_again() {
    let mut feed = Feed::new("lemmy:newest");
    let ids = feed.publish([
        in_community("rustlang", "stays"),
        in_community("cats", "goes"),
    ]);
    let found = feed.adapter().communities("rust", 5).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(
        (&*found[0].what, &*found[0].name),
        ("c/rustlang", "rustlang")
    );
    let known: Vec<String> = feed.poll().await.posts.into_iter().map(|p| p.id).collect();
    feed.simulator.delete(ids[1]);
    let elsewhere = "https://other.example/post/1".to_owned();
    let asked = [known.clone(), vec![elsewhere, "x".into()]].concat();
    let gone = feed.adapter().recheck(&asked).await.unwrap().gone;
    assert_eq!(gone, [known[1].clone()]);
}

#[tokio::test]
async fn position_of_an_older_release_loses_no_post() {
    let mut feed = Feed::new("lemmy:newest");
    feed.publish([post("lemmy", "first")]);
    feed.poll().await;
    feed.publish(posts("lemmy", 300));
    feed.limits.max_pages = 2;
    let mut given = std::collections::BTreeSet::new();
    for _ in 0..20 {
        let polled = feed.poll().await;
        given.extend(polled.posts.iter().map(crate::platform::title));
        assert_eq!(polled.gap, None);
        if !polled.more {
            break;
        }
        // A replica of an earlier release writes the position alone.
        let mut cursor = polled.cursor.to_json();
        let unread = &cursor["unread"];
        cursor["unread"] =
            serde_json::json!({"after": unread["after"], "before": unread["before"]});
        feed.cursor = platforms::Cursor::from_json(&cursor);
    }
    assert_eq!(given.len(), 300);
    assert!(feed.titles().await.is_empty());
}
