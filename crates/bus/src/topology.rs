//! The names of the exchange and the queues.
//!
//! Publishers and readers declare the exchange, readers their queue.

/// The queue of the compilers, for `ManagerSubmitted`.
pub const MANAGER_SUBMITTED: &str = "manager-compiler.wakeups";
/// The queue of the dispatchers, for `ScanCreated`.
pub const SCAN_CREATED: &str = "webhook-dispatcher.wakeups";

/// Named after the package of the events. The exchange `earshot.events` was bound to queues that stored them, which
/// would fill up with no reader.
const EXCHANGE: &str = "earshot.events.v1";

/// The names on one broker.
#[derive(Debug, Clone)]
pub struct Topology {
    prefix: Option<String>,
    pub(crate) exchange: String,
}

impl Default for Topology {
    fn default() -> Self {
        Self {
            prefix: None,
            exchange: EXCHANGE.to_owned(),
        }
    }
}

impl Topology {
    /// A topology with separate names on the same broker, for tests.
    pub fn scoped(prefix: &str) -> Self {
        Self {
            exchange: format!("{prefix}.{EXCHANGE}"),
            prefix: Some(prefix.to_owned()),
        }
    }

    /// The name of `queue` on the broker.
    pub fn queue_name(&self, queue: &str) -> String {
        match &self.prefix {
            Some(prefix) => format!("{prefix}.{queue}"),
            None => queue.to_owned(),
        }
    }
}
