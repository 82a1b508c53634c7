//! An immutable set of plans, found by the phrases that are their keys.
//!
//! A post costs a look-up a word, and then grows with the plans that have a word of it in their key.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use domain::{FeedName, ManagerName};

use super::key::{Bound, Key, Part};
use crate::{Decision, Plan, PostText, decision::Verdict, model, phrase::Phrase};

/// Plans have slots, by name. With as few watchers as this, asking them all is the quicker way.
const FEW: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Segment {
    /// Sorted by name.
    plans: Vec<(ManagerName, Arc<Plan>)>,
    keys: Vec<Posting>,
    /// By the first word of a phrase, among words as written and among stems.
    exact: HashMap<Box<str>, Starts>,
    stemmed: HashMap<Box<str>, Starts>,
    feeds: HashMap<FeedName, Watchers>,
}

/// The postings of the phrases that start with a word.
#[derive(Debug, Default)]
struct Starts {
    alone: Option<usize>,
    /// By the second word.
    longer: HashMap<Box<str>, Vec<usize>>,
}

/// A phrase, the slots that have it in their key, ascending, and what it is to each.
#[derive(Debug)]
struct Posting {
    phrase: Arc<Phrase>,
    slots: Vec<(usize, Part)>,
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
        let mut by_phrase: HashMap<Arc<Phrase>, usize> = HashMap::new();
        for (slot, (_, plan)) in segment.plans.iter().enumerate() {
            for feed in plan.feeds() {
                let watchers = match segment.feeds.get_mut(feed) {
                    Some(watchers) => watchers,
                    None => segment.feeds.entry(feed.clone()).or_default(),
                };
                watchers.all.push(slot);
                if matches!(plan.key, Key::None) {
                    watchers.always.push(slot);
                }
            }
            let Key::AnyOf(phrases) = &plan.key else {
                continue;
            };
            for of_plan in phrases {
                let phrase = &of_plan.phrase;
                let at = by_phrase.get(phrase).copied().unwrap_or_else(|| {
                    let at = segment.keys.len();
                    by_phrase.insert(Arc::clone(phrase), at);
                    segment.keys.push(Posting {
                        phrase: Arc::clone(phrase),
                        slots: Vec::new(),
                    });
                    let words = if phrase.stemmed {
                        &mut segment.stemmed
                    } else {
                        &mut segment.exact
                    };
                    let starts = words.entry(phrase.words[0].clone()).or_default();
                    match phrase.words.get(1) {
                        None => starts.alone = Some(at),
                        Some(second) => starts.longer.entry(second.clone()).or_default().push(at),
                    }
                    at
                });
                segment.keys[at].slots.push((slot, of_plan.part));
            }
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
        let mut hits: Vec<(usize, Part, f64)> = Vec::new();
        for at in self.postings(post) {
            let Posting { phrase, slots } = &self.keys[at];
            let count = post.count(phrase);
            let frequency = model::frequency(count.title, count.text);
            if frequency > 0.0 {
                let saturation = model::saturated(frequency, post.length());
                hits.extend(slots.iter().map(|&(slot, part)| (slot, part, saturation)));
            }
        }
        hits.sort_by_key(|(slot, ..)| *slot);
        let mut slots = watchers.always.clone();
        for of_slot in hits.chunk_by(|(a, ..), (b, ..)| a == b) {
            let slot = of_slot[0].0;
            let mut bound = Bound::default();
            for &(_, part, saturation) in of_slot {
                bound.add(part, saturation);
            }
            if watchers.all.binary_search(&slot).is_ok() && bound.may_reach(self.plan(slot), post) {
                slots.push(slot);
            }
        }
        slots
    }

    /// The postings whose phrase occurs, or whose first two words do.
    fn postings(&self, post: &PostText) -> Vec<usize> {
        let mut found = Vec::new();
        for (stemmed, words) in [(false, &self.exact), (true, &self.stemmed)] {
            if words.is_empty() {
                continue;
            }
            for form in post.forms(stemmed) {
                let Some(starts) = words.get(form) else {
                    continue;
                };
                found.extend(starts.alone);
                if !starts.longer.is_empty() {
                    post.followers(form, stemmed, |next| {
                        found.extend(starts.longer.get(next).into_iter().flatten());
                    });
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}
