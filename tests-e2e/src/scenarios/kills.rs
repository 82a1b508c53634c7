//! SIGKILL of dispatcher, broker and database at random moments during many deliveries. No delivery is lost. A
//! duplicate was in progress, or not yet recorded, when a dispatcher was killed. Soon after the last restart everything
//! has arrived, without help.
//!
//! A thousand deliveries and nine kills, the same each time; ten thousand and fifty if `EARSHOT_LARGE_TESTS` is `1`.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use serde_json::Value;

use super::support::{Customer, assert_delivery, scans_by_post};
use crate::{
    chance::Chance,
    harness::{Part, Stack, eventually, receiver::Receiver},
    posts::{Platform, Post},
};

const WORD: &str = "tarnmoss";
const ANSWER_DELAY: Duration = Duration::from_millis(30);
const RECOVERY: Duration = Duration::from_secs(120);
/// Seed of the moments, the same each time.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
/// Time from a request's arrival to its record in the database, on a busy machine.
const WRITTEN: Duration = Duration::from_secs(3);
/// A dispatcher may hold unrecorded results for this long after the database's death.
const HELD: Duration = Duration::from_secs(8);

/// Victims of the short run, so that each part is hit; the moments are random.
const VICTIMS: [Part; 9] = [
    Part::Dispatcher,
    Part::RabbitMq,
    Part::Dispatcher,
    Part::Postgres,
    Part::Dispatcher,
    Part::Postgres,
    Part::RabbitMq,
    Part::Dispatcher,
    Part::Postgres,
];

struct Size {
    victims: Vec<Part>,
    deliveries: usize,
    /// Deadline after the last restart.
    recovery: Duration,
}

impl Size {
    fn chosen(chance: &mut Chance) -> Self {
        if !super::are_large() {
            return Self {
                victims: VICTIMS.to_vec(),
                deliveries: 1_000,
                recovery: RECOVERY,
            };
        }
        let victim = |_| match chance.below(4) {
            0 => Part::RabbitMq,
            1 => Part::Postgres,
            _ => Part::Dispatcher,
        };
        Self {
            victims: (0..50).map(victim).collect(),
            deliveries: 10_000,
            recovery: Duration::from_secs(10),
        }
    }
}

pub(crate) async fn run(stack: &Stack) {
    let mut chance = Chance::new(SEED);
    let size = Size::chosen(&mut chance);
    let batch = size.deliveries / (size.victims.len() + 1);
    let customer = Customer::new(stack, WORD, Receiver::slow(ANSWER_DELAY).await).await;
    let managers = customer.watch_word(WORD).await;
    let mut published = 0;
    let mut expected = BTreeSet::new();
    let mut kills = Vec::new();
    for victim in &size.victims {
        expected.extend(publish(stack, &mut published, batch).await);
        tokio::time::sleep(Duration::from_millis(chance.below(900))).await;
        stack.kill(*victim);
        kills.push((*victim, Instant::now()));
        tokio::time::sleep(Duration::from_millis(chance.below(400))).await;
        stack.restart(*victim).await;
    }
    let restarted = Instant::now();
    let rest = size.deliveries - published;
    expected.extend(publish(stack, &mut published, rest).await);
    eventually("as many requests as posts", RECOVERY, async || {
        (customer.receiver.count() >= expected.len()).then_some(())
    })
    .await;
    let scans = customer.scans_of(&managers, &expected, RECOVERY).await;
    customer.delivered(&scans, RECOVERY).await;
    assert_eq!(scans_by_post(stack, &managers).await.len(), expected.len());

    let mut arrivals: BTreeMap<String, Vec<Instant>> = BTreeMap::new();
    for delivery in customer.receiver.deliveries() {
        let id = delivery.json()["post"]["id"].as_str().unwrap().to_owned();
        assert_delivery(&delivery, &scans[&id]);
        arrivals.entry(id).or_default().push(delivery.arrived);
    }
    let mut twice = 0;
    for (id, times) in &arrivals {
        for early in &times[..times.len() - 1] {
            twice += 1;
            assert!(
                was_at_risk(*early, &kills),
                "{id} was repeated without a reason"
            );
        }
    }
    let last = arrivals.values().map(|times| times[0]).max().unwrap();
    let recovered = last.saturating_duration_since(restarted);
    println!(
        "{} deliveries, {} kills, {twice} duplicates, complete {recovered:.1?} after the last restart",
        arrivals.len(),
        kills.len()
    );
    assert!(recovered <= size.recovery, "{recovered:?}");
}

/// Publishes posts, but none on the blog, whose feed shows only the last fifty.
async fn publish(stack: &Stack, published: &mut usize, count: usize) -> Vec<String> {
    let posts: Vec<Value> = (0..)
        .map(|nth| Post::about(WORD, nth))
        .filter(|post| post.platform != Platform::Blog)
        .skip(*published)
        .take(count)
        .map(|post| post.json())
        .collect();
    *published += count;
    stack.simulator.publish(&posts).await
}

/// Returns whether a request that arrived then may have been unrecorded when a dispatcher was killed.
fn was_at_risk(arrived: Instant, kills: &[(Part, Instant)]) -> bool {
    let dispatchers = kills.iter().filter(|(part, _)| *part == Part::Dispatcher);
    dispatchers.into_iter().any(|(_, killed)| {
        let held_since = kills
            .iter()
            .filter(|(part, at)| *part == Part::Postgres && at < killed && *killed - *at < HELD)
            .map(|(_, at)| *at)
            .min();
        let from = held_since.map_or(*killed, |at| at.min(*killed)) - WRITTEN;
        // A connection outlives its process by a moment, and a busy receiver sees requests late.
        (from..*killed + WRITTEN).contains(&arrived)
    })
}
