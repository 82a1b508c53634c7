//! A broker, a scripted consumer, and waiting with a limit.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, LazyLock, Mutex},
    time::Duration,
};

use bus::{Bus, ConsumeOptions, Consumer, Outcome, Outgoing, RabbitMq, RabbitMqOptions, Topology};
use domain::{Id, ManagerName, Timestamp};
use events::{Event, ManagerSubmitted, Message, TraceContext};
use runtime::Health;
use test_support::{TIMEOUT, eventually};
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

pub(crate) const QUEUE: &str = "test-compiler.manager-submitted";

/// The address of the broker that the tests share.
#[expect(
    clippy::disallowed_methods,
    reason = "tests have no configuration but this"
)]
pub(crate) fn amqp_url() -> String {
    static PRIVATE: LazyLock<Mutex<private_servers::RabbitMq>> = LazyLock::new(|| {
        let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bus-rabbitmq");
        Mutex::new(private_servers::RabbitMq::start(&home).unwrap())
    });
    std::env::var("AMQP_URL").unwrap_or_else(|_| PRIVATE.lock().unwrap().amqp_url())
}

/// The exchanges and queues of a test.
pub(crate) fn topology() -> Topology {
    Topology::scoped(&format!("test-{}", Id::generate())).with_work(QUEUE, &[ManagerSubmitted::KEY])
}

pub(crate) fn rabbitmq_at(url: &str, topology: &Topology) -> RabbitMq {
    // Shown for failed tests; the first test of the process sets it up.
    let _ = tracing_subscriber::fmt()
        .with_env_filter("bus=debug")
        .with_test_writer()
        .try_init();
    let options = RabbitMqOptions {
        topology: topology.clone(),
        connection_name: "bus-test".into(),
        ca_certificates_file: None,
    };
    RabbitMq::new(url, options).unwrap()
}

pub(crate) async fn rabbitmq() -> RabbitMq {
    let url = tokio::task::spawn_blocking(amqp_url).await.unwrap();
    rabbitmq_at(&url, &topology())
}

/// Deletes our queues, because they outlive the test.
pub(crate) async fn delete_queues(bus: &RabbitMq, url: &str) {
    let connection = lapin::Connection::connect(url, lapin::ConnectionProperties::default())
        .await
        .unwrap();
    let channel = connection.create_channel().await.unwrap();
    for queue in bus.work_queues() {
        for queue in [format!("{queue}.dead"), queue] {
            let options = lapin::options::QueueDeleteOptions::default();
            channel.queue_delete(queue.into(), options).await.unwrap();
        }
    }
}

pub(crate) fn submitted(generation: i64) -> ManagerSubmitted {
    ManagerSubmitted {
        name: ManagerName {
            namespace: Id::generate(),
            manager: Id::generate(),
        },
        generation,
    }
}

pub(crate) fn outgoing(event: impl Into<events::AnyEvent>) -> Outgoing {
    let message = Message::new(event);
    Outgoing {
        create_time: message.create_time,
        message: message.encode(),
        trace: TraceContext::default(),
    }
}

/// Bytes that are not a message, with the key of one.
pub(crate) fn poison() -> Outgoing {
    let mut poison = outgoing(submitted(0));
    poison.message.payload = b"\xff\xff not an envelope".as_slice().into();
    poison.create_time = Timestamp::UNIX_EPOCH;
    poison
}

/// Publishes to a running broker. A new quorum queue refuses messages until it has a leader; a relay retries
/// then, and so does this.
pub(crate) async fn publish(bus: &dyn Bus, outgoing: Outgoing) {
    eventually("a queue takes a message", async || {
        match bus.publish(std::slice::from_ref(&outgoing)).await.remove(0) {
            Ok(published) => {
                assert_eq!(published, bus::Published::Routed);
                true
            }
            Err(error) => {
                assert!(matches!(error, bus::Error::Refused), "{error:?}");
                false
            }
        }
    })
    .await;
}

/// Publishes like a relay: until it works.
pub(crate) async fn publish_until_taken(bus: &dyn Bus, outgoing: Outgoing) {
    eventually("the bus takes a message", async || {
        bus.publish(std::slice::from_ref(&outgoing)).await[0].is_ok()
    })
    .await;
}

type Script = dyn Fn(&ManagerSubmitted, u32) -> Outcome + Send + Sync;

/// Answers each event according to the script, given how often it came before.
pub(crate) struct Scripted {
    script: Box<Script>,
    counts: Mutex<HashMap<ManagerName, u32>>,
    seen: mpsc::UnboundedSender<i64>,
}

impl Consumer for Scripted {
    const QUEUE: &'static str = QUEUE;
    type Event = ManagerSubmitted;

    async fn consume(&self, event: ManagerSubmitted) -> Outcome {
        let count = {
            let mut counts = self.counts.lock().unwrap();
            let count = counts.entry(event.name).or_default();
            *count += 1;
            *count - 1
        };
        self.seen.send(event.generation).unwrap();
        (self.script)(&event, count)
    }
}

/// A running consumer. When dropped, it dies at once, with the messages that it is handling.
pub(crate) struct Running {
    task: JoinHandle<()>,
    seen: mpsc::UnboundedReceiver<i64>,
    shutdown: CancellationToken,
    /// Ready while messages flow.
    pub(crate) health: Health,
    pub(crate) suspended: watch::Sender<bool>,
}

pub(crate) fn start(
    bus: Arc<dyn Bus>,
    script: impl Fn(&ManagerSubmitted, u32) -> Outcome + Send + Sync + 'static,
) -> Running {
    let (sender, seen) = mpsc::unbounded_channel();
    let consumer = Scripted {
        script: Box::new(script),
        counts: Mutex::default(),
        seen: sender,
    };
    let health = Health::new();
    let suspended = watch::Sender::new(false);
    let options = ConsumeOptions {
        check: Some(health.check("consumer")),
        concurrency: 4,
        suspended: Some(suspended.subscribe()),
        max_backoff: Duration::from_millis(400),
        ..ConsumeOptions::default()
    };
    let shutdown = CancellationToken::new();
    Running {
        task: tokio::spawn(bus::consume(
            bus,
            Arc::new(consumer),
            options,
            shutdown.clone(),
        )),
        seen,
        shutdown,
        health,
        suspended,
    }
}

impl Running {
    /// The generation of the next event that is handled, or tried.
    pub(crate) async fn next(&mut self) -> i64 {
        tokio::time::timeout(TIMEOUT, self.seen.recv())
            .await
            .expect("an event comes")
            .unwrap()
    }

    pub(crate) async fn nothing_for(&mut self, time: Duration) {
        let event = tokio::time::timeout(time, self.seen.recv()).await;
        assert!(event.is_err(), "{event:?} came");
    }

    pub(crate) async fn stop(mut self) {
        self.shutdown.cancel();
        tokio::time::timeout(TIMEOUT, &mut self.task)
            .await
            .expect("the consumer drains")
            .unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) async fn has_dead_letters(bus: &dyn Bus, count: u32) {
    eventually("the dead letters", async || {
        bus.depth(QUEUE)
            .await
            .is_ok_and(|depth| depth.dead_letters == count)
    })
    .await;
}
