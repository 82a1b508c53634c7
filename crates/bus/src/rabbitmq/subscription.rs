//! A subscription that survives the loss of connections, brokers and queues.
//!
//! When the stream of messages ends (a lost connection, a deleted queue, a closed channel), it declares
//! everything again and continues, with backoff and without a limit. The broker sends messages without waiting for
//! acknowledgements: those that were on the way are lost.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures::StreamExt;
use lapin::{Channel, options::BasicConsumeOptions, types::FieldTable};
use runtime::Backoff;

use super::{
    declare,
    link::{Link, answer},
    properties,
};
use crate::{
    Topology,
    transport::{Delivery, Error, Received, Subscription},
};

/// Wait after the broker has ended a subscription, for example because its queue was deleted.
const REPLACEMENT_WAIT: Duration = Duration::from_millis(500);

pub(super) struct RabbitMqSubscription {
    link: Arc<Link>,
    topology: Arc<Topology>,
    /// `None` for broadcasts.
    queue: Option<String>,
    keys: Vec<String>,
    stream: Option<Stream>,
    backoff: Backoff,
    /// Wait before the next attempt, in addition to the backoff.
    wait: Duration,
    /// Only the very first attempt starts at once.
    was_tried: bool,
    /// True if the log says that no messages flow.
    is_logged: bool,
}

struct Stream {
    consumer: lapin::Consumer,
    /// Open as long as it is held.
    _channel: Channel,
}

impl RabbitMqSubscription {
    pub(super) fn new(
        link: Arc<Link>,
        topology: Arc<Topology>,
        queue: Option<String>,
        keys: &[&str],
    ) -> Self {
        Self {
            link,
            topology,
            queue,
            keys: keys.iter().map(|&key| key.to_owned()).collect(),
            stream: None,
            backoff: Backoff::reconnect(),
            wait: Duration::ZERO,
            was_tried: false,
            is_logged: false,
        }
    }

    fn name(&self) -> &str {
        self.queue.as_deref().unwrap_or("news")
    }

    async fn subscribe(&self) -> Result<Stream, Error> {
        let channel = self.link.channel().await?;
        let name = match &self.queue {
            Some(queue) => declare::work(&channel, &self.topology, queue, &self.keys).await?,
            None => declare::news(&channel, &self.topology, &self.keys).await?,
        };
        let options = BasicConsumeOptions {
            no_ack: true,
            ..BasicConsumeOptions::default()
        };
        let consume = channel.basic_consume(name, "".into(), options, FieldTable::default());
        let consumer = answer(consume).await?;
        Ok(Stream {
            consumer,
            _channel: channel,
        })
    }

    fn log(&mut self, cause: &str) {
        let is_logged = std::mem::replace(&mut self.is_logged, true);
        let queue = self.name();
        match is_logged {
            false => tracing::warn!(queue, cause, "no messages flow, retrying"),
            true => tracing::debug!(queue, cause, "still no messages flow"),
        }
    }
}

#[async_trait]
impl Subscription for RabbitMqSubscription {
    async fn next(&mut self) -> Received {
        if let Some(stream) = &mut self.stream {
            match stream.consumer.next().await {
                Some(Ok(incoming)) => {
                    self.backoff.reset();
                    return Received::Delivery(Delivery {
                        payload: incoming.data.into(),
                        key: incoming.routing_key.to_string(),
                        trace: properties::trace(&incoming.properties),
                    });
                }
                Some(Err(error)) => self.log(&error.to_string()),
                None => {
                    self.log("the broker ended the subscription");
                    self.wait = REPLACEMENT_WAIT;
                }
            }
            self.stream = None;
            return Received::Lost;
        }
        loop {
            tokio::time::sleep(std::mem::take(&mut self.wait)).await;
            if std::mem::replace(&mut self.was_tried, true) {
                self.backoff.wait().await;
            }
            match self.subscribe().await {
                Ok(stream) => {
                    self.stream = Some(stream);
                    self.is_logged = false;
                    tracing::info!(queue = self.name(), "subscribed");
                    return Received::Connected;
                }
                Err(error) => self.log(&format!("{:#}", anyhow::Error::from(error))),
            }
        }
    }
}
