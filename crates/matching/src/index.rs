//! Decides on a post for all plans at once.
//!
//! An [`Index`] is immutable. It asks only those plans of which some necessary phrase (the plan's
//! [`key`](key::Key)) occurs in the post, and asks them by the same code as [`evaluate`](crate::evaluate):
//! its answers are those of asking every plan. A change makes a new index that shares all but a small
//! part with the old one; [`LiveIndex`] swaps it in without making readers wait.
//!
//! Plans live in three tiers of growing size. A change rebuilds the smallest, and flows into the next
//! when there are too many; a plan that was replaced or removed stays in its tier, marked as dead, until then. A
//! change costs up to some hundred plans' worth of building, and now and then the whole.

mod key;
mod segment;

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use domain::{FeedName, ManagerName};

use crate::{Decision, Plan, PostText};
pub(crate) use key::Key;
use segment::Segment;

/// Up to this many plans in the tier that each change rebuilds.
const DELTA: usize = 64;
/// And in the one that takes these up, unless the base is so large that more is still little.
const MIDDLE: usize = 1_000;
const BASE_TO_MIDDLE: usize = 8;

/// What happened to a Manager's plan.
#[derive(Debug, Clone)]
pub enum Change {
    /// It is new, or replaces the one before.
    Put(ManagerName, Arc<Plan>),
    /// It is gone, or at rest.
    Remove(ManagerName),
}

/// All plans, as of one version.
#[derive(Debug, Clone, Default)]
pub struct Index {
    base: Tier,
    middle: Tier,
    delta: Tier,
    version: i64,
}

impl Index {
    /// An index of these plans; of two under one name the last counts.
    #[must_use]
    pub fn build(plans: impl IntoIterator<Item = (ManagerName, Arc<Plan>)>, version: i64) -> Self {
        Self {
            base: Tier::of(Segment::build(plans)),
            version,
            ..Self::default()
        }
    }

    /// This index with the changes, applied in their order.
    #[must_use]
    pub fn apply(&self, changes: impl IntoIterator<Item = Change>, version: i64) -> Self {
        let mut next = self.clone();
        let mut delta = next.delta.alive();
        for change in changes {
            let (name, plan) = match change {
                Change::Put(name, plan) => (name, Some(plan)),
                Change::Remove(name) => (name, None),
            };
            next.base.bury(&name);
            next.middle.bury(&name);
            delta.retain(|(other, _)| *other != name);
            delta.extend(plan.map(|plan| (name, plan)));
            if delta.len() > DELTA {
                next.take_up(&mut delta);
            }
        }
        next.delta = Tier::of(Segment::build(delta));
        next.version = version;
        next
    }

    /// Every plan that watches the feed and matches the post, by name.
    #[must_use]
    pub fn matches(&self, post: &PostText, feed: &FeedName) -> Vec<(ManagerName, Decision)> {
        let mut found = Vec::new();
        for tier in self.tiers() {
            tier.segment
                .matches(post, feed, |slot| !tier.is_dead(slot), &mut found);
        }
        found.sort_by_key(|(name, _)| *name);
        found
    }

    /// The plan at work for a Manager.
    #[must_use]
    pub fn plan(&self, name: &ManagerName) -> Option<&Arc<Plan>> {
        self.tiers().into_iter().find_map(|tier| {
            let slot = tier.segment.slot(name)?;
            (!tier.is_dead(slot)).then(|| tier.segment.plan(slot))
        })
    }

    /// How many plans there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tiers().map(Tier::len).iter().sum()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The version that the last change was given.
    #[must_use]
    pub fn version(&self) -> i64 {
        self.version
    }

    fn tiers(&self) -> [&Tier; 3] {
        [&self.base, &self.middle, &self.delta]
    }

    /// Moves the delta's plans into the middle tier, and those into the base when they are many.
    fn take_up(&mut self, delta: &mut Vec<(ManagerName, Arc<Plan>)>) {
        let mut plans = self.middle.alive();
        plans.append(delta);
        if plans.len() <= MIDDLE.max(self.base.len() / BASE_TO_MIDDLE) {
            self.middle = Tier::of(Segment::build(plans));
        } else {
            let mut all = self.base.alive();
            all.append(&mut plans);
            self.base = Tier::of(Segment::build(all));
            self.middle = Tier::default();
        }
    }
}

/// A segment and which of its plans are dead.
#[derive(Debug, Clone, Default)]
struct Tier {
    segment: Arc<Segment>,
    dead: Arc<Vec<bool>>,
    dead_count: usize,
}

impl Tier {
    fn of(segment: Segment) -> Self {
        Self {
            dead: Arc::new(vec![false; segment.len()]),
            segment: Arc::new(segment),
            dead_count: 0,
        }
    }

    fn len(&self) -> usize {
        self.segment.len() - self.dead_count
    }

    fn is_dead(&self, slot: usize) -> bool {
        self.dead[slot]
    }

    fn bury(&mut self, name: &ManagerName) {
        if let Some(slot) = self.segment.slot(name)
            && !self.dead[slot]
        {
            Arc::make_mut(&mut self.dead)[slot] = true;
            self.dead_count += 1;
        }
    }

    fn alive(&self) -> Vec<(ManagerName, Arc<Plan>)> {
        (0..self.segment.len())
            .filter(|&slot| !self.is_dead(slot))
            .map(|slot| (self.segment.name(slot), Arc::clone(self.segment.plan(slot))))
            .collect()
    }
}

/// The index at work. Readers take no lock; writers follow one another.
#[derive(Debug, Default)]
pub struct LiveIndex {
    index: ArcSwap<Index>,
    writing: Mutex<()>,
}

impl LiveIndex {
    #[must_use]
    pub fn new(index: Index) -> Self {
        Self {
            index: ArcSwap::from_pointee(index),
            writing: Mutex::new(()),
        }
    }

    /// The index as of now. Hold it for a post or a page, not for long: it keeps its plans in memory.
    #[must_use]
    pub fn load(&self) -> Arc<Index> {
        self.index.load_full()
    }

    /// Applies the changes, seen by whoever loads afterwards.
    pub fn apply(&self, changes: impl IntoIterator<Item = Change>, version: i64) {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let next = self.index.load().apply(changes, version);
        self.index.store(Arc::new(next));
    }

    /// Puts another index in the place of this one: after a reload.
    pub fn replace(&self, index: Index) {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.index.store(Arc::new(index));
    }
}

#[cfg(test)]
mod tests;
