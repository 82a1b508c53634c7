//! SIGKILL in the middle of two hundred posts: no Scan is lost or duplicated, and each is delivered at least once.

use std::{collections::BTreeSet, time::Duration};

use serde_json::Value;

use super::support::{Customer, assert_delivery, scans_by_post};
use crate::{
    Kind, customer,
    harness::{LOSS, Part, Stack, eventually, receiver::Receiver},
    posts::{self, Label, Post},
};

const WORD: &str = "quillfern";
const BATCH: usize = 10;
/// Ensures that there is always a request in progress.
const ANSWER_DELAY: Duration = Duration::from_millis(250);
const RECOVERY: Duration = Duration::from_secs(120);

pub(crate) async fn run(stack: &Stack) {
    let customer = Customer::new(stack, WORD, Receiver::slow(ANSWER_DELAY).await).await;
    let managers = customer.watch_word(WORD).await;
    let posts = marked();
    let mut expected = BTreeSet::new();
    let mut late = Vec::new();
    for (number, batch) in posts.chunks(BATCH).enumerate() {
        let victim = victim(stack.kind, number);
        if let Some(part) = victim {
            late.extend(busy(&customer, part, number).await);
            println!("batch {number}: kill -9 {part:?}");
            stack.kill(part);
        }
        let ids = publish(stack, batch, &mut expected).await;
        match victim {
            Some(part) => {
                let key = stack.restart(part).await;
                let same = part != Part::Dev || key == stack.owner_key;
                assert!(same, "the key stays the same for a data directory");
            }
            // The next process is killed while these posts are being processed.
            None => served(stack, &ids).await,
        }
    }
    let scans = customer.scans_of(&managers, &expected, RECOVERY).await;
    customer.delivered(&scans, RECOVERY).await;

    // Posts that are published afterwards are read, matched and delivered after all others.
    let last: Vec<Post> = (0..3).map(|number| Post::about(WORD, number)).collect();
    publish(stack, &last, &mut expected).await;
    let scans = customer.scans_of(&managers, &expected, RECOVERY).await;
    customer.delivered(&scans, RECOVERY).await;
    let again = scans_by_post(stack, &managers).await;
    assert_eq!(again, scans, "{LOSS}Scans changed after the last one");
    let found: BTreeSet<String> = scans.keys().cloned().collect();
    assert_eq!(
        found, expected,
        "{LOSS}scans of the posts with the word, and of no other"
    );

    let deliveries = customer.receiver.deliveries();
    for delivery in &deliveries {
        let id = delivery.json()["post"]["id"].as_str().unwrap().to_owned();
        assert_delivery(delivery, &scans[&id]);
    }
    println!("{} scans, {} deliveries", scans.len(), deliveries.len());
    assert!(!late.is_empty());
    for manager in &late {
        stack.api.applied(manager, RECOVERY).await;
    }
}

/// Returns the two hundred posts; those that must match contain the word.
fn marked() -> Vec<Post> {
    let mut posts = posts::two_hundred();
    for post in posts
        .iter_mut()
        .filter(|post| post.label == Label::Relevant)
    {
        post.text.push_str(" Found by the ");
        post.text.push_str(WORD);
        post.text.push('.');
    }
    posts
}

/// Returns the part that is killed before a batch is published, and restarted after it, for every other batch.
fn victim(kind: Kind, batch: usize) -> Option<Part> {
    const PARTS: [Part; 9] = [
        Part::Dispatcher,
        Part::Scanner,
        Part::Compiler,
        Part::RabbitMq,
        Part::Gateway,
        Part::Dispatcher,
        Part::Scanner,
        Part::Compiler,
        Part::Postgres,
    ];
    match kind {
        Kind::Dev => (batch % 4 == 1).then_some(Part::Dev),
        Kind::Distributed if batch % 2 == 1 => PARTS.get(batch / 2).copied(),
        Kind::Distributed => None,
    }
}

/// Keeps the compiler busy with a page, if it is the part to be killed.
async fn busy(customer: &Customer<'_>, part: Part, batch: usize) -> Option<Value> {
    if !matches!(part, Part::Compiler | Part::Dev) {
        return None;
    }
    let urls = [customer.stack.site.url("/slow")];
    let nickname = format!("Created before kill {batch}");
    let mut request = customer::manager(&nickname, "FORUM", &urls, &customer.connection);
    request["enable"] = Value::Bool(false);
    let api = &customer.stack.api;
    let asked = customer.stack.site.slow_requests();
    let manager = api.create_manager(&customer.namespace, &request).await;
    eventually("the compiler reads the page", RECOVERY, async || {
        (customer.stack.site.slow_requests() > asked).then_some(())
    })
    .await;
    Some(manager)
}

/// Adds the posts that must become Scans to `expected`; returns all ids.
async fn publish(stack: &Stack, posts: &[Post], expected: &mut BTreeSet<String>) -> Vec<String> {
    let json: Vec<Value> = posts.iter().map(Post::json).collect();
    let ids = stack.simulator.publish(&json).await;
    let marked = posts
        .iter()
        .zip(&ids)
        .filter(|(post, _)| post.text.contains(WORD));
    expected.extend(marked.map(|(_, id)| id.clone()));
    ids
}

/// Waits until a platform has answered with one of these posts.
async fn served(stack: &Stack, ids: &[String]) {
    eventually("a post is served", RECOVERY, async || {
        let served = stack.simulator.served().await;
        ids.iter().any(|id| served.contains_key(id)).then_some(())
    })
    .await;
}
