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

/// A busy machine may need several rounds for a fast one.
const ROUNDS: usize = 5;

pub(crate) async fn measure(stack: &Stack) {
    let customer = Customer::new(stack, WORD, Receiver::start().await).await;
    customer.watch_word(WORD).await;
    // The promise is made for one process, on a machine that does nothing else. Otherwise, the limit detects waits for
    // a sweep.
    let (limit, rounds) = if stack.kind == Kind::Dev && super::are_large() {
        (Duration::from_millis(100), 1)
    } else {
        (Duration::from_millis(1_500), ROUNDS)
    };
    let mut medians = Vec::new();
    for nth in 0..rounds {
        let median = round(&customer, nth).await;
        if median < limit {
            return;
        }
        medians.push(median);
    }
    panic!("the medians are {medians:?}");
}

/// Measures sixty posts that are published one by one on three platforms; returns the median.
async fn round(customer: &Customer<'_>, nth: usize) -> Duration {
    let stack = customer.stack;
    let mut published = BTreeSet::new();
    let first = nth * POSTS;
    for number in first..first + POSTS {
        let post = Post::about(WORD, number).json();
        published.extend(stack.simulator.publish(&[post]).await);
        tokio::time::sleep(PAUSE).await;
    }
    let deliveries = customer.receiver.wait_for(first + POSTS, PATIENCE).await;

    let served = stack.simulator.served().await;
    let mut latencies: Vec<i64> = deliveries[first..]
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
    at(50)
}
