//! The bus on RabbitMQ, 3.10 and later.
//!
//! A durable topic exchange takes all events. Each reader of work has a quorum queue with a delivery limit and
//! a dead-letter queue; each reader of broadcasts an exclusive queue that ends with its connection. Publishing
//! waits for the broker's confirm; acknowledgements are manual.
//!
//! [`link`] holds a connection. [`publisher`] and [`subscription`] use one each: a broker that is short of
//! memory blocks connections that publish, and must not block acknowledgements too. [`declare`] creates the
//! queues, [`dead_letters`] lists dead letters and puts them back.

mod dead_letters;
mod declare;
mod link;
mod properties;
mod publisher;
mod subscription;

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use lapin::uri::AMQPUri;

pub use dead_letters::DeadLetter;

use self::{
    link::{Link, Role},
    publisher::Publisher,
    subscription::{Kind, RabbitMqSubscription},
};
use crate::{
    Topology,
    topology::dead_letter_queue,
    transport::{Bus, Error, Outgoing, Published, QueueDepth, Subscription},
};

/// A broker, and our exchanges and queues on it. Clones share its connections, which are opened on first use,
/// and again when they are lost.
#[derive(Clone)]
pub struct RabbitMq {
    topology: Arc<Topology>,
    consuming: Arc<Link>,
    publishing: Arc<Link>,
    publisher: Arc<Publisher>,
}

#[derive(Debug, Clone, Default)]
pub struct RabbitMqOptions {
    pub topology: Topology,
    /// Name in the broker's list of connections, for example `earshot-scanner`.
    pub connection_name: String,
    /// PEM file with certificates to trust for `amqps:`, in addition to the public ones; read again for each
    /// connection.
    pub ca_certificates_file: Option<PathBuf>,
}

/// The text is not an `amqp:` or `amqps:` address. It may contain a password, so it is not repeated.
#[derive(Debug, thiserror::Error)]
#[error("invalid broker address: {0}")]
pub struct InvalidUrl(String);

impl RabbitMq {
    /// Does not connect yet: the first use shows whether the broker answers.
    ///
    /// # Errors
    /// When `url` is not an AMQP address.
    pub fn new(url: &str, options: RabbitMqOptions) -> Result<Self, InvalidUrl> {
        let uri = parse(url).map_err(InvalidUrl)?;
        let link = |role| {
            Arc::new(Link::new(
                uri.clone(),
                role,
                &options.connection_name,
                options.ca_certificates_file.clone(),
            ))
        };
        let topology = Arc::new(options.topology);
        let publishing = link(Role::Publishing);
        Ok(Self {
            publisher: Arc::new(Publisher::new(
                Arc::clone(&publishing),
                Arc::clone(&topology),
            )),
            publishing,
            consuming: link(Role::Consuming),
            topology,
        })
    }

    /// Returns the oldest dead letters of `queue`, up to `limit`. They stay in the queue.
    ///
    /// # Errors
    /// When the broker is away or has no such queue.
    pub async fn dead_letters(&self, queue: &str, limit: usize) -> Result<Vec<DeadLetter>, Error> {
        let queue = self.topology.queue_name(queue);
        dead_letters::list(&self.consuming, &queue, limit).await
    }

    /// Puts up to `limit` dead letters of `queue` back into it, the oldest first. Returns how many there were.
    ///
    /// # Errors
    /// When the broker is away or has no such queue. Messages that were already put back stay there.
    pub async fn requeue_dead_letters(&self, queue: &str, limit: usize) -> Result<usize, Error> {
        let queue = self.topology.queue_name(queue);
        dead_letters::requeue(&self.consuming, &queue, limit).await
    }

    /// The names of the work queues on the broker.
    #[must_use]
    pub fn work_queues(&self) -> Vec<String> {
        self.topology
            .work
            .iter()
            .map(|queue| queue.name.clone())
            .collect()
    }
}

#[async_trait]
impl Bus for RabbitMq {
    fn system(&self) -> &'static str {
        "rabbitmq"
    }

    fn exchange(&self) -> &str {
        &self.topology.exchange
    }

    async fn publish(&self, batch: &[Outgoing]) -> Vec<Result<Published, Error>> {
        self.publisher.publish(batch).await
    }

    fn work(&self, queue: &str, keys: &[&str], prefetch: u16) -> Box<dyn Subscription> {
        self.subscribe(Kind::Work {
            queue: self.topology.work_queue(queue, keys),
            prefetch,
        })
    }

    fn news(&self, keys: &[&str]) -> Box<dyn Subscription> {
        self.subscribe(Kind::News {
            keys: keys.iter().map(|&key| key.to_owned()).collect(),
        })
    }

    async fn depth(&self, queue: &str) -> Result<QueueDepth, Error> {
        let queue = self.topology.queue_name(queue);
        // A missing queue closes the channel, so this channel is not used for anything else.
        let channel = self.consuming.channel().await?;
        let (ready, consumers) = declare::depth(&channel, &queue).await?;
        let (dead_letters, _) = declare::depth(&channel, &dead_letter_queue(&queue)).await?;
        Ok(QueueDepth {
            ready,
            consumers,
            dead_letters,
        })
    }

    async fn check(&self) -> Result<(), Error> {
        self.publisher.check().await?;
        self.consuming.channel().await.map(drop)
    }
}

impl RabbitMq {
    fn subscribe(&self, kind: Kind) -> Box<dyn Subscription> {
        Box::new(RabbitMqSubscription::new(
            Arc::clone(&self.consuming),
            Arc::clone(&self.publishing),
            Arc::clone(&self.topology),
            kind,
        ))
    }
}

/// Parses an address. RabbitMQ's operator writes addresses that end in `/`, and means the default virtual host.
fn parse(url: &str) -> Result<AMQPUri, String> {
    let mut uri: AMQPUri = url.parse()?;
    if uri.vhost.is_empty() {
        uri.vhost = "/".to_owned();
    }
    Ok(uri)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn address_without_a_virtual_host_means_the_default_one() {
        for (url, vhost) in [
            ("amqp://user:pass@broker:5672/", "/"),
            ("amqp://user:pass@broker:5672", "/"),
            ("amqps://broker/?heartbeat=10", "/"),
            ("amqp://broker/%2f", "/"),
            ("amqp://broker/earshot", "earshot"),
        ] {
            assert_eq!(parse(url).unwrap().vhost, vhost, "{url}");
        }
    }
}
