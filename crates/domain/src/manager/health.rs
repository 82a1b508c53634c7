//! Health of a Manager: whether it does what its customer expects.

use serde::{Deserialize, Serialize};

/// Worst first: a Manager has the worst state of all its reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum HealthState {
    /// The Manager does not work as configured.
    Failing,
    /// The Manager finds more than the customer wants.
    Noisy,
    /// The Manager has nothing to find, or missed posts of the past.
    Quiet,
    Ok,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HealthReason {
    /// `applyError` has the reason; older instructions, if any, stay active.
    ApplyFailed,
    /// A newer release wrote the instructions, and this one cannot read them.
    InstructionsUnreadable,
    /// All its feeds failed recently.
    FeedsFailing,
    /// The account has used up its Scans of a day. Posts that match wait for room.
    QuotaExceeded,
    /// `maxScansPerDay` is reached: further matches of today are suppressed.
    Flooded,
    /// Most of the recently judged Scans were judged to be of no value.
    FeedbackBad,
    /// A backfill of one of its feeds ended with an error, so posts of the past are missing.
    BackfillFailed,
    /// Its feeds had no post for more than a day.
    NoPosts,
}

impl HealthReason {
    pub fn state(self) -> HealthState {
        match self {
            Self::ApplyFailed
            | Self::InstructionsUnreadable
            | Self::FeedsFailing
            | Self::QuotaExceeded => HealthState::Failing,
            Self::Flooded | Self::FeedbackBad => HealthState::Noisy,
            Self::BackfillFailed | Self::NoPosts => HealthState::Quiet,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    pub state: HealthState,
    /// The reasons against `OK`; empty if the state is `OK`.
    pub reasons: Vec<HealthReason>,
}

impl Health {
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
    fn worst_reason_sets_the_state() {
        assert_eq!(Health::of(vec![]).state, HealthState::Ok);
        let quiet = Health::of(vec![HealthReason::NoPosts]);
        assert_eq!(quiet.state, HealthState::Quiet);
        // New posts come all the same.
        let backfill = Health::of(vec![HealthReason::BackfillFailed]);
        assert_eq!(backfill.state, HealthState::Quiet);
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
