//! Metrics of the dispatcher. Names and labels are a contract: `docs/operations/metrics.md`.

runtime::metrics! {
    pub(crate) static DELIVERIES: IntCounterVec = "earshot_deliveries_total",
        "Attempts by what became of the delivery", ["outcome", "status_class"];
    pub(crate) static ATTEMPT_DURATION: HistogramVec = "earshot_delivery_attempt_duration_seconds",
        "Time of one attempt", ["outcome"];
    pub(crate) static LATENCY: HistogramVec = "earshot_delivery_latency_seconds",
        "From a Scan's creation to its first attempt, and to success", ["stage"],
        buckets: &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3_600.0];
    pub(crate) static IN_FLIGHT: IntGauge = "earshot_deliveries_inflight",
        "Requests open in this replica";
    pub(crate) static POST_BYTES: IntGauge = "earshot_delivery_post_bytes",
        "Size of the posts of deliveries that this replica holds";
    pub(crate) static BLOCKED: IntCounterVec = "earshot_outbound_blocked_total",
        "Requests that the address guard refused", ["reason"];
    pub(crate) static MAIL_FAILURES: IntCounterVec = "earshot_mail_failures_total",
        "Mails that were not sent because the mail server cannot be used", ["reason"];
    pub(crate) static RECOVERED: IntCounterVec = "earshot_sweep_recovered_total",
        "Work that a sweep found, not an event", ["kind"];
    pub(crate) static SCANS_REFUSED: IntGauge = "earshot_scans_refused",
        "Scans without an event whose deliveries the database refuses; this replica tries them again";
    pub(crate) static REPLAYED: IntCounter = "earshot_replayed_deliveries_total",
        "Deliveries that replays reopened";
    pub(crate) static PARTITIONS_DROPPED: IntCounterVec = "earshot_partitions_dropped_total",
        "Partitions past retention that were dropped", ["table"];
    pub(crate) static PARTITIONS_KEPT: IntGaugeVec = "earshot_partitions_kept",
        "Partitions past retention that could not be dropped in the last turn of this replica", ["table"];
    pub(crate) static LEASES_EXPIRED: IntCounterVec = "earshot_leases_expired_total",
        "Leases of dead replicas that were freed", ["kind"];
    pub(crate) static LANES: IntGaugeVec = "earshot_delivery_lanes",
        "Lanes of Connections in this replica", ["class"];
    pub(crate) static BREAKER_CHANGES: IntCounterVec = "earshot_breaker_changes_total",
        "Circuit breakers of Connections that this replica opened and closed", ["change"];
    pub(crate) static OPEN_BREAKERS: IntGauge = "earshot_breakers_open",
        "Connections whose circuit breaker is open, of all replicas";
    pub(crate) static CONNECTIONS_BEHIND: IntGauge = "earshot_connections_behind",
        "Connections with deliveries that are due and not in hand, of all replicas";
    pub(crate) static OLDEST_DUE: Gauge = "earshot_delivery_oldest_due_seconds",
        "For how long the longest of those has been due";
    pub(crate) static UNFINISHED: IntGaugeVec = "earshot_deliveries_unfinished",
        "Deliveries that are not finished, counted up to 10,000 that wait and as many in flight, of all replicas",
        ["state"];
    pub(crate) static DUE: IntGauge = "earshot_deliveries_due",
        "Deliveries that wait and are due, counted up to 10,000, of all replicas";
    pub(crate) static ENDPOINTS: IntGaugeVec = "earshot_endpoints",
        "Connections by state, of all replicas", ["state"];
}

/// Lets the counters of alerts begin at zero. Prometheus sees no increase in a counter that appears with its first
/// event, so an alert would miss it.
pub(crate) fn begin() {
    for change in ["opened", "closed"] {
        BREAKER_CHANGES.with_label_values(&[change]);
    }
    for reason in [
        "connect_refused",
        "smtp_login_refused",
        "smtp_unavailable",
        "timeout",
        "tls_failure",
    ] {
        MAIL_FAILURES.with_label_values(&[reason]);
    }
    for kind in ["delivery", store::scans::FAN_OUT] {
        backbone::work::count_set_aside(kind, 0);
    }
}
