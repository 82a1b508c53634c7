//! The metrics of messaging, in the default registry.
//!
//! Dashboards and alerts depend on their names. No label has values from customers.

const LAG_SECONDS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0,
];

runtime::metrics! {
    pub(crate) static SENT: IntCounterVec = "messaging_client_sent_messages_total",
        "Messages that were handed to the broker.", ["destination", "operation", "error_type"];
    pub(crate) static CONSUMED: IntCounterVec = "messaging_client_consumed_messages_total",
        "Messages that the broker delivered.", ["destination", "operation", "error_type"];
    pub(crate) static EVENT_LAG: HistogramVec = "earshot_event_lag_seconds",
        "Time from an event's commit to its arrival.", ["event"], buckets: LAG_SECONDS;
    pub(crate) static DROPPED: IntCounterVec = "earshot_events_dropped_total",
        "Events that could not be sent in time.", ["event"];
}
