//! The way from a platform's answer to the customer's server, for posts that come one by one.
//!
//! `cargo xtask bench` measures how long it takes. Here the latencies are only printed.

use std::{collections::BTreeSet, time::Duration};

use super::support::{Customer, PATIENCE};
use crate::{
    harness::{Stack, receiver::Receiver},
    posts::Post,
};

const WORD: &str = "moonquill";
const POSTS: usize = 60;
const PAUSE: Duration = Duration::from_millis(70);

pub(crate) async fn measure(stack: &Stack) {
    let customer = Customer::new(stack, WORD, Receiver::start().await).await;
    customer.watch_word(WORD).await;
    let mut published = BTreeSet::new();
    for number in 0..POSTS {
        let post = Post::about(WORD, number).json();
        published.extend(stack.simulator.publish(&[post]).await);
        tokio::time::sleep(PAUSE).await;
    }
    let deliveries = customer.receiver.wait_for(POSTS, PATIENCE).await;

    let served = stack.simulator.served().await;
    let mut latencies: Vec<i64> = deliveries
        .iter()
        .map(|delivery| {
            let body = delivery.json();
            let id = body["post"]["id"].as_str().unwrap();
            assert!(published.remove(id), "not published, or twice: {id}");
            delivery.arrived_micros - served[id]
        })
        .collect();
    assert!(published.is_empty(), "not delivered: {published:?}");
    latencies.sort_unstable();
    let at = |percent: usize| {
        Duration::from_micros(latencies[(POSTS - 1) * percent / 100].unsigned_abs())
    };
    println!(
        "{}: from the platform's answer to the webhook, {POSTS} posts: median {:?}, 90 % {:?}, most {:?}",
        stack.kind.name(),
        at(50),
        at(90),
        at(100),
    );
    assert!(latencies[0] >= 0, "delivered before it was served");
}
