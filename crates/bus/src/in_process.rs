//! The bus within one process, for `earshot dev` and for tests.
//!
//! It makes the same promises as a broker, without persistence: messages in a queue are lost with the process,
//! and the sweeps find the work again. Queues are bounded; a full one refuses messages, which then wait in the
//! outbox.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use tokio::sync::{Notify, broadcast};

use crate::{
    Topology,
    transport::{
        Bus, Delivery, Error, Outgoing, Published, QueueDepth, Received, Settle, Subscription,
    },
};

/// Maximum number of messages in a queue, at a few hundred bytes each.
const CAPACITY: usize = 10_000;
/// Broadcast messages that a reader may be behind before it must resync.
const NEWS_CAPACITY: usize = 1024;
/// Dead letters kept for inspection; older ones are dropped.
const DEAD_LETTER_CAPACITY: usize = 1000;

/// A bus within one process. Clones share the same bus.
#[derive(Clone)]
pub struct InProcess {
    shared: Arc<Shared>,
}

struct Shared {
    queues: Mutex<HashMap<String, Arc<Queue>>>,
    news: broadcast::Sender<Outgoing>,
    capacity: usize,
}

#[derive(Default)]
struct Queue {
    content: Mutex<Content>,
    arrival: Notify,
}

#[derive(Default)]
struct Content {
    keys: Vec<String>,
    ready: VecDeque<Queued>,
    dead_letters: VecDeque<(Outgoing, String)>,
    consumers: u32,
    deliveries: u64,
}

struct Queued {
    message: Outgoing,
    redelivered: bool,
}

impl Default for InProcess {
    fn default() -> Self {
        Self::new()
    }
}

impl InProcess {
    #[must_use]
    pub fn new() -> Self {
        Self::with_capacity(CAPACITY)
    }

    fn with_capacity(capacity: usize) -> Self {
        let bus = Self {
            shared: Arc::new(Shared {
                queues: Mutex::default(),
                news: broadcast::Sender::new(NEWS_CAPACITY),
                capacity,
            }),
        };
        for queue in Topology::default().work {
            bus.queue(&queue.name).content().keys = queue.keys;
        }
        bus
    }

    /// The dead letters of `queue` with their reasons, oldest first.
    #[must_use]
    pub fn dead_letters(&self, queue: &str) -> Vec<(Outgoing, String)> {
        self.queue(queue)
            .content()
            .dead_letters
            .iter()
            .cloned()
            .collect()
    }

    fn queue(&self, name: &str) -> Arc<Queue> {
        let mut queues = lock(&self.shared.queues);
        Arc::clone(queues.entry(name.to_owned()).or_default())
    }

    fn publish_one(&self, message: &Outgoing) -> Result<Published, Error> {
        let queues: Vec<Arc<Queue>> = lock(&self.shared.queues).values().cloned().collect();
        let bound: Vec<Arc<Queue>> = queues
            .into_iter()
            .filter(|queue| queue.content().keys.contains(&message.message.key))
            .collect();
        if bound
            .iter()
            .any(|queue| queue.content().ready.len() >= self.shared.capacity)
        {
            return Err(Error::Full);
        }
        for queue in &bound {
            queue.content().ready.push_back(Queued {
                message: message.clone(),
                redelivered: false,
            });
            queue.arrival.notify_one();
        }
        let heard = self.shared.news.send(message.clone()).is_ok();
        Ok(if heard || !bound.is_empty() {
            Published::Routed
        } else {
            Published::Unroutable
        })
    }
}

#[async_trait]
impl Bus for InProcess {
    fn system(&self) -> &'static str {
        "in_process"
    }

    fn exchange(&self) -> &'static str {
        "earshot.events"
    }

    async fn publish(&self, batch: &[Outgoing]) -> Vec<Result<Published, Error>> {
        batch
            .iter()
            .map(|message| self.publish_one(message))
            .collect()
    }

    fn work(&self, queue: &str, keys: &[&str], _prefetch: u16) -> Box<dyn Subscription> {
        let queue = self.queue(queue);
        {
            let mut content = queue.content();
            content.consumers += 1;
            for key in keys {
                if !content.keys.iter().any(|bound| bound == key) {
                    content.keys.push((*key).to_owned());
                }
            }
        }
        Box::new(WorkSubscription {
            queue,
            connected: false,
        })
    }

    fn news(&self, keys: &[&str]) -> Box<dyn Subscription> {
        Box::new(NewsSubscription {
            keys: keys.iter().map(|&key| key.to_owned()).collect(),
            news: self.shared.news.subscribe(),
            connected: false,
        })
    }

    async fn depth(&self, queue: &str) -> Result<QueueDepth, Error> {
        let queue = self.queue(queue);
        let content = queue.content();
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        Ok(QueueDepth {
            ready: count(content.ready.len()),
            consumers: content.consumers,
            dead_letters: count(content.dead_letters.len()),
        })
    }

    async fn check(&self) -> Result<(), Error> {
        Ok(())
    }
}

impl Queue {
    fn content(&self) -> MutexGuard<'_, Content> {
        lock(&self.content)
    }

    fn take(self: &Arc<Self>) -> Option<Delivery> {
        let mut content = self.content();
        let Queued {
            message,
            redelivered,
        } = content.ready.pop_front()?;
        content.deliveries += 1;
        let tag = content.deliveries;
        Some(Delivery {
            payload: message.message.payload.clone(),
            key: message.message.key.clone(),
            trace: message.trace.clone(),
            redelivered,
            tag,
            settle: Box::new(Held {
                queue: Arc::clone(self),
                message,
                settled: AtomicBool::new(false),
            }),
        })
    }

    /// Puts a message back in front of newer ones. Never refused, because it was in the queue before.
    fn put_back(&self, message: Outgoing, redelivered: bool) {
        self.content().ready.push_front(Queued {
            message,
            redelivered,
        });
        self.arrival.notify_one();
    }
}

struct WorkSubscription {
    queue: Arc<Queue>,
    connected: bool,
}

#[async_trait]
impl Subscription for WorkSubscription {
    async fn next(&mut self) -> Received {
        if !std::mem::replace(&mut self.connected, true) {
            return Received::Connected;
        }
        loop {
            let arrival = self.queue.arrival.notified();
            if let Some(delivery) = self.queue.take() {
                return Received::Delivery(delivery);
            }
            arrival.await;
        }
    }

    async fn stop(&mut self) {}
}

impl Drop for WorkSubscription {
    fn drop(&mut self) {
        self.queue.content().consumers -= 1;
        // This reader may have received the only notification of an arrival.
        self.queue.arrival.notify_one();
    }
}

/// A message that a reader is handling.
struct Held {
    queue: Arc<Queue>,
    message: Outgoing,
    settled: AtomicBool,
}

impl Held {
    /// Returns true if the caller may settle it.
    fn settle(&self) -> bool {
        !self.settled.swap(true, Ordering::AcqRel)
    }
}

#[async_trait]
impl Settle for Held {
    async fn ack(&self) -> Result<(), Error> {
        self.settle();
        Ok(())
    }

    async fn requeue(&self) -> Result<(), Error> {
        if self.settle() {
            self.queue.put_back(self.message.clone(), true);
        }
        Ok(())
    }

    async fn renew(&self) -> Result<(), Error> {
        if self.settle() {
            self.queue.put_back(self.message.clone(), false);
        }
        Ok(())
    }

    async fn dead_letter(&self, reason: &str) -> Result<(), Error> {
        if self.settle() {
            let mut content = self.queue.content();
            if content.dead_letters.len() >= DEAD_LETTER_CAPACITY {
                content.dead_letters.pop_front();
            }
            content
                .dead_letters
                .push_back((self.message.clone(), reason.to_owned()));
        }
        Ok(())
    }

    fn is_lost(&self) -> bool {
        false
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.settle() {
            self.queue.put_back(self.message.clone(), true);
        }
    }
}

struct NewsSubscription {
    keys: Vec<String>,
    news: broadcast::Receiver<Outgoing>,
    connected: bool,
}

#[async_trait]
impl Subscription for NewsSubscription {
    async fn next(&mut self) -> Received {
        if !std::mem::replace(&mut self.connected, true) {
            return Received::Connected;
        }
        loop {
            match self.news.recv().await {
                Ok(message) if self.keys.contains(&message.message.key) => {
                    return Received::Delivery(Delivery {
                        payload: message.message.payload,
                        key: message.message.key,
                        trace: message.trace,
                        redelivered: false,
                        tag: 0,
                        settle: Box::new(Told),
                    });
                }
                Ok(_) => {}
                Err(broadcast::error::RecvError::Lagged(_)) => return Received::Connected,
                // The bus is gone, so nothing will ever come.
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }

    async fn stop(&mut self) {}
}

/// Broadcast messages need no settling: each is sent once.
struct Told;

#[async_trait]
impl Settle for Told {
    async fn ack(&self) -> Result<(), Error> {
        Ok(())
    }

    async fn requeue(&self) -> Result<(), Error> {
        Ok(())
    }

    async fn renew(&self) -> Result<(), Error> {
        Ok(())
    }

    async fn dead_letter(&self, _reason: &str) -> Result<(), Error> {
        Ok(())
    }

    fn is_lost(&self) -> bool {
        false
    }
}

/// A panic while one of these locks is held leaves no inconsistent state.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
