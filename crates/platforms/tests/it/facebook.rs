//! Facebook on the simulator, and its paging under any schedule.

use std::sync::{Arc, Mutex};

use domain::{PostType, Timestamp};
use platform_simulator::{Fault, FaultKind, NewPost};
use platforms::{Adapter, Fetched, PollLimits, facebook::Facebook};
use proptest::prelude::*;
use serde_json::json;
use url::Url;

use crate::{
    platform::{Feed, answer, answering, minutes_ago, post, posts},
    schedule::{Place, Planned, Played, Schedule, Shape, Stage, Staged, cases, play, schedules},
};

const FACEBOOK: &str = "facebook";
const FEED: &str = "facebook:page/12";

fn of_12(post: NewPost) -> NewPost {
    NewPost {
        community: Some("12".into()),
        ..post
    }
}

#[tokio::test]
async fn posts_have_every_field_and_stories_replace_missing_messages() {
    let mut feed = Feed::new(FEED);
    let ids = feed.publish([
        of_12(NewPost {
            text: Some("New opening hours\n\nfrom Monday".into()),
            time: minutes_ago(2),
            ..post(FACEBOOK, "")
        }),
        of_12(post(FACEBOOK, "Acme updated their cover photo.")),
    ]);
    let given = feed.poll().await.posts;
    assert_eq!(given.len(), 2);
    assert_eq!(
        (given[0].post_type, &given[0].title),
        (PostType::NetworkPost, &None)
    );
    assert_eq!(given[0].id, format!("facebook:12_{}", ids[0]));
    assert_eq!(
        given[0].text.as_deref(),
        Some("New opening hours\n\nfrom Monday")
    );
    assert_eq!(
        given[0].url,
        format!("https://www.facebook.com/12/posts/{}", ids[0])
    );
    assert_eq!(
        (given[0].user.id.as_str(), given[0].user.name.as_str()),
        ("12", "ana")
    );
    assert_eq!(
        given[1].text.as_deref(),
        Some("Acme updated their cover photo.")
    );
}

#[tokio::test]
async fn a_burst_over_many_pages_is_read_whole_and_quiet_costs_one_request() {
    let mut feed = Feed::new(FEED);
    feed.publish(posts(FACEBOOK, 40).into_iter().map(of_12));
    assert_eq!(feed.poll().await.posts.len(), 40);
    let before = feed.simulator.requests("/facebook");
    assert!(feed.poll().await.posts.is_empty());
    assert_eq!(feed.simulator.requests("/facebook") - before, 1);
    let burst = (0..1_000).map(|n| of_12(post(FACEBOOK, format!("burst {n}"))));
    feed.publish(burst);
    assert_eq!(feed.poll().await.posts.len(), 1_000);
    assert!(feed.poll().await.posts.is_empty());
}

#[tokio::test]
async fn refusals_say_what_to_do() {
    for (token, word) in [
        ("expired", "Page access token"),
        ("forbidden", "pages_read_engagement"),
    ] {
        let mut feed = Feed::new(&format!("facebook-{token}:page/12"));
        let error = feed.try_poll().await.unwrap_err();
        assert!(
            error.is_permanent() && error.to_string().contains(word),
            "{error}"
        );
    }
}

#[tokio::test]
async fn exhausted_limit_ends_the_read() {
    let mut feed = Feed::new("facebook-busy:page/12");
    feed.publish([of_12(post(FACEBOOK, "one"))]);
    let polled = feed.poll().await;
    assert_eq!(polled.posts.len(), 1);
    assert_eq!(polled.next_hint, Some(std::time::Duration::from_mins(10)));
    feed.publish(posts(FACEBOOK, 300).into_iter().map(of_12));
    // The posts that were read are returned, and the rest follows when the limit has reset.
    let (mut given, mut polls) = (0, 0);
    loop {
        let polled = feed.poll().await;
        assert_eq!(polled.next_hint, Some(std::time::Duration::from_mins(10)));
        assert!(polled.posts.len() <= 100);
        (given, polls) = (given + polled.posts.len(), polls + 1);
        if !polled.more {
            break;
        }
    }
    assert_eq!((given, polls), (300, 4));
}

#[tokio::test]
async fn hostile_answers_are_errors_and_lose_nothing() {
    let mut feed = Feed::new(FEED);
    feed.publish([of_12(post(FACEBOOK, "before"))]);
    feed.poll().await;
    let faults = [
        (FaultKind::Status, 500),
        (FaultKind::Garbage, 0),
        (FaultKind::Reset, 0),
        (FaultKind::Huge, 64 * 1024 * 1024),
        (FaultKind::RetryAfter, 7),
    ];
    for (kind, value) in faults {
        feed.simulator.fail(Fault::new(FACEBOOK, kind, value));
        let error = feed.try_poll().await.unwrap_err();
        assert!(!error.is_permanent(), "{kind:?} {error}");
    }
    feed.publish([of_12(post(FACEBOOK, "after"))]);
    assert_eq!(feed.poll().await.posts.len(), 1);
}

/// The platform puts the token into addresses, or its list never ends.
#[tokio::test]
async fn token_is_in_no_error_and_sent_to_no_other_host() {
    let base: Url = "https://graph.facebook.example".parse().unwrap();
    let item = json!({"id": "12_1", "message": "m", "created_time": "2026-11-21T10:00:00+0000"});
    let elsewhere = "https://evil.example/v25.0/12/feed?after=a";
    let here = "https://graph.facebook.example/12/feed?fields=x&access_token=s3cret";
    for body in [
        json!({"data": [item], "paging": {"next": elsewhere}}).to_string(),
        json!({"data": [item], "paging": {"next": "s3cret"}}).to_string(),
        json!({"data": "s3cret", "paging": {}}).to_string(),
        json!({"data": [item], "paging": "s3cret"}).to_string(),
        json!({"data": [item], "paging": {"next": here}}).to_string(),
        r#"{"data": [], "s3cret"#.to_owned(),
    ] {
        let fetch = answering(move |url| {
            assert_eq!(url.host_str(), Some("graph.facebook.example"));
            assert!(!url.as_str().contains("s3cret"), "{url}");
            answer(200, url, body.clone())
        });
        let adapter = Facebook::new(
            "facebook".into(),
            base.clone(),
            "s3cret".into(),
            None,
            fetch,
        );
        let limits = PollLimits {
            since: minutes_ago(60 * 24 * 365 * 10),
            ..PollLimits::default()
        };
        let answer = adapter.poll("page/12", None, &limits).await;
        // After a partial reading, the cursor has the address of the next page.
        let answer = format!("{answer:#?}");
        assert!(!answer.contains("s3cret"), "{answer}");
    }
}

/// A Page's posts, the newest first.
#[derive(Default)]
struct Page(Mutex<Vec<(Timestamp, usize)>>);

impl Place for Page {
    fn publish(&self, post: &Planned) -> String {
        let mut posts = self.0.lock().unwrap();
        posts.push((post.time, post.number));
        posts.sort_by(|a, b| b.cmp(a));
        format!("facebook:12_{}", post.number)
    }

    fn delete(&self, post_id: &str) {
        let number: usize = post_id
            .strip_prefix("facebook:12_")
            .unwrap()
            .parse()
            .unwrap();
        self.0.lock().unwrap().retain(|post| post.1 != number);
    }

    fn edit(&self, _post_id: &str) {}

    fn set_now(&self, _now: Timestamp) {}
}

impl Page {
    fn answer(&self, url: &Url) -> Fetched {
        let given = |name: &str| {
            let found = url.query_pairs().find(|(key, _)| key == name);
            found.map(|(_, value)| value.into_owned())
        };
        let seconds = |time: Timestamp| time.micros().div_euclid(1_000_000);
        let since: Option<i64> = given("since").map(|text| text.parse().unwrap());
        let after = given("after").map(|cursor| {
            let (micros, number) = cursor.split_once('x').unwrap();
            (
                micros.parse::<i64>().unwrap(),
                number.parse::<usize>().unwrap(),
            )
        });
        let limit: usize = given("limit").unwrap().parse().unwrap();
        let posts = self.0.lock().unwrap().clone();
        let shown: Vec<_> = posts
            .into_iter()
            .filter(|post| since.is_none_or(|since| seconds(post.0) >= since))
            .filter(|post| after.is_none_or(|after| (post.0.micros(), post.1) < after))
            .take(limit)
            .collect();
        let data: Vec<_> = shown
            .iter()
            .map(|(time, number)| {
                let time = time
                    .to_chrono()
                    .format("%Y-%m-%dT%H:%M:%S+0000")
                    .to_string();
                json!({"id": format!("12_{number}"), "message": "words", "created_time": time})
            })
            .collect();
        let next = shown.last().map(|(time, number)| {
            let since = since.map_or_else(String::new, |since| format!("&since={since}"));
            format!(
                "https://graph.facebook.example/v25.0/12/feed?limit={limit}&after={}x{number}{since}",
                time.micros()
            )
        });
        let body = json!({"data": data, "paging": {"next": next}});
        answer(200, url, body.to_string())
    }
}

fn check(schedule: &Schedule) -> Result<Played, TestCaseError> {
    let stage = Stage::new(Page::default());
    let played = Arc::clone(&stage);
    let fetch = Staged::new(&stage, answering(move |url| played.place.answer(url)));
    let base: Url = "https://graph.facebook.example".parse().unwrap();
    let adapter = Facebook::new("facebook".into(), base, "t".into(), None, fetch);
    play(
        schedule,
        &stage,
        &adapter,
        "page/12",
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
    fn posts_that_appear_or_vanish_during_a_read_are_handled(schedule in schedules(&Shape {
        during_polls: std::time::Duration::from_millis(700),
        ..Shape::default()
    })) {
        check(&schedule)?;
    }
}
