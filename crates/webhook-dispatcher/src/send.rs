//! Makes one attempt.
//!
//! No query: the task carries all that the request needs, and the result goes to the recorder. The
//! permit is held for the time of the request alone.

use std::sync::Arc;

use domain::Timestamp;
use outbound::Request;
use store::{
    connections,
    deliveries::{Attempt, AttemptResult, Task, Verdict},
};
use tracing::Instrument;

use crate::{
    Dispatcher,
    lanes::Permit,
    metrics, request,
    schedule::{self, Tried},
};

/// Starts the attempts; they end by themselves, each within the deadline.
pub(crate) fn start(dispatcher: &Arc<Dispatcher>, tasks: Vec<(Task, Permit)>) {
    for (task, permit) in tasks {
        let in_hand = dispatcher.recorder.take_in_hand(task.delivery.delivery);
        let span = tracing::info_span!(
            "deliver webhook",
            delivery.name = %task.delivery,
            scan.name = %task.scan,
            http.request.resend_count = task.attempt_count,
        );
        let dispatcher = Arc::clone(dispatcher);
        let sending = async move {
            metrics::IN_FLIGHT.set(dispatcher.lanes.open().into());
            let result = attempt(&dispatcher, &task).await;
            let unwritten = dispatcher.lanes.unwritten();
            drop(permit);
            metrics::IN_FLIGHT.set(dispatcher.lanes.open().into());
            dispatcher.recorder.record(result, (in_hand, unwritten));
        };
        tokio::spawn(sending.instrument(span));
    }
}

async fn attempt(dispatcher: &Dispatcher, task: &Task) -> AttemptResult {
    let time = Timestamp::now();
    let scan_time = task.scan.scan.time();
    if task.attempt_count == 0 {
        metrics::LATENCY
            .with_label_values(&["first_attempt"])
            .observe(time.since(scan_time).as_secs_f64());
    }
    let headers = request::headers(task);
    let body = match request::body(task) {
        Ok(body) => body,
        // A post is always JSON; were it not, nothing that a receiver can use is lost.
        Err(error) => {
            tracing::error!("a delivery has no body: {error}");
            bytes::Bytes::new()
        }
    };
    let request = Request {
        method: request::method(task.method),
        url: &task.url,
        headers: &headers,
        body,
    };
    let exchange = dispatcher
        .client
        .exchange(request, dispatcher.config.dispatcher.timeout)
        .await;

    let now = Timestamp::now();
    let number = task.attempt_count.saturating_add(1);
    let status = exchange.status.as_ref().ok().copied();
    let tried = Tried {
        status,
        retry_after: exchange.retry_after,
        number,
        delivery_time: task.delivery.delivery.time(),
    };
    let verdict = schedule::verdict(tried, &dispatcher.config.dispatcher, now);
    let failure = exchange.status.as_ref().err();
    tell(task, status, failure, verdict);
    let outcome = outcome(verdict);
    metrics::DELIVERIES
        .with_label_values(&[outcome, status_class(status)])
        .inc();
    metrics::ATTEMPT_DURATION
        .with_label_values(&[outcome])
        .observe(exchange.phases.total.as_secs_f64());
    if verdict == Verdict::Succeeded {
        metrics::LATENCY
            .with_label_values(&["success"])
            .observe(now.since(scan_time).as_secs_f64());
    }
    if let Some(failure @ outbound::Failure::ForbiddenAddress { .. }) = failure {
        metrics::BLOCKED.with_label_values(&[failure.word()]).inc();
    }
    if schedule::is_gone(status) {
        disable(dispatcher, task).await;
    }
    AttemptResult {
        delivery: task.delivery,
        attempt: Attempt {
            number,
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

/// Should the database be away, the next delivery meets the same answer and disables it then.
async fn disable(dispatcher: &Dispatcher, task: &Task) {
    let disabled = async {
        let mut conn = dispatcher.backbone.pool.get().await?;
        let reason = "the endpoint answered 410";
        let name = task.delivery.connection_name();
        Ok::<_, store::Error>(
            connections::disable(&mut conn, name, reason, Timestamp::now()).await?,
        )
    };
    match disabled.await {
        Ok(true) => {
            tracing::info!(connection.name = %task.delivery.connection_name(), "disabled: the endpoint answered 410");
        }
        Ok(false) => {}
        Err(error) => tracing::warn!(
            "cannot disable a Connection: {:#}",
            anyhow::Error::from(error)
        ),
    }
}

fn tell(task: &Task, status: Option<u16>, failure: Option<&outbound::Failure>, verdict: Verdict) {
    let delivery = task.delivery;
    let cause = failure.map(ToString::to_string);
    match verdict {
        Verdict::Succeeded => tracing::info!(delivery.name = %delivery, status, "delivered"),
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
