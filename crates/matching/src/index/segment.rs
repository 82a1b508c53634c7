//! An immutable set of plans, found by the terms that are their keys.
//!
//! A post goes through in five steps. The phrases that keys of its feed begin with: a bit a word, and a
//! look-up for each that has one. The postings of the terms found, each the number of a plan and how much of
//! what that plan needs the term brings: 1-2 ns each; a plan that has enough is a candidate. Where there are
//! any, all other phrases of the plans: a look-up a word. A look at each candidate's terms among those found:
//! 0.1-0.2 µs. What is left is asked by the definition itself, a few microseconds each, so that it has the last
//! word on every match.
//!
//! Postings do not number plans but watches, feed by feed: a plan of three feeds has three. So a post
//! meets the postings of its own feed alone, which stand together in each list. Plans of many feeds
//! have one watch each behind all others, and are asked whether the feed is theirs as candidates.

use std::ops::Range;

use domain::{FeedName, ManagerName, instructions::NameKind};
use hashbrown::HashTable;

use super::{
    key::{ENOUGH, PASS},
    lexicons,
    packed::{PackedPlans, View},
    phrases::Wanted,
    scratch::{List, Scratch},
    sieve::{SieveList, Sieves},
    terms::Terms,
};
use crate::{
    Decision, Plan, PostText,
    decision::Verdict,
    model::{self, Features},
    plan::Rule,
    text::code::Keys,
};

const WATCH_BITS: u32 = 20;
const PARTS_BITS: u32 = u32::BITS - WATCH_BITS;
/// As many watches as a posting can number.
pub(super) const WATCHES: usize = 1 << WATCH_BITS;
/// A plan of more feeds than this has one watch for all.
pub(super) const MANY_FEEDS: usize = 8;

/// Asking as few watchers as this is quicker than finding out which to ask.
const FEW: usize = 8;
/// What a bound may be too low by, for sums are taken in another order, and rounded.
const SLACK: f64 = 1e-6;

#[derive(Debug, Default)]
pub(super) struct Segment {
    terms: Terms,
    plans: PackedPlans,
    /// Ascending: a plan's slot is its place here.
    names: Vec<ManagerName>,
    /// By term: watches of plans that have it in their key, ascending, and what it brings.
    begins: Vec<u32>,
    postings: Vec<u32>,
    feeds: Feeds,
    /// By feed, and behind all of them that of the plans of many.
    sieves: SieveList,
}

/// Who watches what.
#[derive(Debug, Default)]
pub(super) struct Feeds {
    pub(super) names: Vec<FeedName>,
    pub(super) by_name: HashTable<u32>,
    /// By feed, where its watches begin and its plans without a key; behind all feeds, those of the
    /// plans of many feeds.
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

    /// Where what is kept by feed stands; `None` is for the plans of many.
    fn place(&self, feed: Option<u32>) -> usize {
        feed.map_or(self.names.len(), |feed| feed as usize)
    }

    fn watches(&self, feed: Option<u32>) -> Range<u32> {
        let at = self.place(feed);
        self.begins[at].0..self.begins[at + 1].0
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
        (begins, postings): (Vec<u32>, Vec<u32>),
        feeds: Feeds,
        sieves: SieveList,
    ) -> Self {
        Self {
            terms,
            plans,
            names,
            begins,
            postings,
            feeds,
            sieves,
        }
    }

    pub(super) fn posting(watch: u32, parts: u16) -> u32 {
        (watch << PARTS_BITS) | u32::from(parts)
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// Bytes of memory held.
    pub(super) fn memory(&self) -> usize {
        let lists = self.names.capacity() * size_of::<ManagerName>()
            + (self.begins.capacity() + self.postings.capacity()) * size_of::<u32>();
        lists
            + self.feeds.memory()
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
        let known = self.feeds.number(feed, &Keys::of_process());
        if known.is_none() {
            return;
        }
        let (own, many) = (self.feeds.watches(known), self.feeds.watches(None));
        let (own_always, many_always) = (self.feeds.always(known), self.feeds.always(None));
        if own.is_empty() && many.is_empty() && own_always.is_empty() && many_always.is_empty() {
            return;
        }
        scratch.read(post);
        let sieves = [known, None].map(|feed| self.sieves.get(self.feeds.place(feed)));
        let sieves = Sieves(sieves);
        scratch.find(&self.terms, Wanted::Keys(sieves));
        scratch.candidates.clear();
        self.candidates(own, own_always, scratch);
        let of_feed = scratch.candidates.len();
        self.candidates(many, many_always, scratch);
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
            // These are asked about all of their terms.
            scratch.find(&self.terms, Wanted::Others(sieves));
            scratch.found.look_at();
        }
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

    /// Every plan of the watches that may match, once, and few others.
    fn candidates(&self, watches: Range<u32>, always: &[u32], scratch: &mut Scratch) {
        let slots = &self.feeds.slots[watches.start as usize..watches.end as usize];
        if slots.len() <= FEW {
            scratch.candidates.extend_from_slice(slots);
            scratch.candidates.extend_from_slice(always);
            return;
        }
        scratch.candidates.extend_from_slice(always);
        scratch.parts.clear();
        scratch.parts.resize(slots.len(), 0);
        let length = scratch.words.length();
        self.lists(watches.start, scratch);
        for list in &scratch.lists {
            let key = &self.postings[list.begin as usize..list.end as usize];
            let key = &key[first_of(key, watches.start, list)..];
            let mut add = |posting: u32, brought: u16| {
                let watch = posting >> PARTS_BITS;
                let at = watch.wrapping_sub(watches.start) as usize;
                let Some(before) = scratch.parts.get_mut(at) else {
                    return false;
                };
                let after = before.saturating_add(brought);
                if *before < PASS && after >= PASS {
                    scratch.candidates.push(slots[at]);
                }
                *before = after;
                true
            };
            if self.terms.is_stemmed(list.term) {
                let times = times(model::saturated(list.frequency, length));
                let _ = key
                    .iter()
                    .all(|&posting| add(posting, brings(posting, times)));
            } else {
                let _ = key.iter().all(|&posting| add(posting, parts(posting)));
            }
        }
    }

    /// The postings of the terms found. Reads for each what will be read first, none of which waits for
    /// another: so many reach beyond the cache at once.
    fn lists(&self, watch: u32, scratch: &mut Scratch) {
        let Scratch { found, lists, .. } = scratch;
        lists.clear();
        for &(term, frequency) in found.terms() {
            let (begin, end) = (self.begins[term as usize], self.begins[term as usize + 1]);
            if begin < end {
                lists.push(List {
                    term,
                    frequency,
                    begin,
                    end,
                    guess: 0,
                    there: 0,
                });
            }
        }
        let watches = self.feeds.slots.len().max(1) as u64;
        for list in &mut *lists {
            // Where it would be if watches were spread evenly.
            let guess = u64::from(list.end - list.begin) * u64::from(watch) / watches;
            #[expect(clippy::cast_possible_truncation, reason = "less than the length")]
            let guess = guess as u32;
            list.guess = guess;
            list.there = self.postings[(list.begin + guess) as usize];
        }
    }

    /// Whether the definition could say yes: groups and exclusions as it has them, the score never
    /// lower.
    fn may_match(&self, slot: u32, post: &PostText, scratch: &mut Scratch) -> bool {
        let view = self.view(slot);
        // In a post made to be slow the definition counts no further than this.
        let exact = scratch.is_exact();
        let Scratch { found, words, .. } = scratch;
        let has = |term: &u32| found.has(*term);
        if !view.require().all(|group| group.iter().any(has)) {
            return false;
        }
        if exact && view.exclude().iter().any(has) {
            return false;
        }
        let length = words.length();
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
                reaches(Features::best(focus)) && {
                    post.know_lexicons(|| lexicons::counts(words));
                    reaches(Features::of_post(focus, post))
                }
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

/// Where the postings of `watch` and those behind it begin. Looked for from the guess on: a few steps,
/// where bisection would miss the cache at each of many.
fn first_of(key: &[u32], watch: u32, list: &List) -> usize {
    let before = |at: usize| key[at] >> PARTS_BITS < watch;
    let mut step = 8;
    let guess = list.guess as usize;
    let (mut low, mut high) = (guess, guess);
    if list.there >> PARTS_BITS < watch {
        while high < key.len() && before(high) {
            low = high;
            high += step;
            step *= 2;
        }
    } else {
        while low > 0 && !before(low) {
            high = low;
            low = low.saturating_sub(step);
            step *= 2;
        }
    }
    let high = high.min(key.len());
    low + key[low..high].partition_point(|posting| posting >> PARTS_BITS < watch)
}

/// What a term brings that counts once, however often it occurs.
#[inline]
fn parts(posting: u32) -> u16 {
    (posting & ((1 << PARTS_BITS) - 1)) as u16
}

/// What a term brings that occurs so many times.
#[inline]
fn brings(posting: u32, times: u32) -> u16 {
    let parts = parts(posting);
    if parts == ENOUGH {
        PASS
    } else {
        // At most 4,095 times 3.
        u16::try_from((u32::from(parts) * times).div_ceil(ONCE)).unwrap_or(PASS)
    }
}

#[cfg(test)]
mod tests {
    use super::{Segment, first_of};
    use crate::index::scratch::List;

    #[test]
    fn the_first_posting_of_a_feed_is_found() {
        for step in [1, 2, 3, 7, 50] {
            for count in [1_u32, 2, 9, 100, 1_000] {
                let watches = (0..count).map(|nth| nth * nth / 40 + nth * step);
                let watches: Vec<u32> = watches.collect();
                let postings = watches.iter().map(|&watch| Segment::posting(watch, 9));
                let key: Vec<u32> = postings.collect();
                let end = watches.last().map_or(1, |last| last + 2);
                for watch in 0..end {
                    let expected = watches.partition_point(|&one| one < watch);
                    for guess in [0, count * watch / end, count - 1] {
                        let list = List {
                            term: 0,
                            frequency: 0.0,
                            begin: 0,
                            end: count,
                            guess,
                            there: key[guess as usize],
                        };
                        assert_eq!(first_of(&key, watch, &list), expected);
                    }
                }
            }
        }
    }
}
