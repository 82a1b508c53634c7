//! The body of `/readyz`.

use std::time::Duration;

use serde::Serialize;

/// Status of a check, or of the whole process; the worst check decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Ok,
    Degraded,
    Unavailable,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    pub status: Status,
    pub checks: Vec<CheckReport>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckReport {
    pub name: String,
    pub ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Time since the check last reported this.
    pub age_ms: u64,
}

impl Report {
    pub(super) fn new<'a>(
        checks: impl Iterator<Item = (&'a str, Status, Option<&'a str>, Duration)>,
        draining: bool,
    ) -> Self {
        let mut report = Self {
            status: Status::Ok,
            checks: Vec::new(),
        };
        for (name, status, detail, age) in checks {
            report.add(name, status, detail, age);
        }
        if report.checks.is_empty() {
            // No service has registered a check yet.
            let detail = Some("starting");
            report.add("process", Status::Unavailable, detail, Duration::ZERO);
        }
        if draining {
            report.add(
                "shutdown",
                Status::Unavailable,
                Some("draining"),
                Duration::ZERO,
            );
        }
        report
    }

    /// Returns true if the process may get work.
    pub fn is_ready(&self) -> bool {
        self.status < Status::Unavailable
    }

    fn add(&mut self, name: &str, status: Status, detail: Option<&str>, age: Duration) {
        self.status = self.status.max(status);
        self.checks.push(CheckReport {
            name: name.to_owned(),
            ok: status == Status::Ok,
            detail: detail.map(str::to_owned),
            age_ms: u64::try_from(age.as_millis()).unwrap_or(u64::MAX),
        });
    }
}
