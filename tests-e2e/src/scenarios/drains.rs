//! SIGTERM to each service while all of them are busy: none exits late, no request fails, no Scan is lost, and none is
//! delivered twice.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::support::{Customer, assert_delivery, name, scans_by_post};
use crate::{
    customer,
    harness::{
        LOSS, Part, Stack,
        api::{self, Client},
        eventually,
        receiver::Receiver,
    },
    posts::Post,
};

const WORD: &str = "ashlantern";
const BATCH: usize = 60;
/// Ensures that there is always a request in progress.
const ANSWER_DELAY: Duration = Duration::from_millis(100);
const RECOVERY: Duration = Duration::from_secs(120);
const CLIENTS: usize = 4;
/// How long the gateway accepts requests after SIGTERM: long enough for each client to get an answer, also on a busy
/// machine.
const DRAIN_DELAY: &str = "10s";

pub(crate) async fn run(stack: &Stack) {
    let customer = Customer::new(stack, WORD, Receiver::slow(ANSWER_DELAY).await).await;
    let managers = customer.watch_word(WORD).await;
    let mut expected = BTreeSet::new();
    let mut late = Vec::new();
    for (nth, part) in [
        Part::Dispatcher,
        Part::Scanner,
        Part::Compiler,
        Part::Gateway,
        Part::Dispatcher,
    ]
    .into_iter()
    .enumerate()
    {
        let arrived = customer.receiver.count();
        expected.extend(publish(stack, nth).await);
        // During the batch.
        customer.receiver.wait_for(arrived + 5, RECOVERY).await;
        match part {
            Part::Gateway => drain_gateway(stack).await,
            Part::Compiler => {
                late.push(slow_manager(&customer).await);
                drain(stack, part);
            }
            _ => drain(stack, part),
        }
        stack.restart(part).await;
    }
    let scans = customer.scans_of(&managers, &expected, RECOVERY).await;
    customer.delivered(&scans, RECOVERY).await;
    for manager in &late {
        stack.api.applied(manager, RECOVERY).await;
    }
    let found = scans_by_post(stack, &managers).await.len();
    assert_eq!(found, expected.len(), "{LOSS}Scans of these posts");
    // What is recorded as successful is not sent again.
    let recorded = stack.eventually("all deliveries are recorded", RECOVERY, async || {
        let log = stack.api.deliveries(&customer.connection).await;
        assert!(log.len() <= scans.len(), "{LOSS}more deliveries than Scans");
        let all = log.len() == scans.len() && log.iter().all(|one| one["state"] == "SUCCEEDED");
        all.then(|| assert!(log.iter().all(|one| one["attemptCount"] == 1), "{log:?}"))
    });
    recorded.await;
    let counts = customer.receiver.counts();
    for scan in scans.values() {
        assert_eq!(counts[name(scan)], 1, "{LOSS}deliveries of {scan}");
    }
    for delivery in customer.receiver.deliveries() {
        let id = delivery.json()["post"]["id"].as_str().unwrap().to_owned();
        assert_delivery(&delivery, &scans[&id]);
    }
}

fn drain(stack: &Stack, part: Part) {
    stack.ask_to_end(part);
    stack.wait_for_end(part);
}

async fn publish(stack: &Stack, batch: usize) -> Vec<String> {
    let numbers = batch * BATCH..(batch + 1) * BATCH;
    let posts: Vec<Value> = numbers.map(|nth| Post::about(WORD, nth).json()).collect();
    stack.simulator.publish(&posts).await
}

/// Creates a Manager whose page is being fetched.
async fn slow_manager(customer: &Customer<'_>) -> Value {
    let stack = customer.stack;
    let urls = [stack.site.url("/slow")];
    let mut request = customer::manager("Read in a drain", "FORUM", &urls, &customer.connection);
    request["enable"] = Value::Bool(false);
    let asked = stack.site.slow_requests();
    let manager = stack
        .api
        .create_manager(&customer.namespace, &request)
        .await;
    eventually("the compiler reads the page", RECOVERY, async || {
        (stack.site.slow_requests() > asked).then_some(())
    })
    .await;
    manager
}

/// Drains the gateway as clients see it through a load balancer: requests arrive for a while after it has become not
/// ready.
async fn drain_gateway(stack: &Stack) {
    stack.kill(Part::Gateway);
    let delay = (
        "EARSHOT_GATEWAY__DRAIN_DELAY".to_owned(),
        DRAIN_DELAY.to_owned(),
    );
    stack.set_variables(vec![delay]);
    stack.restart(Part::Gateway).await;
    stack.set_variables(Vec::new());

    let leave = Arc::new(AtomicBool::new(false));
    let client = api::client();
    let answers: Arc<[Answers; CLIENTS]> = Arc::default();
    let pool: Vec<_> = (0..CLIENTS)
        .map(|nth| {
            busy_client(
                stack,
                &client,
                nth,
                Arc::clone(&leave),
                Arc::clone(&answers),
            )
        })
        .collect();
    eventually("each client is answered", RECOVERY, async || {
        let all = answers.iter().all(|of| of.all.load(Ordering::Relaxed) > 0);
        all.then_some(())
    })
    .await;
    stack.ask_to_end(Part::Gateway);
    eventually("the gateway is not ready", RECOVERY, async || {
        (stack.readiness(Part::Gateway).await == Some(503)).then_some(())
    })
    .await;
    // A load balancer sees it later: requests go on until then.
    let counts = || {
        answers
            .each_ref()
            .map(|of| of.closing.load(Ordering::Relaxed))
    };
    let before = counts();
    eventually("each client is told to close", RECOVERY, async || {
        let all = counts().iter().zip(&before).all(|(now, then)| now > then);
        all.then_some(())
    })
    .await;
    leave.store(true, Ordering::Relaxed);
    for client in pool {
        client.await.unwrap();
    }
    stack.wait_for_end(Part::Gateway);
}

/// Number of answers to a client.
#[derive(Default)]
struct Answers {
    all: AtomicUsize,
    /// Those that ask to close the connection.
    closing: AtomicUsize,
}

/// Sends requests in sequence, reads and writes, over kept-alive connections, and counts the answers.
fn busy_client(
    stack: &Stack,
    client: &Client,
    nth: usize,
    leave: Arc<AtomicBool>,
    answers: Arc<[Answers; CLIENTS]>,
) -> JoinHandle<()> {
    let (client, url) = (client.clone(), format!("{}/v1/namespaces", stack.api_url));
    let authorization = format!("Bearer {}", stack.owner_key);
    let headers = [
        ("authorization", authorization),
        ("content-type", "application/json".to_owned()),
    ];
    tokio::spawn(async move {
        let headers = headers
            .each_ref()
            .map(|(name, value)| (*name, value.as_str()));
        while !leave.load(Ordering::Relaxed) {
            let (method, body) = match nth % 2 {
                0 => (Method::GET, None),
                _ => (Method::POST, Some(json!({"nickname": "busy"}).to_string())),
            };
            let answer = api::send(&client, method, &url, &headers, body).await;
            assert!(matches!(answer.status, 200 | 201), "{}", answer.status);
            let closing = usize::from(answer.header("connection") == "close");
            answers[nth].all.fetch_add(1, Ordering::Relaxed);
            answers[nth].closing.fetch_add(closing, Ordering::Relaxed);
        }
    })
}
