//! Sends messages on one channel, without confirms.

use std::sync::Arc;

use lapin::{Channel, options::BasicPublishOptions};
use tokio::sync::Mutex;

use super::{
    declare,
    link::{Link, answer},
    properties,
};
use crate::{
    Topology, metrics,
    transport::{Error, Outgoing},
};

pub(super) struct Publisher {
    link: Arc<Link>,
    topology: Arc<Topology>,
    channel: Mutex<Option<Channel>>,
}

impl Publisher {
    pub(super) fn new(link: Arc<Link>, topology: Arc<Topology>) -> Self {
        Self {
            link,
            topology,
            channel: Mutex::new(None),
        }
    }

    pub(super) async fn check(&self) -> Result<(), Error> {
        self.channel().await.map(drop)
    }

    pub(super) async fn publish(&self, outgoing: &Outgoing) -> Result<(), Error> {
        let sent = self.send(outgoing).await;
        let error_type = match &sent {
            Ok(()) => "",
            Err(Error::Away(_)) => "away",
            Err(Error::TimedOut(_)) => "timeout",
        };
        metrics::SENT
            .with_label_values(&[self.topology.exchange.as_str(), "publish", error_type])
            .inc();
        sent
    }

    async fn send(&self, outgoing: &Outgoing) -> Result<(), Error> {
        let channel = self.channel().await?;
        let sent = answer(channel.basic_publish(
            self.topology.exchange.as_str().into(),
            outgoing.message.key.as_str().into(),
            BasicPublishOptions::default(),
            &outgoing.message.payload,
            properties::of(outgoing),
        ))
        .await;
        if sent.is_err() {
            *self.channel.lock().await = None;
        }
        sent.map(drop)
    }

    /// Returns the channel. Opens it and declares the exchange if necessary.
    async fn channel(&self) -> Result<Channel, Error> {
        let mut slot = self.channel.lock().await;
        if let Some(channel) = &*slot
            && channel.status().connected()
        {
            return Ok(channel.clone());
        }
        *slot = None;
        let channel = self.link.channel().await?;
        declare::exchange(&channel, &self.topology).await?;
        Ok(slot.insert(channel).clone())
    }
}
