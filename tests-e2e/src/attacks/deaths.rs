//! Items that real processes die with: a poll, a compilation and a delivery, each of a server that takes the request and
//! never answers.
//!
//! A service gets SIGKILL when its request has arrived, so it has the item in hand. Its next process takes the item over
//! once the heartbeat of the dead one is old, and is killed too. After the third death in a row the customer reads why the
//! item is set aside, and the customer's other work goes on. The three services die independently of each other.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::future::join_all;
use serde_json::{Value, json};

use super::{
    Shared,
    fleet::Fleet,
    host::{Entry, Host, Reply, Visit, atom},
    memory::compiled_from,
    stage::{Account, PATIENCE, feed},
};
use crate::{
    harness::{Part, Stack, eventually, receiver::Receiver, server::answer},
    suite::Test,
};

const WORD: &str = "lantern";
/// Longer than any service waits.
const NEVER: Duration = Duration::from_secs(3_600);
/// Three, or more if a slow machine tries the item again before the reason is read.
const REASON: &str = " times in a row while it ";
/// More than three: a request that reaches its own time limit before the kill begins the count again.
const MOST_DEATHS: usize = 9;

pub(super) fn tests(shared: &Arc<Shared>) -> Vec<Test> {
    let name = "item_in_hand_at_three_kills_is_set_aside_and_the_others_go_on";
    vec![shared.test_alone(name, three_kills)]
}

async fn three_kills() {
    Fleet::start().await.survives(kill_all).await;
}

async fn kill_all(fleet: &Fleet, customer: &Account) {
    let published = Arc::new(AtomicUsize::new(1));
    let count = Arc::clone(&published);
    let host = Host::start(move |visit: &Visit| match visit.target.as_str() {
        "/healthy" => Reply::Answer(atom("healthy", &posts(count.load(Ordering::SeqCst)))),
        _ => Reply::Late(NEVER, answer(200, "text/plain", "")),
    })
    .await;
    let receiver = Receiver::start().await;
    let mut connections = Vec::new();
    for url in [host.url("/hook"), receiver.url()] {
        let connection = customer.create_connection(&customer.namespace, &url, json!({}));
        connections.push(connection.await);
    }
    // The Manager's feeds are listed in this order, by name.
    let feeds = ["/feed", "/healthy"].map(|path| feed(&host.url(path)));
    let watching = customer.watch(&feeds, WORD, &connections).await;
    let compiling = compiled_from(customer, &host.url("/page")).await;

    let deadly = [
        Deadly {
            part: Part::Scanner,
            target: "/feed",
            resource: format!("/v1/{}/feeds", watching["name"].as_str().unwrap()),
            field: "/feeds/0/error",
        },
        Deadly {
            part: Part::Compiler,
            target: "/page",
            resource: format!("/v1/{}", compiling["name"].as_str().unwrap()),
            field: "/applyError/message",
        },
        Deadly {
            part: Part::Dispatcher,
            target: "/hook",
            resource: format!("/v1/{}/deliveries", connections[0]),
            field: "/deliveries/0/lastError",
        },
    ];
    let stack = &fleet.stack;
    let kills = deadly.map(|item| kill_until_told(stack, customer, &host, item));
    join_all(kills).await;

    published.fetch_add(1, Ordering::SeqCst);
    let scans = customer.wait_for_scans(&watching, 2).await;
    let newest = scans[0]["name"].as_str().unwrap();
    eventually("the other receiver gets it", PATIENCE, async || {
        receiver.counts().contains_key(newest).then_some(())
    })
    .await;
    let other = compiled_from(customer, &stack.site.url("/")).await;
    customer.applied(&other, PATIENCE).await;
}

/// An item whose request is never answered.
struct Deadly {
    part: Part,
    /// Path of the request.
    target: &'static str,
    /// Where the customer reads that it is set aside.
    resource: String,
    /// JSON pointer to the reason.
    field: &'static str,
}

/// Kills the service each time that it has made the request, until the customer is told the reason.
async fn kill_until_told(stack: &Stack, customer: &Account, host: &Host, item: Deadly) {
    let part = item.part;
    let (mut deaths, mut seen) = (0, 0);
    loop {
        let what = format!("{part:?} makes another request or gives the reason, {deaths} deaths");
        let is_requested = eventually(&what, PATIENCE, async || {
            if host.count(item.target) > seen {
                return Some(true);
            }
            let answer = customer.get(&item.resource).await.json();
            let reason = answer.pointer(item.field).and_then(Value::as_str)?;
            reason.contains(REASON).then_some(false)
        })
        .await;
        if !is_requested {
            break;
        }
        stack.kill(part);
        deaths += 1;
        seen = host.count(item.target);
        assert!(deaths < MOST_DEATHS, "{part:?} makes the same request");
        stack.restart(part).await;
    }
    println!("{part:?}: {deaths} deaths");
    assert!(deaths >= 3, "{part:?}: set aside after {deaths} deaths");
}

fn posts(count: usize) -> Vec<Entry> {
    let entry = |number| Entry {
        id: format!("{number}"),
        title: format!("{WORD} {number}"),
        text: format!("About a {WORD}."),
        link: format!("http://healthy.example/{number}"),
    };
    (0..count).map(entry).collect()
}
