//! Searches that keep the database busy, and lists of another account.
//!
//! A transaction that locks the posts simulates a database that searches them slowly.

use std::sync::Arc;
use std::time::Duration;

use futures::{
    FutureExt,
    future::{LocalBoxFuture, join_all},
};
use serde_json::Value;
use tokio::sync::OnceCell;

use super::{
    Shared,
    host::{Entry, Host, Reply, atom},
    stage::{Account, PATIENCE, Stage, feed},
};
use crate::harness::{
    api::{Answer, Api},
    eventually,
};
use crate::suite::Test;

const WORD: &str = "kettle";
const POSTS: usize = 60;
const MANAGERS: usize = 10;
/// Longer than any test waits; the lock ends before, with its test.
const LOCKED: Duration = Duration::from_secs(1_000);
/// Number of searches that wait for the lock. Other statements do too.
const WAITING: &str = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' \
    AND query LIKE 'SELECT s.namespace_id, s.manager_id, s.id, s.create_time%'";
/// Searches of one account that may be at the database at the same time.
const AT_ONCE: u64 = 2;

pub(super) fn tests(shared: &Arc<Shared>) -> Vec<Test> {
    let estate = Arc::<OnceCell<Estate>>::default();
    let test = |name, attack: for<'a> fn(&'a Stage, &'a Estate) -> LocalBoxFuture<'a, ()>| {
        let estate = Arc::clone(&estate);
        shared.test(name, async move |stage: &Stage| {
            let estate = estate.get_or_init(|| Estate::create(stage)).await;
            attack(stage, estate).await;
        })
    };
    vec![
        test(
            "costly_search_is_refused_until_it_is_narrowed",
            |stage, estate| refused(stage, estate).boxed_local(),
        ),
        test("search_costs_more_points_than_a_poll", |stage, estate| {
            points(stage, estate).boxed_local()
        }),
        test(
            "searches_of_one_account_leave_connections_to_others",
            |stage, estate| leave_connections(stage, estate).boxed_local(),
        ),
        test(
            "list_that_takes_too_long_is_503_with_retry_after",
            |stage, estate| cut_off(stage, estate).boxed_local(),
        ),
        test(
            "scans_of_another_are_not_read_before_the_403",
            |stage, estate| unread(stage, estate).boxed_local(),
        ),
    ]
}

/// An account with some hundred Scans, for all tests of this file.
struct Estate {
    account: Account,
    /// One of its Managers.
    manager: Value,
}

impl Estate {
    async fn create(stage: &Stage) -> Self {
        let host = Host::start(|_| {
            let entries: Vec<Entry> = (0..POSTS)
                .map(|number| Entry {
                    id: format!("{number}"),
                    title: format!("{WORD} {number}"),
                    text: format!("{WORD} ").repeat(100),
                    link: format!("http://host.example/{number}"),
                })
                .collect();
            Reply::Answer(atom("kettles", &entries))
        })
        .await;
        let account = stage.account("a").await;
        let mut manager = Value::Null;
        for number in 0..MANAGERS {
            let url = host.url(&format!("/feed/{}", number % 2));
            manager = account.watch(&[feed(&url)], WORD, &[]).await;
        }
        let id = format!(
            "(SELECT id FROM namespaces WHERE nickname = '{}')",
            account.name
        );
        let scans = format!("SELECT count(*) FROM scans WHERE namespace_id = {id}");
        let count = (POSTS * MANAGERS).to_string();
        eventually("all Scans", PATIENCE, async || {
            (stage.service.query(&scans) == count).then_some(())
        })
        .await;
        Self { account, manager }
    }
}

/// Returns an answer to a request; a busy machine may have to ask again.
async fn answered(api: &Api, path: &str) -> Answer {
    eventually("an answer", PATIENCE, async || {
        let answer = api.get(path).await;
        (answer.status != 503).then_some(answer)
    })
    .await
}

/// Returns a query with a filter that looks for many words in each post, and in the name of each Scan, within a bound.
fn search(bound: &str, texts: usize, names: usize) -> String {
    let texts = (0..texts).map(|number| format!("post.text:\"nowhere{number}\""));
    let names = (0..names).map(|number| format!("name = \"nowhere{number}\""));
    let terms: Vec<String> = texts.chain(names).collect();
    let filter = format!("{bound}{}", terms.join(" OR "));
    let mut url = url::Url::parse("http://host/").unwrap();
    url.query_pairs_mut().append_pair("filter", &filter);
    url.query().unwrap().to_owned()
}

async fn refused(stage: &Stage, estate: &Estate) {
    let a = &estate.account;
    let viewer = stage.viewer(a);
    let path = a.path("managers/-/scans");
    let answer = answered(&viewer, &format!("{path}?{}", search("", 24, 24))).await;
    assert_eq!(answer.status, 400, "{}", answer.json());
    let detail = &answer.json()["details"][0];
    assert_eq!(
        (&detail["field"], &detail["issue"]),
        (&"filter".into(), &"too_costly".into())
    );
    // It says what to do, and that helps.
    let message = answer.json()["message"].to_string();
    assert!(message.contains("createTime"), "{message}");
    let newer = "createTime > \"2099-01-01T00:00:00Z\" AND ";
    let narrowed = format!("{path}?{}", search(newer, 24, 24));
    assert_eq!(answered(&viewer, &narrowed).await.status, 200);
}

async fn points(stage: &Stage, estate: &Estate) {
    let a = &estate.account;
    let path = a.path("managers/-/scans");
    let cost = async |query: &str| -> i64 {
        let viewer = stage.viewer(a);
        let left = async |query: &str| -> i64 {
            let answer = answered(&viewer, &format!("{path}?{query}")).await;
            assert_eq!(answer.status, 200, "{}", answer.json());
            answer.header("x-ratelimit-remaining").parse().unwrap()
        };
        let before = left("pageSize=1").await;
        before - left(query).await
    };
    assert_eq!(cost("pageSize=1").await, 1);
    assert!(cost(&search("", 40, 4)).await > 10);
}

/// Twenty searches of one account at once, while the database answers none of them.
async fn leave_connections(stage: &Stage, estate: &Estate) {
    let a = &estate.account;
    let b = stage.account("b").await;
    let path = format!("{}?{}", a.path("managers/-/scans"), search("", 40, 4));
    let keys: Vec<Api> = (0..5).map(|_| stage.viewer(a)).collect();
    let lock = stage.service.lock("posts", LOCKED);
    let waiting = || -> u64 { stage.service.query(WAITING).parse().unwrap() };
    let searches = join_all((0..20).map(|number| keys[number % keys.len()].get(&path)));
    let other = async {
        let most = eventually("the searches are at the database", PATIENCE, async || {
            let count = waiting();
            (count > 0).then_some(count)
        });
        let mut most = most.await;
        for _ in 0..5 {
            let answer = b.get("/v1/namespaces").await;
            assert_eq!(answer.status, 200, "the other account: {}", answer.json());
            most = most.max(waiting());
        }
        most
    };
    let (searches, most) = futures::join!(searches, other);
    drop(lock);
    assert!(most <= AT_ONCE, "{most} searches at the database at once");
    let of = |status: u16| {
        searches
            .iter()
            .filter(|answer| answer.status == status)
            .count()
    };
    let (refused, cut_off) = (of(429), of(503));
    assert_eq!(refused + cut_off, 20);
    assert!(refused > 0, "all waited for the database");
}

async fn cut_off(stage: &Stage, estate: &Estate) {
    let a = &estate.account;
    let path = format!("{}?{}", a.path("managers/-/scans"), search("", 5, 0));
    let lock = stage.service.lock("posts", LOCKED);
    let answer = a.get(&path).await;
    drop(lock);
    assert_eq!(answer.status, 503, "{}", answer.json());
    assert_ne!(answer.header("retry-after"), "");
}

/// The time of the answer must not depend on the other's Scans, so it must be there without a look at them.
async fn unread(stage: &Stage, estate: &Estate) {
    let b = stage.account("b").await;
    let name = estate.manager["name"].as_str().unwrap();
    let lock = stage.service.lock("scans", LOCKED);
    let path = format!("/v1/{name}/scans?{}", search("", 5, 0));
    let answer = b.get(&path).await;
    assert_eq!(answer.status, 403, "{}", answer.json());
    assert!(lock.is_held(), "the answer came after the lock was gone");
}
