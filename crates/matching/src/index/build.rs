//! Builds segments from compiled plans and from the plans of other segments.
//!
//! Costs about 14 µs for a plan of 60 terms among 100,000 plans, mostly waiting for memory to read each term's text. A
//! plan from another segment costs 2 µs: each term is looked up once.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use domain::{FeedName, ManagerName};

use super::{
    key::Chooser,
    number::number,
    packed::{Numbered, NumberedName, PackedPlans},
    postings::PostingsBuilder,
    segment::{FEW, Feeds, MANY_FEEDS, MAX_PLANS, Segment},
    sieve::SieveList,
    table::NONE,
    terms::TermsBuilder,
};
use crate::{
    Plan,
    plan::{Plain, Rule},
    text::code::Keys,
};

/// Source of a plan.
#[derive(Clone)]
pub(super) enum Source<'a> {
    Plan(Arc<Plan>),
    /// A slot of the nth of the segments given.
    Packed(usize, &'a Segment, u32),
}

/// Builds segments of at most [`MAX_PLANS`] plans each; of two plans under one name the last counts.
pub(super) fn segments(mut plans: Vec<(ManagerName, Source<'_>)>) -> Vec<Segment> {
    // A stable sort keeps the last plan of a name last.
    plans.sort_by_key(|(name, _)| *name);
    let mut kept: Vec<(ManagerName, Source<'_>)> = Vec::with_capacity(plans.len());
    for plan in plans {
        match kept.last_mut() {
            Some(last) if last.0 == plan.0 => *last = plan,
            _ => kept.push(plan),
        }
    }
    kept.chunks(MAX_PLANS).map(segment).collect()
}

fn segment(plans: &[(ManagerName, Source<'_>)]) -> Segment {
    let terms = plans.iter().map(|(_, source)| match source {
        Source::Plan(plan) => plan.include.len(),
        Source::Packed(_, segment, slot) => segment.view(*slot).include_len(),
    });
    let terms = terms.sum();
    let mut builder = Builder {
        process: Keys::of_process(),
        terms: TermsBuilder::new(),
        chooser: Chooser::default(),
        plans: PackedPlans::with_capacity(plans.len(), terms),
        names: Vec::with_capacity(plans.len()),
        keys: Vec::with_capacity(terms),
        key_ends: Vec::with_capacity(plans.len()),
        feeds: Feeds::default(),
        watchers: Vec::new(),
        watch_many: Watchers::default(),
        known: HashMap::new(),
    };
    for (name, source) in plans {
        let numbered = match source {
            Source::Plan(plan) => builder.number(plan),
            Source::Packed(nth, segment, slot) => builder.renumber(*nth, segment, *slot),
        };
        builder.add(*name, &numbered);
    }
    builder.finish()
}

struct Builder {
    process: Keys,
    terms: TermsBuilder,
    chooser: Chooser,
    plans: PackedPlans,
    names: Vec<ManagerName>,
    /// Key terms and their contributions, plan by plan, and the end of each plan's key.
    keys: Vec<(u32, u16)>,
    key_ends: Vec<u32>,
    feeds: Feeds,
    watchers: Vec<Watchers>,
    watch_many: Watchers,
    /// Terms of other segments and their numbers in this one.
    known: HashMap<usize, Vec<u32>>,
}

impl Builder {
    fn number(&mut self, plan: &Plan) -> Numbered {
        let stemmed = matches!(plan.rule, Rule::Focus { .. });
        let mut list = |list: &[Plain], stemmed: bool| {
            let terms = list.iter().map(|one| (one.text.as_str(), &one.readings));
            self.terms.insert_all(terms, stemmed)
        };
        let require = plan
            .require
            .iter()
            .map(|group| list(group, false))
            .collect();
        let exclude = list(&plan.exclude, false);
        let related = list(&plan.related, true);
        let names = plan
            .names
            .iter()
            .map(|name| NumberedName {
                kind: name.kind,
                cased: name.spellings.iter().any(|one| one.cased.is_some()),
                on_topic_percent: name.on_topic_percent,
                ordinary_posts: name.ordinary_posts,
                context: list(&name.context, true),
                spellings: Vec::new(),
            })
            .collect();
        let include = plan.include.iter();
        let terms = include
            .clone()
            .map(|one| (one.text.as_str(), &one.readings));
        let terms = self.terms.insert_all(terms, stemmed);
        let offers = plan.offers.iter();
        let texts = offers.clone().map(|one| (one.text.as_str(), &one.readings));
        let offers = self
            .terms
            .insert_all(texts, true)
            .into_iter()
            .zip(offers.map(|one| one.weight))
            .collect();
        let mut numbered = Numbered {
            rule: plan.rule,
            include: terms
                .into_iter()
                .zip(include.map(|one| one.weight))
                .collect(),
            names,
            require,
            exclude,
            related,
            offers,
            feeds: plan.feeds().iter().map(|feed| self.feed(feed)).collect(),
        };
        for (name, of_plan) in numbered.names.iter_mut().zip(&plan.names) {
            let spellings = of_plan.spellings.iter();
            let spellings = spellings.map(|one| (one.text.as_str(), &one.readings));
            name.spellings = self.terms.insert_all(spellings, false);
        }
        numbered
    }

    fn renumber(&mut self, nth: usize, from: &Segment, slot: u32) -> Numbered {
        let mut numbered = from.view(slot).numbered();
        let known = self
            .known
            .entry(nth)
            .or_insert_with(|| vec![NONE; from.terms().len()]);
        let include = numbered.include.iter_mut().map(|(term, _)| term);
        let names = numbered
            .names
            .iter_mut()
            .flat_map(|name| name.spellings.iter_mut().chain(&mut name.context));
        let require = numbered.require.iter_mut().flatten();
        for term in include
            .chain(names)
            .chain(require)
            .chain(&mut numbered.exclude)
            .chain(&mut numbered.related)
            .chain(numbered.offers.iter_mut().map(|(term, _)| term))
        {
            let here = &mut known[*term as usize];
            if *here == NONE {
                let terms = from.terms();
                *here = self
                    .terms
                    .insert(terms.text(*term), terms.is_stemmed(*term), || {
                        Cow::Owned(terms.readings(*term))
                    });
            }
            *term = *here;
        }
        for feed in &mut numbered.feeds {
            *feed = self.feed(from.feed(*feed));
        }
        numbered
    }

    fn feed(&mut self, feed: &FeedName) -> u32 {
        if let Some(known) = self.feeds.number(feed, &self.process) {
            return known;
        }
        let id = number(self.feeds.names.len());
        let hash = |feed: &FeedName| {
            let code = self.process.code(feed.as_str().as_bytes());
            self.process.hash(code)
        };
        let Feeds { names, by_name, .. } = &mut self.feeds;
        names.push(feed.clone());
        by_name.insert_unique(hash(feed), id, |&id| hash(&names[id as usize]));
        self.watchers.push(Watchers::default());
        id
    }

    fn add(&mut self, name: ManagerName, plan: &Numbered) {
        let slot = number(self.names.len());
        let key = self.chooser.key(plan, &self.terms);
        let watch = |watchers: &mut Watchers| {
            if key.is_some() {
                watchers.slots.push(slot);
            } else {
                watchers.always.push(slot);
            }
        };
        if plan.feeds.len() > MANY_FEEDS {
            watch(&mut self.watch_many);
        } else {
            for &feed in &plan.feeds {
                watch(&mut self.watchers[feed as usize]);
            }
        }
        self.keys.extend(key.into_iter().flatten());
        self.key_ends.push(number(self.keys.len()));
        self.names.push(name);
        self.plans.push(plan);
    }

    fn finish(mut self) -> Segment {
        self.plans.finish();
        let (all, first_words) = self.terms.finish();
        let Feeds {
            begins,
            slots,
            always,
            ..
        } = &mut self.feeds;
        for watchers in self.watchers.iter().chain([&self.watch_many]) {
            begins.push((number(slots.len()), number(always.len())));
            slots.extend_from_slice(&watchers.slots);
            always.extend_from_slice(&watchers.always);
        }
        begins.push((number(slots.len()), number(always.len())));
        slots.shrink_to_fit();
        always.shrink_to_fit();

        let key = |slot: u32| {
            let slot = slot as usize;
            let begin = slot
                .checked_sub(1)
                .map_or(0, |before| self.key_ends[before]);
            &self.keys[begin as usize..self.key_ends[slot] as usize]
        };
        let (mut sieves, mut postings) = (SieveList::default(), PostingsBuilder::new(all.len()));
        for range in begins.windows(2) {
            let slots = &slots[range[0].0 as usize..range[1].0 as usize];
            // With few plans, all of them are evaluated.
            let asked = slots.len() > FEW;
            let keys = slots.iter().map(|&slot| key(slot));
            let terms = postings.push(keys, asked, |term| all.is_stemmed(term));
            let words = terms.iter().flat_map(|&term| first_words[term as usize]);
            sieves.push(terms.len(), words.filter(|&word| word != 0));
        }
        sieves.finish();
        let postings = postings.finish();
        Segment::new(
            all,
            self.plans,
            self.names,
            self.feeds,
            postings,
            sieves,
            self.chooser.needs(),
        )
    }
}

#[derive(Default)]
struct Watchers {
    slots: Vec<u32>,
    /// Slots of the plans without a key.
    always: Vec<u32>,
}
