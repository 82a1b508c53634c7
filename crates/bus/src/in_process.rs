//! The bus within one process, for `earshot dev` and for tests.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use tokio::sync::{Notify, broadcast};

use crate::transport::{Bus, Delivery, Error, Outgoing, Received, Subscription};

/// Maximum number of messages in a queue, at a few hundred bytes each. Older ones are dropped.
const CAPACITY: usize = 10_000;
/// Broadcast messages that a reader may be behind before it must resync.
const NEWS_CAPACITY: usize = 1024;

/// A bus within one process. Clones share the same bus.
#[derive(Clone)]
pub struct InProcess {
    shared: Arc<Shared>,
}

struct Shared {
    queues: Mutex<HashMap<String, Arc<Queue>>>,
    news: broadcast::Sender<Outgoing>,
}

/// Exists from the first subscription on.
struct Queue {
    keys: Vec<String>,
    ready: Mutex<VecDeque<Delivery>>,
    arrival: Notify,
}

impl Default for InProcess {
    fn default() -> Self {
        Self::new()
    }
}

impl InProcess {
    pub fn new() -> Self {
        Self {
            shared: Arc::new(Shared {
                queues: Mutex::default(),
                news: broadcast::Sender::new(NEWS_CAPACITY),
            }),
        }
    }
}

#[async_trait]
impl Bus for InProcess {
    fn system(&self) -> &'static str {
        "in_process"
    }

    fn exchange(&self) -> &'static str {
        "earshot.events.v1"
    }

    async fn publish(&self, message: &Outgoing) -> Result<(), Error> {
        for queue in lock(&self.shared.queues).values() {
            if queue.keys.contains(&message.message.key) {
                queue.put(delivery(message));
            }
        }
        // Without a reader, the message is lost.
        let _ = self.shared.news.send(message.clone());
        Ok(())
    }

    fn work(&self, queue: &str, keys: &[&str]) -> Box<dyn Subscription> {
        let mut queues = lock(&self.shared.queues);
        let queue = queues.entry(queue.to_owned()).or_insert_with(|| {
            Arc::new(Queue {
                keys: keys.iter().map(|&key| key.to_owned()).collect(),
                ready: Mutex::default(),
                arrival: Notify::new(),
            })
        });
        Box::new(WorkSubscription {
            queue: Arc::clone(queue),
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

    async fn check(&self) -> Result<(), Error> {
        Ok(())
    }
}

impl Queue {
    fn put(&self, delivery: Delivery) {
        {
            let mut ready = lock(&self.ready);
            ready.push_back(delivery);
            if ready.len() > CAPACITY {
                ready.pop_front();
            }
        }
        self.arrival.notify_one();
    }

    fn take(&self) -> Option<Delivery> {
        lock(&self.ready).pop_front()
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
}

impl Drop for WorkSubscription {
    fn drop(&mut self) {
        // This reader may have received the only notification of an arrival.
        self.queue.arrival.notify_one();
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
                    return Received::Delivery(delivery(&message));
                }
                Ok(_) => {}
                Err(broadcast::error::RecvError::Lagged(_)) => return Received::Connected,
                // The bus is gone, so nothing will ever come.
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

fn delivery(message: &Outgoing) -> Delivery {
    Delivery {
        payload: message.message.payload.clone(),
        key: message.message.key.clone(),
        trace: message.trace.clone(),
    }
}

/// A panic while one of these locks is held leaves no inconsistent state.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
