//! Discourse on the simulator.

use std::{sync::Arc, time::Duration};

use domain::Timestamp;
use platform_simulator::{Fault, FaultKind, NewPost};
use platforms::{Adapter as _, Fetch, PollError, PollLimits, discourse::Discourse};
use serde_json::json;
use url::Url;

use crate::platform::{Feed, answer, answering, minutes_ago, post, posts, title};

const DISCOURSE: &str = "discourse";

fn in_category(category: &str, title: &str) -> NewPost {
    NewPost {
        community: Some(category.into()),
        ..post(DISCOURSE, title)
    }
}

fn reply(topic: u64, text: &str) -> NewPost {
    NewPost {
        parent: Some(topic),
        text: Some(text.into()),
        ..post(DISCOURSE, "")
    }
}

fn fail(feed: &Feed, kind: FaultKind, value: u64, path: &str, times: u32) {
    feed.simulator
        .fail(Fault::new(DISCOURSE, kind, value).times(times).on(path));
}

#[tokio::test]
async fn a_topic_carries_every_field() {
    let mut feed = Feed::new("discourse:latest");
    let ids = feed.publish([NewPost {
        text: Some("<p>Hello <b>there</b> &amp; you</p><ul><li>one</li></ul>".into()),
        ..in_category("Help me", "What do you use?")
    }]);
    let given = feed.poll().await.posts.remove(0);
    let base = format!("{}/discourse", feed.simulator.base_url());
    let json = serde_json::to_value(&given).unwrap();
    assert_eq!(json["type"], "FORUM_LINK");
    assert_eq!(json["id"], format!("discourse:t/{}", ids[0]));
    assert_eq!(json["url"], format!("{base}/t/what-do-you-use/{}", ids[0]));
    assert_eq!(json["title"], "What do you use?");
    assert_eq!(json["text"], "Hello there & you\n\n- one");
    assert_eq!(json["subforum"]["name"], "Help me");
    let category = json["subforum"]["id"].as_str().unwrap();
    assert_eq!(
        json["subforum"]["url"],
        format!("{base}/c/help-me/{category}")
    );
    assert_eq!(json["user"]["name"], "ana");
    assert_eq!(json["user"]["url"], format!("{base}/u/ana"));
}

#[tokio::test]
async fn a_reply_is_a_comment_and_a_topic_is_not() {
    let mut feed = Feed::new("discourse:posts");
    let topic = feed.publish([in_category("Help", "What do you use?")])[0];
    let ids = feed.publish([
        reply(topic, "<p>This one.</p>"),
        reply(topic, "<p>gone</p>"),
    ]);
    assert!(feed.simulator.delete(ids[1]));
    let given = feed.poll().await.posts;
    assert_eq!(given.len(), 1);
    let json = serde_json::to_value(&given[0]).unwrap();
    assert_eq!(json["type"], "FORUM_COMMENT");
    assert_eq!(json["id"], format!("discourse:p/{}", ids[0]));
    assert_eq!(json["title"], "What do you use?");
    assert_eq!(json["text"], "This one.");
    assert_eq!(json["subforum"]["name"], "Help");
    let url = json["url"].as_str().unwrap();
    assert!(
        url.ends_with(&format!("/t/what-do-you-use/{topic}/2")),
        "{url}"
    );
    assert!(feed.poll().await.posts.is_empty());
}

#[tokio::test]
async fn replies_behind_hidden_ranges_are_found() {
    let mut feed = Feed::new("discourse:posts");
    let topic = feed.publish([in_category("Help", "What do you use?")])[0];
    feed.publish([reply(topic, "<p>first</p>")]);
    // Posts of another platform leave holes in the numbers of this one.
    feed.publish(posts("lemmy", 170));
    feed.publish([reply(topic, "<p>second</p>")]);
    let given = feed.poll().await.posts;
    let texts: Vec<_> = given.iter().filter_map(|post| post.text.clone()).collect();
    assert_eq!(texts, ["first", "second"]);
}

/// The ids in between may be those of private messages.
#[tokio::test]
async fn replies_below_a_long_hidden_range_are_found_down_to_the_known() {
    let mut feed = Feed::new("discourse:posts");
    let topic = feed.publish([in_category("Help", "What do you use?")])[0];
    feed.publish([reply(topic, "<p>known</p>")]);
    assert_eq!(feed.poll().await.posts.len(), 1);
    feed.publish([reply(topic, "<p>below</p>")]);
    feed.publish(posts("lemmy", 700));
    feed.publish([reply(topic, "<p>above</p>")]);
    let mut texts = Vec::new();
    loop {
        let polled = feed.poll().await;
        assert!(polled.gap.is_none(), "{:?}", polled.gap);
        texts.extend(polled.posts.into_iter().filter_map(|post| post.text));
        if !polled.more {
            break;
        }
    }
    texts.sort();
    assert_eq!(texts, ["above", "below"]);
    // The site is read to the known replies again, and no further.
    let polled = feed.poll().await;
    assert!(polled.posts.is_empty() && !polled.more);
}

/// A search for late posts, as it runs once an hour. Returns their titles and texts.
async fn search(feed: &Feed, what: &str) -> Vec<(String, String)> {
    let since = Timestamp::now().minus(Duration::from_hours(24));
    let cursor = feed.cursor.as_ref().unwrap().reading_back_to(since);
    let adapter = feed.adapter();
    let polled = adapter.poll(what, Some(&cursor), &feed.limits).await;
    let posts = polled.unwrap().posts;
    let shown = posts
        .iter()
        .map(|post| (title(post), post.text.clone().unwrap_or_default()));
    shown.collect()
}

#[tokio::test]
async fn hidden_reply_is_returned_once_it_is_approved() {
    let mut feed = Feed::new("discourse:posts");
    let topic = feed.publish([in_category("Help", "What do you use?")])[0];
    let hidden = |text: &str| NewPost {
        hidden: true,
        ..reply(topic, text)
    };
    let ids = feed.publish([
        reply(topic, "<p>visible</p>"),
        hidden("<p>approved soon</p>"),
        hidden("<p>approved late</p>"),
    ]);
    let polled = feed.poll().await;
    assert_eq!((polled.posts.len(), polled.more), (1, false));
    let polled = feed.poll().await;
    assert_eq!((polled.posts.len(), polled.more), (0, false));

    assert!(feed.simulator.reveal(ids[1]));
    let given = feed.poll().await.posts;
    assert_eq!(given.len(), 1);
    assert_eq!(given[0].text.as_deref(), Some("approved soon"));
    assert!(feed.poll().await.posts.is_empty());

    assert!(feed.simulator.reveal(ids[2]));
    let found = search(&feed, "posts").await;
    assert_eq!(
        found,
        [("What do you use?".into(), "approved late".to_owned())]
    );
}

#[tokio::test]
async fn known_reply_that_a_flag_hides_is_not_deleted() {
    let mut feed = Feed::new("discourse:posts");
    let topic = feed.publish([in_category("Help", "What do you use?")])[0];
    let id = feed.publish([reply(topic, "<p>flagged later</p>")])[0];
    assert_eq!(feed.poll().await.posts.len(), 1);
    assert!(feed.simulator.hide(id));
    assert_eq!(feed.poll().await.deleted, [""; 0]);
    assert!(feed.simulator.reveal(id));
    let polled = feed.poll().await;
    assert_eq!((polled.posts.len(), polled.deleted.len()), (0, 0));
}

#[tokio::test]
async fn restored_topic_is_found_by_a_search() {
    let mut feed = Feed::new("discourse:latest");
    let ids = feed.publish([
        post(DISCOURSE, "deleted at first"),
        post(DISCOURSE, "hidden at first"),
        post(DISCOURSE, "visible"),
    ]);
    let path = |id: u64| format!("/discourse/t/{id}.json");
    fail(&feed, FaultKind::Status, 404, &path(ids[0]), 1);
    assert!(feed.simulator.hide(ids[1]));
    let polled = feed.poll().await;
    let given: Vec<_> = polled.posts.iter().map(title).collect();
    assert_eq!((given, polled.more), (vec!["visible".to_owned()], false));
    // Polls do not request them again.
    assert!(feed.poll().await.posts.is_empty());
    for id in &ids[..2] {
        assert_eq!(feed.simulator.requests(&path(*id)), 1);
    }

    assert!(feed.simulator.reveal(ids[1]));
    let mut found = search(&feed, "latest").await;
    found.sort();
    let titles: Vec<_> = found.iter().map(|(title, _)| title.as_str()).collect();
    assert_eq!(titles, ["deleted at first", "hidden at first"]);
}

#[tokio::test]
async fn while_nothing_is_new_a_poll_is_one_request() {
    let mut feed = Feed::new("discourse:latest");
    feed.publish((0..30).map(|n| NewPost {
        time: minutes_ago(n),
        ..post(DISCOURSE, format!("post {n}"))
    }));
    assert_eq!(feed.titles().await.len(), 30);
    let before = feed.simulator.requests("/discourse");
    assert!(feed.titles().await.is_empty());
    assert_eq!(feed.simulator.requests("/discourse") - before, 1);
    feed.publish([post(DISCOURSE, "new")]);
    assert_eq!(feed.titles().await, ["new"]);
    assert_eq!(feed.simulator.requests("/discourse") - before, 3);
}

#[tokio::test]
async fn a_burst_is_read_over_several_polls_behind_pinned_topics() {
    let mut feed = Feed::new("discourse:latest");
    feed.publish((0..3).map(|n| NewPost {
        featured: true,
        time: minutes_ago(60 * 24 * 300),
        ..post(DISCOURSE, format!("pinned {n}"))
    }));
    feed.publish(posts(DISCOURSE, 130));
    let mut given = Vec::new();
    let mut polls = 0;
    loop {
        let polled = feed.poll().await;
        assert!(polled.posts.len() <= 40);
        assert_eq!(polled.gap, None);
        given.extend(polled.posts.iter().map(title));
        polls += 1;
        if !polled.more {
            break;
        }
    }
    let all: Vec<_> = (0..130).map(|n| format!("post {n}")).collect();
    assert_eq!(given, all);
    assert!((4..=6).contains(&polls), "{polls}");
    let lists = feed.simulator.requests("/discourse/latest.json");
    assert!(lists <= 8, "{lists}: a backlog needs no lists");
}

#[tokio::test]
async fn unreadable_topic_waits_and_delays_no_other() {
    let mut feed = Feed::new("discourse:latest");
    feed.poll().await;
    let ids = feed.publish((0..3).map(|n| post(DISCOURSE, format!("post {n}"))));
    for (kind, value) in [(FaultKind::Garbage, 0), (FaultKind::Status, 403)] {
        fail(&feed, kind, value, &format!("/t/{}.json", ids[1]), 1);
        let given = feed.titles().await;
        assert!(
            given == ["post 0", "post 2"] || given.is_empty(),
            "{given:?}"
        );
    }
    assert_eq!(feed.titles().await, ["post 1"]);
    assert!(feed.titles().await.is_empty());
}

#[tokio::test]
async fn throttling_in_the_middle_keeps_what_was_read() {
    let mut feed = Feed::new("discourse:latest");
    feed.poll().await;
    let ids = feed.publish((0..6).map(|n| post(DISCOURSE, format!("post {n}"))));
    fail(
        &feed,
        FaultKind::RetryAfter,
        7,
        &format!("/t/{}.json", ids[2]),
        1,
    );
    let polled = feed.poll().await;
    assert_eq!(polled.next_hint, Some(Duration::from_secs(7)));
    assert!(!polled.more, "the platform asked for a pause");
    let mut given: Vec<_> = polled.posts.iter().map(title).collect();
    assert_eq!(given, ["post 0", "post 1"]);
    given.extend(feed.titles().await);
    given.sort();
    let all: Vec<_> = (0..6).map(|n| format!("post {n}")).collect();
    assert_eq!(given, all);

    fail(&feed, FaultKind::RetryAfter, 9, "latest.json", 1);
    let error = feed.try_poll().await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(9)));
}

#[tokio::test]
async fn category_is_a_separate_feed_and_can_be_found() {
    let mut feed = Feed::new("discourse:latest");
    feed.publish([in_category("Help me", "in"), in_category("Cats", "out")]);
    let found = feed.adapter().communities("help", 5).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(
        (&*found[0].name, &*found[0].about),
        ("Help me", "All about Help me.")
    );
    feed.watch(&format!("discourse:{}", found[0].what));
    assert_eq!(feed.titles().await, ["in"]);

    feed.watch("discourse:c/none/1");
    let error = feed.try_poll().await.unwrap_err();
    assert!(matches!(error, PollError::NotFound(_)), "{error}");
}

#[tokio::test]
async fn what_is_gone_shows_when_asked_again() {
    let mut feed = Feed::new("discourse:latest");
    let topics = feed.publish([post(DISCOURSE, "stays"), post(DISCOURSE, "goes")]);
    let replies = feed.publish([reply(topics[0], "stays"), reply(topics[0], "goes")]);
    feed.simulator.delete(topics[1]);
    feed.simulator.delete(replies[1]);
    let ids = [
        format!("discourse:t/{}", topics[0]),
        format!("discourse:t/{}", topics[1]),
        format!("discourse:p/{}", replies[0]),
        format!("discourse:p/{}", replies[1]),
        "other:t/1".to_owned(),
        "discourse:t/../../x".to_owned(),
    ];
    let gone = feed.adapter().recheck(&ids).await.unwrap().gone;
    assert_eq!(gone, [ids[1].clone(), ids[3].clone()]);
    fail(&feed, FaultKind::Status, 503, "/t/", 1);
    assert!(feed.adapter().recheck(&ids).await.is_err());
    assert!(feed.poll().await.posts.len() == 1);
}

#[tokio::test]
async fn refusal_of_a_site_contains_advice() {
    let mut feed = Feed::new("discourse:latest");
    fail(&feed, FaultKind::Status, 403, "latest.json", 1);
    let error = feed.try_poll().await.unwrap_err();
    assert!(error.is_permanent());
    assert!(error.to_string().contains("set `token`"), "{error}");
}

/// A site that mutes a category for visitors: `latest` leaves its topic 2 out.
fn muting(posts_are_hidden: bool) -> Arc<dyn Fetch> {
    answering(move |url| {
        let now = Timestamp::now();
        let post = |id: u64, topic: u64| {
            json!({"id": id, "topic_id": topic, "post_number": 1, "post_type": 1, "username": "ana", "user_id": 7,
                   "cooked": format!("<p>Text {topic}</p>"), "created_at": now})
        };
        let path = url.path();
        let body = match path {
            "/latest.json" => json!({"topic_list": {"topics": [{"id": 1, "created_at": now}]}}),
            "/posts.json" => json!({"latest_posts": [post(12, 2), post(11, 1)]}),
            "/categories.json" => json!({"category_list": {"categories": []}}),
            path => {
                let id = path.trim_start_matches("/t/").trim_end_matches(".json");
                let id: u64 = id.parse().unwrap();
                json!({"id": id, "title": format!("Topic {id}"), "slug": "a", "created_at": now, "category_id": id,
                       "post_stream": {"posts": [post(10 + id, id)]}})
            }
        };
        let is_hidden = path == "/posts.json" && posts_are_hidden;
        answer(if is_hidden { 403 } else { 200 }, url, body.to_string())
    })
}

#[tokio::test]
async fn topics_of_muted_categories_are_found() {
    for (posts_are_hidden, expected) in [
        (false, &["Topic 1", "Topic 2"][..]),
        (true, &["Topic 1"][..]),
    ] {
        let base = Url::parse("https://forum.example/").unwrap();
        let site = Discourse::new("forum".into(), base, None, muting(posts_are_hidden));
        let limits = PollLimits::default();
        let first = site.poll("latest", None, &limits).await.unwrap();
        let mut titles: Vec<_> = first
            .posts
            .iter()
            .filter_map(|post| post.title.clone())
            .collect();
        titles.sort_unstable();
        assert_eq!(titles, expected);
        let again = site
            .poll("latest", Some(&first.cursor), &limits)
            .await
            .unwrap();
        assert_eq!(again.posts, []);
    }
}
