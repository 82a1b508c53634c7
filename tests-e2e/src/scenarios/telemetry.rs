//! Compares the metrics of all services, after the other scenarios, with `docs/operations/metrics.md`.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::Duration,
};

use crate::harness::{Part, Stack, eventually};

/// Maximum number of series of one process, without histogram buckets.
const MOST_SERIES: usize = 400;
/// Metrics that these tests need not trigger after the last start of a service, or that the configuration disables.
const RARE: &[&str] = &[
    "earshot_backfilled_scans_total",
    "earshot_breaker_changes_total",
    "earshot_events_dropped_total",
    "earshot_failed_keys_total",
    "earshot_heap_bytes",
    "earshot_judgements_total",
    "earshot_leases_expired_total",
    "earshot_matches_screened_total",
    "earshot_model_request_duration_seconds",
    "earshot_model_requests_total",
    "earshot_outbound_blocked_total",
    "earshot_partitions_dropped_total",
    "earshot_reader_duration_seconds",
    "earshot_reader_matches_total",
    "earshot_reader_ready",
    "earshot_partitions_kept",
    "earshot_platform_budget_ratio",
    "earshot_platform_throttled_total",
    "earshot_poll_failures_total",
    "earshot_posts_erased_total",
    "earshot_posts_gap_total",
    "earshot_posts_late_total",
    "earshot_posts_quarantined_total",
    "earshot_rate_limited_total",
    "earshot_replayed_deliveries_total",
    "earshot_scans_over_quota_total",
    "earshot_sweep_recovered_total",
    "earshot_telemetry_dropped_total",
    "earshot_tls_certificate_expiry_timestamp_seconds",
];
/// Some metrics are updated every fifteen seconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// Metric names, and the labels that were seen of each.
type Metrics = BTreeMap<String, BTreeSet<String>>;

pub(crate) async fn metrics(stack: &Stack) {
    let documented = documented();
    for name in RARE {
        assert!(
            documented.contains_key(*name),
            "{name} is not in metrics.md"
        );
    }
    let mut before = Vec::new();
    let told = eventually("every metric is reported", PATIENCE, async || {
        let told = scrape(stack).await;
        let missing = without(&documented, &told);
        let missing: Vec<String> = missing
            .into_iter()
            .filter(|name| !RARE.contains(&name.as_str()))
            .collect();
        if missing != before {
            eprintln!("missing: {missing:?}");
            before.clone_from(&missing);
        }
        missing.is_empty().then_some(told)
    })
    .await;
    let undocumented = without(&told, &documented);
    assert!(
        undocumented.is_empty(),
        "not in metrics.md: {undocumented:?}"
    );
    for (name, labels) in told.iter().filter(|(_, labels)| !labels.is_empty()) {
        assert_eq!(labels, &documented[name], "labels of {name}");
    }
}

/// Returns the names in `all` that are missing in `others`.
fn without(all: &Metrics, others: &Metrics) -> Vec<String> {
    let names = all.keys().filter(|name| !others.contains_key(*name));
    names.cloned().collect()
}

/// Returns the metrics of all services together.
async fn scrape(stack: &Stack) -> Metrics {
    let mut told = Metrics::new();
    for part in Part::SERVICES {
        let text = stack.metrics(part).await;
        let mut series = 0;
        for line in text.lines() {
            if let Some(kind) = line.strip_prefix("# TYPE ") {
                let name = kind.split(' ').next().unwrap();
                told.entry(name.to_owned()).or_default();
            } else if !line.starts_with('#') {
                let (name, labels) = labels(line);
                series += usize::from(!labels.contains("le"));
                let name = family(&name, &told);
                let known = told.get_mut(&name);
                let known = known.unwrap_or_else(|| panic!("no type: {line}"));
                known.extend(labels.into_iter().filter(|label| label != "le"));
            }
        }
        assert!(series < MOST_SERIES, "{part:?} has {series} series");
    }
    told
}

/// Returns the name of a line's series, and its label names.
fn labels(line: &str) -> (String, BTreeSet<String>) {
    let Some((name, rest)) = line.split_once('{') else {
        let name = line.split(' ').next().unwrap();
        return (name.to_owned(), BTreeSet::new());
    };
    let (labels, _value) = rest.rsplit_once('}').unwrap();
    let names = labels
        .split("\",")
        .filter_map(|label| Some(label.split_once('=')?.0.trim().to_owned()));
    (name.to_owned(), names.collect())
}

/// Returns the histogram's name for one of its series.
fn family(name: &str, told: &Metrics) -> String {
    if told.contains_key(name) {
        return name.to_owned();
    }
    let ends = ["_bucket", "_sum", "_count"];
    let base = ends.iter().find_map(|end| name.strip_suffix(end));
    base.unwrap_or(name).to_owned()
}

/// Returns names and labels from the tables of the reference: `| `name` | kind | `label`, `label` | meaning |`.
fn documented() -> Metrics {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operations/metrics.md");
    let text = std::fs::read_to_string(path).unwrap();
    let words = |cell: &str| -> Vec<String> {
        let quoted = cell.split('`').skip(1).step_by(2);
        quoted.map(str::to_owned).collect()
    };
    let mut all = Metrics::new();
    for line in text.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.split('|').collect();
        for name in words(cells[1]) {
            all.insert(name, words(cells[3]).into_iter().collect());
        }
    }
    all
}
