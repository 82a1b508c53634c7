//! Makes one attempt.
//!
//! No query: the task carries all that the request needs, and the result goes to the recorder. The
//! permit is held for the time of the request alone.

use std::{sync::Arc, time::Duration};

use domain::{DeliveryName, Timestamp};
use events::TraceContext;
use outbound::Request;
use store::{
    connections::{self, Switched},
    deliveries::{self, Attempt, AttemptResult, Task, Unsendable, Verdict},
};
use tracing::{Instrument, Span, field::Empty};

use crate::{
    Dispatcher,
    breaker::Outcome,
    lanes::Ready,
    metrics,
    record::Sent,
    request,
    schedule::{self, Tried},
};

/// Opens requests as long as any may be opened; they end by themselves, each within the deadline.
pub(crate) fn pump(dispatcher: &Arc<Dispatcher>) {
    while let Some((ready, permit)) = dispatcher.lanes.next() {
        let Ready {
            task,
            probe,
            in_hand,
        } = ready;
        let span = span(&task);
        let dispatcher = Arc::clone(dispatcher);
        let sending = async move {
            metrics::IN_FLIGHT.set(dispatcher.lanes.open().into());
            let (urgent, update_time) = (task.urgent, task.connection_update_time);
            let result = attempt_unless_panic(&dispatcher, task).await;
            let success = result.verdict == Verdict::Succeeded;
            let unwritten = dispatcher.lanes.unwritten();
            permit.done(success);
            let sent = Sent {
                result,
                outcome: Some((
                    Outcome {
                        success,
                        probe,
                        urgent,
                    },
                    update_time,
                )),
            };
            dispatcher.recorder.record(sent, (in_hand, unwritten));
            pump(&dispatcher);
            metrics::IN_FLIGHT.set(dispatcher.lanes.open().into());
        };
        tokio::spawn(sending.instrument(span));
    }
}

/// The first attempt goes on with the trace of the Scan's event. Each later one has a separate trace, which
/// is linked to it: hours may lie between them.
fn span(task: &Task) -> Span {
    let span = tracing::info_span!(
        parent: None,
        "deliver webhook",
        delivery.name = %task.delivery,
        scan.name = %task.scan,
        http.request.resend_count = task.attempt_count,
        http.response.status_code = Empty,
        outcome = Empty,
    );
    let trace = TraceContext::of_traceparent(task.traceparent.clone());
    if task.attempt_count == 0 {
        trace.set_as_parent_of(&span);
    } else {
        trace.link_to(&span);
    }
    span
}

/// Gives leased deliveries back to the database, unsent. Should it be away, their leases are freed in time.
pub(crate) fn give_back(dispatcher: &Arc<Dispatcher>, given: Vec<Ready>) {
    if given.is_empty() {
        return;
    }
    let dispatcher = Arc::clone(dispatcher);
    tokio::spawn(async move {
        if let Err(error) = hand_back(&dispatcher, given).await {
            let error = anyhow::Error::from(error);
            tracing::warn!("cannot give deliveries back, they wait for a while: {error:#}");
        }
    });
}

/// Same as [`give_back`], to its end.
pub(crate) async fn hand_back(
    dispatcher: &Dispatcher,
    given: Vec<Ready>,
) -> Result<(), store::Error> {
    let names: Vec<DeliveryName> = given.iter().map(|ready| ready.task.delivery).collect();
    let mut conn = dispatcher.backbone.pool.get().await?;
    deliveries::hand_back(&mut conn, dispatcher.backbone.replica, &names).await?;
    let connections = names.iter().map(DeliveryName::connection_name);
    dispatcher.signals.note(connections);
    Ok(())
}

/// Records a failed attempt of a delivery that cannot be sent, so that it is tried after the schedule,
/// when someone may have configured the key, and given up in the end.
pub(crate) fn fail(dispatcher: &Dispatcher, unsendable: Unsendable) {
    let Unsendable {
        delivery,
        attempt_count,
        schedule_base,
        open_time,
        error,
    } = unsendable;
    let word = match error {
        store::Error::Sealed(_) => "undecryptable_headers",
        _ => "unreadable",
    };
    tracing::error!(delivery.name = %delivery, "a delivery cannot be sent: {:#}", anyhow::Error::from(error));
    let in_hand = dispatcher.recorder.take_in_hand(delivery.delivery);
    let tries = Tries {
        made: attempt_count,
        base: schedule_base,
        open_time,
    };
    let sent = Sent {
        result: failed(dispatcher, delivery, tries, word),
        // Nothing was asked of the endpoint.
        outcome: None,
    };
    let unwritten = dispatcher.lanes.unwritten();
    dispatcher.recorder.record(sent, (in_hand, unwritten));
}

/// How often a delivery was tried before.
#[derive(Clone, Copy)]
struct Tries {
    made: u32,
    /// Attempts before it was last reopened, which the schedule excludes.
    base: u32,
    open_time: Timestamp,
}

impl Tries {
    fn of(task: &Task) -> Self {
        Self {
            made: task.attempt_count,
            base: task.schedule_base,
            open_time: task.open_time,
        }
    }

    /// Number of the next attempt, over all reopenings.
    fn number(self) -> u32 {
        self.made.saturating_add(1)
    }

    fn tried(self, status: Option<u16>, retry_after: Option<Duration>) -> Tried {
        Tried {
            status,
            retry_after,
            number: self.number().saturating_sub(self.base),
            delivery_time: self.open_time,
        }
    }
}

/// An attempt without a request.
fn failed(
    dispatcher: &Dispatcher,
    delivery: DeliveryName,
    tries: Tries,
    word: &str,
) -> AttemptResult {
    let now = Timestamp::now();
    let tried = tries.tried(None, None);
    let verdict = schedule::verdict(tried, &dispatcher.config.dispatcher, now);
    metrics::DELIVERIES
        .with_label_values(&[outcome(verdict), status_class(None)])
        .inc();
    AttemptResult {
        delivery,
        attempt: Attempt {
            number: tries.number(),
            time: now,
            status_code: None,
            error: Some(word.to_owned()),
            latency: Duration::ZERO,
            dns: None,
            connect: None,
            tls: None,
            first_byte: None,
            address: None,
            response_body: None,
        },
        verdict,
    }
}

/// A delivery that panics has failed: otherwise it would be repeated for ever.
async fn attempt_unless_panic(dispatcher: &Arc<Dispatcher>, task: Task) -> AttemptResult {
    let (delivery, tries) = (task.delivery, Tries::of(&task));
    let own = Arc::clone(dispatcher);
    let attempt = async move { attempt(&own, &task).await };
    match tokio::spawn(attempt.in_current_span()).await {
        Ok(result) => result,
        Err(panic) => {
            tracing::error!("an attempt panicked: {panic}");
            failed(dispatcher, delivery, tries, "internal_error")
        }
    }
}

async fn attempt(dispatcher: &Arc<Dispatcher>, task: &Task) -> AttemptResult {
    let time = Timestamp::now();
    let scan_time = task.scan.scan.time();
    // What was reopened was late before it was asked for.
    let is_first_run = task.open_time == task.delivery.delivery.time();
    if task.attempt_count == 0 && is_first_run {
        metrics::LATENCY
            .with_label_values(&["first_attempt"])
            .observe(time.since(scan_time).as_secs_f64());
    }
    let parts = request::Parts::of(task);
    let body = match parts.body() {
        Ok(body) => body,
        // A post is always JSON; were it not, nothing that a receiver can use is lost.
        Err(error) => {
            tracing::error!("a delivery has no body: {error}");
            bytes::Bytes::new()
        }
    };
    let headers = parts.headers(&body, time);
    let request = Request {
        method: parts.method(),
        url: &task.url,
        headers: &headers,
        body,
    };
    let exchange = dispatcher
        .client
        .exchange(request, dispatcher.config.dispatcher.timeout)
        .await;

    let now = Timestamp::now();
    let status = exchange.status.as_ref().ok().copied();
    let tries = Tries::of(task);
    let tried = tries.tried(status, exchange.retry_after);
    let mut verdict = schedule::verdict(tried, &dispatcher.config.dispatcher, now);
    if schedule::is_gone(status) && disable(dispatcher, task).await == Switched::Changed {
        // It may lead elsewhere by now, where the delivery has not been.
        let unanswered = tries.tried(None, None);
        verdict = schedule::verdict(unanswered, &dispatcher.config.dispatcher, now);
    }
    let failure = exchange.status.as_ref().err();
    tell(task, status, failure, verdict);
    let outcome = outcome(verdict);
    let span = Span::current();
    span.record("outcome", outcome);
    if let Some(status) = status {
        span.record("http.response.status_code", status);
    }
    metrics::DELIVERIES
        .with_label_values(&[outcome, status_class(status)])
        .inc();
    metrics::ATTEMPT_DURATION
        .with_label_values(&[outcome])
        .observe(exchange.phases.total.as_secs_f64());
    if verdict == Verdict::Succeeded && is_first_run {
        metrics::LATENCY
            .with_label_values(&["success"])
            .observe(now.since(scan_time).as_secs_f64());
    }
    if let Some(failure @ outbound::Failure::ForbiddenAddress { .. }) = failure {
        metrics::BLOCKED.with_label_values(&[failure.word()]).inc();
    }
    AttemptResult {
        delivery: task.delivery,
        attempt: Attempt {
            number: tries.number(),
            time,
            status_code: status,
            error: failure.map(|failure| failure.word().to_owned()),
            latency: exchange.phases.total,
            dns: exchange.phases.dns,
            connect: exchange.phases.connect,
            tls: exchange.phases.tls,
            first_byte: exchange.phases.first_byte,
            address: exchange.address.map(|address| address.to_string()),
            response_body: exchange.body,
        },
        verdict,
    }
}

/// Switches the Connection off that was asked, unless its owner has changed it since: then what is queued is sent,
/// and meets the same answer if that was still meant. Should the database be away, the next delivery does.
async fn disable(dispatcher: &Arc<Dispatcher>, task: &Task) -> Switched {
    let name = task.delivery.connection_name();
    let asked = task.connection_update_time;
    let disabled = async {
        let mut conn = dispatcher.backbone.pool.get().await?;
        let (reason, now) = ("the endpoint answered 410", Timestamp::now());
        let switched = connections::disable_unchanged(&mut conn, name, asked, reason, now).await?;
        Ok::<_, store::Error>(switched)
    };
    let switched = disabled.await.unwrap_or_else(|error| {
        let error = anyhow::Error::from(error);
        tracing::warn!("cannot disable a Connection: {error:#}");
        Switched::WasOff
    });
    match switched {
        Switched::Off => {
            tracing::info!(connection.name = %name, "disabled: the endpoint answered 410");
        }
        Switched::WasOff => {}
        Switched::Changed => return switched,
    }
    give_back(dispatcher, dispatcher.lanes.block(name));
    switched
}

fn tell(task: &Task, status: Option<u16>, failure: Option<&outbound::Failure>, verdict: Verdict) {
    let delivery = task.delivery;
    let cause = failure.map(ToString::to_string);
    match verdict {
        // Thousands a second, and the delivery log has them.
        Verdict::Succeeded => tracing::debug!(delivery.name = %delivery, status, "delivered"),
        Verdict::RetryIn(wait) => {
            tracing::info!(delivery.name = %delivery, status, cause, wait_seconds = wait.as_secs_f64(), "not delivered, trying again");
        }
        Verdict::Exhausted => {
            tracing::warn!(delivery.name = %delivery, status, cause, "not delivered, given up");
        }
        Verdict::Expired => {
            tracing::warn!(delivery.name = %delivery, status, cause, "not delivered, given up for its age");
        }
    }
}

fn outcome(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Succeeded => "succeeded",
        Verdict::RetryIn(_) => "retrying",
        Verdict::Exhausted | Verdict::Expired => "exhausted",
    }
}

fn status_class(status: Option<u16>) -> &'static str {
    match status {
        None => "none",
        Some(100..=199) => "1xx",
        Some(200..=299) => "2xx",
        Some(300..=399) => "3xx",
        Some(400..=499) => "4xx",
        Some(_) => "5xx",
    }
}
