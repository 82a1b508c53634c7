//! Faulty responses on demand.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

/// A fault in the next responses of a platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fault {
    /// Same as [`super::NewPost::platform`].
    pub platform: String,
    pub kind: FaultKind,
    /// Number of requests.
    #[serde(default = "once")]
    pub times: u32,
    #[serde(default)]
    pub value: u64,
    /// Only requests whose path contains this.
    #[serde(default)]
    pub path: Option<String>,
}

impl Fault {
    /// A fault in the next response.
    pub fn new(platform: &str, kind: FaultKind, value: u64) -> Self {
        Self {
            platform: platform.to_owned(),
            kind,
            times: once(),
            value,
            path: None,
        }
    }

    #[must_use]
    pub fn times(self, times: u32) -> Self {
        Self { times, ..self }
    }

    /// Restricts it to requests whose path contains this.
    #[must_use]
    pub fn on(self, path: &str) -> Self {
        let path = Some(path.to_owned());
        Self { path, ..self }
    }
}

/// The kinds of faulty responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// Status `value`, with an HTML body.
    Status,
    /// A correct response, `value` milliseconds late.
    Delay,
    /// The connection closes in the middle of the response.
    Reset,
    /// Status 200 and an unreadable body.
    Garbage,
    /// 429 with `Retry-After: value`.
    RetryAfter,
    /// Status 200 and a body of `value` bytes.
    Huge,
}

fn once() -> u32 {
    1
}

#[derive(Default)]
pub(super) struct Faults {
    waiting: Mutex<Vec<Fault>>,
}

impl Faults {
    pub(super) fn add(&self, fault: Fault) {
        self.waiting().push(fault);
    }

    pub(super) fn clear(&self) {
        self.waiting().clear();
    }

    /// Takes the fault for a request, which counts as one use.
    pub(super) fn take(&self, platform: &str, path: &str) -> Option<Fault> {
        let mut waiting = self.waiting();
        waiting.retain(|fault| fault.times > 0);
        let fault = waiting.iter_mut().find(|fault| {
            let here = fault.path.as_deref();
            fault.platform == platform && here.is_none_or(|part| path.contains(part))
        })?;
        fault.times -= 1;
        Some(fault.clone())
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Fault>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
