//! The metrics of messaging and of the outbox, in the default registry.
//!
//! Dashboards and alerts depend on their names. No label has values from customers.

use std::sync::LazyLock;

use prometheus::{
    Gauge, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, core::Collector,
};

/// Buckets of the OpenTelemetry conventions for operation durations.
const OPERATION_SECONDS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
];
const LAG_SECONDS: &[f64] = &[
    0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0,
];
const OPERATION: &[&str] = &["destination", "operation", "error_type"];

pub(crate) static SENT: LazyLock<IntCounterVec> = LazyLock::new(|| {
    counters(
        "messaging_client_sent_messages_total",
        "Messages that were handed to the broker.",
        OPERATION,
    )
});

pub(crate) static CONSUMED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    counters(
        "messaging_client_consumed_messages_total",
        "Messages that the broker delivered.",
        OPERATION,
    )
});

pub(crate) static CLIENT_DURATION: LazyLock<HistogramVec> = LazyLock::new(|| {
    histograms(
        "messaging_client_operation_duration_seconds",
        "Time from handing a batch of messages to the broker to its last confirm.",
        OPERATION_SECONDS,
        OPERATION,
    )
});

pub(crate) static PROCESS_DURATION: LazyLock<HistogramVec> = LazyLock::new(|| {
    histograms(
        "messaging_process_duration_seconds",
        "Time that handling a message took, each attempt separately.",
        OPERATION_SECONDS,
        OPERATION,
    )
});

pub(crate) static EVENT_LAG: LazyLock<HistogramVec> = LazyLock::new(|| {
    histograms(
        "earshot_event_lag_seconds",
        "Time from an event's transaction to the end of its handling.",
        LAG_SECONDS,
        &["event"],
    )
});

pub(crate) static REDELIVERED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    counters(
        "earshot_redelivered_total",
        "Messages that were delivered before.",
        &["queue"],
    )
});

pub(crate) static DEAD_LETTERED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    counters(
        "earshot_dead_lettered_total",
        "Messages that a consumer set aside: unreadable, rejected or panicked.",
        &["queue", "reason"],
    )
});

pub(crate) static QUEUE_READY: LazyLock<IntGaugeVec> = LazyLock::new(|| {
    gauges(
        "earshot_queue_ready_messages",
        "Messages that wait for a consumer.",
    )
});

pub(crate) static QUEUE_CONSUMERS: LazyLock<IntGaugeVec> =
    LazyLock::new(|| gauges("earshot_queue_consumers", "Consumers of the queue."));

pub(crate) static QUEUE_DEAD_LETTERS: LazyLock<IntGaugeVec> = LazyLock::new(|| {
    gauges(
        "earshot_queue_dead_letters",
        "Messages in the queue's dead-letter queue.",
    )
});

pub(crate) static OUTBOX_PUBLISHED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    counters(
        "earshot_outbox_published_total",
        "Events that left the outbox, or failed to.",
        &["event", "outcome"],
    )
});

pub(crate) static OUTBOX_PENDING: LazyLock<IntGauge> = LazyLock::new(|| {
    register(
        IntGauge::new(
            "earshot_outbox_pending",
            "Events that wait in the outbox, estimated beyond 10,000.",
        )
        .expect("the name is valid"),
    )
});

pub(crate) static OUTBOX_OLDEST_AGE: LazyLock<Gauge> = LazyLock::new(|| {
    register(
        Gauge::new(
            "earshot_outbox_oldest_age_seconds",
            "Age of the oldest event in the outbox; 0 when it is empty.",
        )
        .expect("the name is valid"),
    )
});

fn counters(name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
    register(IntCounterVec::new(Opts::new(name, help), labels).expect("the names are valid"))
}

fn gauges(name: &str, help: &str) -> IntGaugeVec {
    register(IntGaugeVec::new(Opts::new(name, help), &["queue"]).expect("the names are valid"))
}

fn histograms(name: &str, help: &str, buckets: &[f64], labels: &[&str]) -> HistogramVec {
    let opts = HistogramOpts::new(name, help).buckets(buckets.to_vec());
    register(HistogramVec::new(opts, labels).expect("the names are valid"))
}

/// If a metric cannot be registered, because its name is taken, it still counts but is not exported.
fn register<C: Collector + Clone + 'static>(collector: C) -> C {
    if let Err(error) = prometheus::default_registry().register(Box::new(collector.clone())) {
        tracing::error!(%error, "a metric will be missing");
    }
    collector
}
