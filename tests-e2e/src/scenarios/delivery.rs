//! Receivers that do not answer as they should.

use std::time::{Duration, Instant};

use super::support::{Customer, PATIENCE, assert_delivery, scans_by_post};
use crate::{
    harness::{
        Stack, eventually,
        receiver::{Behaviour, Delivery, Receiver},
    },
    posts::Post,
};

/// A receiver that fails twice gets the event the third time, and no more after that.
pub(crate) async fn third_try(stack: &Stack) {
    let script = [Behaviour::Answer(500), Behaviour::Answer(503)];
    let deliveries = one_post(stack, "thimblewick", &script, 3).await;
    let pairs = deliveries.windows(2);
    let waits: Vec<Duration> = pairs
        .map(|pair| pair[1].arrived - pair[0].arrived)
        .collect();
    // The schedule is 300 ms and 600 ms, each with a jitter of one fifth. It begins after the answer, so also after the
    // arrival.
    assert!(waits[0] >= Duration::from_millis(240), "{waits:?}");
    assert!(waits[1] >= Duration::from_millis(480), "{waits:?}");
}

/// A hanging request is cut off after 10 s, and retried.
pub(crate) async fn hanging(stack: &Stack) {
    // Before the request, because a busy receiver sees that late.
    let begin = Instant::now();
    let deliveries = one_post(stack, "brambleford", &[Behaviour::Hang], 2).await;
    let cut = deliveries[0].cut.expect("the first request was cut") - begin;
    let retried = deliveries[1].arrived - begin;
    println!("cut at {cut:?}, retried at {retried:?}");
    let least = Duration::from_secs(10);
    assert!(cut >= least && retried >= least, "{cut:?}, {retried:?}");
}

/// Delivers one post to a scripted receiver, with `count` requests and no more.
async fn one_post(stack: &Stack, word: &str, script: &[Behaviour], count: usize) -> Vec<Delivery> {
    let receiver = Receiver::scripted(script.iter().copied()).await;
    let customer = Customer::new(stack, word, receiver).await;
    let managers = customer.watch_word(word).await;
    stack
        .simulator
        .publish(&[Post::about(word, 0).json()])
        .await;
    eventually("the delivery has succeeded", PATIENCE, async || {
        let log = stack.api.deliveries(&customer.connection).await;
        let one = log.first()?;
        assert_eq!(log.len(), 1, "{log:?}");
        (one["state"] == "SUCCEEDED").then(|| assert_eq!(one["attemptCount"], count, "{one}"))
    })
    .await;
    eventually("a hanging request is cut off", PATIENCE, async || {
        let deliveries = customer.receiver.deliveries();
        let hanging = script.iter().zip(&deliveries);
        let mut hanging = hanging.filter(|(behaviour, _)| **behaviour == Behaviour::Hang);
        hanging.all(|(_, one)| one.cut.is_some()).then_some(())
    })
    .await;
    let scans = scans_by_post(stack, &managers).await;
    assert_eq!(scans.len(), 1);
    // What is delivered later comes after everything that was due for the first post.
    let later = Post::about(word, 1).json();
    stack.simulator.publish(&[later]).await;
    let mut deliveries = customer.receiver.wait_for(count + 1, PATIENCE).await;
    let first = scans.values().next().unwrap()["name"].as_str().unwrap();
    let last = deliveries.pop().expect("the later post");
    assert_eq!(deliveries.len(), count, "tries");
    assert_ne!(last.scan(), first, "another try of the first post");
    for delivery in &deliveries {
        assert_delivery(delivery, scans.values().next().unwrap());
        assert_eq!(
            delivery.body, deliveries[0].body,
            "each try carries the same bytes"
        );
    }
    deliveries
}
