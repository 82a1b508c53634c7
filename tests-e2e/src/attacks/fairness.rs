//! One account that takes all polls, compilations, paid posts or rows.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::{
    Shared,
    host::{Entry, Host, Reply, Visit, atom, ok},
    stage::{Account, BLOGS, PATIENCE, Stage, feed, manual},
};
use crate::harness::eventually;
use crate::suite::Test;

const SLOW_FEEDS: usize = 200;
const SILENT_PAGES: usize = 100;
/// How long a slow feed takes.
const SLOW: Duration = Duration::from_secs(5);
/// Posts that may be read on X in a day.
const POSTS_PER_DAY: usize = 100;
/// More than an account may have.
const CONNECTIONS: usize = 1_100;

pub(super) fn tests(shared: &Arc<Shared>) -> Vec<Test> {
    vec![
        shared.test_alone(
            "first_poll_does_not_wait_for_slow_feeds_of_another",
            slow_feeds,
        ),
        shared.test_alone(
            "manual_manager_does_not_wait_for_pages_of_another",
            silent_pages,
        ),
        shared.test_alone("paid_posts_are_left_for_another", paid_posts),
        shared.test("connections_beyond_the_quota_are_refused", quota),
    ]
}

fn entry(number: usize, text: &str) -> Entry {
    Entry {
        id: format!("{number}"),
        title: text.to_owned(),
        text: text.to_owned(),
        link: format!("http://host.example/{number}"),
    }
}

async fn slow_feeds() {
    let stage = Stage::start().await;
    let host = Host::start(|visit: &Visit| match visit.target.as_str() {
        "/other" => Reply::Answer(atom("other", &[entry(1, "kettle")])),
        _ => Reply::Late(SLOW, atom("slow", &[])),
    })
    .await;
    let (a, b) = (stage.account("a").await, stage.account("b").await);
    let slow: Vec<String> = (0..SLOW_FEEDS)
        .map(|number| feed(&host.url(&format!("/slow/{number}"))))
        .collect();
    for feeds in slow.chunks(SLOW_FEEDS / 2) {
        a.watch(feeds, "kettle", &[]).await;
    }
    b.watch(&[feed(&host.url("/other"))], "kettle", &[]).await;
    // A busy machine may have read many before it knows of the other feed.
    let earlier = host.count("/slow");
    let before = eventually(
        "a first poll, before most slow ones",
        PATIENCE,
        async || {
            let slow = host.count("/slow") - earlier;
            assert!(slow < SLOW_FEEDS / 2, "{slow} slow feeds came first");
            (host.count("/other") > 0).then_some(slow)
        },
    )
    .await;
    println!("after {before} of {SLOW_FEEDS} slow feeds");
}

async fn silent_pages() {
    let stage = Stage::start().await;
    let host = Host::start(|_| Reply::Hang).await;
    let (a, b) = (stage.account("a").await, stage.account("b").await);
    for number in 0..SILENT_PAGES {
        let page = host.url(&format!("/silent/{number}"));
        let manager = json!({
            "nickname": "silent", "type": "FEED_MANAGER", "source": {"type": "FORUM"},
            "input": {"type": "STRUCTURED", "urls": [page], "focus": {"type": "SALES"}},
        });
        a.create_manager(&a.namespace, &manager).await;
    }
    let feeds = [feed(&host.url("/other"))];
    // A busy machine may have read many before it knows of the other Manager.
    let earlier = host.count("/silent");
    let manager = b
        .create_manager(&b.namespace, &manual(&feeds, "kettle", &[]))
        .await;
    let path = format!("/v1/{}", manager["name"].as_str().unwrap());
    let before = eventually(
        "a MANUAL Manager, before most pages",
        PATIENCE,
        async || {
            let pages = host.count("/silent") - earlier;
            assert!(pages < SILENT_PAGES / 2, "{pages} pages came first");
            let state = b.get(&path).await.json()["state"].take();
            (state == "APPLIED").then_some(pages)
        },
    )
    .await;
    println!("after {before} of {SILENT_PAGES} pages");
}

async fn paid_posts() {
    let stage = Stage::configured(|simulator| {
        format!(
            "[[platforms]]\nname = \"x\"\nkind = \"x\"\nbase_url = \"{simulator}/x\"\ntoken = \"good\"\n\
             poll_interval = \"500ms\"\nposts_per_day = {POSTS_PER_DAY}\n"
        )
    })
    .await;
    let (a, b) = (stage.account("a").await, stage.account("b").await);
    let other = watch_x(&b, "teapot").await;
    let greedy = watch_x(&a, "kettle").await;
    let tweet = |text: String| json!({"platform": "x", "title": "", "author": "ana", "text": text});
    // More than a day's posts: the hostile account takes what it can get.
    let many: Vec<Value> = (0..3 * POSTS_PER_DAY)
        .map(|number| tweet(format!("kettle {number}")))
        .collect();
    stage.service.simulator.publish(&many).await;
    let path = format!("/v1/{}/feeds", greedy["name"].as_str().unwrap());
    // Then the feed is not read for a while.
    let spent = eventually("the hostile account has its posts", PATIENCE, async || {
        let feed = a.get(&path).await.json()["feeds"][0].take();
        let time = |field: &str| feed[field].as_str()?.parse::<DateTime<Utc>>().ok();
        let pause = time("nextPollTime")? - time("lastPollTime")?;
        (feed["state"] == "BUDGET_SPENT" || pause > TimeDelta::minutes(1)).then_some(())
    });
    spent.await;
    let found = a.scans(&greedy, 100).await.len();
    println!("{found} of {POSTS_PER_DAY} posts");
    assert!(found > 0, "the posts were spent on nothing");
    stage
        .service
        .simulator
        .publish(&[tweet("teapot".to_owned())])
        .await;
    b.wait_for_scans(&other, 1).await;
}

async fn watch_x(account: &Account, word: &str) -> Value {
    let mut manager = manual(&[format!("x:search/{word}")], word, &[]);
    manager["source"]["type"] = json!("MICROBLOG");
    let created = account.create_manager(&account.namespace, &manager).await;
    let applied = account.applied(&created, PATIENCE).await;
    let path = format!("/v1/{}/feeds", applied["name"].as_str().unwrap());
    eventually("a first poll", PATIENCE, async || {
        let feeds = account.get(&path).await.json();
        let polled = &feeds["feeds"][0]["lastPollTime"];
        polled.is_string().then_some(())
    })
    .await;
    applied
}

async fn quota(stage: &Stage) {
    let host = Host::start(|_| ok()).await;
    let a = stage.account("a").await;
    let body = json!({
        "nickname": BLOGS, "type": "HTTP_CONNECTION", "url": host.url("/hook"), "method": "POST",
    });
    let mut created = 0;
    while created < CONNECTIONS {
        let answer = a.post(&a.path("connections"), &body).await;
        if answer.status == 201 {
            created += 1;
        } else if answer.status != 503 {
            let refusal = answer.json();
            assert_eq!(answer.status, 400, "{refusal}");
            assert_eq!(
                refusal["details"][0]["issue"], "quota_exceeded",
                "{refusal}"
            );
            let quota = a.get("/v1/caller").await.json()["quotas"]["connections"].take();
            assert_eq!(quota["limit"], json!(created), "{quota}");
            return;
        }
    }
    panic!("one account has {CONNECTIONS} Connections");
}
