//! Which exchanges and queues there are.
//!
//! Every process declares all of it, publishers too, so that an event which somebody must act on finds
//! its queue whatever starts first. `deploy/` ships the same as broker definitions.

use events::{Event, ManagerSubmitted, ScanCreated};

/// How often the broker hands out a message whose readers die of it, before it is set aside.
///
/// Up to RabbitMQ 4.2 every return counts, a reader's orderly shutdown too; from 4.3 on failures alone.
/// 20 is also what 4.x takes by default, while 3.x has no limit of its own.
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
    /// Where dead letters go, by the name of the queue that they were in.
    pub(crate) dead_letter_exchange: String,
    pub(crate) work: Vec<WorkQueue>,
}

/// A queue of work and what it is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkQueue {
    pub(crate) name: String,
    pub(crate) keys: Vec<String>,
}

impl Default for Topology {
    /// Earshot's own: `earshot.events` and a queue for each reader of work.
    fn default() -> Self {
        Self::new(None)
            .with_work(MANAGER_SUBMITTED, &[ManagerSubmitted::KEY])
            .with_work(SCAN_CREATED, &[ScanCreated::KEY])
    }
}

impl Topology {
    /// One apart from all others on the same broker, as tests need it, without any queue.
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

    /// What `queue` is called on the broker.
    pub(crate) fn queue_name(&self, queue: &str) -> String {
        match &self.prefix {
            Some(prefix) => format!("{prefix}.{queue}"),
            None => queue.to_owned(),
        }
    }

    /// Whether somebody must act on events of `key`, so that being unroutable is a fault.
    pub(crate) fn is_work(&self, key: &str) -> bool {
        self.work
            .iter()
            .any(|queue| queue.keys.iter().any(|bound| bound == key))
    }
}

/// Where the dead letters of `queue` are kept.
pub(crate) fn dead_letter_queue(queue: &str) -> String {
    format!("{queue}.dead")
}
