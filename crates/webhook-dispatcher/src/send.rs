//! Makes one attempt.
//!
//! A request runs no query: the task contains everything that it needs, and the result goes to the recorder. Only e-mail
//! asks the database who may get it. The permit is held only during the request.

use std::{net::IpAddr, sync::Arc, time::Duration};

use domain::{ConnectionName, DeliveryName, Timestamp, connection::Format};
use events::TraceContext;
use outbound::Request;
use store::{
    connections::{self, Switched},
    deliveries::{self, Age, Attempt, AttemptResult, Task, Unsendable, Verdict},
    lanes,
};
use tokio::time::Instant;
use tracing::{Instrument, Span, field::Empty};

use crate::{
    Dispatcher,
    breaker::{Hold, Outcome},
    lanes::Ready,
    mail, metrics,
    record::unwritten::Sent,
    request,
    schedule::{self, Tried},
};

/// Opens requests as long as any may be opened. Each ends by itself within its deadline.
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
            let Attempted {
                result,
                hold,
                other_form,
            } = attempt_unless_panic(&dispatcher, task).await;
            let success = result.verdict == Verdict::Succeeded;
            let unwritten = dispatcher.lanes.unwritten();
            // The lane is paused before the permit is returned, because its next request would be opened at once.
            let pause = hold.map(|_| {
                let connection = result.delivery.connection_name();
                let (pause, queued) = dispatcher.lanes.pause(connection);
                spawn_hand_back(&dispatcher, queued);
                pause
            });
            permit.done(success || other_form);
            if urgent {
                // More requested deliveries may wait for the capacity that this one used.
                dispatcher.signals.query_soon();
            }
            let sent = Sent {
                result,
                outcome: Some((
                    Outcome {
                        success,
                        probe,
                        urgent,
                        other_form,
                        hold,
                    },
                    update_time,
                )),
            };
            dispatcher
                .recorder
                .record(sent, (in_hand, unwritten, pause));
            pump(&dispatcher);
            metrics::IN_FLIGHT.set(dispatcher.lanes.open().into());
        };
        tokio::spawn(sending.instrument(span));
    }
}

/// The first attempt continues the trace of the Scan's event. Each later one has a separate trace that is linked to
/// it, because hours may lie between them.
fn span(task: &Task) -> Span {
    let span = tracing::info_span!(
        parent: None,
        "deliver webhook",
        delivery.name = %task.delivery,
        scan.name = task.scan().map(tracing::field::display),
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

/// Returns leased deliveries to the database in the background, unsent. If the database is away, their leases are freed
/// later.
pub(crate) fn spawn_hand_back(dispatcher: &Arc<Dispatcher>, given: Vec<Ready>) {
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

/// Same as [`spawn_hand_back`], but waits until it is done. It writes the hints of these deliveries itself: at a
/// shutdown, no round of claims would do it afterwards.
pub(crate) async fn hand_back(
    dispatcher: &Dispatcher,
    given: Vec<Ready>,
) -> Result<(), store::Error> {
    let names: Vec<DeliveryName> = given.iter().map(|ready| ready.task.delivery).collect();
    let mut conn = dispatcher.backbone.pool.get().await?;
    deliveries::hand_back(&mut conn, dispatcher.backbone.replica, &names).await?;
    let connections: Vec<ConnectionName> =
        names.iter().map(DeliveryName::connection_name).collect();
    let noted = lanes::mark_due(&mut conn, &connections).await;
    match noted {
        Ok(()) => dispatcher.signals.query_at(Instant::now()),
        Err(_) => dispatcher.signals.add_connections(connections),
    }
    Ok(noted?)
}

/// Records a failed attempt of a delivery that cannot be sent. So it is retried by the schedule, in case someone
/// configures the missing key, and finally given up.
pub(crate) fn fail(dispatcher: &Dispatcher, unsendable: Unsendable) {
    let Unsendable {
        delivery,
        attempt_count,
        schedule_base,
        age,
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
        age,
    };
    let sent = Sent {
        result: failed(dispatcher, delivery, tries, word),
        // No request was sent to the endpoint.
        outcome: None,
    };
    let unwritten = dispatcher.lanes.unwritten();
    dispatcher.recorder.record(sent, (in_hand, unwritten, None));
}

/// Number of earlier attempts of a delivery.
#[derive(Clone, Copy)]
struct Tries {
    made: u32,
    /// [`Task::schedule_base`].
    base: u32,
    age: Age,
}

impl Tries {
    fn of(task: &Task) -> Self {
        Self {
            made: task.attempt_count,
            base: task.schedule_base,
            age: task.age,
        }
    }

    /// Number of the next attempt, counted over all reopenings.
    fn number(self) -> u32 {
        self.made.saturating_add(1)
    }

    fn tried(self, status: Option<u16>, retry_after: Option<Duration>, now: Timestamp) -> Tried {
        Tried {
            status,
            retry_after,
            number: self.number().saturating_sub(self.base),
            age: self.age.at(now),
        }
    }
}

/// Result of an attempt without a request.
fn failed(
    dispatcher: &Dispatcher,
    delivery: DeliveryName,
    tries: Tries,
    word: &str,
) -> AttemptResult {
    let now = Timestamp::now();
    let tried = tries.tried(None, None, now);
    let verdict = schedule::verdict(tried, &dispatcher.config.dispatcher);
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

struct Attempted {
    result: AttemptResult,
    hold: Option<Hold>,
    /// See [`Outcome::other_form`].
    other_form: bool,
}

/// Treats a panic as a failed attempt: otherwise the delivery would be repeated for ever.
async fn attempt_unless_panic(dispatcher: &Arc<Dispatcher>, task: Task) -> Attempted {
    let (delivery, tries) = (task.delivery, Tries::of(&task));
    let own = Arc::clone(dispatcher);
    let attempt = async move { attempt(&own, &task).await };
    match tokio::spawn(attempt.in_current_span()).await {
        Ok(result) => result,
        Err(panic) => {
            tracing::error!("an attempt panicked: {panic}");
            Attempted {
                result: failed(dispatcher, delivery, tries, "internal_error"),
                hold: None,
                other_form: false,
            }
        }
    }
}

/// Result of an attempt, before it is logged and stored.
struct Conclusion {
    status: Option<u16>,
    /// Word for the log of deliveries, if there was no answer.
    error: Option<String>,
    /// The same for our log.
    cause: Option<String>,
    phases: outbound::Phases,
    address: Option<IpAddr>,
    answer: Option<String>,
    verdict: Verdict,
    hold: Option<Hold>,
    /// See [`Outcome::other_form`].
    other_form: bool,
}

async fn attempt(dispatcher: &Arc<Dispatcher>, task: &Task) -> Attempted {
    let time = Timestamp::now();
    // A reopened delivery was late before it was requested again.
    let is_first_run = task.reopen_time.is_none();
    let scan = task.scan().filter(|_| is_first_run);
    let scan_time = scan.map(|scan| scan.scan.time());
    if task.attempt_count == 0
        && let Some(scan_time) = scan_time
    {
        metrics::LATENCY
            .with_label_values(&["first_attempt"])
            .observe(time.since(scan_time).as_secs_f64());
    }
    let done = match task.format {
        Format::Email => Box::pin(send_mail(dispatcher, task)).await,
        Format::Earshot | Format::Slack | Format::Discord | Format::Teams => {
            Box::pin(send_request(dispatcher, task, time)).await
        }
    };
    log(task, done.status, done.cause, done.verdict);
    let outcome = outcome(done.verdict);
    let span = Span::current();
    span.record("outcome", outcome);
    if let Some(status) = done.status {
        span.record("http.response.status_code", status);
    }
    metrics::DELIVERIES
        .with_label_values(&[outcome, status_class(done.status)])
        .inc();
    metrics::ATTEMPT_DURATION
        .with_label_values(&[outcome])
        .observe(done.phases.total.as_secs_f64());
    if done.verdict == Verdict::Succeeded
        && let Some(scan_time) = scan_time
    {
        let now = Timestamp::now();
        metrics::LATENCY
            .with_label_values(&["success"])
            .observe(now.since(scan_time).as_secs_f64());
    }
    let connection = task.delivery.connection_name();
    let has_failed = done.verdict != Verdict::Succeeded;
    let response_body = done.answer.map(|answer| {
        let now = std::time::Instant::now();
        dispatcher
            .answers
            .stored(connection, has_failed, answer, now)
    });
    let result = AttemptResult {
        delivery: task.delivery,
        attempt: Attempt {
            number: Tries::of(task).number(),
            time,
            status_code: done.status,
            error: done.error,
            latency: done.phases.total,
            dns: done.phases.dns,
            connect: done.phases.connect,
            tls: done.phases.tls,
            first_byte: done.phases.first_byte,
            address: done.address.map(|address| address.to_string()),
            response_body,
        },
        verdict: done.verdict,
    };
    Attempted {
        result,
        hold: done.hold,
        other_form: done.other_form,
    }
}

/// Sends the request of a webhook.
async fn send_request(dispatcher: &Arc<Dispatcher>, task: &Task, time: Timestamp) -> Conclusion {
    let parts = request::Parts::of(task);
    let body = match parts.body() {
        Ok(body) => body,
        // A post can always be serialised; if one could not, receivers lose nothing that they could use.
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
    let tried = tries.tried(status, exchange.retry_after, now);
    let mut verdict = schedule::verdict(tried, &dispatcher.config.dispatcher);
    if schedule::is_gone(status) && disable(dispatcher, task).await == Switched::Changed {
        // The address may have changed, and the delivery was never sent to the new one.
        let unanswered = tries.tried(None, None, now);
        verdict = schedule::verdict(unanswered, &dispatcher.config.dispatcher);
    }
    let failure = exchange.status.as_ref().err();
    if let Some(failure @ outbound::Failure::ForbiddenAddress { .. }) = failure {
        metrics::BLOCKED.with_label_values(&[failure.word()]).inc();
    }
    let comes_again = matches!(verdict, Verdict::RetryIn(_));
    Conclusion {
        status,
        error: failure.map(|failure| failure.word().to_owned()),
        cause: failure.map(ToString::to_string),
        phases: exchange.phases,
        address: exchange.address,
        answer: exchange.body,
        verdict,
        hold: schedule::asked_pause(status, exchange.retry_after).map(Hold::Asked),
        other_form: comes_again && request::refuses_form(task, status),
    }
}

/// Sends the mails of a delivery. A permanent refusal of the server ends the delivery.
async fn send_mail(dispatcher: &Arc<Dispatcher>, task: &Task) -> Conclusion {
    let sent = mail::send(dispatcher, task).await;
    if sent.has_disabled {
        let connection = task.delivery.connection_name();
        tracing::info!(connection.name = %connection, "disabled: no recipient is left");
        spawn_hand_back(dispatcher, dispatcher.lanes.block(connection));
    }
    let settings = &dispatcher.config.dispatcher;
    let (tries, now) = (Tries::of(task), Timestamp::now());
    let verdict = match (sent.end, sent.pause) {
        (mail::End::Accepted, _) => Verdict::Succeeded,
        (mail::End::Refused | mail::End::NoRecipient, _) => Verdict::Exhausted,
        (mail::End::Failed, Some(pause)) => schedule::delayed(pause, tries.age.at(now), settings),
        (mail::End::Failed, None) => schedule::verdict(tries.tried(None, None, now), settings),
    };
    Conclusion {
        status: sent.status,
        error: sent.error.map(str::to_owned),
        cause: sent.error.map(str::to_owned),
        phases: outbound::Phases {
            total: sent.latency,
            ..outbound::Phases::default()
        },
        address: None,
        answer: sent.reply,
        verdict,
        hold: sent.pause.map(Hold::OwnLimit),
        // The server was not asked, so this says nothing against it.
        other_form: sent.end == mail::End::NoRecipient,
    }
}

/// Disables the Connection, unless its owner has changed it since. In that case queued deliveries are sent, and get
/// the same answer if it still applies. If the database is away, the next delivery disables it.
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
    spawn_hand_back(dispatcher, dispatcher.lanes.block(name));
    switched
}

fn log(task: &Task, status: Option<u16>, cause: Option<String>, verdict: Verdict) {
    let delivery = task.delivery;
    match verdict {
        // There are thousands a second, and they are in the delivery log.
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
