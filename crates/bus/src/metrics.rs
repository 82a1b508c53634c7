//! The metrics of messaging and of the outbox, in the default registry.
//!
//! Dashboards and alerts depend on their names. No label has values from customers.

/// Buckets of the OpenTelemetry conventions for operation durations.
const OPERATION_SECONDS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
];
const LAG_SECONDS: &[f64] = &[
    0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0,
];

runtime::metrics! {
    pub(crate) static SENT: IntCounterVec = "messaging_client_sent_messages_total",
        "Messages that were handed to the broker.", ["destination", "operation", "error_type"];
    pub(crate) static CONSUMED: IntCounterVec = "messaging_client_consumed_messages_total",
        "Messages that the broker delivered.", ["destination", "operation", "error_type"];
    pub(crate) static CLIENT_DURATION: HistogramVec = "messaging_client_operation_duration_seconds",
        "Time from handing a batch of messages to the broker to its last confirm.",
        ["destination", "operation", "error_type"],
        buckets: OPERATION_SECONDS;
    pub(crate) static PROCESS_DURATION: HistogramVec = "messaging_process_duration_seconds",
        "Time that handling a message took, each attempt separately.", ["destination", "operation", "error_type"],
        buckets: OPERATION_SECONDS;
    pub(crate) static EVENT_LAG: HistogramVec = "earshot_event_lag_seconds",
        "Time from an event's transaction to the end of its handling.", ["event"], buckets: LAG_SECONDS;
    pub(crate) static REDELIVERED: IntCounterVec = "earshot_redelivered_total",
        "Messages that were delivered before.", ["queue"];
    pub(crate) static DEAD_LETTERED: IntCounterVec = "earshot_dead_lettered_total",
        "Messages that a consumer set aside: unreadable, rejected or panicked.", ["queue", "reason"];
    pub(crate) static QUEUE_READY: IntGaugeVec = "earshot_queue_ready_messages",
        "Messages that wait for a consumer.", ["queue"];
    pub(crate) static QUEUE_CONSUMERS: IntGaugeVec = "earshot_queue_consumers",
        "Consumers of the queue.", ["queue"];
    pub(crate) static QUEUE_DEAD_LETTERS: IntGaugeVec = "earshot_queue_dead_letters",
        "Messages in the queue's dead-letter queue.", ["queue"];
    pub(crate) static OUTBOX_PUBLISHED: IntCounterVec = "earshot_outbox_published_total",
        "Events that left the outbox, or failed to.", ["event", "outcome"];
    pub(crate) static OUTBOX_PENDING: IntGauge = "earshot_outbox_pending",
        "Events that wait in the outbox, estimated beyond 10,000.";
    pub(crate) static OUTBOX_OLDEST_AGE: Gauge = "earshot_outbox_oldest_age_seconds",
        "Age of the oldest event in the outbox; 0 when it is empty.";
}
