//! The thresholds that plans have without a model, beside an index whose own are lower.

use std::{
    collections::HashMap,
    sync::{PoisonError, RwLock},
};

use domain::{Instructions, ManagerName};

/// Of the Managers with a focus; others are never in doubt. Never older than the index.
#[derive(Default)]
pub(crate) struct Thresholds(RwLock<HashMap<ManagerName, f64>>);

impl Thresholds {
    pub(crate) fn of(&self, manager: &ManagerName) -> Option<f64> {
        let held = self.0.read().unwrap_or_else(PoisonError::into_inner);
        held.get(manager).copied()
    }

    pub(crate) fn put(&self, manager: ManagerName, threshold: Option<f64>) {
        let mut held = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match threshold {
            Some(threshold) => held.insert(manager, threshold),
            None => held.remove(&manager),
        };
    }

    /// Forgets Managers of which `there` is false.
    pub(crate) fn retain(&self, there: impl Fn(&ManagerName) -> bool) {
        let mut held = self.0.write().unwrap_or_else(PoisonError::into_inner);
        held.retain(|manager, _| there(manager));
    }
}

/// The threshold of instructions with a focus, and the instructions that find posts within `band` of it too.
pub(crate) fn lowered(instructions: &Instructions, band: f64) -> Option<(f64, Instructions)> {
    instructions.focus?;
    let threshold = instructions.threshold.unwrap_or(matching::THRESHOLD);
    let lowered = Instructions {
        threshold: Some((threshold - band).max(0.0)),
        ..instructions.clone()
    };
    Some((threshold, lowered))
}
