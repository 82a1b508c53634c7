//! Reddit on the simulator.

use std::time::Duration;

use domain::Timestamp;
use platform_simulator::{Fault, FaultKind, NewPost, reddit};
use platforms::PollError;

use crate::platform::{Feed, minutes_ago, post};

const REDDIT: &str = "reddit";

fn on(subreddit: &str, title: impl Into<String>) -> NewPost {
    NewPost {
        community: Some(subreddit.into()),
        ..post(REDDIT, title)
    }
}

fn fail(feed: &Feed, kind: FaultKind, value: u64, path: &str, times: u32) {
    feed.simulator
        .fail(Fault::new(REDDIT, kind, value).times(times).on(path));
}

#[tokio::test]
async fn a_post_carries_every_field() {
    let mut feed = Feed::new("reddit:r/SaaS");
    feed.publish([NewPost {
        text: Some("Hello **there** & <you>\n\n* one".into()),
        ..on("SaaS", "A < B & C?")
    }]);
    let given = feed.poll().await.posts.remove(0);
    let json = serde_json::to_value(&given).unwrap();
    assert_eq!(json["type"], "FORUM_LINK");
    let id = json["id"].as_str().unwrap();
    let native = id.strip_prefix("reddit:t3_").unwrap();
    assert_eq!(json["title"], "A < B & C?");
    assert!(json["text"].as_str().unwrap().starts_with("Hello there &"));
    let url = format!("https://www.reddit.com/r/SaaS/comments/{native}/x/");
    assert_eq!(json["url"], url);
    assert_eq!(json["subforum"]["name"], "SaaS");
    assert_eq!(json["subforum"]["url"], "https://www.reddit.com/r/SaaS/");
    assert!(json["subforum"]["id"].as_str().unwrap().starts_with("t5_"));
    assert_eq!(json["user"]["name"], "ana");
    assert!(json["user"]["id"].as_str().unwrap().starts_with("t2_"));
    assert_eq!(json["user"]["url"], "https://www.reddit.com/user/ana");
}

#[tokio::test]
async fn comments_are_a_feed_of_their_own() {
    let mut feed = Feed::new("reddit:r/saas+rust/comments");
    let story = feed.publish([on("SaaS", "What do you use?")])[0];
    feed.publish([NewPost {
        parent: Some(story),
        text: Some("This *one*.".into()),
        ..post(REDDIT, "")
    }]);
    let given = feed.poll().await.posts;
    assert_eq!(given.len(), 1);
    let json = serde_json::to_value(&given[0]).unwrap();
    assert_eq!(json["type"], "FORUM_COMMENT");
    assert!(json["id"].as_str().unwrap().starts_with("reddit:t1_"));
    assert_eq!(json["title"], "What do you use?");
    assert_eq!(json["text"], "This one.");
    assert_eq!(json["subforum"]["name"], "SaaS");
}

#[tokio::test]
async fn a_group_is_one_request_a_poll() {
    let mut feed = Feed::new("reddit:r/saas+rust");
    feed.publish([on("saas", "a"), on("rust", "b"), on("cats", "c")]);
    assert_eq!(feed.titles().await, ["a", "b"]);
    let before = feed.simulator.requests("/reddit");
    assert!(feed.titles().await.is_empty());
    assert_eq!(feed.simulator.requests("/reddit") - before, 1);
    assert_eq!(feed.simulator.requests("/reddit/api/v1/access_token"), 1);
}

#[tokio::test]
async fn unreadable_members_are_found_and_left_out() {
    for bad in [reddit::PRIVATE, reddit::MISSING] {
        let mut feed = Feed::new(&format!("reddit:r/saas+rust+{bad}+cats+dogs"));
        feed.publish(["saas", "rust", "cats", "dogs"].map(|name| on(name, name)));
        assert_eq!(feed.titles().await, ["saas", "rust", "cats", "dogs"]);
        let before = feed.simulator.requests("/reddit");
        feed.publish([on("dogs", "later")]);
        assert_eq!(feed.titles().await, ["later"]);
        assert_eq!(feed.simulator.requests("/reddit") - before, 1, "remembered");
        let notice = feed.try_poll().await.unwrap().notice.unwrap();
        assert!(notice.contains("left out"), "{notice}");
    }
    for (alone, permanent) in [(reddit::PRIVATE, true), (reddit::MISSING, true)] {
        for name in [
            format!("reddit:r/{alone}"),
            format!("reddit:r/{alone}+{alone}"),
        ] {
            let error = Feed::new(&name).try_poll().await.unwrap_err();
            assert_eq!(error.is_permanent(), permanent, "{name}: {error}");
        }
    }
}

#[tokio::test]
async fn tokens_are_renewed_when_they_end_and_when_they_are_refused() {
    let mut feed = Feed::new("reddit:r/saas");
    feed.publish([on("saas", "a")]);
    assert_eq!(feed.titles().await, ["a"]);
    // From now on tokens live two seconds, and the current one is rejected.
    feed.simulator.end_tokens(2);
    feed.publish([on("saas", "b")]);
    assert_eq!(feed.titles().await, ["b"]);
    assert_eq!(feed.simulator.requests("/reddit/api/v1/access_token"), 2);
    // There the token does not end: its clock stands still.
    feed.simulator.set_now(Timestamp::now());
    let before = feed.simulator.requests("/reddit/r/");
    let mut polls = 0;
    while feed.simulator.requests("/reddit/api/v1/access_token") < 3 {
        assert!(feed.titles().await.is_empty());
        polls += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(
        feed.simulator.requests("/reddit/r/") - before,
        polls,
        "renewed without a refusal"
    );
}

#[tokio::test]
async fn error_of_wrong_credentials_contains_advice() {
    let mut feed = Feed::new("reddit-wrong:r/saas");
    let error = feed.try_poll().await.unwrap_err();
    assert!(
        matches!(error, PollError::Refused { status: 401, .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("`client_secret`"), "{error}");
    assert!(!error.to_string().contains("hunter2"));

    // Refused with a new token too: no endless loop.
    let mut feed = Feed::new("reddit:r/saas");
    fail(&feed, FaultKind::Status, 401, "/r/", 9);
    let error = feed.try_poll().await.unwrap_err();
    assert!(
        matches!(error, PollError::Refused { status: 401, .. }),
        "{error:?}"
    );
    assert_eq!(feed.simulator.requests("/reddit/r/"), 2);
}

#[tokio::test]
async fn posts_beyond_the_end_of_a_listing_are_a_gap() {
    let mut feed = Feed::new("reddit:r/saas");
    feed.publish([on("saas", "first")]);
    feed.poll().await;
    feed.publish((0..990).map(|n| on("saas", format!("post {n}"))));
    let polled = feed.poll().await;
    assert_eq!((polled.posts.len(), polled.gap), (990, None));
    feed.publish((0..1_200).map(|n| on("saas", format!("more {n}"))));
    let polled = feed.poll().await;
    assert_eq!(polled.posts.len(), 1_000);
    assert!(polled.gap.is_some());
    assert!(feed.poll().await.posts.is_empty());
}

#[tokio::test]
async fn search_beyond_the_end_of_a_listing_has_a_gap() {
    for (count, back, has_gap) in [
        (1_500, Duration::from_hours(20), true),
        (1_500, Duration::from_hours(8), false),
        (700, Duration::from_hours(20), false),
    ] {
        let mut feed = Feed::new("reddit:r/saas");
        // A post per half minute. The ordinary polls read them all.
        let now = Timestamp::now();
        for part in [0..count / 2, count / 2..count] {
            feed.publish(part.map(|n| NewPost {
                time: Some(now.minus(Duration::from_secs(30 * (count - n)))),
                ..on("saas", format!("post {n}"))
            }));
            assert_eq!(feed.poll().await.gap, None);
        }
        let since = now.minus(back);
        let cursor = feed.cursor.as_ref().unwrap().reading_back_to(since);
        let adapter = feed.adapter();
        let polled = adapter.poll("r/saas", Some(&cursor), &feed.limits).await;
        let polled = polled.unwrap();
        let found = (polled.gap.is_some(), polled.more);
        assert_eq!(found, (has_gap, false), "{count} posts, {back:?} back");
    }
}

#[tokio::test]
async fn deleted_anchors_and_late_posts_change_nothing() {
    let mut feed = Feed::new("reddit:r/saas");
    let ids = feed.publish((0..250).map(|n| on("saas", format!("post {n}"))));
    assert_eq!(feed.titles().await.len(), 250);
    for id in &ids[200..] {
        assert!(feed.simulator.delete(*id));
    }
    assert!(feed.titles().await.is_empty());
    feed.publish([
        NewPost {
            time: minutes_ago(5),
            ..on("saas", "approved late")
        },
        on("saas", "new"),
    ]);
    assert_eq!(feed.titles().await, ["approved late", "new"]);
}

#[tokio::test]
async fn what_is_gone_shows_when_asked_again() {
    let mut feed = Feed::new("reddit:r/saas");
    let stays = NewPost {
        text: Some("A *long* text\n\n".repeat(5_000)),
        ..on("saas", "stays")
    };
    let ids = feed.publish([stays, on("saas", "goes")]);
    let posts = feed.poll().await.posts;
    let mut known: Vec<String> = posts.iter().map(|post| post.id.clone()).collect();
    known.push("reddit:t3_zzz".into());
    known.push("elsewhere:t3_1".into());
    feed.simulator.delete(ids[1]);
    let before = feed.simulator.requests("/reddit/api/info");
    let found = feed.adapter().recheck(&known).await.unwrap();
    assert_eq!(
        found.gone,
        [known[1].clone(), known[2].clone()],
        "deleted, and unknown"
    );
    assert_eq!(found.current, posts[..1], "cut like that of a poll");
    let asked = feed.simulator.requests("/reddit/api/info") - before;
    assert_eq!(asked, 2, "what is absent is asked for twice");
    assert!(feed.simulator.edit(ids[0], "*Now* short"));
    let edited = feed.adapter().recheck(&known).await.unwrap().current;
    assert_eq!(edited[0].text.as_deref(), Some("Now short"));
    assert_eq!(feed.adapter().recheck_batch(), 100);
    let strangers: Vec<String> = (0..20).map(|n| format!("reddit:t3_zz{n}")).collect();
    let error = feed.adapter().recheck(&strangers).await.unwrap_err();
    assert!(error.to_string().contains("none of 20"), "{error}");
    fail(&feed, FaultKind::Garbage, 0, "/api/info", 1);
    assert!(feed.adapter().recheck(&known).await.is_err());
}

#[tokio::test]
async fn subreddits_are_found() {
    let feed = Feed::new("reddit:r/saas");
    feed.publish([on("SaaS", "a"), on("rust", "b")]);
    let found = feed.adapter().communities("saas", 5).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(
        (&*found[0].what, &*found[0].about),
        ("r/SaaS", "About SaaS")
    );
    assert_eq!(found[0].members, Some(12));
}

#[tokio::test]
async fn faults_are_errors_and_nothing_is_lost() {
    let mut feed = Feed::new("reddit:r/saas");
    feed.poll().await;
    for (kind, value) in [
        (FaultKind::Garbage, 0),
        (FaultKind::Reset, 0),
        (FaultKind::Status, 500),
        (FaultKind::Status, 403),
        (FaultKind::RetryAfter, 3),
        (FaultKind::Huge, 20 * 1024 * 1024),
    ] {
        feed.publish([on("saas", format!("{kind:?} {value}"))]);
        fail(&feed, kind, value, "/r/", 1);
        let error = feed.try_poll().await.unwrap_err();
        let wait = (kind == FaultKind::RetryAfter).then(|| Duration::from_secs(3));
        assert_eq!(error.retry_after(), wait, "{kind:?}");
        assert_eq!(feed.titles().await, [format!("{kind:?} {value}")]);
    }
}
