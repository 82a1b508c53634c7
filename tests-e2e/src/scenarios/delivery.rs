//! A receiver that does not answer.

use std::time::{Duration, Instant};

use super::support::{Customer, PATIENCE, assert_delivery, scans_by_post};
use crate::{
    harness::{
        Stack, eventually,
        receiver::{Behaviour, Receiver},
    },
    posts::Post,
};

const WORD: &str = "brambleford";

/// A hanging request is cut off after 10 s, and retried.
pub(crate) async fn hanging(stack: &Stack) {
    let receiver = Receiver::scripted([Behaviour::Hang]).await;
    let customer = Customer::new(stack, WORD, receiver).await;
    let managers = customer.watch_word(WORD).await;
    // Before the request, because a busy receiver sees that late.
    let begin = Instant::now();
    stack
        .simulator
        .publish(&[Post::about(WORD, 0).json()])
        .await;
    eventually("the delivery has succeeded", PATIENCE, async || {
        let log = stack.api.deliveries(&customer.connection).await;
        let one = log.first()?;
        assert_eq!(log.len(), 1, "{log:?}");
        (one["state"] == "SUCCEEDED").then(|| assert_eq!(one["attemptCount"], 2, "{one}"))
    })
    .await;
    let cut = eventually("the hanging request is cut off", PATIENCE, async || {
        customer.receiver.deliveries()[0].cut
    })
    .await;
    let deliveries = customer.receiver.deliveries();
    let (cut, retried) = (cut - begin, deliveries[1].arrived - begin);
    println!("cut at {cut:?}, retried at {retried:?}");
    let least = Duration::from_secs(10);
    assert!(cut >= least && retried >= least, "{cut:?}, {retried:?}");
    let scans = scans_by_post(stack, &managers).await;
    assert_eq!((scans.len(), deliveries.len()), (1, 2));
    for delivery in &deliveries {
        assert_delivery(delivery, scans.values().next().unwrap());
    }
}
