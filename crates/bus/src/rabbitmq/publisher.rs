//! Publishes and waits for the broker's confirms.
//!
//! A batch is written without waits, on one channel, and its confirms are awaited together: one round trip and
//! one write to the broker's disk for the whole batch. A message without a bound queue is returned before its
//! confirm; this is how [`Published::Unroutable`] is detected.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::future::join_all;
use lapin::{
    Channel, Confirmation,
    options::{BasicPublishOptions, ConfirmSelectOptions},
};
use tokio::sync::Mutex;

use super::{
    declare,
    link::{Link, answer},
    properties,
};
use crate::{
    Topology, metrics,
    transport::{Error, Outgoing, Published},
};

pub(super) struct Publisher {
    link: Arc<Link>,
    topology: Arc<Topology>,
    channel: Mutex<Option<Channel>>,
}

/// Wait before a deleted queue is declared again. If a quorum queue is replaced within a tenth of a second,
/// RabbitMQ (3.10 at least) leaves its subscriptions hanging: neither ended nor served.
pub(super) const REPLACEMENT_WAIT: Duration = Duration::from_secs(1);

const MANDATORY: BasicPublishOptions = BasicPublishOptions {
    mandatory: true,
    immediate: false,
};

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

    pub(super) async fn publish(&self, batch: &[Outgoing]) -> Vec<Result<Published, Error>> {
        let begin = Instant::now();
        let mut results = self.try_publish(batch).await;

        // The queue was deleted: declare it, and send its messages once more.
        let lost: Vec<usize> = (0..batch.len())
            .filter(|&index| {
                matches!(results[index], Ok(Published::Unroutable))
                    && self.topology.is_work(&batch[index].message.key)
            })
            .collect();
        if !lost.is_empty() {
            self.forget(None).await;
            tokio::time::sleep(REPLACEMENT_WAIT).await;
            let again: Vec<Outgoing> = lost.iter().map(|&index| batch[index].clone()).collect();
            for (index, result) in lost.into_iter().zip(self.try_publish(&again).await) {
                results[index] = result;
            }
        }

        self.count(begin, &results);
        results
    }

    async fn try_publish(&self, batch: &[Outgoing]) -> Vec<Result<Published, Error>> {
        let channel = match self.channel().await {
            Ok(channel) => channel,
            Err(error) => return all_failed(batch.len(), error),
        };
        let mut results = Vec::with_capacity(batch.len());
        let mut confirms = Vec::with_capacity(batch.len());
        for outgoing in batch {
            let sent = answer(channel.basic_publish(
                self.topology.exchange.as_str().into(),
                outgoing.message.key.as_str().into(),
                MANDATORY,
                &outgoing.message.payload,
                properties::of(outgoing),
            ))
            .await;
            match sent {
                Ok(confirm) => confirms.push(answer(confirm)),
                Err(error) => {
                    // The following messages would fail in the same way.
                    results = all_failed(batch.len() - confirms.len(), error);
                    break;
                }
            }
        }
        let mut confirmed: Vec<_> = join_all(confirms)
            .await
            .into_iter()
            .map(|confirm| confirm.and_then(read))
            .collect();
        confirmed.append(&mut results);
        if confirmed
            .iter()
            .any(|result| matches!(result, Err(Error::Away(_) | Error::TimedOut(_))))
        {
            self.forget(Some(&channel)).await;
        }
        confirmed
    }

    /// Returns the channel. Opens it and declares the topology if necessary.
    async fn channel(&self) -> Result<Channel, Error> {
        let mut slot = self.channel.lock().await;
        if let Some(channel) = &*slot
            && channel.status().connected()
        {
            return Ok(channel.clone());
        }
        *slot = None;
        for queue in &self.topology.work {
            // Uses a separate channel: if the user may not declare this queue, only that channel is closed, and
            // the readers declare the queue.
            let channel = self.link.channel().await?;
            if let Err(error) = declare::work(&channel, &self.topology, queue).await {
                let error = anyhow::Error::from(error);
                tracing::debug!(queue = queue.name, "left to its readers: {error:#}");
            }
        }
        let channel = self.link.channel().await?;
        declare::exchange(&channel, &self.topology).await?;
        answer(channel.confirm_select(ConfirmSelectOptions::default())).await?;
        Ok(slot.insert(channel).clone())
    }

    /// Drops the channel, unless `failed` has been replaced already.
    async fn forget(&self, failed: Option<&Channel>) {
        let mut slot = self.channel.lock().await;
        if failed.is_none() || slot.as_ref() == failed {
            *slot = None;
        }
    }

    fn count(&self, begin: Instant, results: &[Result<Published, Error>]) {
        let destination = self.topology.exchange.as_str();
        let mut error_type = "";
        for result in results {
            let outcome = match result {
                Ok(_) => "",
                Err(Error::Away(_)) => "away",
                Err(Error::TimedOut(_)) => "timeout",
                Err(Error::Refused) => "refused",
                Err(Error::Full) => "full",
            };
            if !outcome.is_empty() {
                error_type = outcome;
            }
            metrics::SENT
                .with_label_values(&[destination, "publish", outcome])
                .inc();
        }
        metrics::CLIENT_DURATION
            .with_label_values(&[destination, "publish", error_type])
            .observe(begin.elapsed().as_secs_f64());
    }
}

fn read(confirmation: Confirmation) -> Result<Published, Error> {
    match confirmation {
        Confirmation::Ack(None) => Ok(Published::Routed),
        Confirmation::Ack(Some(_)) => Ok(Published::Unroutable),
        Confirmation::Nack(_) | Confirmation::NotRequested => Err(Error::Refused),
    }
}

/// Returns the error for each of the messages; only the first has the cause.
fn all_failed(count: usize, error: Error) -> Vec<Result<Published, Error>> {
    let mut results: Vec<_> = (1..count)
        .map(|_| Err(Error::Away("an earlier message of the batch failed".into())))
        .collect();
    if count > 0 {
        results.push(Err(error));
    }
    results
}
