//! Health of a process: named checks, a heartbeat, and the drain.
//!
//! Services push their state ([`Check::ok`] and so on), so that the response to a probe never waits for a
//! dependency. A check is unavailable until its service reports otherwise, and so is a process without a
//! registered check. The runtime beats ([`Health::keep_beating`]): 30 s of silence mean that the process hangs. Loops
//! of services do not, see `docs/operations/running.md`.
//!
//! Several services in one process share one [`Health`] with [`Health::of_service`].

mod report;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

pub use report::{CheckReport, Report, Status};

/// A runtime that is silent for longer hangs.
const MAX_SILENCE: Duration = Duration::from_secs(30);

const BEAT: Duration = Duration::from_secs(5);

/// The registry of checks; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Health {
    registry: Arc<Registry>,
    prefix: Option<&'static str>,
}

#[derive(Debug, Default)]
struct Registry {
    checks: Mutex<BTreeMap<String, State>>,
    /// Last beat of the runtime.
    beat: Mutex<Option<Instant>>,
    draining: AtomicBool,
}

#[derive(Debug, Clone)]
struct State {
    status: Status,
    detail: Option<String>,
    set_at: Instant,
}

/// One named check of a service.
#[derive(Debug, Clone)]
pub struct Check {
    registry: Arc<Registry>,
    name: String,
}

impl Health {
    pub fn new() -> Self {
        Self::default()
    }

    /// The same registry for one of several services in a process: its checks are called `scanner.database` and
    /// so on.
    #[must_use]
    pub fn of_service(&self, service: &'static str) -> Self {
        Self {
            registry: Arc::clone(&self.registry),
            prefix: Some(service),
        }
    }

    /// Registers a check, unavailable until its service reports otherwise; the same name returns the same
    /// check.
    #[must_use]
    pub fn check(&self, name: &str) -> Check {
        let name = self.qualified(name);
        lock(&self.registry.checks)
            .entry(name.clone())
            .or_insert_with(|| State {
                status: Status::Unavailable,
                detail: Some("starting".to_owned()),
                set_at: Instant::now(),
            });
        Check {
            registry: Arc::clone(&self.registry),
            name,
        }
    }

    /// Beats as long as the current tokio runtime runs tasks. Call it on that runtime.
    pub fn keep_beating(&self) {
        let registry = Arc::clone(&self.registry);
        tokio::spawn(async move {
            let mut ticks = tokio::time::interval(BEAT);
            loop {
                ticks.tick().await;
                *lock(&registry.beat) = Some(Instant::now());
            }
        });
    }

    /// Marks the process as draining: it takes no more work, and is not ready.
    pub fn drain(&self) {
        self.registry.draining.store(true, Ordering::Relaxed);
    }

    /// Returns true if the runtime has beaten recently, or never began to.
    pub fn is_alive(&self) -> bool {
        self.is_alive_at(Instant::now())
    }

    pub fn report(&self) -> Report {
        self.report_at(Instant::now())
    }

    fn is_alive_at(&self, now: Instant) -> bool {
        let beat = *lock(&self.registry.beat);
        beat.is_none_or(|beat| now.saturating_duration_since(beat) <= MAX_SILENCE)
    }

    fn report_at(&self, now: Instant) -> Report {
        let checks = lock(&self.registry.checks);
        let checks = checks.iter().map(|(name, state)| {
            let age = now.saturating_duration_since(state.set_at);
            (name.as_str(), state.status, state.detail.as_deref(), age)
        });
        Report::new(checks, self.registry.draining.load(Ordering::Relaxed))
    }

    fn qualified(&self, name: &str) -> String {
        match self.prefix {
            Some(prefix) => format!("{prefix}.{name}"),
            None => name.to_owned(),
        }
    }
}

impl Check {
    pub fn ok(&self) {
        self.set(Status::Ok, None);
    }

    /// Reports a missing dependency that the service can do without for now: it stays ready.
    pub fn degraded(&self, detail: impl Into<String>) {
        self.set(Status::Degraded, Some(detail.into()));
    }

    /// Reports that the service cannot work: it is not ready.
    pub fn unavailable(&self, detail: impl Into<String>) {
        self.set(Status::Unavailable, Some(detail.into()));
    }

    fn set(&self, status: Status, detail: Option<String>) {
        let state = State {
            status,
            detail,
            set_at: Instant::now(),
        };
        lock(&self.registry.checks).insert(self.name.clone(), state);
    }
}

/// The registry stays usable after a thread panicked with the lock: each write is complete.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Health, Status, lock};

    #[test]
    fn a_check_is_unavailable_until_it_is_ok() {
        let health = Health::new();
        let database = health.check("database");
        assert_eq!(health.report().status, Status::Unavailable);
        database.ok();
        assert_eq!(health.report().status, Status::Ok);
    }

    #[test]
    fn process_without_checks_is_not_ready() {
        let health = Health::new();
        let report = health.report();
        assert!(!report.is_ready());
        assert_eq!(report.checks[0].detail.as_deref(), Some("starting"));
        health.check("database").ok();
        assert_eq!(health.report().checks.len(), 1);
    }

    #[test]
    fn worst_check_sets_readiness() {
        let health = Health::new();
        health.check("database").ok();
        health.check("bus").degraded("reconnecting");
        assert_eq!(health.report().status, Status::Degraded);
        health.check("schema").unavailable("too old");
        assert_eq!(health.report().status, Status::Unavailable);
    }

    #[test]
    fn draining_is_not_ready() {
        let health = Health::new();
        health.of_service("scanner").check("database").ok();
        health.drain();
        let report = health.report();
        assert_eq!(report.status, Status::Unavailable);
        assert_eq!(report.checks[0].name, "scanner.database");
        assert_eq!(report.checks[1].detail.as_deref(), Some("draining"));
    }

    #[test]
    fn silent_runtime_counts_as_dead() {
        let health = Health::new();
        assert!(health.is_alive(), "it did not begin to beat");
        let start = Instant::now();
        *lock(&health.registry.beat) = Some(start);
        for (seconds, is_alive) in [(30, true), (31, false)] {
            let now = start + Duration::from_secs(seconds);
            assert_eq!(health.is_alive_at(now), is_alive, "{seconds} s");
        }
    }
}
