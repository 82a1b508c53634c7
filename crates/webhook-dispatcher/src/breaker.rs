//! The circuit breaker of a Connection, as a rule on its record. All replicas share the record; the caller that
//! applies outcomes holds its row lock.
//!
//! Closed: it opens after five failures in a row, or if half of the last twenty attempts failed. Open: it lets
//! nothing pass for half a minute, and then one probe over all replicas. A success closes it, and a failure doubles
//! the wait, up to ten minutes. Deliveries that a person requests pass at any time, and a success closes it too.
//! Requests that were in flight when it opened change nothing any more, unless the endpoint asks for a longer pause.
//!
//! A chat service that refuses one form of a message is reachable, and gets another form next. This counts as neither
//! success nor failure. If it was the probe, the breaker closes, but a failure opens it again for twice as long until a
//! success.
//!
//! An endpoint that answers 429, or 503 with `Retry-After`, asks for a pause of all requests: the breaker opens for
//! that long, at most ten minutes, and then lets one probe pass. This does not count as a failure. If the probe gets
//! the same answer, the wait doubles. A longer wait would look like that of a clock that went back
//! (`store::lanes::follow_clock`). Our own limit of mails pauses in the same way, but its wait never doubles, because it
//! is known when the limit ends.

use std::time::Duration;

use domain::Timestamp;
use store::lanes::Lane;

const STREAK: u32 = 5;
const WINDOW: u8 = 20;
const FIRST_WAIT: Duration = Duration::from_secs(30);
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// Pause of all requests of a Connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// The endpoint asked for it (`schedule::asked_pause`).
    Asked(Duration),
    /// Our own limit of mails asks for it.
    OwnLimit(Duration),
}

/// Outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) success: bool,
    /// The attempt was the probe.
    pub(crate) probe: bool,
    /// A person requested it.
    pub(crate) urgent: bool,
    /// The endpoint refused this form of the message, and gets another one next. This counts as neither success nor
    /// failure.
    pub(crate) other_form: bool,
    pub(crate) hold: Option<Hold>,
}

/// Change of the breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    None,
    Opened,
    Closed,
}

/// Records an outcome.
pub(crate) fn enter(lane: &mut Lane, outcome: Outcome, now: Timestamp) -> Change {
    if let Some(hold) = outcome.hold {
        lane.failing_since.get_or_insert(now);
        return pause(lane, hold, outcome.probe, now);
    }
    if outcome.other_form {
        lane.failing_since.get_or_insert(now);
        if lane.open_until.is_some() && outcome.probe {
            lane.open_until = None;
            lane.probe = None;
            return Change::Closed;
        }
        return Change::None;
    }
    lane.recent_outcomes =
        (lane.recent_outcomes << 1 | u32::from(!outcome.success)) & ((1 << WINDOW) - 1);
    lane.recent_count = (lane.recent_count + 1).min(WINDOW);
    if outcome.success {
        lane.last_success_time = Some(now);
        lane.failing_since = None;
        lane.failure_streak = 0;
        if lane.open_until.is_some() && (outcome.probe || outcome.urgent) {
            close(lane);
            return Change::Closed;
        }
        if lane.open_until.is_none() {
            lane.open_count = 0;
        }
        return Change::None;
    }
    lane.failure_streak = lane.failure_streak.saturating_add(1);
    lane.failing_since.get_or_insert(now);
    let opens = match lane.open_until {
        Some(_) => outcome.probe,
        None => {
            let failed = lane.recent_outcomes.count_ones();
            lane.failure_streak >= STREAK
                || lane.recent_count == WINDOW && failed * 2 >= u32::from(WINDOW)
        }
    };
    if !opens {
        return Change::None;
    }
    let doubled = FIRST_WAIT.saturating_mul(1 << lane.open_count.min(10));
    lane.open_until = Some(now.plus(doubled.min(LONGEST_WAIT)));
    lane.open_count = lane.open_count.saturating_add(1);
    lane.probe = None;
    Change::Opened
}

/// Lets nothing pass for the time of `hold`. Requests that were in flight may only lengthen the wait.
fn pause(lane: &mut Lane, hold: Hold, probe: bool, now: Timestamp) -> Change {
    let (Hold::Asked(mut wait) | Hold::OwnLimit(mut wait)) = hold;
    if probe || lane.open_until.is_none() {
        if let Hold::Asked(_) = hold {
            wait = wait.saturating_mul(1 << lane.open_count.min(10));
            lane.open_count = lane.open_count.saturating_add(1);
        }
        lane.probe = None;
    }
    let until = now.plus(wait.min(LONGEST_WAIT));
    if lane.open_until.is_some_and(|open| until <= open) {
        return Change::None;
    }
    lane.open_until = Some(until);
    Change::Opened
}

/// Closes the breaker with a clean record: earlier outcomes say nothing about later ones.
fn close(lane: &mut Lane) {
    lane.open_until = None;
    lane.open_count = 0;
    lane.probe = None;
    lane.recent_outcomes = 0;
    lane.recent_count = 0;
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::{ConnectionName, Id, Timestamp};
    use store::lanes::Lane;

    use super::{Change, Hold, Outcome, enter};

    fn lane() -> Lane {
        Lane {
            connection: ConnectionName {
                namespace: Id::generate(),
                connection: Id::generate(),
            },
            failure_streak: 0,
            recent_outcomes: 0,
            recent_count: 0,
            open_until: None,
            open_count: 0,
            probe: None,
            last_success_time: None,
            failing_since: None,
            rate_time: None,
            next_due_time: None,
        }
    }

    fn ordinary(success: bool) -> Outcome {
        Outcome {
            success,
            probe: false,
            urgent: false,
            other_form: false,
            hold: None,
        }
    }

    /// Position in `outcomes` (`.` for a success and `x` for a failure) at which the breaker opens.
    fn opens_at(outcomes: &str) -> Option<usize> {
        let mut lane = lane();
        outcomes.bytes().position(|outcome| {
            enter(&mut lane, ordinary(outcome == b'.'), Timestamp::now()) == Change::Opened
        })
    }

    /// A service that refuses every form is asked less and less often.
    #[test]
    fn refused_form_that_was_the_probe_closes_and_keeps_the_wait() {
        let mut lane = lane();
        let now = Timestamp::now();
        for _ in 0..5 {
            enter(&mut lane, ordinary(false), now);
        }
        assert_eq!(lane.open_until, Some(now.plus(Duration::from_secs(30))));
        let form = Outcome {
            other_form: true,
            ..ordinary(false)
        };
        // It was in flight when the breaker opened.
        assert_eq!(enter(&mut lane, form, now), Change::None);
        assert!(lane.open_until.is_some());
        let probe = Outcome {
            probe: true,
            ..form
        };
        assert_eq!(enter(&mut lane, probe, now), Change::Closed);
        assert_eq!(lane.open_until, None);
        assert_eq!(enter(&mut lane, form, now), Change::None);
        assert_eq!(enter(&mut lane, ordinary(false), now), Change::Opened);
        assert_eq!(lane.open_until, Some(now.plus(Duration::from_secs(60))));

        enter(&mut lane, probe, now);
        assert_eq!(enter(&mut lane, ordinary(true), now), Change::None);
        assert_eq!((lane.open_count, lane.failing_since), (0, None));
    }

    #[test]
    fn breaker_opens_after_five_failures_in_a_row_or_half_of_twenty() {
        for (outcomes, expected) in [
            ("xxxx.xxxx.", None),
            ("xxxxx", Some(4)),
            ("....................xxxxx", Some(24)),
            // Half of fewer than twenty is not enough to decide.
            ("x.x.x.x.x.x.x.x.x.x", None),
            ("x.x.x.x.x.x.x.x.x.x.", None),
            ("x.x.x.x.x.x.x.x.x.x.x", Some(20)),
            ("....................x.x.x.x.x.x.x.x.x.x", Some(38)),
            ("xx...xx...xx...xx...xx...xx...xx...", None),
        ] {
            assert_eq!(opens_at(outcomes), expected, "{outcomes}");
        }
    }

    #[test]
    fn failed_probes_double_the_wait_up_to_ten_minutes_and_a_success_closes() {
        let mut lane = lane();
        let now = Timestamp::now();
        for _ in 0..5 {
            enter(&mut lane, ordinary(false), now);
        }
        let probe = Outcome {
            success: false,
            probe: true,
            urgent: false,
            other_form: false,
            hold: None,
        };
        for seconds in [30, 60, 120, 240, 480, 600, 600] {
            let until = now.plus(Duration::from_secs(seconds));
            assert_eq!(lane.open_until, Some(until));
            // Attempts that were in flight change nothing.
            assert_eq!(enter(&mut lane, ordinary(false), now), Change::None);
            assert_eq!(enter(&mut lane, ordinary(true), now), Change::None);
            assert_eq!(lane.open_until, Some(until));
            lane.probe = Some((Default::default(), now));
            assert_eq!(enter(&mut lane, probe, now), Change::Opened);
            assert_eq!(lane.probe, None);
        }
        let success = Outcome {
            success: true,
            ..probe
        };
        assert_eq!(enter(&mut lane, success, now), Change::Closed);
        assert_eq!((lane.open_until, lane.open_count), (None, 0));
        // And the record is clean.
        for _ in 0..4 {
            assert_eq!(enter(&mut lane, ordinary(false), now), Change::None);
        }
        assert_eq!(enter(&mut lane, ordinary(false), now), Change::Opened);
    }

    #[test]
    fn endpoint_that_asks_for_a_pause_gets_nothing_before_its_end() {
        let mut lane = lane();
        let now = Timestamp::now();
        let asks = |seconds, probe| Outcome {
            probe,
            hold: Some(Hold::Asked(Duration::from_secs(seconds))),
            ..ordinary(false)
        };
        let after = |seconds| Some(now.plus(Duration::from_secs(seconds)));
        assert_eq!(enter(&mut lane, asks(15, false), now), Change::Opened);
        assert_eq!(lane.open_until, after(15));
        // Requests that were in flight may lengthen it.
        assert_eq!(enter(&mut lane, asks(10, false), now), Change::None);
        assert_eq!(enter(&mut lane, asks(20, false), now), Change::Opened);
        assert_eq!(enter(&mut lane, ordinary(true), now), Change::None);
        assert_eq!(lane.open_until, after(20));
        assert_eq!((lane.failure_streak, lane.recent_outcomes), (0, 0));
        for (asked, seconds) in [(15, 30), (15, 60), (200, 600), (3_600, 600)] {
            lane.probe = Some((Default::default(), now));
            // The wait before has ended.
            lane.open_until = Some(now);
            assert_eq!(enter(&mut lane, asks(asked, true), now), Change::Opened);
            assert_eq!((lane.open_until, lane.probe), (after(seconds), None));
        }
        let success = Outcome {
            probe: true,
            ..ordinary(true)
        };
        assert_eq!(enter(&mut lane, success, now), Change::Closed);
        assert_eq!((lane.open_until, lane.open_count), (None, 0));
    }

    #[test]
    fn our_own_limit_does_not_double_the_wait() {
        let mut lane = lane();
        let now = Timestamp::now();
        for probe in [false, true, true] {
            // The wait before has ended.
            lane.open_until = lane.open_until.map(|_| now);
            let limited = Outcome {
                probe,
                hold: Some(Hold::OwnLimit(Duration::from_secs(40))),
                ..ordinary(false)
            };
            assert_eq!(enter(&mut lane, limited, now), Change::Opened);
            let until = now.plus(Duration::from_secs(40));
            assert_eq!((lane.open_until, lane.probe), (Some(until), None));
        }
    }

    #[test]
    fn requested_delivery_closes_the_breaker() {
        let mut lane = lane();
        let now = Timestamp::now();
        for _ in 0..5 {
            enter(&mut lane, ordinary(false), now);
        }
        let until = lane.open_until;
        let asked = |success| Outcome {
            success,
            probe: false,
            urgent: true,
            other_form: false,
            hold: None,
        };
        assert_eq!(enter(&mut lane, asked(false), now), Change::None);
        assert_eq!(lane.open_until, until);
        assert_eq!(enter(&mut lane, asked(true), now), Change::Closed);
    }
}
