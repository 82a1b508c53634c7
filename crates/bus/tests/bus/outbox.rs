//! The outbox and its relay, over a real PostgreSQL.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use bus::{Bus, Error, InProcess, Outcome, Outgoing, Published, QueueDepth, Relay, Subscription};
use domain::{Id, ScanName, Timestamp};
use events::{Event, ScanCreated};
use store::{AsyncConnection, QueryError, outbox};
use test_support::{Commits, TestDatabase, eventually};
use tokio_util::sync::CancellationToken;

use crate::support::{
    QUEUE, amqp_url, delete_queues, rabbitmq, rabbitmq_at, start, submitted, topology,
};

#[tokio::test(flavor = "multi_thread")]
async fn only_committed_events_are_consumed() {
    let database = TestDatabase::create().await;
    let bus = rabbitmq().await;
    let shutdown = CancellationToken::new();
    // Two relays share the table, as in two services.
    let relays = [(); 2].map(|()| Relay::new(database.pool(), Arc::new(bus.clone())));
    let wakers = relays.each_ref().map(Relay::waker);
    let running = relays.map(|relay| tokio::spawn(relay.run(shutdown.clone())));
    let mut consumer = start(Arc::new(bus.clone()), |_, _| Outcome::Done);
    let mut conn = database.connect().await;

    outbox::enqueue_all(&mut conn, (0..600).map(submitted))
        .await
        .unwrap();
    wakers.iter().for_each(bus::OutboxWaker::wake);
    let rolled_back = conn
        .transaction(async |conn| {
            outbox::enqueue(conn, &submitted(1000)).await?;
            Err::<(), _>(QueryError::RollbackTransaction)
        })
        .await;
    assert!(rolled_back.is_err());

    let mut seen = Vec::new();
    for _ in 0..600 {
        seen.push(consumer.next().await);
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..600).collect::<Vec<_>>());
    consumer.nothing_for(Duration::from_millis(300)).await;
    // The confirmations come after the events.
    eventually("they are removed", async || {
        outbox::pending(&mut conn, 0).await.unwrap().count == 0
    })
    .await;

    // Not woken, as after a crash between the commit and the wake.
    outbox::enqueue(&mut conn, &submitted(1001)).await.unwrap();
    assert_eq!(consumer.next().await, 1001);

    shutdown.cancel();
    for relay in running {
        relay.await.unwrap();
    }
    consumer.stop().await;
    delete_queues(&bus, &amqp_url()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn relay_whose_commit_is_not_answered_loses_and_repeats_nothing() {
    let database = TestDatabase::create().await;
    let commits = Commits::start(database.url()).await;
    let pool = store::connect(commits.url(), 3).unwrap();
    let bus: Arc<dyn Bus> = Arc::new(InProcess::new());
    let mut consumer = start(Arc::clone(&bus), |_, _| Outcome::Done);
    eventually("it is subscribed", async || {
        consumer.health.report().is_ready()
    })
    .await;
    let shutdown = CancellationToken::new();
    let relay = Relay::new(pool, bus);
    let running = tokio::spawn(relay.run(shutdown.clone()));
    let mut conn = database.connect().await;
    commits.lose(true);
    for generation in 0..20 {
        outbox::enqueue(&mut conn, &submitted(generation))
            .await
            .unwrap();
    }
    eventually("all are removed", async || {
        outbox::pending(&mut conn, 0).await.unwrap().count == 0
    })
    .await;
    commits.lose(false);
    assert!(commits.lost() > 0);
    outbox::enqueue(&mut conn, &submitted(20)).await.unwrap();
    let mut seen = Vec::new();
    while seen.last() != Some(&20) {
        seen.push(consumer.next().await);
    }
    shutdown.cancel();
    running.await.unwrap();
    seen.sort_unstable();
    // The events were gone at the commit, so none is published again.
    assert_eq!(seen, (0..=20).collect::<Vec<_>>());
    consumer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_wait_while_the_broker_is_away() {
    let database = TestDatabase::create().await;
    // Ends each connection at once.
    let broken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = broken.local_addr().unwrap();
    let attempted = Arc::new(tokio::sync::Notify::new());
    let attempt = Arc::clone(&attempted);
    tokio::spawn(async move {
        // The relay has seen the end of the first one when it opens the third.
        for _ in 0..3 {
            drop(broken.accept().await.unwrap());
        }
        attempt.notify_one();
    });
    let bus = rabbitmq_at(&format!("amqp://guest:guest@{address}/%2f"), &topology());
    let relay = Relay::new(database.pool(), Arc::new(bus));
    let waker = relay.waker();
    let running = tokio::spawn(relay.run(CancellationToken::new()));
    let mut conn = database.connect().await;

    outbox::enqueue(&mut conn, &submitted(1)).await.unwrap();
    waker.wake();
    attempted.notified().await;

    let pending = outbox::pending(&mut conn, 0).await.unwrap();
    assert_eq!(pending.count, 1);
    assert!(pending.oldest.is_some());
    running.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_broker_does_not_use_up_a_small_pool() {
    let database = TestDatabase::create().await;
    // Accepts connections, and sends nothing.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let bus = rabbitmq_at(&format!("amqp://guest:guest@{address}/%2f"), &topology());
    let pool = store::connect(database.url(), 2).unwrap();
    let relay = Relay::new(pool.clone(), Arc::new(bus));
    let waker = relay.waker();
    let running = tokio::spawn(relay.run(CancellationToken::new()));
    let mut conn = database.connect().await;

    // The second comes while the first one's round waits.
    for generation in 0..2 {
        let event = submitted(generation);
        outbox::enqueue(&mut conn, &event).await.unwrap();
        waker.wake();
        // Both rounds have begun, or the relay waits in the first one.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }

    let left = tokio::time::timeout(Duration::from_secs(5), pool.get()).await;
    assert!(left.is_ok_and(|conn| conn.is_ok()), "a connection is left");
    running.abort();
}

fn scan_created() -> ScanCreated {
    ScanCreated {
        name: ScanName {
            namespace: Id::NIL,
            manager: Id::NIL,
            scan: Id::NIL,
        },
        create_time: Timestamp::UNIX_EPOCH,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_for_a_full_queue_do_not_delay_others() {
    let database = TestDatabase::create().await;
    let bus: Arc<dyn Bus> = Arc::new(InProcess::new());
    // Nothing reads from this queue. It holds 10,000 events.
    let _unread = bus.work("unread", &[ScanCreated::KEY], 1);
    let mut consumer = start(Arc::clone(&bus), |_, _| Outcome::Done);
    until_consumed(bus.as_ref()).await;
    let mut conn = database.connect().await;
    // More than two batches are refused.
    outbox::enqueue_all(&mut conn, (0..10_600).map(|_| scan_created()))
        .await
        .unwrap();
    outbox::enqueue(&mut conn, &submitted(7)).await.unwrap();

    let running =
        tokio::spawn(Relay::new(database.pool(), Arc::clone(&bus)).run(CancellationToken::new()));

    assert_eq!(consumer.next().await, 7);
    // Also while the relay waits before it tries the others again.
    outbox::enqueue(&mut conn, &submitted(8)).await.unwrap();
    assert_eq!(consumer.next().await, 8);
    // It is removed a moment after it was published.
    eventually("only the others wait", async || {
        outbox::pending(&mut conn, 0).await.unwrap().count == 600
    })
    .await;
    running.abort();
}

/// A bus that never confirms events about Scans, like a broker whose queue for them has lost its majority.
struct Unconfirmed(InProcess);

#[async_trait]
impl Bus for Unconfirmed {
    fn system(&self) -> &'static str {
        self.0.system()
    }

    fn exchange(&self) -> &str {
        self.0.exchange()
    }

    async fn publish(&self, batch: &[Outgoing]) -> Vec<Result<Published, Error>> {
        let mut results = Vec::new();
        for outgoing in batch {
            results.push(if outgoing.message.key == ScanCreated::KEY {
                Err(Error::TimedOut(Duration::from_secs(10)))
            } else {
                self.0
                    .publish(std::slice::from_ref(outgoing))
                    .await
                    .remove(0)
            });
        }
        results
    }

    fn work(&self, queue: &str, keys: &[&str], prefetch: u16) -> Box<dyn Subscription> {
        self.0.work(queue, keys, prefetch)
    }

    fn news(&self, keys: &[&str]) -> Box<dyn Subscription> {
        self.0.news(keys)
    }

    async fn depth(&self, queue: &str) -> Result<QueueDepth, Error> {
        self.0.depth(queue).await
    }

    async fn check(&self) -> Result<(), Error> {
        self.0.check().await
    }
}

/// Waits until the queue has its consumer: events that no queue takes are refused.
async fn until_consumed(bus: &dyn Bus) {
    eventually("the consumer is there", async || {
        let depth = bus.depth(QUEUE).await;
        depth.is_ok_and(|depth| depth.consumers == 1)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_are_never_confirmed_do_not_delay_others() {
    let database = TestDatabase::create().await;
    let bus: Arc<dyn Bus> = Arc::new(Unconfirmed(InProcess::new()));
    let mut consumer = start(Arc::clone(&bus), |_, _| Outcome::Done);
    until_consumed(bus.as_ref()).await;
    let mut conn = database.connect().await;
    // More than two batches.
    outbox::enqueue_all(&mut conn, (0..600).map(|_| scan_created()))
        .await
        .unwrap();
    outbox::enqueue(&mut conn, &submitted(7)).await.unwrap();

    let running =
        tokio::spawn(Relay::new(database.pool(), Arc::clone(&bus)).run(CancellationToken::new()));

    assert_eq!(consumer.next().await, 7);
    // The confirmation comes after the event.
    eventually("it is removed", async || {
        outbox::pending(&mut conn, 0).await.unwrap().count == 600
    })
    .await;
    running.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn event_is_published_when_the_relay_is_woken() {
    let database = TestDatabase::create().await;
    let bus: Arc<dyn Bus> = Arc::new(InProcess::new());
    let relay = Relay::new(database.pool(), Arc::clone(&bus));
    let waker = relay.waker();
    let running = tokio::spawn(relay.run(CancellationToken::new()));
    let mut consumer = start(Arc::clone(&bus), |_, _| Outcome::Done);
    until_consumed(bus.as_ref()).await;
    let mut conn = database.connect().await;

    let mut times = Vec::new();
    for generation in 0..50 {
        let event = submitted(generation);
        let begin = Instant::now();
        outbox::enqueue(&mut conn, &event).await.unwrap();
        waker.wake();
        assert_eq!(consumer.next().await, generation);
        times.push(begin.elapsed());
    }
    times.sort_unstable();
    println!("from commit to consumer: median {:?}", times[25]);
    // Without the wake it would be the five seconds between two sweeps.
    assert!(times[25] < Duration::from_secs(1), "{:?}", times[25]);
    running.abort();
}
