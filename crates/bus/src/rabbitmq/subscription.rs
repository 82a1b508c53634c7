//! A subscription that survives the loss of connections, brokers and queues.
//!
//! When the stream of messages ends (a lost connection, a deleted queue, a closed channel), it declares
//! everything again and continues, with backoff and without a limit. The broker then delivers the unsettled
//! messages again.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use lapin::{
    Acker, BasicProperties, Channel,
    message::Delivery as Incoming,
    options::{
        BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicNackOptions,
        BasicPublishOptions, BasicQosOptions, ConfirmSelectOptions,
    },
    types::{FieldTable, ShortString},
};
use runtime::Backoff;
use tokio::time::timeout;

use super::{
    declare,
    link::{Link, answer, away},
    properties,
};
use crate::{
    Topology,
    topology::WorkQueue,
    transport::{Delivery, Error, Received, Settle, Subscription},
};

const NEWS_PREFETCH: u16 = 64;
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);
/// Wait after the broker has ended a subscription, usually because its queue was deleted. See
/// [`super::publisher::REPLACEMENT_WAIT`].
const REPLACEMENT_WAIT: Duration = Duration::from_millis(500);

pub(super) enum Kind {
    Work { queue: WorkQueue, prefetch: u16 },
    News { keys: Vec<String> },
}

pub(super) struct RabbitMqSubscription {
    link: Arc<Link>,
    publishing: Arc<Link>,
    topology: Arc<Topology>,
    kind: Kind,
    stream: Option<Stream>,
    backoff: Backoff,
    /// Wait before the next attempt, in addition to the backoff.
    wait: Duration,
    /// Only the very first attempt starts at once.
    was_tried: bool,
    /// True if the log says that no messages flow.
    told: bool,
}

struct Stream {
    channel: Channel,
    consumer: lapin::Consumer,
    /// Target for messages that are put back or set aside.
    home: Arc<Home>,
}

struct Home {
    /// A second connection, because the one that publishes may be blocked.
    publishing: Arc<Link>,
    topology: Arc<Topology>,
    /// `None` for broadcasts, which are not settled.
    queue: Option<WorkQueue>,
}

impl RabbitMqSubscription {
    pub(super) fn new(
        link: Arc<Link>,
        publishing: Arc<Link>,
        topology: Arc<Topology>,
        kind: Kind,
    ) -> Self {
        Self {
            link,
            publishing,
            topology,
            kind,
            stream: None,
            backoff: Backoff::reconnect(),
            wait: Duration::ZERO,
            was_tried: false,
            told: false,
        }
    }

    fn name(&self) -> &str {
        match &self.kind {
            Kind::Work { queue, .. } => &queue.name,
            Kind::News { .. } => "news",
        }
    }

    async fn subscribe(&self) -> Result<Stream, Error> {
        let channel = self.link.channel().await?;
        let (name, prefetch, queue) = match &self.kind {
            Kind::Work { queue, prefetch } => {
                declare::work(&channel, &self.topology, queue).await?;
                let name = ShortString::from(queue.name.as_str());
                (name, *prefetch, Some(queue.clone()))
            }
            Kind::News { keys } => {
                let name = declare::news(&channel, &self.topology, keys).await?;
                (name, NEWS_PREFETCH, None)
            }
        };
        answer(channel.basic_qos(prefetch, BasicQosOptions::default())).await?;
        let consumer = answer(channel.basic_consume(
            name,
            "".into(),
            BasicConsumeOptions::default(),
            FieldTable::default(),
        ))
        .await?;
        Ok(Stream {
            channel,
            consumer,
            home: Arc::new(Home {
                publishing: Arc::clone(&self.publishing),
                topology: Arc::clone(&self.topology),
                queue,
            }),
        })
    }

    fn tell(&mut self, cause: &str) {
        let told = std::mem::replace(&mut self.told, true);
        let queue = self.name();
        match told {
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
                    return Received::Delivery(deliver(incoming, stream));
                }
                Some(Err(error)) => self.tell(&error.to_string()),
                None => {
                    self.tell("the broker ended the subscription");
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
                    self.told = false;
                    tracing::info!(queue = self.name(), "subscribed");
                    return Received::Connected;
                }
                Err(error) => self.tell(&format!("{:#}", anyhow::Error::from(error))),
            }
        }
    }

    async fn stop(&mut self) {
        if let Some(stream) = &self.stream {
            let tag = stream.consumer.tag();
            let cancel = stream
                .channel
                .basic_cancel(tag, BasicCancelOptions::default());
            // If this fails, closing the channel has the same effect.
            let _ = answer(cancel).await;
        }
    }
}

fn deliver(incoming: Incoming, stream: &Stream) -> Delivery {
    let payload = Bytes::from(incoming.data);
    Delivery {
        payload: payload.clone(),
        key: incoming.routing_key.to_string(),
        trace: properties::trace(&incoming.properties),
        redelivered: incoming.redelivered,
        tag: incoming.delivery_tag,
        settle: Box::new(Held {
            acker: incoming.acker,
            properties: incoming.properties,
            payload,
            home: Arc::clone(&stream.home),
        }),
    }
}

/// A message that is being handled.
struct Held {
    acker: Acker,
    properties: BasicProperties,
    payload: Bytes,
    home: Arc<Home>,
}

impl Held {
    /// Sends the message elsewhere and waits until it is stored there, before it is acknowledged here. If the
    /// process dies in between, the message is in both places, which at-least-once delivery allows.
    async fn move_to(&self, place: Place, properties: BasicProperties) -> Result<(), Error> {
        let Home {
            publishing,
            topology,
            queue,
        } = &*self.home;
        if let Some(queue) = queue {
            let channel = publishing.channel().await?;
            // This is rare enough to declare the queue each time.
            declare::work(&channel, topology, queue).await?;
            answer(channel.confirm_select(ConfirmSelectOptions::default())).await?;
            let exchange = match place {
                Place::DeadLetters => topology.dead_letter_exchange.as_str(),
                Place::SameQueue => "",
            };
            publish_confirmed(&channel, exchange, &queue.name, &self.payload, properties).await?;
        }
        self.ack().await
    }
}

enum Place {
    DeadLetters,
    SameQueue,
}

/// Publishes to a queue that must exist.
pub(super) async fn publish_confirmed(
    channel: &Channel,
    exchange: &str,
    key: &str,
    payload: &[u8],
    properties: BasicProperties,
) -> Result<(), Error> {
    let options = BasicPublishOptions {
        mandatory: true,
        ..BasicPublishOptions::default()
    };
    let publish = channel.basic_publish(exchange.into(), key.into(), options, payload, properties);
    match answer(answer(publish).await?).await? {
        lapin::Confirmation::Ack(None) => Ok(()),
        _ => Err(Error::Refused),
    }
}

/// Waits until a settlement is sent; the broker does not answer it. If the connection is lost meanwhile, lapin
/// may never complete the future, and block one of the consumer's slots.
async fn written(
    settlement: impl Future<Output = Result<bool, lapin::Error>>,
) -> Result<(), Error> {
    match timeout(WRITE_TIMEOUT, settlement).await {
        Ok(Ok(true)) => Ok(()),
        Ok(Ok(false)) => Err(Error::Away("the delivery is no longer valid".into())),
        Ok(Err(error)) => Err(away(error)),
        Err(_) => Err(Error::TimedOut(WRITE_TIMEOUT)),
    }
}

#[async_trait]
impl Settle for Held {
    async fn ack(&self) -> Result<(), Error> {
        written(self.acker.ack(BasicAckOptions::default())).await
    }

    async fn requeue(&self) -> Result<(), Error> {
        // Since 4.3 a nack, unlike a reject, does not count against the message.
        let options = BasicNackOptions {
            multiple: false,
            requeue: true,
        };
        written(self.acker.nack(options)).await
    }

    async fn renew(&self) -> Result<(), Error> {
        let properties = properties::as_new(self.properties.clone());
        self.move_to(Place::SameQueue, properties).await
    }

    async fn dead_letter(&self, reason: &str) -> Result<(), Error> {
        // We publish it ourselves, because the broker's dead-lettering cannot add the reason.
        let properties = properties::with_reason(self.properties.clone(), reason);
        self.move_to(Place::DeadLetters, properties).await
    }

    fn is_lost(&self) -> bool {
        !self.acker.usable()
    }
}
