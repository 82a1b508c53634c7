//! An immutable set of plans, found by the terms that are their keys.
//!
//! A post is processed in five steps:
//! 1. Find the phrases that keys of its feed begin with: one bit per word, and a lookup for each word with the bit set.
//! 2. Read the postings of the terms found. Each contains the number of a plan and the term's contribution: 1-2 ns
//!    each, and two reads beyond the cache per term. A plan with a sufficient sum is a candidate. For plans with a
//!    focus, what is sufficient depends on the post ([`Needs`]).
//! 3. If there are candidates, find all other phrases of the plans: one lookup per word.
//! 4. Check each candidate's terms among those found: 0.1-0.2 µs. With a focus, this also bounds gate and verdict.
//! 5. Evaluate the rest with the definition itself, a few microseconds each. It decides every match.
//!
//! Postings do not number plans but watches, feed by feed: a plan of three feeds has three. So a post reads only the
//! postings of its feed. Plans with many feeds have one watch each, after all others; for these candidates the feed
//! is checked too.

use std::cell::RefCell;

use domain::{FeedName, Focus, ManagerName, instructions::NameKind};
use hashbrown::HashTable;

use super::{
    key::{Needs, PASS},
    packed::{PackedPlans, View},
    phrases::Wanted,
    postings::{MAX_WATCHES, Postings},
    scratch::{List, Scratch},
    sieve::{SieveList, Sieves},
    terms::Terms,
};
use crate::{
    Decision, Plan, PostText,
    decision::Verdict,
    evidence::TopicBound,
    model::{self, Features},
    plan::Rule,
    steps,
    text::code::Keys,
};

/// Maximum number of plans; more need another segment. Each plan has at most one watch of a feed.
pub(super) const MAX_PLANS: usize = MAX_WATCHES;
/// A plan with more feeds than this has one watch for all.
pub(super) const MANY_FEEDS: usize = 8;

/// Evaluating this few watchers is faster than selecting among them.
pub(super) const FEW: usize = 8;
/// Tolerance of a bound: sums are computed in another order, and rounded.
const SLACK: f64 = 1e-6;

#[derive(Debug, Default)]
pub(super) struct Segment {
    terms: Terms,
    plans: PackedPlans,
    /// Names in ascending order: a plan's slot is its index here.
    names: Vec<ManagerName>,
    feeds: Feeds,
    /// Postings by feed, then those of the plans with many feeds.
    postings: Postings,
    sieves: SieveList,
    needs: Needs,
}

/// The feeds and the plans that watch them.
#[derive(Debug, Default)]
pub(super) struct Feeds {
    pub(super) names: Vec<FeedName>,
    pub(super) by_name: HashTable<u32>,
    /// Start of each feed's watches and of its plans without a key. The last entries are for the plans with many
    /// feeds.
    pub(super) begins: Vec<(u32, u32)>,
    /// The slot of each watch; ascending within a feed.
    pub(super) slots: Vec<u32>,
    /// The slots of plans without a key.
    pub(super) always: Vec<u32>,
}

impl Feeds {
    pub(super) fn number(&self, feed: &FeedName, keys: &Keys) -> Option<u32> {
        let hash = keys.hash(keys.code(feed.as_str().as_bytes()));
        let is_it = |&number: &u32| self.names[number as usize] == *feed;
        self.by_name.find(hash, is_it).copied()
    }

    /// Returns the index of a feed's entries; `None` means the plans with many feeds.
    fn place(&self, feed: Option<u32>) -> usize {
        feed.map_or(self.names.len(), |feed| feed as usize)
    }

    fn slots(&self, feed: Option<u32>) -> &[u32] {
        let at = self.place(feed);
        &self.slots[self.begins[at].0 as usize..self.begins[at + 1].0 as usize]
    }

    fn always(&self, feed: Option<u32>) -> &[u32] {
        let at = self.place(feed);
        &self.always[self.begins[at].1 as usize..self.begins[at + 1].1 as usize]
    }

    fn memory(&self) -> usize {
        let names = self.names.iter().map(|name| name.as_str().len() + 32);
        names.sum::<usize>()
            + self.by_name.allocation_size()
            + self.begins.capacity() * size_of::<(u32, u32)>()
            + (self.slots.capacity() + self.always.capacity()) * size_of::<u32>()
    }
}

impl Segment {
    pub(super) fn new(
        terms: Terms,
        plans: PackedPlans,
        names: Vec<ManagerName>,
        feeds: Feeds,
        postings: Postings,
        sieves: SieveList,
        needs: Needs,
    ) -> Self {
        Self {
            terms,
            plans,
            names,
            feeds,
            postings,
            sieves,
            needs,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns the memory used, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.names.capacity() * size_of::<ManagerName>()
            + self.feeds.memory()
            + self.postings.memory()
            + self.sieves.memory()
            + self.terms.memory()
            + self.plans.memory()
    }

    pub(super) fn slot(&self, name: &ManagerName) -> Option<u32> {
        let slot = self.names.binary_search(name).ok()?;
        u32::try_from(slot).ok()
    }

    pub(super) fn name(&self, slot: u32) -> ManagerName {
        self.names[slot as usize]
    }

    pub(super) fn terms(&self) -> &Terms {
        &self.terms
    }

    pub(super) fn feed(&self, feed: u32) -> &FeedName {
        &self.feeds.names[feed as usize]
    }

    pub(super) fn view(&self, slot: u32) -> View<'_> {
        self.plans.view(slot)
    }

    /// Returns the original plan.
    pub(super) fn plan(&self, slot: u32) -> Plan {
        let readings = |term| self.terms.readings(term);
        let feed = |feed| self.feed(feed).clone();
        self.view(slot)
            .plan(&self.terms, readings, feed, |_| true, true, true)
    }

    /// Passes the plans that watch the feed, are wanted and match to `found`, each with its score and a function
    /// that explains its match. Returns the number of plans that spent their budget of steps. Leaves `scratch` as it was.
    pub(super) fn matches(
        &self,
        post: &PostText,
        feed: &FeedName,
        wanted: impl Fn(u32) -> bool,
        scratch: &mut Scratch,
        found: &mut impl FnMut(ManagerName, f64, &dyn Fn() -> Decision),
    ) -> usize {
        let known = self.feeds.number(feed, &Keys::of_process());
        if known.is_none() {
            return 0;
        }
        let nobody = |feed| self.feeds.slots(feed).is_empty() && self.feeds.always(feed).is_empty();
        if nobody(known) && nobody(None) {
            return 0;
        }
        let sieves = [known, None].map(|feed| self.sieves.get(self.feeds.place(feed)));
        let sieves = Sieves(sieves);
        scratch.find(&self.terms, post, Wanted::Keys(sieves));
        scratch.candidates.clear();
        self.candidates(known, post, scratch);
        let of_feed = scratch.candidates.len();
        self.candidates(None, post, scratch);
        if scratch.candidates.len() > of_feed {
            let mut at = 0;
            scratch.candidates.retain(|&slot| {
                at += 1;
                at <= of_feed
                    || self
                        .view(slot)
                        .feeds()
                        .iter()
                        .any(|&one| Some(one) == known)
            });
        }
        if !scratch.candidates.is_empty() {
            // All terms of these candidates are checked.
            scratch.find(&self.terms, post, Wanted::Others(sieves));
            scratch.found.index_terms();
        }
        let mut spent = usize::from(scratch.is_cut());
        for at in 0..scratch.candidates.len() {
            let slot = scratch.candidates[at];
            if !wanted(slot) || !self.may_match(slot, post, scratch) {
                continue;
            }
            let Scratch {
                found: terms,
                readings,
                ..
            } = &mut *scratch;
            let readings = RefCell::new(readings);
            let readings = |term| readings.borrow_mut().get(&self.terms, term);
            let has = |term| terms.has(term);
            let plan = |texts| {
                let feed = |feed| self.feed(feed).clone();
                let view = self.view(slot);
                view.plan(&self.terms, readings, feed, has, false, texts)
            };
            let plan_of_post = plan(false);
            let search = || Verdict::of(&plan_of_post, post);
            let (verdict, taken) = steps::within(steps::IN_INDEX, search);
            spent += usize::from(taken == steps::IN_INDEX);
            if verdict.value() {
                let explain = || {
                    let explained = || verdict.explain(&plan(true), post);
                    steps::within(steps::IN_INDEX, explained).0
                };
                found(self.name(slot), verdict.score(), &explain);
            }
        }
        scratch.forget();
        spent
    }

    /// Collects the plans that watch the feed and may match, each once. A few of them cannot match.
    fn candidates(&self, feed: Option<u32>, post: &PostText, scratch: &mut Scratch) {
        let length = post.length();
        let slots = self.feeds.slots(feed);
        let Scratch {
            found,
            candidates,
            by_topic,
            parts,
            lists,
            ..
        } = scratch;
        candidates.extend_from_slice(self.feeds.always(feed));
        if slots.len() <= FEW {
            candidates.extend_from_slice(slots);
            return;
        }
        parts.clear();
        parts.resize(slots.len(), 0);
        let of_feed = self.postings.of_feed(self.feeds.place(feed));
        // All reads of one kind come before the next, so that many cache misses overlap.
        lists.clear();
        for one in found.terms() {
            let bucket = of_feed.bucket(one.term);
            if !bucket.is_empty() {
                lists.push(List {
                    term: one.term,
                    frequency: one.frequency,
                    bucket,
                });
            }
        }
        let touched = lists.iter().map(|list| of_feed.touch(&list.bucket));
        std::hint::black_box(touched.fold(0, |all, one| all ^ one));

        for list in &*lists {
            for run in of_feed.runs(list.bucket.clone(), list.term) {
                // Returns whether the watch becomes a candidate now.
                let mut add = |watch: usize, brought: u16| {
                    let before = parts[watch];
                    parts[watch] = before.saturating_add(brought);
                    before < PASS && parts[watch] >= PASS
                };
                if run.is_stemmed() {
                    for (watch, brought) in run.times(model::saturated(list.frequency, length)) {
                        if add(watch, brought) {
                            by_topic.push(super::number::number(watch));
                        }
                    }
                } else {
                    for (watch, brought) in run.once() {
                        if add(watch, brought) {
                            candidates.push(slots[watch]);
                        }
                    }
                }
            }
        }
        if !by_topic.is_empty() {
            // Only plans with a focus are here: their terms are stemmed.
            let pass = self.needs.pass(post);
            let watches = by_topic.drain(..).map(|watch| watch as usize);
            let reach = watches.filter(|&watch| parts[watch] >= pass);
            candidates.extend(reach.map(|watch| slots[watch]));
        }
    }

    /// Returns whether the definition could match: groups and exclusions are exact, and the score is never lower.
    fn may_match(&self, slot: u32, post: &PostText, scratch: &Scratch) -> bool {
        let view = self.view(slot);
        // In a post that was made to be slow, the definition stops counting here.
        let exact = scratch.is_exact(post);
        let found = &scratch.found;
        let has = |term: &u32| found.has(*term);
        if !view.require().all(|group| group.iter().any(has)) {
            return false;
        }
        if exact && view.exclude().iter().any(has) {
            return false;
        }
        let length = post.length();
        let stemmed = matches!(view.rule, Rule::Focus { .. });
        let (mut sum, mut all) = (0.0, 0.0);
        let mut topic = TopicBound::default();
        for (term, weight) in view.include(|term| found.has(term)) {
            if weight > 0.0 || exact {
                let share = if stemmed {
                    let term = found.get(term);
                    topic.add(weight, term.mentions, term.in_title);
                    model::saturated(term.frequency, length)
                } else {
                    1.0
                };
                sum += weight * share;
                all += weight.abs() * share;
            }
        }
        let slack = SLACK * (1.0 + all);
        match view.rule {
            Rule::Sum { threshold } => sum + slack >= threshold,
            Rule::AnyTerm => all > 0.0,
            Rule::AnyName | Rule::Groups => true,
            Rule::Focus {
                threshold,
                scale,
                gate,
                focus,
                ..
            } => {
                let (mut own, mut watched) = (false, false);
                for name in view.names().filter(|name| name.spellings.iter().any(has)) {
                    match name.kind {
                        NameKind::Own => own = true,
                        NameKind::Watched => watched = true,
                    }
                }
                let strength = |named: bool| if named { model::MAX_NAME_STRENGTH } else { 0.0 };
                if all <= 0.0 && !own && !watched {
                    return false;
                }
                if threshold <= 0.0 {
                    return true;
                }
                let surprise = scale.surprise(sum + slack);
                let passes = |of_post: Features| {
                    let features = Features {
                        surprise: if gate == Focus::Sales { surprise } else { 0.0 },
                        own_name: strength(own),
                        watched_names: strength(watched),
                        ..of_post
                    };
                    model::gate_margin(gate, &features) + SLACK >= 0.0
                };
                // The post's own features are computed only where they could matter.
                passes(Features::best(gate))
                    && passes(Features::of_heads(gate, post))
                    && passes(Features::of_post(gate, post))
                    && (own || watched || topic.may_reach(threshold, focus, surprise, post))
            }
        }
    }
}
