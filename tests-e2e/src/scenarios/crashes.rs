//! SIGKILL of `earshot dev` in the middle of two hundred posts: no Scan is lost or duplicated, and each is delivered at
//! least once.

use std::{collections::BTreeSet, time::Duration};

use serde_json::Value;

use super::support::{Customer, assert_delivery, scans_by_post};
use crate::{
    customer,
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
        let is_killed = number % 4 == 1;
        if is_killed {
            late.push(being_compiled(&customer, number).await);
            println!("batch {number}: kill -9");
            stack.kill(Part::Dev);
        }
        let ids = publish(stack, batch, &mut expected).await;
        if is_killed {
            let key = stack.restart(Part::Dev).await;
            let same = key == stack.owner_key;
            assert!(same, "the key stays the same for a data directory");
        } else {
            // The process is killed while these posts are being processed.
            served(stack, &ids).await;
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

/// Creates a Manager, and returns it while its page is read.
async fn being_compiled(customer: &Customer<'_>, batch: usize) -> Value {
    let urls = [customer.stack.site.url("/slow")];
    let nickname = format!("Created before kill {batch}");
    let mut request = customer::manager(&nickname, "FORUM", &urls, &customer.connection);
    request["enable"] = Value::Bool(false);
    let api = &customer.stack.api;
    let asked = customer.stack.site.slow_requests();
    let manager = api.create_manager(&customer.namespace, &request).await;
    eventually("the page is read", RECOVERY, async || {
        (customer.stack.site.slow_requests() > asked).then_some(())
    })
    .await;
    manager
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
        ids.iter().any(|id| served.contains(id)).then_some(())
    })
    .await;
}
