//! The state of one endpoint in this process, and all its transitions.
//!
//! How the endpoint answers, and whether it may get deliveries, change independently of each other: a steady one whose
//! breaker was open is steady afterwards.

use std::time::Duration;

/// An endpoint with at least this response time counts as slow.
pub(super) const SLOW: Duration = Duration::from_secs(2);
/// Amount of work, as time, that is queued behind a lane's open requests.
const AHEAD: Duration = Duration::from_millis(250);
/// Maximum queue length for each request that may be open.
const DEEPEST: u32 = 16;

pub(super) struct EndpointState {
    /// Maximum number of open requests.
    pub(super) limit: u32,
    health: Health,
    gate: Gate,
}

/// How an endpoint answers. All but a steady one are on probation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    /// No request has succeeded yet.
    New,
    /// The last request succeeded in time.
    Steady { typical: Duration },
    /// The last request failed or was slow, or one was overdue.
    Suspect { typical: Duration },
}

/// Permission to send to an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gate {
    Open,
    /// The circuit breaker is open, or the endpoint asked for a pause.
    Blocked {
        /// Number of results with `Retry-After` that are not written yet. They keep the gate blocked.
        pauses: u32,
    },
}

impl EndpointState {
    pub(super) fn new() -> Self {
        Self {
            limit: 1,
            health: Health::New,
            gate: Gate::Open,
        }
    }

    pub(super) fn is_on_probation(&self) -> bool {
        !matches!(self.health, Health::Steady { .. })
    }

    pub(super) fn is_blocked(&self) -> bool {
        matches!(self.gate, Gate::Blocked { .. })
    }

    /// Returns true if results that ask for a pause are not written yet.
    pub(super) fn is_paused(&self) -> bool {
        matches!(self.gate, Gate::Blocked { pauses: 1.. })
    }

    /// Number of deliveries that may be held: the open ones, and what they send in a moment.
    pub(super) fn capacity(&self) -> u32 {
        let Health::Steady { typical } = self.health else {
            return self.limit * 2;
        };
        let rounds = AHEAD.as_micros() / typical.as_micros().max(1);
        let rounds = u32::try_from(rounds).unwrap_or(u32::MAX);
        self.limit * rounds.clamp(2, DEEPEST)
    }

    /// Records an answer. A success raises the limit by one, up to `most`; a failure halves it.
    pub(super) fn answer(&mut self, success: bool, took: Duration, most: u32) {
        self.health = self.health.answered(success, took);
        self.limit = if success {
            (self.limit + 1).min(most)
        } else {
            (self.limit / 2).max(1)
        };
    }

    /// Records that a request has been open for too long.
    pub(super) fn mark_overdue(&mut self) {
        if let Health::Steady { typical } = self.health {
            self.health = Health::Suspect { typical };
        }
    }

    /// Records that the circuit breaker has opened.
    pub(super) fn block(&mut self) {
        self.limit = 1;
        if self.gate == Gate::Open {
            self.gate = Gate::Blocked { pauses: 0 };
        }
    }

    /// Same as [`Self::block`]. Until [`Self::end_pause`], nothing unblocks it.
    pub(super) fn pause(&mut self) {
        self.block();
        if let Gate::Blocked { pauses } = &mut self.gate {
            *pauses += 1;
        }
    }

    /// Records that a pause is written. The endpoint stays blocked.
    pub(super) fn end_pause(&mut self) {
        if let Gate::Blocked { pauses } = &mut self.gate {
            *pauses = pauses.saturating_sub(1);
        }
    }

    /// Records that the database knows of no open breaker. Returns true if the endpoint is not blocked any more.
    pub(super) fn unblock(&mut self) -> bool {
        if !self.is_paused() {
            self.gate = Gate::Open;
        }
        !self.is_blocked()
    }
}

impl Health {
    fn answered(self, success: bool, took: Duration) -> Self {
        let typical = match (self, success) {
            (Self::New, false) => return Self::New,
            (Self::Steady { typical } | Self::Suspect { typical }, false) => {
                return Self::Suspect { typical };
            }
            (Self::New, true) => took,
            (Self::Steady { typical } | Self::Suspect { typical }, true) => {
                (typical * 7 + took) / 8
            }
        };
        if took >= SLOW {
            Self::Suspect { typical }
        } else {
            Self::Steady { typical }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{EndpointState, Gate, Health, SLOW};

    const QUICK: Duration = Duration::from_millis(80);

    fn steady(typical: Duration) -> Health {
        Health::Steady { typical }
    }

    fn suspect(typical: Duration) -> Health {
        Health::Suspect { typical }
    }

    #[test]
    fn health_follows_the_answers() {
        let slower = Duration::from_millis(330);
        for (before, success, took, after) in [
            (Health::New, false, QUICK, Health::New),
            (Health::New, true, QUICK, steady(QUICK)),
            (Health::New, true, SLOW, suspect(SLOW)),
            (steady(QUICK), true, QUICK, steady(QUICK)),
            (steady(QUICK), true, QUICK + SLOW, suspect(slower)),
            (steady(QUICK), false, QUICK, suspect(QUICK)),
            (suspect(QUICK), false, QUICK, suspect(QUICK)),
            (suspect(QUICK), false, SLOW, suspect(QUICK)),
            (suspect(QUICK), true, QUICK, steady(QUICK)),
            (suspect(QUICK), true, QUICK + SLOW, suspect(slower)),
        ] {
            assert_eq!(
                before.answered(success, took),
                after,
                "{before:?} {success} {took:?}"
            );
        }
    }

    #[test]
    fn only_a_steady_endpoint_is_off_probation_and_becomes_suspect_when_overdue() {
        for (health, on_probation, overdue) in [
            (Health::New, true, Health::New),
            (steady(QUICK), false, suspect(QUICK)),
            (suspect(QUICK), true, suspect(QUICK)),
        ] {
            let mut endpoint = EndpointState::new();
            endpoint.health = health;
            assert_eq!(endpoint.is_on_probation(), on_probation, "{health:?}");
            endpoint.mark_overdue();
            assert_eq!(endpoint.health, overdue, "{health:?}");
        }
    }

    #[test]
    fn capacity_is_what_a_steady_endpoint_answers_in_a_moment() {
        let mut endpoint = EndpointState::new();
        endpoint.limit = 3;
        for (health, capacity) in [
            (Health::New, 6),
            (suspect(QUICK), 6),
            (steady(SLOW), 6),
            (steady(QUICK), 9),
            (steady(Duration::ZERO), 48),
        ] {
            endpoint.health = health;
            assert_eq!(endpoint.capacity(), capacity, "{health:?}");
        }
    }

    #[test]
    fn gate_opens_only_when_all_pauses_have_ended() {
        let blocked = |pauses| Gate::Blocked { pauses };
        for (before, after) in [
            (Gate::Open, [blocked(0), blocked(1), Gate::Open, Gate::Open]),
            (blocked(0), [blocked(0), blocked(1), blocked(0), Gate::Open]),
            (blocked(1), [blocked(1), blocked(2), blocked(0), blocked(1)]),
            (blocked(2), [blocked(2), blocked(3), blocked(1), blocked(2)]),
        ] {
            let changed = |change: fn(&mut EndpointState)| {
                let mut endpoint = EndpointState::new();
                endpoint.gate = before;
                change(&mut endpoint);
                endpoint.gate
            };
            let found = [
                changed(EndpointState::block),
                changed(EndpointState::pause),
                changed(EndpointState::end_pause),
                changed(|endpoint| assert_eq!(endpoint.unblock(), endpoint.gate == Gate::Open)),
            ];
            assert_eq!(found, after, "{before:?}");
        }
    }

    #[test]
    fn endpoint_keeps_its_health_and_loses_its_limit_while_blocked() {
        let mut endpoint = EndpointState::new();
        for _ in 0..5 {
            endpoint.answer(true, QUICK, 4);
        }
        assert_eq!(endpoint.limit, 4);
        endpoint.answer(false, QUICK, 4);
        assert_eq!(endpoint.limit, 2);
        endpoint.answer(true, QUICK, 4);
        endpoint.pause();
        assert_eq!(endpoint.limit, 1);
        assert!(endpoint.is_blocked() && endpoint.is_paused() && !endpoint.unblock());
        endpoint.end_pause();
        assert!(endpoint.is_blocked() && !endpoint.is_paused() && endpoint.unblock());
        assert!(!endpoint.is_on_probation());
        endpoint.answer(false, QUICK, 4);
        assert_eq!(endpoint.limit, 1);
    }
}
