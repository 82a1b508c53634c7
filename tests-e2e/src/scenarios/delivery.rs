//! Receivers that do not answer as they should.

use std::time::Duration;

use super::support::{Customer, PATIENCE, assert_delivery, scans_by_post};
use crate::{
    harness::{
        Stack,
        receiver::{Behaviour, Delivery, Receiver},
    },
    posts::Post,
};

/// A receiver that fails twice gets the event the third time, and no more after that.
pub(crate) async fn third_try(stack: &Stack) {
    let script = [Behaviour::Answer(500), Behaviour::Answer(503)];
    let deliveries = one_post(stack, "thimblewick", &script, 3, PATIENCE).await;
    let waits: Vec<Duration> = waits(&deliveries);
    // The schedule is 300 ms and 600 ms, each with a jitter of one fifth; the receiver may be late to see a request.
    assert!(waits[0] >= Duration::from_millis(150), "{waits:?}");
    assert!(waits[1] >= Duration::from_millis(300), "{waits:?}");
}

/// A hanging request is cut off after 10 s, and retried.
pub(crate) async fn hanging(stack: &Stack) {
    let deliveries = one_post(stack, "brambleford", &[Behaviour::Hang], 2, PATIENCE).await;
    let cut_after = deliveries[0].cut_after.expect("the first request was cut");
    println!("cut after {cut_after:?}");
    let least = Duration::from_secs(9);
    assert!(cut_after >= least, "{cut_after:?}");
    assert!(waits(&deliveries)[0] >= least, "not before it was cut");
}

/// Delivers one post to a scripted receiver; waits for `count` requests and checks that no more arrive.
async fn one_post(
    stack: &Stack,
    word: &str,
    script: &[Behaviour],
    count: usize,
    within: Duration,
) -> Vec<Delivery> {
    let receiver = Receiver::scripted(script.iter().copied()).await;
    let customer = Customer::new(stack, word, receiver).await;
    let managers = customer.watch_word(word).await;
    stack
        .simulator
        .publish(&[Post::about(word, 0).json()])
        .await;
    customer.receiver.wait_for(count, within).await;
    // Longer than the delay before another attempt.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let deliveries = customer.receiver.deliveries();
    assert_eq!(deliveries.len(), count, "tries");
    let scans = scans_by_post(stack, &managers).await;
    assert_eq!(scans.len(), 1);
    for delivery in &deliveries {
        assert_delivery(delivery, scans.values().next().unwrap());
        assert_eq!(
            delivery.body, deliveries[0].body,
            "each try carries the same bytes"
        );
    }
    deliveries
}

fn waits(deliveries: &[Delivery]) -> Vec<Duration> {
    let pairs = deliveries.windows(2);
    pairs
        .map(|pair| pair[1].arrived - pair[0].arrived)
        .collect()
}
