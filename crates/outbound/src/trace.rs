//! Timing of an exchange, and its stage when the deadline cuts it.
//!
//! hyper opens connections inside the caller's request future, so a task-local connects the connector with the
//! exchange that it works for.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::Failure;

tokio::task_local! {
    pub(crate) static TRACE: Arc<Trace>;
}

/// Durations of the phases that took place. On a reused connection the first three are missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Phases {
    pub dns: Option<Duration>,
    pub connect: Option<Duration>,
    pub tls: Option<Duration>,
    /// Time from the start to the head of the response.
    pub first_byte: Option<Duration>,
    pub total: Duration,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// On an open connection: sending, or waiting for the head of the response.
    #[default]
    Waiting,
    Resolving,
    Connecting,
    Securing,
    /// The head has arrived, the body has not.
    Reading,
}

#[derive(Debug, Default)]
pub(crate) struct Trace(Mutex<Progress>);

#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    /// Host of the newest connection.
    host: String,
    pub(crate) stage: Stage,
    pub(crate) phases: Phases,
    /// The address that was tried last.
    pub(crate) address: Option<IpAddr>,
}

impl Trace {
    /// The trace of the running exchange; a new one for a connection that no exchange waits for.
    pub(crate) fn current() -> Arc<Self> {
        TRACE.try_with(Arc::clone).unwrap_or_default()
    }

    pub(crate) fn enter(&self, stage: Stage) {
        self.progress().stage = stage;
    }

    pub(crate) fn resolving(&self, host: &str) {
        let mut progress = self.progress();
        progress.stage = Stage::Resolving;
        host.clone_into(&mut progress.host);
    }

    pub(crate) fn tried(&self, address: IpAddr) {
        self.progress().address = Some(address);
    }

    pub(crate) fn resolved(&self, since: Instant) {
        self.progress().phases.dns = Some(since.elapsed());
    }

    pub(crate) fn connected(&self, since: Instant) {
        self.progress().phases.connect = Some(since.elapsed());
    }

    pub(crate) fn secured(&self, since: Instant) {
        self.progress().phases.tls = Some(since.elapsed());
    }

    pub(crate) fn snapshot(&self) -> Progress {
        self.progress().clone()
    }

    /// The activity that a deadline now would interrupt.
    pub(crate) fn timeout(&self, after: Duration) -> Failure {
        let progress = self.snapshot();
        let host = progress.host;
        let activity = match progress.stage {
            Stage::Resolving => {
                let reason = format!("no answer within {after:?}");
                return Failure::Dns { host, reason };
            }
            Stage::Connecting => return Failure::ConnectTimeout { host, after },
            Stage::Securing => "in the tls handshake",
            Stage::Waiting => "waiting for the answer",
            Stage::Reading => "reading the body",
        };
        Failure::Timeout { after, activity }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        // Plain values, assigned whole: a panic elsewhere leaves no partial state.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Stage, Trace};

    #[test]
    fn a_timeout_says_what_it_interrupted() {
        let trace = Trace::default();
        trace.resolving("acme.com");
        for (stage, word, message) in [
            (
                Stage::Resolving,
                "dns_failure",
                "cannot resolve `acme.com`: no answer within 10s",
            ),
            (
                Stage::Connecting,
                "connect_timeout",
                "no connection to `acme.com` within 10s",
            ),
            (
                Stage::Securing,
                "timeout",
                "timed out after 10s in the tls handshake",
            ),
            (
                Stage::Waiting,
                "timeout",
                "timed out after 10s waiting for the answer",
            ),
            (
                Stage::Reading,
                "timeout",
                "timed out after 10s reading the body",
            ),
        ] {
            trace.enter(stage);
            let failure = trace.timeout(Duration::from_secs(10));
            assert_eq!(
                (failure.word(), failure.to_string().as_str()),
                (word, message)
            );
        }
    }
}
