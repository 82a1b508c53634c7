//! A segment, and which of its plans are dead.

use std::sync::Arc;

use domain::ManagerName;

use super::{number::number, segment::Segment};

#[derive(Debug, Clone, Default)]
pub(super) struct Tier {
    pub(super) segment: Arc<Segment>,
    dead: Arc<Vec<u64>>,
    dead_count: usize,
}

impl Tier {
    pub(super) fn of(segment: Segment) -> Self {
        Self {
            dead: Arc::new(vec![0; segment.len().div_ceil(64)]),
            segment: Arc::new(segment),
            dead_count: 0,
        }
    }

    /// Returns the number of plans that are alive.
    pub(super) fn len(&self) -> usize {
        self.segment.len() - self.dead_count
    }

    pub(super) fn is_dead(&self, slot: u32) -> bool {
        self.dead[slot as usize / 64] >> (slot % 64) & 1 == 1
    }

    pub(super) fn alive(&self) -> impl Iterator<Item = u32> {
        (0..number(self.segment.len())).filter(|&slot| !self.is_dead(slot))
    }

    /// Marks the plan as dead. The first call after a clone copies one bit per plan.
    pub(super) fn mark_dead(&mut self, name: &ManagerName) {
        if let Some(slot) = self.segment.slot(name)
            && !self.is_dead(slot)
        {
            Arc::make_mut(&mut self.dead)[slot as usize / 64] |= 1 << (slot % 64);
            self.dead_count += 1;
        }
    }
}
