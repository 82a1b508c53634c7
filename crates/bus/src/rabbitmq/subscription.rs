//! A subscription that outlives connections, brokers and queues.
//!
//! Whatever ends the stream of messages, a lost connection, a deleted queue, a channel that the broker
//! closed, it declares everything anew and goes on, with backoff and without end. What was in hand then
//! comes again from the broker.

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
/// After the broker has ended a subscription, mostly because somebody deleted its queue. See
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
    /// Before the next try, beside the backoff.
    wait: Duration,
    /// Only the first try of all is made at once.
    was_tried: bool,
    /// The log was told that messages do not flow.
    told: bool,
}

struct Stream {
    channel: Channel,
    consumer: lapin::Consumer,
    /// Where a message that is put back or set aside goes.
    home: Arc<Home>,
}

struct Home {
    /// Another connection than the messages came by: one that publishes may be blocked.
    publishing: Arc<Link>,
    topology: Arc<Topology>,
    /// `None` for news, which are told once.
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
            false => tracing::warn!(queue, cause, "no messages flow, trying until they do"),
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
            // Otherwise the channel's end does the same.
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

/// A message in hand.
struct Held {
    acker: Acker,
    properties: BasicProperties,
    payload: Bytes,
    home: Arc<Home>,
}

impl Held {
    /// Sends the message elsewhere and waits until it is safe there, before it is acknowledged here.
    /// Dying in between leaves it in both places, which is what at least once means.
    async fn move_to(&self, place: Place, properties: BasicProperties) -> Result<(), Error> {
        let Home {
            publishing,
            topology,
            queue,
        } = &*self.home;
        if let Some(queue) = queue {
            let channel = publishing.channel().await?;
            // Rare enough to make sure that the place is there.
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

/// Publishes to where there must be a queue.
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

/// Waits until a settlement is on its way; the broker does not answer it. lapin may leave one waiting
/// for good that was begun as the connection was lost, and a consumer's hand with it.
async fn written(
    settlement: impl Future<Output = Result<bool, lapin::Error>>,
) -> Result<(), Error> {
    match timeout(WRITE_TIMEOUT, settlement).await {
        Ok(Ok(true)) => Ok(()),
        Ok(Ok(false)) => Err(Error::Away("the delivery is void".into())),
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
        // From 4.3 on a nack, unlike a reject, does not count against the message.
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
        // Sent by ourselves and not by the broker, because only so can it carry the reason.
        let properties = properties::with_reason(self.properties.clone(), reason);
        self.move_to(Place::DeadLetters, properties).await
    }

    fn is_lost(&self) -> bool {
        !self.acker.usable()
    }
}
