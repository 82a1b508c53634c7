//! Metrics of the scanner. Names and labels are a contract: `docs/operations/metrics.md`.

use std::sync::LazyLock;

use prometheus::{
    Gauge, GaugeVec, Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec,
    histogram_opts, register_gauge, register_gauge_vec, register_histogram, register_histogram_vec,
    register_int_counter, register_int_counter_vec, register_int_gauge, register_int_gauge_vec,
};

const UNREGISTERED: &str = "each metric is registered once";
/// Buckets from a tenth of a second to an hour.
const LONG: &[f64] = &[
    0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3_600.0,
];

pub(crate) static POSTS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    register_int_counter_vec!("earshot_posts_total", "New posts read", &["platform"])
        .expect(UNREGISTERED)
});

pub(crate) static GAPS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    register_int_counter_vec!(
        "earshot_posts_gap_total",
        "Polls after which posts may be missing",
        &["platform"]
    )
    .expect(UNREGISTERED)
});

pub(crate) static QUARANTINED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    register_int_counter_vec!(
        "earshot_posts_quarantined_total",
        "Posts that were skipped because they could not be read or stored",
        &["platform", "reason"]
    )
    .expect(UNREGISTERED)
});

pub(crate) static LATE: LazyLock<IntCounterVec> = LazyLock::new(|| {
    register_int_counter_vec!(
        "earshot_posts_late_total",
        "Posts that became visible after their feed had passed their time",
        &["platform"]
    )
    .expect(UNREGISTERED)
});

pub(crate) static THROTTLED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    register_int_counter_vec!(
        "earshot_platform_throttled_total",
        "Polls answered with 429",
        &["platform"]
    )
    .expect(UNREGISTERED)
});

pub(crate) static POLL_FAILURES: LazyLock<IntCounterVec> = LazyLock::new(|| {
    register_int_counter_vec!(
        "earshot_poll_failures_total",
        "Polls that gave nothing, by what the platform or the budget said",
        &["platform", "reason"]
    )
    .expect(UNREGISTERED)
});

pub(crate) static BUDGET: LazyLock<GaugeVec> = LazyLock::new(|| {
    register_gauge_vec!(
        "earshot_platform_budget_ratio",
        "What is left of what a platform may be asked, 1 to 0",
        &["platform"]
    )
    .expect(UNREGISTERED)
});

pub(crate) static FEEDS_DUE: LazyLock<IntGaugeVec> = LazyLock::new(|| {
    register_int_gauge_vec!(
        "earshot_feeds_due",
        "Feeds that are due and that no scanner polls",
        &["platform"]
    )
    .expect(UNREGISTERED)
});

pub(crate) static STREAM_LAG: LazyLock<GaugeVec> = LazyLock::new(|| {
    register_gauge_vec!(
        "earshot_stream_lag_seconds",
        "Age of the newest event that was read of a stream",
        &["platform"]
    )
    .expect(UNREGISTERED)
});

pub(crate) static RECHECK_AGE: LazyLock<GaugeVec> = LazyLock::new(|| {
    register_gauge_vec!(
        "earshot_recheck_age_seconds",
        "Time since the search for deleted posts began that has not ended yet",
        &["platform"]
    )
    .expect(UNREGISTERED)
});

pub(crate) static WAITING: LazyLock<GaugeVec> = LazyLock::new(|| {
    register_gauge_vec!(
        "earshot_waiting_oldest_seconds",
        "Age of the oldest work of a kind that is not done yet",
        &["kind"]
    )
    .expect(UNREGISTERED)
});

pub(crate) static INDEX_LAG: LazyLock<Gauge> = LazyLock::new(|| {
    register_gauge!(
        "earshot_index_lag_seconds",
        "For how long the index was not compared with the database"
    )
    .expect(UNREGISTERED)
});

pub(crate) static STORED_BYTES: LazyLock<IntGaugeVec> = LazyLock::new(|| {
    register_int_gauge_vec!(
        "earshot_stored_bytes",
        "Size of each table on the disk of the database, with its indexes",
        &["table"]
    )
    .expect(UNREGISTERED)
});

pub(crate) static ODD_FEEDS: LazyLock<IntGaugeVec> = LazyLock::new(|| {
    register_int_gauge_vec!(
        "earshot_feeds_odd",
        "Feeds that are watched and can be read, with an oddity that their notice names",
        &["platform"]
    )
    .expect(UNREGISTERED)
});

pub(crate) static FEEDS: LazyLock<IntGaugeVec> = LazyLock::new(|| {
    register_int_gauge_vec!(
        "earshot_feeds",
        "Feeds that are watched, by how they do",
        &["platform", "state"]
    )
    .expect(UNREGISTERED)
});

pub(crate) static ERASED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    register_int_counter_vec!(
        "earshot_posts_erased_total",
        "Stored posts that were blanked, since they are gone at their source",
        &["platform"]
    )
    .expect(UNREGISTERED)
});

pub(crate) static BACKFILLS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    register_int_counter_vec!(
        "earshot_backfilled_scans_total",
        "Scans made of posts of the past, by where these came from",
        &["source"]
    )
    .expect(UNREGISTERED)
});

pub(crate) static SCANS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    register_int_counter_vec!("earshot_scans_total", "Scans made", &["platform"])
        .expect(UNREGISTERED)
});

pub(crate) static POLL_DURATION: LazyLock<HistogramVec> = LazyLock::new(|| {
    register_histogram_vec!(
        "earshot_poll_duration_seconds",
        "Time of a poll",
        &["platform", "outcome"]
    )
    .expect(UNREGISTERED)
});

pub(crate) static POLL_DELAY: LazyLock<HistogramVec> = LazyLock::new(|| {
    let options = histogram_opts!(
        "earshot_poll_delay_seconds",
        "How late against its due time a poll started",
        LONG.to_vec()
    );
    register_histogram_vec!(options, &["platform"]).expect(UNREGISTERED)
});

pub(crate) static DISCOVERY: LazyLock<HistogramVec> = LazyLock::new(|| {
    let options = histogram_opts!(
        "earshot_post_discovery_seconds",
        "From when a post was made to when it was read",
        LONG.to_vec()
    );
    register_histogram_vec!(options, &["platform"]).expect(UNREGISTERED)
});

pub(crate) static MATCH_DURATION: LazyLock<Histogram> = LazyLock::new(|| {
    register_histogram!(
        "earshot_match_duration_seconds",
        "Time to match the posts of one poll"
    )
    .expect(UNREGISTERED)
});

pub(crate) static MATCH_BUDGET_SPENT: LazyLock<IntCounter> = LazyLock::new(|| {
    register_int_counter!(
        "earshot_match_budget_spent_total",
        "Posts in which the searches of a plan spent their budget of steps"
    )
    .expect(UNREGISTERED)
});

pub(crate) static INDEX_PLANS: LazyLock<IntGauge> = LazyLock::new(|| {
    register_int_gauge!("earshot_index_plans", "Plans in the index of this replica")
        .expect(UNREGISTERED)
});

pub(crate) static UNREADABLE_PLANS: LazyLock<IntGauge> = LazyLock::new(|| {
    register_int_gauge!(
        "earshot_index_unreadable_plans",
        "Managers whose instructions this release cannot read"
    )
    .expect(UNREGISTERED)
});

pub(crate) static REFUSED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    register_int_counter_vec!(
        "earshot_scans_over_quota_total",
        "Matches that wait because the quota of Scans a day of their account is used up",
        &["platform"]
    )
    .expect(UNREGISTERED)
});

pub(crate) static DROPPED: LazyLock<IntCounter> = LazyLock::new(|| {
    register_int_counter!(
        "earshot_refused_matches_dropped_total",
        "Matches that the quota of Scans a day refused, and that are not kept any longer"
    )
    .expect(UNREGISTERED)
});

pub(crate) static SCREENED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    register_int_counter_vec!(
        "earshot_matches_screened_total",
        "Matches that were kept out after they matched",
        &["reason"]
    )
    .expect(UNREGISTERED)
});

pub(crate) static READER_READY: LazyLock<IntGauge> = LazyLock::new(|| {
    register_int_gauge!(
        "earshot_reader_ready",
        "1 if the configured reader judges posts, 0 if its files cannot be used"
    )
    .expect(UNREGISTERED)
});

pub(crate) static READER: LazyLock<IntCounterVec> = LazyLock::new(|| {
    register_int_counter_vec!(
        "earshot_reader_matches_total",
        "Matches that the reader judged, or why it did not",
        &["outcome"]
    )
    .expect(UNREGISTERED)
});

pub(crate) static READER_DURATION: LazyLock<Histogram> = LazyLock::new(|| {
    register_histogram!(histogram_opts!(
        "earshot_reader_duration_seconds",
        "Time to read a post and judge it for all Managers that it concerns",
        vec![0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0, 5.0]
    ))
    .expect(UNREGISTERED)
});

pub(crate) static JUDGEMENTS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    register_int_counter_vec!(
        "earshot_judgements_total",
        "Candidates of the LLM filter, by outcome",
        &["outcome"]
    )
    .expect(UNREGISTERED)
});

/// Lets the counters of a platform begin at zero. Prometheus sees no increase in a counter that appears with its first
/// event, so an alert would miss it.
pub(crate) fn begin(platform: &str) {
    for counter in [&POSTS, &GAPS, &LATE, &THROTTLED, &ERASED, &SCANS, &REFUSED] {
        counter.with_label_values(&[platform]);
    }
    for gauge in [&STREAM_LAG, &RECHECK_AGE] {
        gauge.with_label_values(&[platform]);
    }
    LazyLock::force(&DROPPED);
    LazyLock::force(&MATCH_BUDGET_SPENT);
    for reason in ["unreadable", "refused", "unfit"] {
        QUARANTINED.with_label_values(&[platform, reason]);
    }
    for outcome in ["ok", "failed", "store_failed", "lease_lost", "behind"] {
        POLL_DURATION.with_label_values(&[platform, outcome]);
    }
}
