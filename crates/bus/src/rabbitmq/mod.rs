//! The bus on RabbitMQ, 3.10 and later.
//!
//! A durable topic exchange takes all events. The replicas of a reader of work share a queue, which ends with the last of
//! them; each reader of broadcasts has an exclusive queue, which ends with its connection. Messages are not stored, and
//! neither confirmed nor acknowledged.
//!
//! [`link`] holds a connection. [`publisher`] and [`subscription`] use one each: a broker that is short of
//! memory blocks connections that publish, and must not block those that read. [`declare`] creates exchange and queues.

mod declare;
mod link;
mod properties;
mod publisher;
mod subscription;

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use lapin::uri::AMQPUri;

use self::{
    link::{Link, Role},
    publisher::Publisher,
    subscription::RabbitMqSubscription,
};
use crate::{
    Topology,
    transport::{Bus, Error, Outgoing, Subscription},
};

/// A broker, and our exchange and queues on it. Clones share its connections, which are opened on first use,
/// and again when they are lost.
#[derive(Clone)]
pub struct RabbitMq {
    topology: Arc<Topology>,
    consuming: Arc<Link>,
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
        Ok(Self {
            publisher: Arc::new(Publisher::new(
                link(Role::Publishing),
                Arc::clone(&topology),
            )),
            consuming: link(Role::Consuming),
            topology,
        })
    }

    fn subscribe(&self, queue: Option<String>, keys: &[&str]) -> Box<dyn Subscription> {
        Box::new(RabbitMqSubscription::new(
            Arc::clone(&self.consuming),
            Arc::clone(&self.topology),
            queue,
            keys,
        ))
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

    async fn publish(&self, message: &Outgoing) -> Result<(), Error> {
        self.publisher.publish(message).await
    }

    fn work(&self, queue: &str, keys: &[&str]) -> Box<dyn Subscription> {
        self.subscribe(Some(self.topology.queue_name(queue)), keys)
    }

    fn news(&self, keys: &[&str]) -> Box<dyn Subscription> {
        self.subscribe(None, keys)
    }

    async fn check(&self) -> Result<(), Error> {
        self.publisher.check().await?;
        self.consuming.channel().await.map(drop)
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
