//! Latency from a platform's answer to the customer's server.

use std::{collections::BTreeSet, time::Duration};

use super::support::{Customer, PATIENCE};
use crate::{
    Kind,
    harness::{Stack, receiver::Receiver},
    posts::Post,
};

const WORD: &str = "moonquill";
const POSTS: usize = 60;
const PAUSE: Duration = Duration::from_millis(70);

/// Measures sixty posts that are published one by one on three platforms.
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
    let limit = match stack.kind {
        Kind::Dev => Duration::from_millis(100),
        // The promise is only made for one process; this limit detects waits for a sweep.
        Kind::Distributed => Duration::from_millis(300),
    };
    assert!(at(50) < limit, "the median is {:?}", at(50));
}
