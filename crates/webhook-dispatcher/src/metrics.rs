//! Metrics of the dispatcher. Names and labels are a contract: `docs/operations/metrics.md`.

use std::sync::LazyLock;

use prometheus::{
    Gauge, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, histogram_opts,
    register_gauge, register_histogram_vec, register_int_counter, register_int_counter_vec,
    register_int_gauge, register_int_gauge_vec,
};

const UNREGISTERED: &str = "each metric is registered once";

pub(crate) static DELIVERIES: LazyLock<IntCounterVec> = LazyLock::new(|| {
    register_int_counter_vec!(
        "earshot_deliveries_total",
        "Attempts by what became of the delivery",
        &["outcome", "status_class"]
    )
    .expect(UNREGISTERED)
});

pub(crate) static ATTEMPT_DURATION: LazyLock<HistogramVec> = LazyLock::new(|| {
    register_histogram_vec!(
        "earshot_delivery_attempt_duration_seconds",
        "Time of one attempt",
        &["outcome"]
    )
    .expect(UNREGISTERED)
});

pub(crate) static LATENCY: LazyLock<HistogramVec> = LazyLock::new(|| {
    let options = histogram_opts!(
        "earshot_delivery_latency_seconds",
        "From a Scan's creation to its first attempt, and to success",
        vec![
            0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
            900.0, 3_600.0
        ]
    );
    register_histogram_vec!(options, &["stage"]).expect(UNREGISTERED)
});

pub(crate) static IN_FLIGHT: LazyLock<IntGauge> = LazyLock::new(|| {
    register_int_gauge!(
        "earshot_deliveries_inflight",
        "Requests open in this replica"
    )
    .expect(UNREGISTERED)
});

pub(crate) static POST_BYTES: LazyLock<IntGauge> = LazyLock::new(|| {
    register_int_gauge!(
        "earshot_delivery_post_bytes",
        "Size of the posts of deliveries that this replica holds"
    )
    .expect(UNREGISTERED)
});

pub(crate) static BLOCKED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    register_int_counter_vec!(
        "earshot_outbound_blocked_total",
        "Requests that the address guard refused",
        &["reason"]
    )
    .expect(UNREGISTERED)
});

pub(crate) static RECOVERED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    register_int_counter_vec!(
        "earshot_sweep_recovered_total",
        "Work that a sweep found, not an event",
        &["kind"]
    )
    .expect(UNREGISTERED)
});

pub(crate) static SCANS_REFUSED: LazyLock<IntGauge> = LazyLock::new(|| {
    register_int_gauge!(
        "earshot_scans_refused",
        "Scans without an event whose deliveries the database refuses; this replica tries them again"
    )
    .expect(UNREGISTERED)
});

pub(crate) static REPLAYED: LazyLock<IntCounter> = LazyLock::new(|| {
    register_int_counter!(
        "earshot_replayed_deliveries_total",
        "Deliveries that replays reopened"
    )
    .expect(UNREGISTERED)
});

pub(crate) static PARTITIONS_DROPPED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    register_int_counter_vec!(
        "earshot_partitions_dropped_total",
        "Partitions past retention that were dropped",
        &["table"]
    )
    .expect(UNREGISTERED)
});

pub(crate) static PARTITIONS_KEPT: LazyLock<IntGaugeVec> = LazyLock::new(|| {
    register_int_gauge_vec!(
        "earshot_partitions_kept",
        "Partitions past retention that could not be dropped in the last turn of this replica",
        &["table"]
    )
    .expect(UNREGISTERED)
});

pub(crate) static LEASES_EXPIRED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    register_int_counter_vec!(
        "earshot_leases_expired_total",
        "Leases of dead replicas that were freed",
        &["kind"]
    )
    .expect(UNREGISTERED)
});

pub(crate) static LANES: LazyLock<IntGaugeVec> = LazyLock::new(|| {
    register_int_gauge_vec!(
        "earshot_delivery_lanes",
        "Lanes of Connections in this replica",
        &["class"]
    )
    .expect(UNREGISTERED)
});

pub(crate) static BREAKER_CHANGES: LazyLock<IntCounterVec> = LazyLock::new(|| {
    register_int_counter_vec!(
        "earshot_breaker_changes_total",
        "Circuit breakers of Connections that this replica opened and closed",
        &["change"]
    )
    .expect(UNREGISTERED)
});

pub(crate) static OPEN_BREAKERS: LazyLock<IntGauge> = LazyLock::new(|| {
    register_int_gauge!(
        "earshot_breakers_open",
        "Connections whose circuit breaker is open, of all replicas"
    )
    .expect(UNREGISTERED)
});

pub(crate) static CONNECTIONS_BEHIND: LazyLock<IntGauge> = LazyLock::new(|| {
    register_int_gauge!(
        "earshot_connections_behind",
        "Connections with deliveries that are due and not in hand, of all replicas"
    )
    .expect(UNREGISTERED)
});

pub(crate) static OLDEST_DUE: LazyLock<Gauge> = LazyLock::new(|| {
    register_gauge!(
        "earshot_delivery_oldest_due_seconds",
        "For how long the longest of those has been due"
    )
    .expect(UNREGISTERED)
});

pub(crate) static UNFINISHED: LazyLock<IntGaugeVec> = LazyLock::new(|| {
    register_int_gauge_vec!(
        "earshot_deliveries_unfinished",
        "Deliveries that are not finished, counted up to 10,000 that wait and as many in flight, of all replicas",
        &["state"]
    )
    .expect(UNREGISTERED)
});

pub(crate) static DUE: LazyLock<IntGauge> = LazyLock::new(|| {
    register_int_gauge!(
        "earshot_deliveries_due",
        "Deliveries that wait and are due, counted up to 10,000, of all replicas"
    )
    .expect(UNREGISTERED)
});

pub(crate) static ENDPOINTS: LazyLock<IntGaugeVec> = LazyLock::new(|| {
    register_int_gauge_vec!(
        "earshot_endpoints",
        "Connections by state, of all replicas",
        &["state"]
    )
    .expect(UNREGISTERED)
});

/// Lets the counters of alerts begin at zero. Prometheus sees no increase in a counter that appears with its first
/// event, so an alert would miss it.
pub(crate) fn begin() {
    for change in ["opened", "closed"] {
        BREAKER_CHANGES.with_label_values(&[change]);
    }
    for kind in ["delivery", store::scans::FAN_OUT] {
        backbone::work::count_set_aside(kind, 0);
    }
}
