//! The page of metrics: what the process registered, and what it is.

use prometheus::{GaugeVec, Opts, Registry, TextEncoder};

use crate::{
    build_info::{COMMIT, VERSION},
    health::{Report, Status},
};

/// The default registry's metrics, `earshot_build_info` and `earshot_ready`.
pub(super) fn render(report: &Report) -> prometheus::Result<String> {
    // A registry of its own for each scrape: checks that are gone leave no stale gauge.
    let registry = Registry::new();
    let build = GaugeVec::new(
        Opts::new("earshot_build_info", "Always 1; the labels tell what runs."),
        &["version", "commit"],
    )?;
    build.with_label_values(&[VERSION, COMMIT]).set(1.0);
    registry.register(Box::new(build))?;

    let ready = GaugeVec::new(
        Opts::new("earshot_ready", "Whether the check is ok."),
        &["check"],
    )?;
    for check in &report.checks {
        let value = if check.ok { 1.0 } else { 0.0 };
        ready.with_label_values(&[check.name.as_str()]).set(value);
    }
    let all = if report.status < Status::Unavailable {
        1.0
    } else {
        0.0
    };
    ready.with_label_values(&["all"]).set(all);
    registry.register(Box::new(ready))?;

    let mut families = prometheus::gather();
    families.extend(registry.gather());
    TextEncoder::new().encode_to_string(&families)
}
