//! Tests of pages whose next page is the same page: the reading ends, and the feed has a notice.

use std::sync::Arc;

use domain::Timestamp;
use platforms::{Adapter, Fetch, PollLimits, lemmy::Lemmy, mastodon::Mastodon};
use serde_json::{Value, json};
use url::Url;

use crate::platform::{answer, answering};

/// Answers each request with a page by its address.
fn paging(page: fn(&Url) -> Value) -> Arc<dyn Fetch> {
    answering(move |url| answer(200, url, page(url).to_string()))
}

fn base() -> Url {
    "https://social.example/".parse().unwrap()
}

fn now() -> Timestamp {
    Timestamp::now()
}

#[tokio::test]
async fn lemmy_with_one_cursor_for_all_pages_is_noticed() {
    let full = |_: &Url| {
        let post = |id: usize| {
            json!({"post": {"id": id, "name": "A kettle", "ap_id": format!("https://social.example/post/{id}"), "published": now(),
                "deleted": false, "removed": false}, "creator": {"id": 1, "name": "ana", "actor_id": "https://social.example/u/ana"},
                "community": {"id": 1, "name": "tea", "actor_id": "https://social.example/c/tea"}, "counts": {}})
        };
        json!({"posts": (1..=50).map(post).collect::<Vec<_>>(), "next_page": "P1"})
    };
    let lemmy = Lemmy::new(base(), paging(full));
    let since = Some(now().minus(std::time::Duration::from_hours(24)));
    let limits = PollLimits {
        since,
        ..PollLimits::default()
    };
    let polled = lemmy.poll("newest", None, &limits).await.unwrap();
    assert_eq!(polled.posts.len(), 50, "{polled:?}");
    let notice = polled.notice.unwrap_or_default();
    assert!(notice.contains("do not advance"), "{polled:?}");
    assert!(!polled.more);
}

#[tokio::test]
async fn mastodon_with_older_statuses_on_newer_pages_is_noticed() {
    let backwards = |url: &Url| {
        let ids = if url.query().unwrap_or_default().contains("min_id") {
            98..100
        } else {
            100..102
        };
        let status = |id: u32| {
            json!({"id": id.to_string(), "created_at": now(), "uri": format!("https://social.example/{id}"), "visibility": "public",
                "url": format!("https://social.example/@ana/{id}"), "content": "<p>A kettle</p>",
                "account": {"id": "1", "acct": "ana", "url": "https://social.example/@ana"}})
        };
        ids.map(status).rev().collect()
    };
    let mastodon = Mastodon::new(base(), None, paging(backwards));
    let limits = PollLimits::default();
    let first = mastodon.poll("tag/tea", None, &limits).await.unwrap();
    assert_eq!((first.posts.len(), first.notice), (2, None), "{first:?}");
    let second = mastodon.poll("tag/tea", Some(&first.cursor), &limits).await;
    let second = second.unwrap();
    let notice = second.notice.unwrap_or_default();
    assert!(notice.contains("do not advance"), "{second:?}");
    assert!(second.gap.is_some(), "{second:?}");
}
