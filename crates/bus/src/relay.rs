//! The outbox relay: publishes committed events and deletes them once the bus has them.
//!
//! The relay is woken after a commit, and sweeps every five seconds for events that a crash, or a transaction
//! of another process, left behind. Any number of relays share the table: each skips the rows that another has
//! locked. An event is published at least once: if a relay dies between the confirm and the commit, its rows
//! are published again, with the same message id.
//!
//! While the bus is away, rows stay in the outbox, and only the waits between attempts grow. Events of a kind
//! that the bus refuses, because a queue is full, or does not confirm wait without holding up the others. Row locks keep
//! relays from publishing the same rows, and a crash frees them at once. So the transaction is open while the
//! relay waits for confirms: at most ten seconds with a broker that takes messages but confirms none, then
//! again.
//!
//! Cost: a round is one connection, one transaction with three statements and one wait for the confirms of up
//! to 256 messages: on one machine a few milliseconds with RabbitMQ, mostly the broker's write to disk. A
//! second round publishes what arrives during the first, unless the pool is small; wakes during both cause one
//! further round. When idle, it runs two small statements every five seconds.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use anyhow::anyhow;
use diesel_async::AsyncConnection;
use domain::Timestamp;
use events::{Encoded, TraceContext};
use runtime::{Backoff, Periodic};
use store::{Floor, Pool, outbox};
use tokio::{
    sync::Notify,
    time::{Instant, MissedTickBehavior, interval, sleep_until},
};
use tokio_util::sync::CancellationToken;
use tracing::Span;

use crate::{
    metrics,
    transport::{Bus, Error, Outgoing, Published},
};

const BATCH: i64 = 256;
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);
/// Pool size that allows two rounds at once: while the broker does not respond, every round holds a connection,
/// and the service must have some left.
const ROOMY: usize = 4;

/// Wakes the relay when the outbox has events. Clones wake the same relay.
#[derive(Debug, Clone, Default)]
pub struct OutboxWaker(Arc<Notify>);

impl OutboxWaker {
    /// Call this after the commit. It costs almost nothing, and it is optional: the sweep finds the event some
    /// seconds later.
    pub fn wake(&self) {
        self.0.notify_one();
    }
}

pub struct Relay {
    pool: Pool,
    bus: Arc<dyn Bus>,
    waker: OutboxWaker,
}

#[derive(Debug, thiserror::Error)]
enum RoundError {
    #[error("cannot reach the outbox")]
    Connect(#[source] anyhow::Error),
    #[error("cannot read or clear the outbox")]
    Database(#[from] diesel::result::Error),
}

/// Result of a round.
#[derive(Default)]
struct Round {
    /// There may be more events.
    full: bool,
    /// Keys of events that the bus refused for themselves, or did not confirm.
    refused: BTreeSet<String>,
    /// The bus took nothing more.
    failure: Option<Error>,
}

impl Relay {
    #[must_use]
    pub fn new(pool: Pool, bus: Arc<dyn Bus>) -> Self {
        Self::with_waker(pool, bus, OutboxWaker::default())
    }

    /// Creates a relay that an existing waker wakes.
    #[must_use]
    pub fn with_waker(pool: Pool, bus: Arc<dyn Bus>, waker: OutboxWaker) -> Self {
        Self { pool, bus, waker }
    }

    #[must_use]
    pub fn waker(&self) -> OutboxWaker {
        self.waker.clone()
    }

    /// Relays until `shutdown`, and finishes the current rounds. Other relays or the next start publish the
    /// rest.
    pub async fn run(self, shutdown: CancellationToken) {
        let second = async {
            if self.pool.status().max_size >= ROOMY {
                self.work(&shutdown, false).await;
            }
        };
        tokio::join!(self.work(&shutdown, true), second);
    }

    /// Runs one round after the other. Only the leading worker sweeps, and logs failures.
    async fn work(&self, shutdown: &CancellationToken, leads: bool) {
        let mut backoff = Backoff::reconnect();
        let mut log = leads.then(|| Periodic::new(shutdown));
        let mut note = |result: anyhow::Result<()>| {
            if let Some(log) = &mut log {
                log.note("relay the outbox", result);
            }
        };
        let mut sweep = interval(SWEEP_INTERVAL);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Events of these keys are left alone until `retry_at`.
        let mut refused = BTreeSet::new();
        let mut retry_at = Instant::now();
        let mut floor = Floor::of("outbox");
        loop {
            // A wake is for one waiting worker: of two, only one wakes up.
            let mut measure = tokio::select! {
                () = shutdown.cancelled() => return,
                _ = sweep.tick(), if leads => true,
                () = self.waker.0.notified() => false,
                () = sleep_until(retry_at), if !refused.is_empty() => false,
            };
            if retry_at <= Instant::now() {
                refused.clear();
            }
            loop {
                let round = self.round(std::mem::take(&mut measure), &refused, &mut floor);
                let (error, is_away) = match round.await {
                    Ok(Round {
                        failure: Some(error),
                        ..
                    }) => (error.into(), true),
                    Ok(mut round) => {
                        let is_new = !round.refused.is_empty();
                        refused.append(&mut round.refused);
                        if (round.full || is_new) && !shutdown.is_cancelled() {
                            continue;
                        }
                        if refused.is_empty() {
                            backoff.reset();
                            note(Ok(()));
                            break;
                        }
                        (anyhow!("the bus does not take {refused:?}"), false)
                    }
                    Err(error) => (error.into(), true),
                };
                note(Err(error));
                if !is_away {
                    if retry_at <= Instant::now() {
                        retry_at = Instant::now() + backoff.next();
                    }
                    break;
                }
                tokio::select! {
                    () = shutdown.cancelled() => return,
                    // No sweep measures meanwhile, and the age of the outbox shows that the bus is absent.
                    () = backoff.wait() => measure = leads,
                }
            }
        }
    }

    /// Publishes a batch of events, except those with the keys in `except`.
    async fn round(
        &self,
        measure: bool,
        except: &BTreeSet<String>,
        floor: &mut Floor,
    ) -> Result<Round, RoundError> {
        let mut conn = self
            .pool
            .get()
            .await
            .map_err(|error| RoundError::Connect(error.into()))?;
        let floor = floor.get(&mut conn).await?;
        let round = conn
            .transaction::<Round, diesel::result::Error, _>(async |conn| {
                let rows = outbox::take(conn, floor, BATCH, except).await?;
                if rows.is_empty() {
                    return Ok(Round::default());
                }
                let mut round = Round {
                    full: rows.len() as i64 == BATCH,
                    ..Round::default()
                };
                let published = self.publish(rows, &mut round).await;
                outbox::delete(conn, &published).await?;
                Ok(round)
            })
            .await?;
        if measure {
            let pending = outbox::pending(&mut conn, floor).await?;
            metrics::OUTBOX_PENDING.set(pending.count);
            let age = pending.oldest.map(|oldest| Timestamp::now().since(oldest));
            metrics::OUTBOX_OLDEST_AGE.set(age.unwrap_or_default().as_secs_f64());
        }
        Ok(round)
    }

    /// Returns the rows that are done, and notes the errors of the others in `round`.
    async fn publish(&self, rows: Vec<outbox::OutboxRow>, round: &mut Round) -> Vec<i64> {
        let mut ids = Vec::with_capacity(rows.len());
        let mut spans = Vec::with_capacity(rows.len());
        let mut batch = Vec::with_capacity(rows.len());
        for row in rows {
            let created = TraceContext {
                traceparent: row.traceparent,
                tracestate: row.tracestate,
            };
            let span = self.span(&row.event, row.message_id, &created);
            let sent = TraceContext::of(&span);
            ids.push(row.id);
            spans.push(span);
            batch.push(Outgoing {
                message: Encoded {
                    id: row.message_id,
                    key: row.event,
                    payload: row.payload.into(),
                },
                create_time: row.create_time.into(),
                trace: if sent.is_empty() { created } else { sent },
            });
        }

        let results = self.bus.publish(&batch).await;
        let mut done = Vec::with_capacity(ids.len());
        for (((id, message), span), result) in ids.into_iter().zip(&batch).zip(&spans).zip(results)
        {
            let outcome = match result {
                Ok(Published::Routed) => "published",
                // No reader exists for such events yet. A future reader reads the database first.
                Ok(Published::Unroutable) => "unroutable",
                Err(_) => "failed",
            };
            metrics::OUTBOX_PUBLISHED
                .with_label_values(&[message.message.key.as_str(), outcome])
                .inc();
            match result {
                Ok(_) => done.push(id),
                Err(error) => {
                    span.record("otel.status_code", "ERROR");
                    match error {
                        // A queue without a majority confirms nothing, and does not affect the others.
                        Error::Refused | Error::Full | Error::TimedOut(_) => {
                            round.refused.insert(message.message.key.clone());
                        }
                        Error::Away(_) => round.failure = Some(error),
                    }
                }
            }
        }
        done
    }

    fn span(&self, key: &str, id: uuid::Uuid, parent: &TraceContext) -> Span {
        let destination = format!("{}:{key}", self.bus.exchange());
        let span = tracing::info_span!(
            parent: None,
            "publish",
            otel.name = format!("publish {destination}"),
            otel.kind = "producer",
            otel.status_code = tracing::field::Empty,
            messaging.system = self.bus.system(),
            messaging.operation.type = "send",
            messaging.destination.name = destination,
            messaging.message.id = %id,
        );
        parent.set_as_parent_of(&span);
        span
    }
}
