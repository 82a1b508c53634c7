//! A broker, a consumer, and waiting with a limit.

use std::{
    path::Path,
    sync::{Arc, LazyLock, Mutex},
};

use bus::{Bus, Consumer, Outgoing, RabbitMq, RabbitMqOptions, Topology};
use domain::{Id, ManagerName};
use events::{ManagerSubmitted, Message, TraceContext};
use runtime::Health;
use test_support::{TIMEOUT, eventually};
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_util::sync::CancellationToken;

pub(crate) const QUEUE: &str = "test-compiler.wakeups";

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

/// The exchange and queues of a test.
pub(crate) fn topology() -> Topology {
    Topology::scoped(&format!("test-{}", Id::generate()))
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
    poison
}

struct Noting(mpsc::UnboundedSender<i64>);

impl Consumer for Noting {
    const QUEUE: &'static str = QUEUE;
    type Event = ManagerSubmitted;

    fn consume(&self, event: ManagerSubmitted) {
        self.0.send(event.generation).unwrap();
    }
}

/// A running consumer, which ends when it is dropped.
pub(crate) struct Running {
    task: JoinHandle<()>,
    seen: mpsc::UnboundedReceiver<i64>,
    shutdown: CancellationToken,
    health: Health,
}

/// Starts a consumer, and waits until it is subscribed.
pub(crate) async fn start(bus: Arc<dyn Bus>) -> Running {
    let (sender, seen) = mpsc::unbounded_channel();
    let health = Health::new();
    let shutdown = CancellationToken::new();
    let check = Some(health.check("consumer"));
    let consumer = Arc::new(Noting(sender));
    let running = Running {
        task: tokio::spawn(bus::consume(bus, consumer, check, shutdown.clone())),
        seen,
        shutdown,
        health,
    };
    eventually("it is subscribed", async || running.is_subscribed()).await;
    running
}

impl Running {
    pub(crate) fn is_subscribed(&self) -> bool {
        self.health.report().checks.iter().all(|check| check.ok)
    }

    /// The generation of the next event.
    pub(crate) async fn next(&mut self) -> i64 {
        tokio::time::timeout(TIMEOUT, self.seen.recv())
            .await
            .expect("an event comes")
            .unwrap()
    }

    /// The generation of an event that came already.
    pub(crate) fn now(&mut self) -> Option<i64> {
        self.seen.try_recv().ok()
    }

    pub(crate) async fn stop(mut self) {
        self.shutdown.cancel();
        tokio::time::timeout(TIMEOUT, &mut self.task)
            .await
            .expect("the consumer ends")
            .unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}
