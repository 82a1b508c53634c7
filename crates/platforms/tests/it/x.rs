//! X on the simulator.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use domain::Timestamp;
use platform_simulator::{Fault, FaultKind, InMemory, NewPost, Simulator};
use platforms::{Adapter, Budget, Cursor, Direct, Fetch, Fetched, PollError, PollLimits, x::X};
use url::Url;

use crate::platform::{Feed, answer, answering, minutes_ago, post};

const NAME: &str = "x";

/// A fixed number of posts.
struct Purse(Mutex<u32>);

impl Purse {
    fn of(posts: u32) -> Arc<Self> {
        Arc::new(Self(Mutex::new(posts)))
    }

    fn left(&self) -> u32 {
        *self.0.lock().unwrap()
    }
}

#[async_trait]
impl Budget for Purse {
    async fn request(&self) -> Result<(), Duration> {
        Ok(())
    }

    async fn posts(&self, wanted: u32) -> Result<u32, Duration> {
        let mut left = self.0.lock().unwrap();
        let granted = wanted.min(*left);
        *left -= granted;
        if granted == 0 {
            Err(Duration::from_secs(60))
        } else {
            Ok(granted)
        }
    }

    async fn refund(&self, posts: u32) {
        *self.0.lock().unwrap() += posts;
    }

    async fn record_remaining(&self, _left: platforms::budget::Left) {}
}

fn adapter(simulator: &Simulator, token: &str, purse: &Arc<Purse>) -> X {
    let fetch: Arc<dyn Fetch> = Arc::new(Direct::new(None).unwrap());
    let url = format!("{}/x", simulator.base_url()).parse().unwrap();
    X::new(url, token.into(), fetch, Arc::clone(purse) as _)
}

fn day() -> PollLimits {
    PollLimits {
        since: Some(Timestamp::now().minus(Duration::from_hours(24))),
        ..PollLimits::default()
    }
}

fn numbered(count: usize) -> Vec<NewPost> {
    let now = Timestamp::now();
    let of = |n: usize| NewPost {
        time: Some(now.minus(Duration::from_secs((count - n) as u64 + 60))),
        author: format!("author{}", n % 7),
        ..post(NAME, format!("crm {n}"))
    };
    (0..count).map(of).collect()
}

#[tokio::test]
async fn a_post_carries_every_field_and_is_whole() {
    let mut feed = Feed::new("x:search/crm -is:retweet");
    let long = format!("crm <& {}", "long ".repeat(100));
    feed.publish([
        NewPost {
            text: Some(long.clone()),
            ..post(NAME, "")
        },
        NewPost {
            featured: true,
            ..post(NAME, "RT @a: crm")
        },
        post(NAME, "something else"),
    ]);
    let given = feed.poll().await.posts;
    assert_eq!(given.len(), 1);
    assert_eq!(given[0].text.as_deref(), Some(long.trim_end()));
    assert_eq!(given[0].user.name, "ana");
    assert_eq!(given[0].user.url, "https://x.com/ana");
    let native = given[0].id.strip_prefix("https://x.com/i/status/").unwrap();
    assert_eq!(given[0].url, format!("https://x.com/ana/status/{native}"));
    assert!(given[0].title.is_none());
    assert!(feed.poll().await.posts.is_empty());
}

#[tokio::test]
async fn an_edit_is_the_same_post() {
    let mut feed = Feed::new("x:search/crm");
    let before = |text: &str| NewPost {
        time: minutes_ago(1),
        ..post(NAME, text)
    };
    let ids = feed.publish([before("crm one")]);
    assert_eq!(feed.poll().await.posts.len(), 1);
    feed.simulator.edit(ids[0], "crm one, edited");
    assert!(feed.poll().await.posts.is_empty());
    // If the first version was never read, the post still has the first version's id.
    let late = feed.publish([before("two")]);
    feed.simulator.edit(late[0], "two, about crm");
    let given = feed.poll().await.posts;
    assert_eq!(given[0].text.as_deref(), Some("two, about crm"));
    assert!(
        !given[0]
            .url
            .ends_with(given[0].id.rsplit('/').next().unwrap())
    );
}

#[tokio::test]
async fn daily_budget_of_posts_is_never_exceeded_and_nothing_is_lost() {
    let simulator = Simulator::start("127.0.0.1:0".parse().unwrap()).unwrap();
    simulator.publish(numbered(260));
    let purse = Purse::of(150);
    let x = adapter(&simulator, "good", &purse);
    let mut cursor: Option<Cursor> = None;
    let mut given = Vec::new();
    let spent = loop {
        match x.poll("search/crm", cursor.as_ref(), &day()).await {
            Ok(polled) => {
                given.extend(polled.posts);
                cursor = Some(polled.cursor);
                assert!(polled.more);
            }
            Err(error) => break error,
        }
    };
    assert!(matches!(spent, PollError::BudgetSpent { .. }), "{spent}");
    let bill = simulator.x_bill();
    println!("{bill:?}, {} given, {} left", given.len(), purse.left());
    assert!(bill.served + 2 * bill.users <= 150, "{bill:?}");
    assert!(purse.left() < 10 && !given.is_empty());
    // The next day the reading continues at the same position.
    *purse.0.lock().unwrap() = 10_000;
    loop {
        let polled = x.poll("search/crm", cursor.as_ref(), &day()).await.unwrap();
        given.extend(polled.posts);
        cursor = Some(polled.cursor);
        if !polled.more {
            break;
        }
    }
    let mut texts: Vec<_> = given
        .iter()
        .map(|post| post.text.clone().unwrap())
        .collect();
    assert_eq!(texts.len(), 260);
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), 260);
    assert_eq!(simulator.x_bill().users, 7);
}

#[tokio::test]
async fn a_quiet_search_costs_nothing_and_authors_are_paid_for_once() {
    let simulator = Simulator::start("127.0.0.1:0".parse().unwrap()).unwrap();
    simulator.publish(numbered(30));
    let purse = Purse::of(1_000);
    let x = adapter(&simulator, "good", &purse);
    let first = x.poll("search/crm", None, &day()).await.unwrap();
    assert_eq!(first.posts.len(), 30);
    // Thirty posts, and seven authors at the price of two posts each.
    assert_eq!(purse.left(), 1_000 - 30 - 14);
    let mut cursor = first.cursor;
    for _ in 0..20 {
        let polled = x.poll("search/crm", Some(&cursor), &day()).await.unwrap();
        assert!(polled.posts.is_empty() && !polled.more);
        cursor = polled.cursor;
    }
    assert_eq!(purse.left(), 1_000 - 30 - 14);
    // Fewer than ten cannot be requested.
    let poor = Purse::of(9);
    let error = adapter(&simulator, "good", &poor)
        .poll("search/crm", None, &day())
        .await;
    let Err(PollError::BudgetSpent { retry_after }) = error else {
        panic!("{error:?}");
    };
    assert!(retry_after <= Duration::from_hours(24) && poor.left() == 9);
}

#[tokio::test]
async fn deleted_posts_of_x_are_found_by_a_recheck() {
    let simulator = Simulator::start("127.0.0.1:0".parse().unwrap()).unwrap();
    let published = simulator.publish(numbered(3));
    simulator.delete(published[1].id);
    simulator.edit(published[2].id, "edited");
    let purse = Purse::of(10);
    let x = adapter(&simulator, "good", &purse);
    let mut ids: Vec<String> = published.iter().map(|one| one.post_id.clone()).collect();
    ids.push("at://elsewhere".into());
    assert_eq!(
        x.recheck(&ids).await.unwrap().gone,
        [published[1].post_id.clone()]
    );
    assert_eq!(purse.left(), 8);
    *purse.0.lock().unwrap() = 2;
    let spent = x.recheck(&ids).await.unwrap_err();
    assert!(matches!(spent, PollError::BudgetSpent { .. }));
    assert_eq!(purse.left(), 2);
}

#[tokio::test]
async fn position_older_than_seven_days_is_a_gap() {
    let memory = InMemory::new();
    let url: Url = "http://simulated.example/x".parse().unwrap();
    let x = X::new(
        url,
        "good".into(),
        Arc::clone(&memory) as _,
        Purse::of(100_000),
    );
    memory.publish(vec![post(NAME, "crm now")]);
    let first = x.poll("search/crm", None, &day()).await.unwrap();
    assert_eq!((first.posts.len(), first.gap), (1, None));
    // Nothing matches for eight days of polling: there is no gap, though the newest post is old.
    let old = |cursor: &Cursor, anchor_days: u64, searched_days: u64| {
        let mut json = cursor.to_json();
        let now = Timestamp::now();
        let ago = |days: u64| now.minus(Duration::from_hours(24 * days));
        let id = (ago(anchor_days).micros() / 1_000 - 1_288_834_974_657) << 22;
        json["anchor"] = id.to_string().into();
        json["searched"] = ago(searched_days).to_string().into();
        Cursor::from_json(&json).unwrap()
    };
    let quiet = x
        .poll("search/crm", Some(&old(&first.cursor, 8, 0)), &day())
        .await
        .unwrap();
    assert_eq!((quiet.posts.len(), quiet.gap), (0, None));
    let left = x
        .poll("search/crm", Some(&old(&first.cursor, 9, 8)), &day())
        .await
        .unwrap();
    assert!(left.gap.unwrap().reason.contains("seven days"));
}

#[tokio::test]
async fn error_of_unusable_credentials_contains_advice() {
    let simulator = Simulator::start("127.0.0.1:0".parse().unwrap()).unwrap();
    let purse = Purse::of(1_000);
    for (token, status, advice) in [
        ("expired", 401, "bearer token"),
        ("poor", 402, "credits"),
        ("narrow", 403, "access"),
    ] {
        let error = adapter(&simulator, token, &purse)
            .poll("search/crm", None, &day())
            .await;
        let error = error.unwrap_err();
        assert!(error.is_permanent(), "{error}");
        assert!(
            error.to_string().contains(&status.to_string()) && error.to_string().contains(advice),
            "{error}"
        );
        assert!(!error.to_string().contains(token));
    }
    assert_eq!(purse.left(), 1_000);
}

#[tokio::test]
async fn lost_responses_stay_paid_for() {
    let simulator = Simulator::start("127.0.0.1:0".parse().unwrap()).unwrap();
    simulator.publish(numbered(3));
    let purse = Purse::of(1_000);
    let x = adapter(&simulator, "good", &purse);
    for (kind, value, charged) in [
        (FaultKind::Status, 503, 0),
        (FaultKind::RetryAfter, 1, 0),
        (FaultKind::Reset, 0, 100),
        (FaultKind::Garbage, 0, 100),
    ] {
        simulator.fail(Fault::new(NAME, kind, value));
        let before = purse.left();
        let error = x.poll("search/crm", None, &day()).await.unwrap_err();
        assert_eq!(before - purse.left(), charged, "{kind:?}: {error}");
    }
    let away = adapter(&simulator, "good", &purse);
    drop(simulator);
    let before = purse.left();
    let error = away.poll("search/crm", None, &day()).await.unwrap_err();
    assert_eq!(before, purse.left(), "no request was billed: {error}");
}

#[tokio::test]
async fn hostile_answers_are_errors_and_lose_nothing() {
    let mut feed = Feed::new("x:search/crm");
    feed.publish([post(NAME, "crm one")]);
    assert_eq!(feed.poll().await.posts.len(), 1);
    feed.publish([post(NAME, "crm two")]);
    for (kind, value) in [
        (FaultKind::Status, 503),
        (FaultKind::Status, 404),
        (FaultKind::RetryAfter, 9),
        (FaultKind::Garbage, 0),
        (FaultKind::Reset, 0),
        (FaultKind::Huge, 6 * 1024 * 1024),
    ] {
        feed.simulator.fail(Fault::new(NAME, kind, value));
        println!("{kind:?} {value}: {}", feed.try_poll().await.unwrap_err());
    }
    assert_eq!(feed.poll().await.posts.len(), 1);
}

/// The number of posts that a search reads from a server that always gives this answer.
async fn count_of(
    status: u16,
    body: &'static str,
    headers: Vec<(String, String)>,
) -> Result<usize, PollError> {
    let url: Url = "https://x.example".parse().unwrap();
    let fetch = answering(move |url| Fetched {
        headers: headers.clone(),
        ..answer(status, url, body)
    });
    let x = X::new(url, "t".into(), fetch, Purse::of(100_000));
    Ok(x.poll("search/a", None, &day()).await?.posts.len())
}

#[tokio::test]
async fn unusual_responses_are_read_as_far_as_possible() {
    // A token that leads to a loop, an invalid post, a partial failure.
    let round = r#"{"data": [{"id": "1578466218075312129", "text": "a"}, {"id": 7}, "x", {"id": "-1", "text": "b"}],
        "meta": {"next_token": "again"}, "errors": [{"title": "Not Found Error", "resource_id": "5"}]}"#;
    let newest = count_of(200, round, Vec::new()).await.unwrap();
    // It is older than the start of a first poll.
    assert_eq!(newest, 0);
    assert_eq!(
        count_of(200, r#"{"meta": {"result_count": 0}}"#, Vec::new())
            .await
            .unwrap(),
        0
    );
    for wrong in [
        "[]",
        "7",
        r#"{"data": 7}"#,
        r#"{"errors": [{"title": "Service Unavailable"}]}"#,
    ] {
        let error = count_of(200, wrong, Vec::new()).await.unwrap_err();
        assert!(matches!(error, PollError::Malformed(_)), "{wrong}: {error}");
    }
    let reset = (Timestamp::now().micros() / 1_000_000 + 100).to_string();
    let headers = vec![
        ("x-rate-limit-remaining".into(), "0".into()),
        ("x-rate-limit-reset".into(), reset),
    ];
    let error = count_of(429, "{}", headers).await.unwrap_err();
    let wait = error.retry_after().unwrap();
    assert!(wait > Duration::from_secs(90) && wait <= Duration::from_secs(100));
}
