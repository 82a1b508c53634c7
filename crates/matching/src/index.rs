//! Decides on a post for all plans at once.
//!
//! An [`Index`] is immutable. It finds the few plans that a post may concern, and evaluates these with the same code as
//! [`evaluate`](crate::evaluate). Its answers equal those of evaluating every plan.
//!
//! Plans are stored in tiers. A change appends a tier with its own plans, 10 µs each, and marks the plans that it
//! replaces or removes as dead in the older tiers. [`LiveIndex`] swaps in the index with the new tier without blocking
//! readers. Every tier costs each post a lookup of each of its words, so tiers are merged. A change does not merge
//! them: the owner calls [`LiveIndex::merge`] when [`LiveIndex::is_due`].

mod build;
mod commonness;
mod key;
mod number;
mod packed;
pub(crate) mod phrases;
mod places;
mod postings;
mod scratch;
mod segment;
mod sieve;
mod table;
mod terms;
mod tier;

use std::{
    cell::Cell,
    collections::BTreeMap,
    ops::Range,
    sync::{Arc, Mutex, PoisonError, TryLockError},
};

use arc_swap::ArcSwap;
use build::Source;
use domain::{FeedName, Focus, ManagerName, PlanVersion};
use scratch::Scratch;
use segment::Segment;
use tier::Tier;

use crate::{Decision, Plan, PostText, evaluate};

/// A merge is due when there are more tiers than this.
const TIERS: usize = 6;
/// With more tiers than this, a change folds the newest of them together, in case no merge runs.
const TOO_MANY_TIERS: usize = 48;
/// Maximum number of plans in the tiers that a change folds, so that the change stays below a millisecond.
const FOLDED: usize = 200;
/// A tier is merged with the newer ones when they have grown to 1/8 of its size.
const PART: usize = 8;

/// A change of a Manager's plan.
#[derive(Debug, Clone)]
pub enum Change {
    /// Adds the plan, or replaces the previous one.
    Put(ManagerName, Arc<Plan>),
    /// Removes the plan of a Manager that was deleted or paused.
    Remove(ManagerName),
}

/// Builds an index of many plans in pages. Each page is packed when it is added, because a plan takes many times the
/// memory of a packed one.
#[derive(Debug, Default)]
pub struct IndexBuilder(Index);

impl IndexBuilder {
    /// Adds a page of plans; of two under one name the last counts.
    pub fn add(&mut self, plans: impl IntoIterator<Item = (ManagerName, Arc<Plan>)>) {
        let plans = plans.into_iter();
        let page = tiers(plans.map(|(name, plan)| (name, Source::Plan(plan))));
        self.0.tiers.extend(page);
    }

    /// Returns the index, which is the same as one of all plans at once.
    pub fn finish(self, version: PlanVersion) -> Index {
        let index = self.0;
        Index {
            tiers: index.merged(0..index.tiers.len()),
            version,
        }
    }
}

/// All plans, as of one version.
#[derive(Debug, Clone, Default)]
pub struct Index {
    /// Tiers from the oldest, which is the largest, to the newest.
    tiers: Vec<Tier>,
    version: PlanVersion,
}

impl Index {
    /// Builds an index of these plans; of two under one name the last counts.
    pub fn build(
        plans: impl IntoIterator<Item = (ManagerName, Arc<Plan>)>,
        version: PlanVersion,
    ) -> Self {
        let plans = plans.into_iter();
        Self {
            tiers: tiers(plans.map(|(name, plan)| (name, Source::Plan(plan)))),
            version,
        }
    }

    /// Returns this index with the changes applied in their order.
    #[must_use]
    pub fn apply(&self, changes: impl IntoIterator<Item = Change>, version: PlanVersion) -> Self {
        let mut next = self.clone();
        let mut last = BTreeMap::new();
        for change in changes {
            match change {
                Change::Put(name, plan) => last.insert(name, Some(plan)),
                Change::Remove(name) => last.insert(name, None),
            };
        }
        for name in last.keys() {
            for tier in &mut next.tiers {
                tier.mark_dead(name);
            }
        }
        let new = last.into_iter();
        next.tiers.extend(tiers(
            new.filter_map(|(name, plan)| Some((name, Source::Plan(plan?)))),
        ));
        next.version = version;
        next
    }

    /// Returns every plan that watches the feed and matches the post, by name.
    pub fn matches(&self, post: &PostText, feed: &FeedName) -> Vec<(ManagerName, Decision)> {
        let mut found = Vec::new();
        self.search(post, feed, |name, _, explain| found.push((name, explain())));
        found.sort_by_key(|(name, _)| *name);
        found
    }

    /// Returns the decision of one plan, as [`Self::matches`] returns it for a match.
    pub fn explain(&self, name: &ManagerName, post: &PostText) -> Option<Decision> {
        let (segment, slot) = self.slot(name)?;
        let mut decision = None;
        with_scratch(|scratch| {
            let plan = segment.matched_plan(slot, &mut scratch.readings);
            decision = Some(evaluate(&plan, post, None));
        });
        decision
    }

    /// Passes the plans that [`Self::matches`] returns to `found`, in no order, each with its score and a function that
    /// returns its decision. A decision takes up to a thousand times the memory of a name. Returns the number of plans
    /// that spent their budget of steps (`steps`): their terms count as far as they were found.
    pub fn search(
        &self,
        post: &PostText,
        feed: &FeedName,
        mut found: impl FnMut(ManagerName, f64, &dyn Fn() -> Decision),
    ) -> usize {
        let mut spent = 0;
        with_scratch(|scratch| {
            for tier in &self.tiers {
                let alive = |slot| !tier.is_dead(slot);
                spent += tier.segment.matches(post, feed, alive, scratch, &mut found);
            }
            scratch.learn(post);
        });
        spent
    }

    /// Computes the evidence that depends on the post alone, classifiers and cues, for plans with a focus.
    /// [`Self::matches`] does this on demand. Call it to do or to measure this work separately.
    pub fn weigh(post: &PostText) {
        for focus in Focus::ALL {
            post.lexicon(focus);
            post.head(focus);
        }
    }

    /// Returns a Manager's current plan, unpacked: for tests and inspection, not for each post.
    pub fn plan(&self, name: &ManagerName) -> Option<Plan> {
        let (segment, slot) = self.slot(name)?;
        Some(segment.plan(slot))
    }

    fn slot(&self, name: &ManagerName) -> Option<(&Segment, u32)> {
        self.tiers.iter().rev().find_map(|tier| {
            let slot = tier.segment.slot(name)?;
            (!tier.is_dead(slot)).then_some((&*tier.segment, slot))
        })
    }

    /// Returns the Managers, in no order.
    pub fn names(&self) -> impl Iterator<Item = ManagerName> {
        let tiers = self.tiers.iter();
        tiers.flat_map(|tier| tier.alive().map(|slot| tier.segment.name(slot)))
    }

    /// Returns the number of plans.
    pub fn len(&self) -> usize {
        self.tiers.iter().map(Tier::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the memory used in bytes, including the free capacity of hash tables and lists.
    pub fn memory(&self) -> usize {
        self.tiers.iter().map(|tier| tier.segment.memory()).sum()
    }

    /// Returns the version that the last change was given.
    pub fn version(&self) -> PlanVersion {
        self.version
    }

    /// Returns the tiers to merge, if any. A tier stays as long as the newer ones are small in comparison, and most of
    /// its plans are alive.
    fn due(&self) -> Option<Range<usize>> {
        let mut behind: usize = self.tiers.iter().map(Tier::len).sum();
        let from = self.tiers.iter().position(|tier| {
            behind -= tier.len();
            tier.len() < behind * PART || tier.len() * 2 < tier.segment.len()
        })?;
        (self.tiers.len() > TIERS).then_some(from..self.tiers.len())
    }

    /// Merges the newest tiers, up to [`FOLDED`] plans.
    fn fold(&mut self) {
        let mut plans = 0;
        let newest = self.tiers.iter().rev().take_while(|tier| {
            plans += tier.len();
            plans <= FOLDED
        });
        let from = self.tiers.len() - newest.count();
        if self.tiers.len() - from > 1 {
            let merged = self.merged(from..self.tiers.len());
            self.tiers.splice(from.., merged);
        }
    }

    fn merged(&self, range: Range<usize>) -> Vec<Tier> {
        let plans = (0..).zip(&self.tiers[range]).flat_map(|(nth, tier)| {
            let slots = tier.alive();
            slots.map(move |slot| {
                let source = Source::Packed(nth, &tier.segment, slot);
                (tier.segment.name(slot), source)
            })
        });
        tiers(plans)
    }
}

/// Lends the thread's working memory.
fn with_scratch(work: impl FnOnce(&mut Scratch)) {
    thread_local! {
        static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
    }
    // Taken out while in use: a panic must not leave a half-used buffer behind.
    let mut scratch = SCRATCH.take().unwrap_or_default();
    work(&mut scratch);
    SCRATCH.set(Some(scratch));
}

fn tiers<'a>(plans: impl Iterator<Item = (ManagerName, Source<'a>)>) -> Vec<Tier> {
    let segments = build::segments(plans.collect());
    segments.into_iter().map(Tier::of).collect()
}

/// The current index. Readers take no lock; writers run one at a time.
#[derive(Debug, Default)]
pub struct LiveIndex {
    index: ArcSwap<Index>,
    writing: Mutex<()>,
    /// Allows one merge at a time; changes continue meanwhile.
    merging: Mutex<()>,
}

impl LiveIndex {
    pub fn new(index: Index) -> Self {
        Self {
            index: ArcSwap::from_pointee(index),
            ..Self::default()
        }
    }

    /// Returns the current index. Hold it for a post or a page, not longer: it keeps its plans in memory.
    pub fn load(&self) -> Arc<Index> {
        self.index.load_full()
    }

    /// Applies the changes; later calls of [`Self::load`] see them.
    pub fn apply(&self, changes: impl IntoIterator<Item = Change>, version: PlanVersion) {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = self.index.load().apply(changes, version);
        // Tiers are not folded during a merge, because its work would be lost.
        if next.tiers.len() > TOO_MANY_TIERS
            && let Ok(_alone) = self.merging.try_lock()
        {
            next.fold();
        }
        self.index.store(Arc::new(next));
    }

    /// Replaces the index, after a reload.
    pub fn replace(&self, index: Index) {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.index.store(Arc::new(index));
    }

    /// Returns whether [`Self::merge`] has something to do.
    pub fn is_due(&self) -> bool {
        self.index.load().due().is_some()
    }

    /// Merges tiers that changes left behind. Can take seconds when there are many plans, so it needs a separate
    /// thread. Neither readers nor changes wait for it.
    pub fn merge(&self) {
        let _merging = match self.merging.try_lock() {
            Ok(merging) => merging,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        let before = self.load();
        let Some(range) = before.due() else { return };
        let mut merged = before.merged(range.clone());

        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = Index::clone(&self.index.load());
        let old = &before.tiers[range.clone()];
        let Some(now) = next.tiers.get(range.clone()) else {
            return;
        };
        // A reload may have replaced the index during the merge.
        if !old
            .iter()
            .zip(now)
            .all(|(old, now)| Arc::ptr_eq(&old.segment, &now.segment))
        {
            return;
        }
        for (old, now) in old.iter().zip(now) {
            for slot in old.alive().filter(|&slot| now.is_dead(slot)) {
                let name = now.segment.name(slot);
                merged.iter_mut().for_each(|tier| tier.mark_dead(&name));
            }
        }
        next.tiers.splice(range, merged);
        self.index.store(Arc::new(next));
    }
}

#[cfg(test)]
mod tests;
