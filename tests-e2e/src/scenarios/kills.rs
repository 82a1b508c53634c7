//! SIGKILL of dispatcher, broker and database at random moments during many deliveries. No delivery is lost. Nothing is
//! sent twice unless a dispatcher was killed in between, and nothing whose success was recorded. After the last restart
//! everything arrives, without help. A second receiver gets the Scans that meet a filter, and no others.
//!
//! Five hundred deliveries and nine kills, the same each time; ten thousand and fifty if `EARSHOT_LARGE_TESTS` is `1`.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use http::Method;
use serde_json::{Value, json};

use super::support::{Customer, assert_delivery, name, scans_by_post};
use crate::{
    chance::Chance,
    harness::{LOSS, Part, Stack, receiver::Receiver},
    posts::{Platform, Post},
};

const WORD: &str = "tarnmoss";
/// Part of the titles that the second receiver gets.
const PART: &str = "1 about";
const ANSWER_DELAY: Duration = Duration::from_millis(30);
const RECOVERY: Duration = Duration::from_secs(120);
/// Seed of the moments, the same each time.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

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
}

impl Size {
    fn chosen(chance: &mut Chance) -> Self {
        if !super::are_large() {
            return Self {
                victims: VICTIMS.to_vec(),
                deliveries: 500,
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
        }
    }
}

pub(crate) async fn run(stack: &Stack) {
    let mut chance = Chance::new(SEED);
    let size = Size::chosen(&mut chance);
    let batch = size.deliveries / (size.victims.len() + 1);
    let customer = Customer::new(stack, WORD, Receiver::slow(ANSWER_DELAY).await).await;
    let managers = customer.watch_word(WORD).await;
    let some = Receiver::start().await;
    notify_of_some(&customer, &managers[0], &some).await;
    let mut published = 0;
    let mut expected = BTreeSet::new();
    let mut kills = Vec::new();
    // Number of requests of each Scan when its success was known to be recorded.
    let mut recorded: BTreeMap<String, usize> = BTreeMap::new();
    for victim in &size.victims {
        let succeeded = succeeded(&customer).await;
        let counts = customer.receiver.counts();
        for scan in succeeded {
            let count = counts[&scan];
            recorded.entry(scan).or_insert(count);
        }
        let moment = usize::try_from(chance.below(u64::try_from(batch).unwrap())).unwrap();
        let moment = customer.receiver.count() + moment;
        expected.extend(publish(stack, &mut published, batch).await);
        customer.receiver.wait_for(moment, RECOVERY).await;
        let before = customer.receiver.count();
        stack.kill(*victim);
        tokio::time::sleep(Duration::from_millis(chance.below(400))).await;
        stack.restart(*victim).await;
        if *victim == Part::Dispatcher {
            // A connection outlives its process by a moment.
            kills.push(before..customer.receiver.count());
        }
    }
    let restarted = Instant::now();
    let rest = size.deliveries - published;
    expected.extend(publish(stack, &mut published, rest).await);
    let arrived = stack.eventually("as many requests as posts", RECOVERY, async || {
        (customer.receiver.count() >= expected.len()).then_some(())
    });
    arrived.await;
    let scans = customer.scans_of(&managers, &expected, RECOVERY).await;
    customer.delivered(&scans, RECOVERY).await;
    let found = scans_by_post(stack, &managers).await.len();
    assert_eq!(found, expected.len(), "{LOSS}Scans of these posts");

    let has_part = |scan: &Value| scan["post"]["title"].as_str().unwrap().contains(PART);
    let wanted = scans.values().filter(|scan| has_part(scan));
    let wanted: BTreeSet<&str> = wanted.map(name).collect();
    let filtered = stack.eventually("the Scans of the filter arrive", RECOVERY, async || {
        let counts = some.counts();
        let all = wanted.iter().all(|scan| counts.contains_key(*scan));
        all.then_some(())
    });
    filtered.await;
    let counts = some.counts();
    let sent: BTreeSet<&str> = counts.keys().map(String::as_str).collect();
    assert!(!sent.is_empty() && sent == wanted, "{sent:?}");

    let deliveries = customer.receiver.deliveries();
    // The places of each post's requests in the order of arrival.
    let mut arrivals: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (place, delivery) in deliveries.iter().enumerate() {
        let id = delivery.json()["post"]["id"].as_str().unwrap().to_owned();
        assert_delivery(delivery, &scans[&id]);
        arrivals.entry(id).or_default().push(place);
    }
    let mut twice = 0;
    for (id, places) in &arrivals {
        for pair in places.windows(2) {
            twice += 1;
            let mut between = kills
                .iter()
                .filter(|kill| pair[0] < kill.end && kill.start <= pair[1]);
            assert!(
                between.next().is_some(),
                "{LOSS}{id} was repeated, and no dispatcher was killed in between"
            );
        }
    }
    let counts = customer.receiver.counts();
    for (scan, count) in &recorded {
        assert_eq!(
            &counts[scan], count,
            "{LOSS}{scan} was repeated after a success"
        );
    }
    let last = arrivals.values().map(|places| places[0]).max().unwrap();
    let recovered = deliveries[last]
        .arrived
        .saturating_duration_since(restarted);
    println!(
        "{} deliveries, {} kills, {twice} duplicates, complete {recovered:.1?} after the last restart",
        arrivals.len(),
        size.victims.len()
    );
    assert!(!recorded.is_empty(), "no success was seen before a kill");
}

/// Adds a notice with a filter to the Manager.
async fn notify_of_some(customer: &Customer<'_>, manager: &Value, receiver: &Receiver) {
    let api = &customer.stack.api;
    let url = receiver.url();
    let connection = api.create_connection(&customer.namespace, &url, json!({}));
    let connection = connection.await;
    let body = json!({"notices": [
        {"type": "HTTP_REQUEST", "connection": customer.connection},
        {"type": "HTTP_REQUEST", "connection": connection, "filter": format!("post.title : \"{PART}\"")},
    ]});
    let path = format!("/v1/{}", name(manager));
    let headers = [("content-type", "application/json")];
    let answer = api.request(Method::PATCH, &path, &headers, Some(body.to_string()));
    let answer = answer.await;
    assert_eq!(answer.status, 200, "{}", answer.json());
}

/// Returns the Scans whose deliveries are recorded as successful.
async fn succeeded(customer: &Customer<'_>) -> Vec<String> {
    let log = customer.stack.api.deliveries(&customer.connection).await;
    let succeeded = log.iter().filter(|one| one["state"] == "SUCCEEDED");
    succeeded
        .map(|one| one["scan"].as_str().unwrap().to_owned())
        .collect()
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
