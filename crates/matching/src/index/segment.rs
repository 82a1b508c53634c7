//! An immutable set of plans, found by the phrases that are their keys.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use domain::{FeedName, ManagerName};

use super::key::{self, Key};
use crate::{Decision, Plan, PostText, decision::Verdict, phrase::Phrase};

/// Plans have slots, by name. With as few watchers as this, asking them all is the quicker way.
const FEW: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Segment {
    /// Sorted by name.
    plans: Vec<(ManagerName, Arc<Plan>)>,
    keys: Vec<Posting>,
    /// Postings by the rarest word of their phrase, among words as written and among stems.
    exact: HashMap<Box<str>, Vec<usize>>,
    stemmed: HashMap<Box<str>, Vec<usize>>,
    feeds: HashMap<FeedName, Watchers>,
}

/// A phrase, and the slots that have it in their key, ascending.
#[derive(Debug)]
struct Posting {
    phrase: Phrase,
    slots: Vec<usize>,
}

/// The slots that watch a feed, ascending.
#[derive(Debug, Default)]
struct Watchers {
    all: Vec<usize>,
    /// Those without a key.
    always: Vec<usize>,
}

impl Segment {
    pub(super) fn build(plans: impl IntoIterator<Item = (ManagerName, Arc<Plan>)>) -> Self {
        let plans: BTreeMap<_, _> = plans.into_iter().collect();
        let mut segment = Self {
            plans: plans.into_iter().collect(),
            ..Self::default()
        };
        let mut by_phrase: HashMap<Phrase, usize> = HashMap::new();
        for (slot, (_, plan)) in segment.plans.iter().enumerate() {
            let key = Key::of(plan);
            for feed in plan.feeds() {
                let watchers = match segment.feeds.get_mut(feed) {
                    Some(watchers) => watchers,
                    None => segment.feeds.entry(feed.clone()).or_default(),
                };
                watchers.all.push(slot);
                if key == Key::None {
                    watchers.always.push(slot);
                }
            }
            let Key::AnyOf(phrases) = key else {
                continue;
            };
            for phrase in phrases {
                if let Some(&at) = by_phrase.get(&phrase) {
                    segment.keys[at].slots.push(slot);
                } else {
                    by_phrase.insert(phrase.clone(), segment.keys.len());
                    segment.keys.push(Posting {
                        phrase,
                        slots: vec![slot],
                    });
                }
            }
        }
        for (at, Posting { phrase, .. }) in segment.keys.iter().enumerate() {
            let words = if phrase.stemmed {
                &mut segment.stemmed
            } else {
                &mut segment.exact
            };
            words
                .entry(key::rarest(phrase).into())
                .or_default()
                .push(at);
        }
        segment
    }

    pub(super) fn len(&self) -> usize {
        self.plans.len()
    }

    pub(super) fn slot(&self, name: &ManagerName) -> Option<usize> {
        self.plans
            .binary_search_by_key(name, |(name, _)| *name)
            .ok()
    }

    pub(super) fn name(&self, slot: usize) -> ManagerName {
        self.plans[slot].0
    }

    pub(super) fn plan(&self, slot: usize) -> &Arc<Plan> {
        &self.plans[slot].1
    }

    /// Adds the plans that watch the feed, are alive and match.
    pub(super) fn matches(
        &self,
        post: &PostText,
        feed: &FeedName,
        alive: impl Fn(usize) -> bool,
        found: &mut Vec<(ManagerName, Decision)>,
    ) {
        let Some(watchers) = self.feeds.get(feed) else {
            return;
        };
        for slot in self.candidates(post, watchers) {
            if !alive(slot) {
                continue;
            }
            let plan = self.plan(slot);
            let verdict = Verdict::of(plan, post);
            if verdict.value() {
                found.push((self.name(slot), verdict.explain(plan, post)));
            }
        }
    }

    /// Every watcher that may match, once, and few others.
    fn candidates(&self, post: &PostText, watchers: &Watchers) -> Vec<usize> {
        if watchers.all.len() <= FEW {
            return watchers.all.clone();
        }
        let mut slots = watchers.always.clone();
        for (stemmed, words) in [(false, &self.exact), (true, &self.stemmed)] {
            if words.is_empty() {
                continue;
            }
            let hit = post.forms(stemmed).filter_map(|form| words.get(form));
            for &at in hit.flatten() {
                let Posting { phrase, slots: of } = &self.keys[at];
                if phrase.words.len() == 1 || post.contains(phrase) {
                    slots.extend(of);
                }
            }
        }
        slots.sort_unstable();
        slots.dedup();
        // Without a key a slot is in `always` because it watches; the others have yet to be looked up.
        slots.retain(|slot| watchers.all.binary_search(slot).is_ok());
        slots
    }
}
