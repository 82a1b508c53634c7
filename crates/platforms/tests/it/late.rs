//! A second reading finds posts that appear below what polls read again, for a few requests.

use std::time::Duration;

use domain::Timestamp;
use platform_simulator::NewPost;

use crate::platform::{Feed, minutes_ago, post, title};

/// Polls until nothing is left. The titles that came.
async fn all(feed: &mut Feed) -> Vec<String> {
    let mut titles = Vec::new();
    loop {
        let polled = feed.poll().await;
        titles.extend(polled.posts.iter().map(title));
        if !polled.more {
            return titles;
        }
    }
}

/// A poll reads back over 2,000 known posts at most. A search must not end there.
#[tokio::test]
async fn deeper_read_passes_many_known_posts() {
    let mut feed = Feed::new("lemmy:newest");
    let at = |seconds, title: String| NewPost {
        time: Some(Timestamp::now().minus(Duration::from_secs(seconds))),
        ..post("lemmy", title)
    };
    feed.publish((0..2_300).map(|n| at(25_000 - 10 * n, format!("post {n}"))));
    assert_eq!(all(&mut feed).await.len(), 2_300);
    feed.publish([at(24_995, "late".to_owned())]);
    let since = Timestamp::now().minus(Duration::from_hours(24));
    let mut cursor = feed.cursor.as_ref().unwrap().reading_back_to(since);
    let adapter = feed.adapter();
    let mut titles = Vec::new();
    loop {
        let polled = adapter.poll("newest", Some(&cursor), &feed.limits).await;
        let polled = polled.unwrap();
        titles.extend(polled.posts.iter().map(title));
        cursor = polled.cursor;
        if !polled.more {
            break;
        }
    }
    assert_eq!(titles, ["late"]);
}

#[tokio::test]
async fn deeper_read_finds_late_posts_with_few_requests() {
    for (name, community, most) in [
        ("lemmy:newest", None, 10),
        ("lobsters:newest", None, 14),
        ("reddit:r/rust", Some("rust"), 6),
        ("discourse:latest", None, 10),
        ("hackernews:newest", Some("job"), 4),
        ("facebook:page/7", Some("7"), 8),
    ] {
        let (platform, _) = name.split_once(':').unwrap();
        let mut feed = Feed::new(name);
        let at = |minutes, title: String| NewPost {
            time: minutes_ago(minutes),
            community: community.map(str::to_owned),
            ..post(platform, title)
        };
        feed.publish((0..300).map(|n| at(400 - n, format!("post {n}"))));
        assert_eq!(all(&mut feed).await.len(), 300, "{name}");
        feed.publish([
            at(380, "late".to_owned()),
            at(60 * 30, "too late".to_owned()),
        ]);
        assert!(all(&mut feed).await.is_empty(), "{name}");

        let since = Timestamp::now().minus(Duration::from_hours(24));
        let cursor = feed.cursor.as_ref().unwrap().reading_back_to(since);
        let path = format!("/{platform}");
        let before = feed.simulator.requests(&path);
        let (_, what) = name.split_once(':').unwrap();
        let adapter = feed.adapter();
        assert!(adapter.has_late_posts(), "{name}");
        let read = adapter.poll(what, Some(&cursor), &feed.limits);
        let posts = read.await.unwrap().posts;
        // Posts of a Page have no title.
        let texts = posts
            .iter()
            .map(|post| post.title.as_deref().or(post.text.as_deref()));
        assert_eq!(texts.collect::<Vec<_>>(), [Some("late")], "{name}");
        let asked = feed.simulator.requests(&path) - before;
        assert!(asked <= most, "{name}: {asked} requests");
    }
}
