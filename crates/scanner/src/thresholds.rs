//! Rules that decide on matches of each Manager, because the index may have lower thresholds.

use std::{
    collections::HashMap,
    sync::{PoisonError, RwLock},
};

use domain::{Instructions, ManagerName, PlanVersion, Sensitivity};

/// Decides on the matches of a Manager after the index.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rule {
    /// The score that a match must reach; `None` without a focus, where the index has decided.
    pub(crate) threshold: Option<f64>,
    /// Hash of the instructions.
    pub(crate) plan: u64,
    /// Hash of what they say about the customer.
    pub(crate) seller: u64,
    /// Version of the first index with these instructions.
    pub(crate) since: PlanVersion,
}

/// Rules of all Managers with a plan. Never older than the index.
#[derive(Default)]
pub(crate) struct Rules(RwLock<HashMap<ManagerName, Rule>>);

impl Rules {
    /// Returns the rule of a Manager; `None` if it has no plan any more.
    pub(crate) fn get(&self, manager: &ManagerName) -> Option<Rule> {
        let rules = self.0.read().unwrap_or_else(PoisonError::into_inner);
        rules.get(manager).copied()
    }

    pub(crate) fn put(&self, manager: ManagerName, rule: Rule) {
        let mut rules = self.0.write().unwrap_or_else(PoisonError::into_inner);
        rules.insert(manager, rule);
    }

    pub(crate) fn remove(&self, manager: &ManagerName) {
        let mut rules = self.0.write().unwrap_or_else(PoisonError::into_inner);
        rules.remove(manager);
    }

    /// Removes Managers that no longer exist.
    pub(crate) fn retain(&self, exists: impl Fn(&ManagerName) -> bool) {
        let mut rules = self.0.write().unwrap_or_else(PoisonError::into_inner);
        rules.retain(|manager, _| exists(manager));
    }
}

/// Returns how uncertain the decision by the threshold is: 1 for a score at the threshold, 0 for a
/// score of 0 or 1.
///
/// This is the distance of the score from the threshold, relative to the longest distance on that side. It has a
/// meaning: a score is the probability that a person keeps the post. A threshold of `t` says that a missed post costs
/// `1 - t`, and a superfluous one `t`. The expected cost of the decision is then `score * (1 - t)` below the threshold
/// and `(1 - score) * t` above it. Divided by its maximum `t * (1 - t)`, that is the uncertainty.
pub fn uncertainty(score: f64, threshold: f64) -> f64 {
    let distance = (score - threshold).abs();
    let longest = if score < threshold {
        threshold
    } else {
        1.0 - threshold
    };
    if distance < longest {
        1.0 - distance / longest
    } else if distance == 0.0 {
        1.0
    } else {
        0.0
    }
}

/// Returns the threshold of instructions with a focus.
pub(crate) fn threshold_of(instructions: &Instructions) -> Option<f64> {
    let focus = instructions.focus?;
    let balanced = || matching::threshold(focus, Sensitivity::Balanced);
    Some(instructions.threshold.unwrap_or_else(balanced))
}

#[cfg(test)]
mod tests {
    use super::uncertainty;

    #[test]
    fn uncertainty_falls_with_the_distance_on_either_side() {
        let at = |score| uncertainty(score, 0.3);
        assert!((at(0.3) - 1.0).abs() < 1e-9);
        assert!(at(0.31) > at(0.4) && at(0.4) > at(0.9));
        assert!(at(0.29) > at(0.2) && at(0.2) > at(0.1));
        assert!(at(0.0).abs() < 1e-9 && at(1.0).abs() < 1e-9);
        // Half of the way on either side.
        assert!((at(0.15) - at(0.65)).abs() < 1e-9);
    }

    #[test]
    fn uncertainty_lies_between_zero_and_one_for_any_threshold() {
        for threshold in [-2.0, 0.0, 0.5, 1.0, 7.0] {
            for score in [0.0, 0.3, 1.0] {
                let value = uncertainty(score, threshold);
                assert!((0.0..=1.0).contains(&value), "{score} {threshold}: {value}");
            }
        }
    }
}
