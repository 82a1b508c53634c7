//! LinkedIn on the simulator, and its paging under any schedule.

use std::sync::{Arc, Mutex};

use domain::{PostType, Timestamp};
use platform_simulator::{Fault, FaultKind, NewPost};
use platforms::{Adapter, Fetched, PollError, PollLimits, linkedin::LinkedIn};
use proptest::prelude::*;
use serde_json::json;
use url::Url;

use crate::{
    platform::{Feed, always, answer, answering, minutes_ago, post, posts},
    schedule::{Place, Planned, Shape, Stage, Staged, cases, play, schedules},
};

const LINKEDIN: &str = "linkedin";
const FEED: &str = "linkedin:organization/12";

fn of_12(post: NewPost) -> NewPost {
    NewPost {
        community: Some("12".into()),
        ..post
    }
}

#[tokio::test]
async fn a_post_carries_every_field() {
    let mut feed = Feed::new(FEED);
    let other = NewPost {
        community: Some("13".into()),
        ..post(LINKEDIN, "of another organization")
    };
    let draft = NewPost {
        featured: true,
        ..post(LINKEDIN, "a draft")
    };
    let ids = feed.publish([
        of_12(NewPost {
            text: Some(r"Hello \(there\) {hashtag|\#|rust}".into()),
            url: Some("https://example.com/notes".into()),
            ..post(LINKEDIN, "Release notes")
        }),
        of_12(draft),
        other,
    ]);
    let given = feed.poll().await.posts;
    assert_eq!(given.len(), 1);
    let id = format!("urn:li:share:{}", ids[0]);
    assert_eq!(
        (&given[0].id, given[0].post_type),
        (&id, PostType::NetworkPost)
    );
    assert_eq!(
        given[0].url,
        format!("https://www.linkedin.com/feed/update/{id}")
    );
    let text = "Hello (there) #rust\n\nRelease notes";
    assert_eq!(
        (&given[0].title, given[0].text.as_deref()),
        (&None, Some(text))
    );
    assert_eq!(
        (&given[0].subforum, given[0].user.name.as_str()),
        (&None, "12")
    );
    assert_eq!(given[0].user.url, "https://www.linkedin.com/company/12/");
}

#[tokio::test]
async fn a_burst_over_many_pages_is_read_whole_and_quiet_costs_one_request() {
    let mut feed = Feed::new(FEED);
    feed.publish(posts(LINKEDIN, 40).into_iter().map(of_12));
    assert_eq!(feed.poll().await.posts.len(), 40);
    let before = feed.simulator.requests("/linkedin");
    let quiet = feed.poll().await;
    assert!(quiet.posts.is_empty() && quiet.gap.is_none());
    assert_eq!(feed.simulator.requests("/linkedin") - before, 1);
    let burst = (0..1_000).map(|n| of_12(post(LINKEDIN, format!("burst {n}"))));
    feed.publish(burst);
    assert_eq!(feed.poll().await.posts.len(), 1_000);
    assert!(feed.poll().await.posts.is_empty());
}

#[tokio::test]
async fn old_posts_of_a_new_feed_are_not_new() {
    let mut feed = Feed::new(FEED);
    feed.publish([
        of_12(NewPost {
            time: minutes_ago(60 * 24 * 30),
            ..post(LINKEDIN, "old")
        }),
        of_12(post(LINKEDIN, "new")),
    ]);
    let given = feed.poll().await.posts;
    assert_eq!(given[0].text.as_deref(), Some("new"));
    assert_eq!(given.len(), 1);
}

#[tokio::test]
async fn refusals_say_what_to_do() {
    for (token, word) in [
        ("expired", "60 days"),
        ("forbidden", "r_organization_social"),
    ] {
        let mut feed = Feed::new(&format!("linkedin-{token}:organization/12"));
        let error = feed.try_poll().await.unwrap_err();
        assert!(
            error.is_permanent() && error.to_string().contains(word),
            "{error}"
        );
    }
    let base: Url = "https://api.linkedin.example".parse().unwrap();
    let old = always(426, r#"{"code": "NONEXISTENT_VERSION"}"#);
    let adapter = LinkedIn::new(base, "t".into(), "202401".into(), old);
    let error = adapter
        .poll("organization/12", None, &PollLimits::default())
        .await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("426") && error.contains("api_version"),
        "{error}"
    );
}

#[tokio::test]
async fn hostile_answers_are_errors_and_lose_nothing() {
    let mut feed = Feed::new(FEED);
    feed.publish([of_12(post(LINKEDIN, "before"))]);
    feed.poll().await;
    let faults = [
        (FaultKind::Status, 500),
        (FaultKind::Garbage, 0),
        (FaultKind::Reset, 0),
        (FaultKind::Huge, 64 * 1024 * 1024),
        (FaultKind::RetryAfter, 7),
    ];
    for (kind, value) in faults {
        feed.simulator.fail(Fault::new(LINKEDIN, kind, value));
        let error = feed.try_poll().await.unwrap_err();
        assert!(!error.is_permanent(), "{kind:?} {error}");
        let throttled = matches!(error, PollError::Throttled { .. });
        assert_eq!(throttled, kind == FaultKind::RetryAfter, "{error}");
    }
    feed.publish([of_12(post(LINKEDIN, "after"))]);
    assert_eq!(feed.poll().await.posts.len(), 1);

    for body in [
        "{}".to_owned(),
        r#"{"elements": {}}"#.to_owned(),
        r#"{"elements": [null, 5, [], {"id": 7}]}"#.to_owned(),
        format!(r#"{{"elements": {}"#, "[".repeat(500_000)),
        r#"{"elements": [], "paging": {"total": -1}}"#.to_owned(),
        json!({"elements": [{"id": "urn:li:share:1", "publishedAt": i64::MAX, "commentary": "far"}]}).to_string(),
    ] {
        let base: Url = "https://api.linkedin.example".parse().unwrap();
        let adapter = LinkedIn::new(base, "t".into(), "202610".into(), always(200, body));
        // Any result is fine; the poll must end.
        let _ = adapter.poll("organization/12", None, &PollLimits::default()).await;
    }
}

/// An organization's posts, the last modified one first.
#[derive(Default)]
struct Organization(Mutex<State>);

#[derive(Default)]
struct State {
    now: Option<Timestamp>,
    posts: Vec<Shown>,
}

struct Shown {
    id: String,
    published: Timestamp,
    modified: Timestamp,
}

impl Place for Organization {
    fn publish(&self, post: &Planned) -> String {
        let id = format!("urn:li:share:{}", 7_000 + post.number);
        let mut state = self.0.lock().unwrap();
        // A late post was created earlier, and modified when it was approved.
        let modified = state.now.unwrap_or(post.time);
        state.posts.push(Shown {
            id: id.clone(),
            published: post.time,
            modified,
        });
        id
    }

    fn delete(&self, post_id: &str) {
        self.0
            .lock()
            .unwrap()
            .posts
            .retain(|post| post.id != post_id);
    }

    fn edit(&self, post_id: &str) {
        let mut state = self.0.lock().unwrap();
        let now = state.now.unwrap();
        let post = state.posts.iter_mut().find(|post| post.id == post_id);
        post.unwrap().modified = now;
    }

    fn set_now(&self, now: Timestamp) {
        self.0.lock().unwrap().now = Some(now);
    }
}

impl Organization {
    fn answer(&self, url: &Url) -> Fetched {
        let number = |name: &str| -> usize {
            let (_, value) = url.query_pairs().find(|(key, _)| key == name).unwrap();
            value.parse().unwrap()
        };
        let (start, count) = (number("start"), number("count"));
        let mut state = self.0.lock().unwrap();
        state
            .posts
            .sort_by(|a, b| b.modified.cmp(&a.modified).then(b.id.cmp(&a.id)));
        let millis = |time: Timestamp| time.micros().div_euclid(1_000);
        let shown = state.posts.iter().skip(start).take(count);
        let elements = shown.map(|post| {
            json!({
                "id": post.id, "author": "urn:li:organization:12", "commentary": "words",
                "publishedAt": millis(post.published), "lastModifiedAt": millis(post.modified),
            })
        });
        let elements: Vec<_> = elements.collect();
        let body = json!({"paging": {"start": start, "count": count}, "elements": elements});
        answer(200, url, body.to_string())
    }
}

fn check(schedule: &crate::schedule::Schedule) -> Result<crate::schedule::Played, TestCaseError> {
    let stage = Stage::new(Organization::default());
    let played = Arc::clone(&stage);
    let fetch = Staged::new(&stage, answering(move |url| played.place.answer(url)));
    let base: Url = "https://api.linkedin.example".parse().unwrap();
    let adapter = LinkedIn::new(base, "t".into(), "202610".into(), fetch);
    play(
        schedule,
        &stage,
        &adapter,
        "organization/12",
        &PollLimits::default(),
    )
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn every_post_is_given_once(schedule in schedules(&Shape::default())) {
        check(&schedule)?;
    }

    #[test]
    fn pages_may_shift_while_they_are_read(schedule in schedules(&Shape {
        during_polls: std::time::Duration::from_millis(700),
        ..Shape::default()
    })) {
        check(&schedule)?;
    }
}
