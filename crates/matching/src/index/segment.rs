//! An immutable set of plans, found by the terms that are their keys.
//!
//! A post goes through in four steps. The phrases of all plans that occur in it: a look-up a word. The
//! postings of the terms found, each the number of a plan and how much of what that plan needs the
//! term brings: 1-2 ns each; a plan that has enough, and watches the feed, is a candidate. A look at
//! each candidate's terms among those found: 0.1-0.2 µs. What is left is asked by the definition
//! itself, a few microseconds each, so that it has the last word on every match.

use std::collections::HashMap;

use domain::{FeedName, ManagerName, instructions::NameKind};

use super::{
    key::{ENOUGH, PASS},
    packed::{PackedPlans, View},
    scratch::Scratch,
    terms::Terms,
};
use crate::{
    Decision, Plan, PostText,
    decision::Verdict,
    model::{self, Features},
    plan::Rule,
};

const SLOT_BITS: u32 = 20;
const PARTS_BITS: u32 = u32::BITS - SLOT_BITS;
/// As many plans as a posting can number.
pub(super) const SLOTS: usize = 1 << SLOT_BITS;

/// Looking at a plan costs as much as this many postings.
const POSTINGS_A_LOOK: usize = 64;
/// A feed that fewer plans in so many watch has no bits of its own.
const SPARSE: usize = 32;
/// What a bound may be too low by, for sums are taken in another order, and rounded.
const SLACK: f64 = 1e-6;

#[derive(Debug, Default)]
pub(super) struct Segment {
    terms: Terms,
    plans: PackedPlans,
    /// Ascending: a plan's slot is its place here.
    names: Vec<ManagerName>,
    /// By term: slots that have it in their key, and what it brings.
    begins: Vec<u32>,
    postings: Vec<u32>,
    feeds: HashMap<FeedName, u32>,
    feed_names: Vec<FeedName>,
    watchers: Vec<Watchers>,
}

/// The slots that watch a feed, ascending.
#[derive(Debug, Default)]
pub(super) struct Watchers {
    pub(super) all: Vec<u32>,
    /// Those without a key.
    pub(super) always: Vec<u32>,
    /// `all` as bits; empty for a feed that few watch.
    bits: Vec<u64>,
}

impl Watchers {
    pub(super) fn finish(&mut self, slots: usize) {
        self.all.shrink_to_fit();
        self.always.shrink_to_fit();
        if self.all.len() * SPARSE >= slots {
            self.bits.resize(slots.div_ceil(64), 0);
            for &slot in &self.all {
                self.bits[slot as usize / 64] |= 1 << (slot % 64);
            }
        }
    }
}

impl Segment {
    pub(super) fn new(
        terms: Terms,
        plans: PackedPlans,
        names: Vec<ManagerName>,
        (begins, postings): (Vec<u32>, Vec<u32>),
        feeds: HashMap<FeedName, u32>,
        feed_names: Vec<FeedName>,
        watchers: Vec<Watchers>,
    ) -> Self {
        Self {
            terms,
            plans,
            names,
            begins,
            postings,
            feeds,
            feed_names,
            watchers,
        }
    }

    pub(super) fn posting(slot: u32, parts: u16) -> u32 {
        (slot << PARTS_BITS) | u32::from(parts)
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
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
        &self.feed_names[feed as usize]
    }

    pub(super) fn view(&self, slot: u32) -> View<'_> {
        self.plans.view(slot)
    }

    /// The plan as it went in.
    pub(super) fn plan(&self, slot: u32) -> Plan {
        let feed = |feed| self.feed(feed).clone();
        self.view(slot).plan(&self.terms, feed, |_| true, true)
    }

    /// Adds the plans that watch the feed, are alive and match. `scratch` has read the post, and is as
    /// it was afterwards.
    pub(super) fn matches(
        &self,
        post: &PostText,
        feed: &FeedName,
        alive: impl Fn(u32) -> bool,
        scratch: &mut Scratch,
        found: &mut Vec<(ManagerName, Decision)>,
    ) {
        let Some(&feed) = self.feeds.get(feed) else {
            return;
        };
        let watchers = &self.watchers[feed as usize];
        scratch.read(post);
        scratch.find(&self.terms);
        self.candidates(watchers, scratch);
        for at in 0..scratch.candidates.len() {
            let slot = scratch.candidates[at];
            if !alive(slot) || !self.may_match(slot, post, scratch) {
                continue;
            }
            let feed = |feed| self.feed(feed).clone();
            let has = |term| scratch.found.has(term);
            let plan = self.view(slot).plan(&self.terms, feed, has, false);
            let verdict = Verdict::of(&plan, post);
            if verdict.value() {
                found.push((self.name(slot), verdict.explain(&plan, post)));
            }
        }
        scratch.forget();
    }

    fn key(&self, term: u32) -> &[u32] {
        let term = term as usize;
        &self.postings[self.begins[term] as usize..self.begins[term + 1] as usize]
    }

    /// Every watcher that may match, once, and few others.
    fn candidates(&self, watchers: &Watchers, scratch: &mut Scratch) {
        let terms = scratch.found.terms();
        let postings: usize = terms.iter().map(|&(term, _)| self.key(term).len()).sum();
        scratch.candidates.clear();
        if watchers.all.len() * POSTINGS_A_LOOK <= postings {
            scratch.candidates.extend_from_slice(&watchers.all);
            return;
        }
        scratch.candidates.extend_from_slice(&watchers.always);
        if postings == 0 {
            return;
        }
        let sparse = watchers.bits.is_empty();
        if sparse {
            scratch.bits.resize(self.len().div_ceil(64), 0);
            for &slot in &watchers.all {
                scratch.bits[slot as usize / 64] |= 1 << (slot % 64);
            }
        }
        let bits = if sparse {
            &scratch.bits
        } else {
            &watchers.bits
        };
        if scratch.parts.len() < self.len() {
            scratch.parts.resize(self.len(), 0);
        }
        let length = scratch.words.length();
        let parts = &mut scratch.parts[..self.len()];
        for &(term, frequency) in terms {
            let key = self.key(term);
            if key.is_empty() {
                continue;
            }
            let times = if self.terms.is_stemmed(term) {
                times(model::saturated(frequency, length))
            } else {
                ONCE
            };
            add(key, times, bits, parts, &mut scratch.candidates);
        }
        // Clearing by the postings touches no more than was touched; clearing all goes by lines.
        if postings * 8 > self.len() {
            parts.fill(0);
        } else {
            for &(term, _) in terms {
                for posting in self.key(term) {
                    parts[(posting >> PARTS_BITS) as usize] = 0;
                }
            }
        }
        if sparse {
            for &slot in &watchers.all {
                scratch.bits[slot as usize / 64] = 0;
            }
        }
    }

    /// Whether the definition could say yes: groups and exclusions as it has them, the score never
    /// lower.
    fn may_match(&self, slot: u32, post: &PostText, scratch: &Scratch) -> bool {
        let view = self.view(slot);
        let found = &scratch.found;
        let has = |term: &u32| found.has(*term);
        if !view.require().all(|group| group.iter().any(has)) {
            return false;
        }
        // In a post made to be slow the definition counts no further than this.
        let exact = scratch.is_exact();
        if exact && view.exclude().iter().any(has) {
            return false;
        }
        let length = scratch.words.length();
        let stemmed = matches!(view.rule, Rule::Focus { .. });
        let (mut sum, mut all) = (0.0, 0.0);
        for (&term, &weight) in view.include.iter().zip(view.weights) {
            if found.has(term) && (weight > 0.0 || exact) {
                let share = if stemmed {
                    model::saturated(found.frequency(term), length)
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
            Rule::Focus { focus, threshold } => {
                let named = |wanted: NameKind| {
                    let mut names = view.names();
                    names.any(|(kind, _, spellings, _)| kind == wanted && spellings.iter().any(has))
                };
                let strength = |named: bool| if named { model::MAX_NAME_STRENGTH } else { 0.0 };
                let (own, watched) = (named(NameKind::Own), named(NameKind::Watched));
                if all <= 0.0 && !own && !watched {
                    return false;
                }
                let reaches = |of_post: Features| {
                    let features = Features {
                        topic: sum + slack,
                        own_name: strength(own),
                        watched_names: strength(watched),
                        ..of_post
                    };
                    model::score(focus, &features) + SLACK >= threshold
                };
                // What the post itself says is worked out only where it could matter.
                reaches(Features::best(focus)) && reaches(Features::of_post(focus, post))
            }
        }
    }
}

/// A frequency in 256ths.
const ONCE: u32 = 256;

/// Rounded up.
fn times(saturated: f64) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturation lies between 0 and 3"
    )]
    let times = (saturated * f64::from(ONCE)).ceil() as u32;
    times + 1
}

/// Adds what a term brings to each plan that has it in its key and watches the feed; a plan that gets
/// enough by it becomes a candidate.
fn add(key: &[u32], times: u32, bits: &[u64], parts: &mut [u16], candidates: &mut Vec<u32>) {
    for &posting in key {
        let slot = posting >> PARTS_BITS;
        if bits[slot as usize / 64] >> (slot % 64) & 1 == 0 {
            continue;
        }
        let brings = posting & ((1 << PARTS_BITS) - 1);
        let brings = if brings == u32::from(ENOUGH) {
            PASS
        } else {
            // At most 4,095 times 3.
            u16::try_from((brings * times).div_ceil(ONCE)).unwrap_or(PASS)
        };
        let before = &mut parts[slot as usize];
        let after = before.saturating_add(brings);
        if *before < PASS && after >= PASS {
            candidates.push(slot);
        }
        *before = after;
    }
}
