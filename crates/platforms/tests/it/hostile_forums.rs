//! Hostile responses for the adapter of each forum: the result is an error or nothing, never a panic, never a
//! post that was not in the response, and never an endless poll.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use platforms::{
    Adapter, Fetch, FetchError, FetchLimits, Fetched, PollLimits, discourse::Discourse,
    hackernews::HackerNews, lemmy::Lemmy, lobsters::Lobsters, reddit::Reddit,
};
use proptest::prelude::*;
use url::Url;

/// The same response to everything, except for tokens.
struct Always(u16, Vec<u8>);

#[async_trait]
impl Fetch for Always {
    async fn get(
        &self,
        url: &Url,
        _: &[(&str, &str)],
        limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        if self.1.len() > limits.max_bytes {
            let limit_bytes = limits.max_bytes;
            return Err(FetchError::TooLarge { limit_bytes });
        }
        Ok(Fetched {
            status: self.0,
            headers: vec![("retry-after".into(), "soon".into())],
            body: self.1.clone(),
            final_url: url.clone(),
        })
    }

    async fn post_form(
        &self,
        url: &Url,
        _: &[(&str, &str)],
        _: &[(&str, &str)],
        _: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        Ok(Fetched {
            status: 200,
            headers: Vec::new(),
            body: br#"{"access_token": "a", "expires_in": 3600}"#.to_vec(),
            final_url: url.clone(),
        })
    }
}

/// Each adapter with each kind of feed.
fn adapters(status: u16, body: &[u8]) -> Vec<(Box<dyn Adapter>, &'static str)> {
    let url: Url = "https://forum.example".parse().unwrap();
    let fetch = || Arc::new(Always(status, body.to_vec())) as Arc<dyn Fetch>;
    let mut all: Vec<(Box<dyn Adapter>, &'static str)> = Vec::new();
    for what in ["newest", "comments"] {
        let items = Some(url.clone());
        all.push((
            Box::new(HackerNews::new("h".into(), url.clone(), items, fetch())),
            what,
        ));
        all.push((Box::new(Lemmy::new(url.clone(), fetch())), what));
    }
    for what in ["newest", "t/rust"] {
        let lobsters = Lobsters::new("l".into(), url.clone(), fetch());
        all.push((Box::new(lobsters), what));
    }
    for what in ["latest", "posts"] {
        all.push((
            Box::new(Discourse::new("d".into(), url.clone(), None, fetch())),
            what,
        ));
    }
    for what in ["r/rust+saas", "r/rust/comments"] {
        let secret = "secret".to_owned().into();
        let reddit = Reddit::new("r".into(), url.clone(), "id".into(), secret, fetch());
        all.push((Box::new(reddit), what));
    }
    all
}

async fn survive(status: u16, body: &[u8]) -> usize {
    let mut given = 0;
    let limits = PollLimits {
        max_pages: 20,
        ..PollLimits::default()
    };
    for (adapter, what) in adapters(status, body) {
        let poll = adapter.poll(what, None, &limits);
        let polled = tokio::time::timeout(Duration::from_secs(60), poll).await;
        let polled = polled.expect("a poll without an end");
        for post in polled.iter().flat_map(|polled| &polled.posts) {
            let json = serde_json::to_string(post).unwrap();
            assert!(!json.contains("\\u00"), "{json}");
            assert!(json.len() < 600_000);
            given += 1;
        }
        // No post is on our list; errors are fine too.
        let _ = adapter.communities("a", 5).await;
        let _ = adapter
            .recheck(&["h:1".into(), "d:t/1".into(), "r:t3_1".into()])
            .await;
    }
    given
}

/// A post with the fields of all four platforms at once.
fn everything(text: &str, number: &str) -> String {
    let text = serde_json::to_string(text).unwrap();
    let post = format!(
        r#"{{"id": {number}, "objectID": {text}, "created_at_i": {number}, "title": {text}, "author": {text},
        "_tags": [{text}], "name": {text}, "created_at": {text}, "username": {text}, "cooked": {text},
        "post_number": {number}, "topic_id": {number}, "category_id": {number}, "kind": "t3",
        "data": {{"name": "t3_1", "author": {text}, "subreddit": {text}, "title": {text}, "selftext": {text},
        "created_utc": {number}, "permalink": {text}}},
        "post": {{"id": {number}, "name": {text}, "published": {text}, "ap_id": {text}}},
        "creator": {{"id": {number}, "name": {text}}}, "community": {{"id": {number}, "name": {text}}}}}"#
    );
    format!(
        r#"{{"hits": [{post}], "posts": [{post}], "comments": [{post}], "latest_posts": [{post}],
        "topic_list": {{"topics": [{post}], "more_topics_url": "/latest?page=18446744073709551615"}},
        "data": {{"children": [{post}], "after": "t3_1"}}, "next_page": "P1",
        "category_list": {{"categories": [{post}]}}, "communities": [{post}]}}"#
    )
}

#[tokio::test]
async fn malformed_responses_are_survived() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let nested = format!(r#"{{"data": {{"children": {deep}}}, "posts": {deep}, "hits": {deep}}}"#);
    let whole = everything("said", "1");
    let bodies: Vec<Vec<u8>> = vec![
        Vec::new(),
        b"null".to_vec(),
        b"[]".to_vec(),
        b"{}".to_vec(),
        b"42".to_vec(),
        b"\"text\"".to_vec(),
        b"\xff\xfe\x00{".to_vec(),
        b"<html><body>Just a moment...</body></html>".to_vec(),
        deep.into_bytes(),
        nested.into_bytes(),
        vec![b' '; 30 * 1024 * 1024],
        whole.as_bytes()[..whole.len() / 2].to_vec(),
        br#"{"hits": {}, "posts": 1, "comments": null, "latest_posts": "x", "topic_list": [], "data": 1}"#.to_vec(),
        br#"{"hits": [null, 1, [], {}], "posts": [null, 1, [], {}], "comments": [{}], "latest_posts": [{"id": -1}],
             "topic_list": {"topics": [null, {"id": "x"}], "more_topics_url": 7}, "data": {"children": [null, 3, {"kind": 1}]}}"#
            .to_vec(),
    ];
    for body in &bodies {
        assert_eq!(
            survive(200, body).await,
            0,
            "{:?}",
            &body[..body.len().min(80)]
        );
    }
    for status in [301, 400, 401, 403, 404, 410, 418, 429, 500, 503, 599] {
        assert_eq!(survive(status, whole.as_bytes()).await, 0, "{status}");
    }
}

#[tokio::test]
async fn posts_with_odd_contents_are_cleaned_or_left_out() {
    let long = "x".repeat(2_000_000);
    for text in [
        "\u{0}\u{7}\u{1b}[31mred",
        "[deleted]",
        "",
        "\u{202e}",
        "a\u{0}b",
        &long,
        "<b>",
        "javascript:alert(1)",
    ] {
        for number in [
            "0",
            "1",
            "-1",
            "1e400",
            "18446744073709551616",
            "99999999999999",
            "1.5",
        ] {
            survive(200, everything(text, number).as_bytes()).await;
        }
    }
}

proptest! {
    #![proptest_config(crate::schedule::cases(24))]

    #[test]
    fn any_bytes_are_survived(
        text in ".{0,40}",
        cut in 0.0..1.0_f64,
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
    ) {
        let mut body = everything(&text, "1700000000").into_bytes();
        for (at, byte) in flips {
            let at = at.index(body.len());
            body[at] = byte;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a share of a length")]
        let end = (body.len() as f64 * (1.0 - cut * cut)) as usize;
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_time().build().unwrap();
        runtime.block_on(survive(200, &body[..end]));
    }
}
