//! One account that takes all polls or paid posts.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::{
    Shared,
    host::{Entry, Host, Reply, Visit, atom},
    stage::{Account, PATIENCE, Stage, feed, manual},
};
use crate::harness::eventually;
use crate::suite::Test;

const SLOW_FEEDS: usize = 200;
/// How long a slow feed takes.
const SLOW: Duration = Duration::from_secs(5);
/// Posts that may be read on X in a day.
const POSTS_PER_DAY: usize = 100;

pub(super) fn tests(shared: &Arc<Shared>) -> Vec<Test> {
    vec![
        shared.test_alone(
            "first_poll_does_not_wait_for_slow_feeds_of_another",
            slow_feeds,
        ),
        shared.test_alone("paid_posts_are_left_for_another", paid_posts),
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
