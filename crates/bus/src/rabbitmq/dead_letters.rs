//! Lists dead letters, and puts them back after their cause is fixed.

use domain::Timestamp;
use events::Message;
use lapin::{
    Channel,
    message::Delivery,
    options::{BasicAckOptions, BasicGetOptions, BasicNackOptions, ConfirmSelectOptions},
};

use super::{
    declare,
    link::{Link, answer},
    properties,
    subscription::publish_confirmed,
};
use crate::{topology::dead_letter_queue, transport::Error};

/// A message that no consumer could handle.
#[derive(Debug, Clone)]
pub struct DeadLetter {
    pub message_id: Option<String>,
    /// The consumer's reason for setting it aside; `None` if the broker did, at the delivery limit.
    pub reason: Option<String>,
    /// The event's time, if readable.
    pub create_time: Option<Timestamp>,
    /// The event, or why it cannot be read.
    pub event: String,
    pub size_bytes: usize,
}

pub(super) async fn list(link: &Link, queue: &str, limit: usize) -> Result<Vec<DeadLetter>, Error> {
    let channel = link.channel().await?;
    let dead = dead_letter_queue(queue);
    declare::depth(&channel, &dead).await?;
    let mut letters = Vec::new();
    let mut last = None;
    while letters.len() < limit
        && let Some(delivery) = get(&channel, &dead).await?
    {
        letters.push(describe(&delivery));
        last = Some(delivery);
    }
    if let Some(last) = last {
        // All at once, so that they keep their order.
        let options = BasicNackOptions {
            multiple: true,
            requeue: true,
        };
        answer(last.nack(options)).await?;
    }
    Ok(letters)
}

pub(super) async fn requeue(link: &Link, queue: &str, limit: usize) -> Result<usize, Error> {
    let channel = link.channel().await?;
    let dead = dead_letter_queue(queue);
    // No more than there are now: a message that fails again must not be put back twice in one call.
    let (present, _) = declare::depth(&channel, &dead).await?;
    answer(channel.confirm_select(ConfirmSelectOptions::default())).await?;
    let limit = limit.min(present as usize);
    let mut count = 0;
    while count < limit
        && let Some(delivery) = get(&channel, &dead).await?
    {
        let properties = properties::as_new(delivery.properties.clone());
        publish_confirmed(&channel, "", queue, &delivery.data, properties).await?;
        answer(delivery.ack(BasicAckOptions::default())).await?;
        count += 1;
    }
    Ok(count)
}

async fn get(channel: &Channel, queue: &str) -> Result<Option<Delivery>, Error> {
    let message = answer(channel.basic_get(queue.into(), BasicGetOptions::default())).await?;
    Ok(message.map(|message| message.delivery))
}

fn describe(delivery: &Delivery) -> DeadLetter {
    let (create_time, event) = match Message::decode(&delivery.data) {
        Ok(message) => (Some(message.create_time), format!("{:?}", message.event)),
        Err(error) => (None, format!("unreadable: {error}")),
    };
    DeadLetter {
        message_id: delivery
            .properties
            .message_id()
            .as_ref()
            .map(ToString::to_string),
        reason: properties::header(&delivery.properties, properties::REASON),
        create_time,
        event,
        size_bytes: delivery.data.len(),
    }
}
