//! The exchanges and queues.
//!
//! Every process declares all of them, publishers too, so that an event finds its work queue regardless of
//! which service starts first. `deploy/` ships the same as broker definitions.

use events::{Event, ManagerSubmitted, ScanCreated};

/// Maximum number of deliveries of a message whose readers crash, before it is set aside.
///
/// Up to RabbitMQ 4.2 every return counts, including a reader's orderly shutdown; since 4.3 only failures
/// count. 20 is also the default of 4.x; 3.x has no default limit.
pub(crate) const DELIVERY_LIMIT: i32 = 20;

/// The queue of the compilers.
pub const MANAGER_SUBMITTED: &str = "manager-compiler.manager-submitted";
/// The queue of the dispatchers.
pub const SCAN_CREATED: &str = "webhook-dispatcher.scan-created";

/// The names of exchanges and queues on one broker.
#[derive(Debug, Clone)]
pub struct Topology {
    prefix: Option<String>,
    pub(crate) exchange: String,
    /// Exchange for dead letters; the routing key is the name of their queue.
    pub(crate) dead_letter_exchange: String,
    pub(crate) work: Vec<WorkQueue>,
}

/// A work queue and its bindings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkQueue {
    pub(crate) name: String,
    pub(crate) keys: Vec<String>,
}

impl Default for Topology {
    /// Earshot's own topology: `earshot.events` and a queue for each reader of work.
    fn default() -> Self {
        Self::new(None)
            .with_work(MANAGER_SUBMITTED, &[ManagerSubmitted::KEY])
            .with_work(SCAN_CREATED, &[ScanCreated::KEY])
    }
}

impl Topology {
    /// A topology with separate names on the same broker, for tests, without any queue.
    #[must_use]
    pub fn scoped(prefix: &str) -> Self {
        Self::new(Some(prefix.to_owned()))
    }

    fn new(prefix: Option<String>) -> Self {
        let scope = prefix.as_deref().unwrap_or("earshot");
        Self {
            exchange: format!("{scope}.events"),
            dead_letter_exchange: format!("{scope}.events.dead"),
            work: Vec::new(),
            prefix,
        }
    }

    /// Adds a queue that publishers declare, so that it exists before its first reader.
    #[must_use]
    pub fn with_work(mut self, queue: &str, keys: &[&str]) -> Self {
        self.work.push(self.work_queue(queue, keys));
        self
    }

    pub(crate) fn work_queue(&self, queue: &str, keys: &[&str]) -> WorkQueue {
        WorkQueue {
            name: self.queue_name(queue),
            keys: keys.iter().map(|&key| key.to_owned()).collect(),
        }
    }

    /// The name of `queue` on the broker.
    pub(crate) fn queue_name(&self, queue: &str) -> String {
        match &self.prefix {
            Some(prefix) => format!("{prefix}.{queue}"),
            None => queue.to_owned(),
        }
    }

    /// Returns true if events with `key` are work, so that an unroutable one is an error.
    pub(crate) fn is_work(&self, key: &str) -> bool {
        self.work
            .iter()
            .any(|queue| queue.keys.iter().any(|bound| bound == key))
    }
}

/// The name of the dead-letter queue of `queue`.
pub(crate) fn dead_letter_queue(queue: &str) -> String {
    format!("{queue}.dead")
}
