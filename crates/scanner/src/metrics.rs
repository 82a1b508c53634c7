//! Metrics of the scanner. Names and labels are a contract: `docs/operations/metrics.md`.

use std::sync::LazyLock;

/// Buckets from a tenth of a second to an hour.
const LONG: &[f64] = &[
    0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3_600.0,
];

runtime::metrics! {
    pub(crate) static POSTS: IntCounterVec = "earshot_posts_total",
        "New posts read", ["platform"];
    pub(crate) static GAPS: IntCounterVec = "earshot_posts_gap_total",
        "Polls after which posts may be missing", ["platform"];
    pub(crate) static QUARANTINED: IntCounterVec = "earshot_posts_quarantined_total",
        "Posts that were skipped because they could not be read or stored", ["platform", "reason"];
    pub(crate) static LATE: IntCounterVec = "earshot_posts_late_total",
        "Posts that became visible after their feed had passed their time", ["platform"];
    pub(crate) static THROTTLED: IntCounterVec = "earshot_platform_throttled_total",
        "Polls answered with 429", ["platform"];
    pub(crate) static POLL_FAILURES: IntCounterVec = "earshot_poll_failures_total",
        "Polls that gave nothing, by what the platform or the budget said", ["platform", "reason"];
    pub(crate) static BUDGET: GaugeVec = "earshot_platform_budget_ratio",
        "What is left of what a platform may be asked, 1 to 0", ["platform"];
    pub(crate) static FEEDS_DUE: IntGaugeVec = "earshot_feeds_due",
        "Feeds that are due and that no scanner polls", ["platform"];
    pub(crate) static STREAM_LAG: GaugeVec = "earshot_stream_lag_seconds",
        "Age of the newest event that was read of a stream", ["platform"];
    pub(crate) static RECHECK_AGE: GaugeVec = "earshot_recheck_age_seconds",
        "Time since the search for deleted posts began that has not ended yet", ["platform"];
    pub(crate) static WAITING: GaugeVec = "earshot_waiting_oldest_seconds",
        "Age of the oldest work of a kind that is not done yet", ["kind"];
    pub(crate) static INDEX_LAG: Gauge = "earshot_index_lag_seconds",
        "For how long the index was not compared with the database";
    pub(crate) static STORED_BYTES: IntGaugeVec = "earshot_stored_bytes",
        "Size of each table on the disk of the database, with its indexes", ["table"];
    pub(crate) static ODD_FEEDS: IntGaugeVec = "earshot_feeds_odd",
        "Feeds that are watched and can be read, with an oddity that their notice names", ["platform"];
    pub(crate) static FEEDS: IntGaugeVec = "earshot_feeds",
        "Feeds that are watched, by how they do", ["platform", "state"];
    pub(crate) static ERASED: IntCounterVec = "earshot_posts_erased_total",
        "Stored posts that were blanked, since they are gone at their source", ["platform"];
    pub(crate) static BACKFILLS: IntCounterVec = "earshot_backfilled_scans_total",
        "Scans made of posts of the past, by where these came from", ["source"];
    pub(crate) static SCANS: IntCounterVec = "earshot_scans_total",
        "Scans made", ["platform"];
    pub(crate) static POLL_DURATION: HistogramVec = "earshot_poll_duration_seconds",
        "Time of a poll", ["platform", "outcome"];
    pub(crate) static POLL_DELAY: HistogramVec = "earshot_poll_delay_seconds",
        "How late against its due time a poll started", ["platform"], buckets: LONG;
    pub(crate) static DISCOVERY: HistogramVec = "earshot_post_discovery_seconds",
        "From when a post was made to when it was read", ["platform"], buckets: LONG;
    pub(crate) static MATCH_DURATION: Histogram = "earshot_match_duration_seconds",
        "Time to match the posts of one poll";
    pub(crate) static MATCH_BUDGET_SPENT: IntCounter = "earshot_match_budget_spent_total",
        "Posts in which the searches of a plan spent their budget of steps";
    pub(crate) static INDEX_PLANS: IntGauge = "earshot_index_plans",
        "Plans in the index of this replica";
    pub(crate) static UNREADABLE_PLANS: IntGauge = "earshot_index_unreadable_plans",
        "Managers whose instructions this release cannot read";
    pub(crate) static REFUSED: IntCounterVec = "earshot_scans_over_quota_total",
        "Matches that wait because the quota of Scans a day of their account is used up", ["platform"];
    pub(crate) static DROPPED: IntCounter = "earshot_refused_matches_dropped_total",
        "Matches that the quota of Scans a day refused, and that are not kept";
    pub(crate) static SCREENED: IntCounterVec = "earshot_matches_screened_total",
        "Matches that were kept out after they matched", ["reason"];
    pub(crate) static READER_READY: IntGauge = "earshot_reader_ready",
        "1 if the configured reader judges posts, 0 if its files cannot be used";
    pub(crate) static READER: IntCounterVec = "earshot_reader_matches_total",
        "Matches that the reader judged, or why it did not", ["outcome"];
    pub(crate) static READER_DURATION: Histogram = "earshot_reader_duration_seconds",
        "Time to read a post and judge it for all Managers that it concerns",
        buckets: &[0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0, 5.0];
    pub(crate) static JUDGEMENTS: IntCounterVec = "earshot_judgements_total",
        "Candidates of the LLM filter, by outcome", ["outcome"];
}

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
