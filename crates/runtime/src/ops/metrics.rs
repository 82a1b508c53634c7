//! The page of metrics: those that the process registered, and information about the process.

use prometheus::{GaugeVec, Opts, Registry, TextEncoder};

use crate::{
    build_info::{COMMIT, VERSION},
    health::{Report, Status},
};

/// The default registry's metrics, `earshot_build_info`, `earshot_ready` and, with jemalloc, `earshot_heap_bytes`.
pub(super) fn render(report: &Report) -> prometheus::Result<String> {
    // A separate registry for each scrape: removed checks leave no stale gauge.
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

    #[cfg(feature = "jemalloc")]
    registry.register(Box::new(heap()?))?;

    let mut families = prometheus::gather();
    families.extend(registry.gather());
    TextEncoder::new().encode_to_string(&families)
}

/// Separates a leak, which raises `allocated`, from memory that the allocator holds in reserve.
#[cfg(feature = "jemalloc")]
fn heap() -> prometheus::Result<GaugeVec> {
    use tikv_jemalloc_ctl::{epoch, stats};

    let heap = GaugeVec::new(
        Opts::new("earshot_heap_bytes", "Memory of the allocator's."),
        &["kind"],
    )?;
    // jemalloc's statistics are updated only on request.
    let read =
        epoch::advance().and_then(|_| Ok((stats::allocated::read()?, stats::resident::read()?)));
    if let Ok((allocated, resident)) = read {
        for (kind, bytes) in [("allocated", allocated), ("resident", resident)] {
            #[expect(clippy::cast_precision_loss, reason = "exact up to eight petabytes")]
            let bytes = bytes as f64;
            heap.with_label_values(&[kind]).set(bytes);
        }
    }
    Ok(heap)
}
