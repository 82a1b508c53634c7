//! Peak memory of the services, compared with the limits of the chart.

use std::fs;

use anyhow::{Context, Result};
use serde_json::Value;

use super::product::Product;
use crate::report::Row;

const VALUES: &str = include_str!("../../../../helm/values.yaml");

/// The most memory that a service had at once, in MiB.
pub(super) struct Peak {
    service: &'static str,
    /// `None` if the service has ended.
    peak: Option<u64>,
    limit: u64,
}

impl Peak {
    pub(super) fn has_ended(&self) -> bool {
        self.peak.is_none()
    }

    pub(super) fn is_below_limit(&self) -> bool {
        self.peak.is_some_and(|peak| peak < self.limit)
    }

    pub(super) fn text(&self) -> String {
        match self.peak {
            Some(peak) => format!("{} {peak} of {}", self.service, self.limit),
            None => format!("{} HAS ENDED", self.service),
        }
    }
}

/// Returns the row of an attack.
pub(super) fn row(attack: &str, peaks: &[Peak]) -> Row {
    let texts: Vec<String> = peaks.iter().map(Peak::text).collect();
    let is_met = peaks.iter().all(Peak::is_below_limit);
    Row::new(format!("{attack}: memory"), texts.join(", "))
        .goal("below the chart's limit, in MiB", is_met)
}

/// Peak memory of each service since the last [`reset`].
pub(super) fn peaks(product: &Product) -> Result<Vec<Peak>> {
    let values: Value = serde_yaml_ng::from_str(VALUES)?;
    let peaks = product.processes().map(|(service, process)| {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        // A process that ended and was not waited for has no memory.
        let line = { status.lines() }.find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes: Option<u64> =
            line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        Ok(Peak {
            service,
            peak: kibibytes.map(|kibibytes| kibibytes / 1_024),
            limit: limit(&values, service)?,
        })
    });
    peaks.collect()
}

/// Begins to measure again. What a service did not give back since stays in its peak.
pub(super) fn reset(product: &Product) -> Result<()> {
    for (service, process) in product.processes() {
        fs::write(format!("/proc/{process}/clear_refs"), "5")
            .with_context(|| format!("reset the peak memory of {service}"))?;
    }
    Ok(())
}

fn limit(values: &Value, service: &str) -> Result<u64> {
    let limit = |of: &Value| {
        let limit = of["resources"]["limits"]["memory"].as_str()?;
        limit.strip_suffix("Mi")?.parse().ok()
    };
    limit(&values["components"][service])
        .or_else(|| limit(&values["defaults"]))
        .with_context(|| format!("helm/values.yaml has no memory limit of {service}"))
}
