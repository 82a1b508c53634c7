//! Whether a Manager does what its customer expects of it.

use serde::{Deserialize, Serialize};

/// Worst first: a Manager is in the first state that one of its reasons stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum HealthState {
    /// It does not do what was asked of it.
    Failing,
    /// It finds more than is wanted.
    Noisy,
    /// It has nothing to find.
    Quiet,
    Ok,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HealthReason {
    /// `applyError` tells why; what was at work before still is.
    ApplyFailed,
    /// A newer release wrote the instructions, and the one that answers cannot read them.
    InstructionsUnreadable,
    /// None of its feeds could be read lately.
    FeedsFailing,
    /// `maxScansPerDay` holds matches of today back.
    Flooded,
    /// Most of the Scans that were judged lately were judged to be of no value.
    FeedbackBad,
    /// Its feeds had no post for a day and more.
    NoPosts,
}

impl HealthReason {
    #[must_use]
    pub fn state(self) -> HealthState {
        match self {
            Self::ApplyFailed | Self::InstructionsUnreadable | Self::FeedsFailing => {
                HealthState::Failing
            }
            Self::Flooded | Self::FeedbackBad => HealthState::Noisy,
            Self::NoPosts => HealthState::Quiet,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    pub state: HealthState,
    /// What speaks against `OK`; none when it is.
    pub reasons: Vec<HealthReason>,
}

impl Health {
    #[must_use]
    pub fn of(mut reasons: Vec<HealthReason>) -> Self {
        reasons.sort_unstable();
        let state = reasons.iter().map(|reason| reason.state()).min();
        Self {
            state: state.unwrap_or(HealthState::Ok),
            reasons,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Health, HealthReason, HealthState};

    #[test]
    fn the_worst_reason_tells_the_state() {
        assert_eq!(Health::of(vec![]).state, HealthState::Ok);
        let quiet = Health::of(vec![HealthReason::NoPosts]);
        assert_eq!(quiet.state, HealthState::Quiet);
        let both = Health::of(vec![HealthReason::NoPosts, HealthReason::Flooded]);
        assert_eq!(both.state, HealthState::Noisy);
        let all = Health::of(vec![HealthReason::Flooded, HealthReason::FeedsFailing]);
        assert_eq!(all.state, HealthState::Failing);
        assert_eq!(
            serde_json::to_value(all).unwrap(),
            serde_json::json!({"state": "FAILING", "reasons": ["feeds_failing", "flooded"]})
        );
    }
}
