//! Plans as numbers: 8 bytes for a term of `include`, 4 for any other term, 24 for the plan, and 8 for each distinct
//! weight.
//!
//! Nothing is lost: [`PackedPlans::plan`] returns the original plan. [`PackedPlans::hits`] returns only the part with
//! terms that occur in a post, which leads to the same decision on that post.

use domain::{FeedName, instructions::NameKind};
use hashbrown::HashTable;

use super::{number::number, terms::Terms};
use crate::{
    Plan,
    phrase::Readings,
    plan::{Name, Plain, Rule, Spelling, Term},
    text,
};

/// A plan whose terms and feeds are numbers.
#[derive(Debug, Clone)]
pub(super) struct Numbered {
    pub(super) rule: Rule,
    /// Heaviest first, as in [`Plan`].
    pub(super) include: Vec<(u32, f64)>,
    pub(super) names: Vec<NumberedName>,
    pub(super) require: Vec<Vec<u32>>,
    pub(super) exclude: Vec<u32>,
    pub(super) related: Vec<u32>,
    pub(super) offers: Vec<(u32, f64)>,
    pub(super) feeds: Vec<u32>,
}

#[derive(Debug, Clone)]
pub(super) struct NumberedName {
    pub(super) kind: NameKind,
    pub(super) cased: bool,
    pub(super) on_topic_percent: u8,
    pub(super) ordinary_posts: u16,
    /// Spellings; the first is the name's own text.
    pub(super) spellings: Vec<u32>,
    pub(super) context: Vec<u32>,
}

#[derive(Debug, Default)]
pub(super) struct PackedPlans {
    plans: Vec<Packed>,
    include: Vec<u32>,
    /// Index of each weight in `values`, which is short because weights have few digits.
    weights: Vec<u32>,
    values: Vec<f64>,
    /// Index of `values` by weight; only used while plans are added.
    place_of: HashTable<u32>,
    /// Feeds, exclusions, groups and names; each list follows its length.
    rest: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Packed {
    rule: Rule,
    include: u32,
    rest: u32,
}

/// A name that borrows the packed data.
#[derive(Debug, Clone, Copy)]
pub(super) struct PackedName<'a> {
    pub(super) kind: NameKind,
    pub(super) cased: bool,
    pub(super) on_topic_percent: u8,
    pub(super) ordinary_posts: u16,
    pub(super) spellings: &'a [u32],
    pub(super) context: &'a [u32],
}

/// A plan that borrows the packed data.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) rule: Rule,
    include: &'a [u32],
    weights: &'a [u32],
    values: &'a [f64],
    rest: &'a [u32],
}

impl PackedPlans {
    /// Creates a store with capacity for this many plans, and terms of `include`.
    pub(super) fn with_capacity(plans: usize, terms: usize) -> Self {
        Self {
            plans: Vec::with_capacity(plans),
            include: Vec::with_capacity(terms),
            weights: Vec::with_capacity(terms),
            ..Self::default()
        }
    }

    pub(super) fn push(&mut self, plan: &Numbered) {
        self.plans.push(Packed {
            rule: plan.rule,
            include: number(self.include.len()),
            rest: number(self.rest.len()),
        });
        for &(term, weight) in &plan.include {
            self.include.push(term);
            let place = self.place(weight);
            self.weights.push(place);
        }
        self.list(&plan.feeds);
        self.list(&plan.exclude);
        self.list(&plan.related);
        self.rest.push(number(2 * plan.offers.len()));
        for &(term, weight) in &plan.offers {
            let place = self.place(weight);
            self.rest.extend([term, place]);
        }
        self.rest.push(number(plan.require.len()));
        for group in &plan.require {
            self.list(group);
        }
        for name in &plan.names {
            let own = u32::from(name.kind == NameKind::Own);
            let percent = u32::from(name.on_topic_percent.min(100)) << 2;
            let ordinary = u32::from(name.ordinary_posts) << 9;
            self.rest
                .push(own | (u32::from(name.cased) << 1) | percent | ordinary);
            self.list(&name.spellings);
            self.list(&name.context);
        }
    }

    fn place(&mut self, weight: f64) -> u32 {
        let (place_of, values) = (&mut self.place_of, &mut self.values);
        let is_it = |&place: &u32| values[place as usize].to_bits() == weight.to_bits();
        if let Some(&place) = place_of.find(hash(weight), is_it) {
            return place;
        }
        let next = number(values.len());
        values.push(weight);
        place_of.insert_unique(hash(weight), next, |&place| hash(values[place as usize]));
        next
    }

    fn list(&mut self, numbers: &[u32]) {
        self.rest.push(number(numbers.len()));
        self.rest.extend_from_slice(numbers);
    }

    pub(super) fn finish(&mut self) {
        self.plans.shrink_to_fit();
        self.include.shrink_to_fit();
        self.weights.shrink_to_fit();
        self.values.shrink_to_fit();
        self.place_of = HashTable::new();
        self.rest.shrink_to_fit();
    }

    /// Returns the memory used, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.plans.capacity() * size_of::<Packed>()
            + (self.include.capacity() + self.weights.capacity() + self.rest.capacity())
                * size_of::<u32>()
            + self.values.capacity() * size_of::<f64>()
    }

    pub(super) fn view(&self, slot: u32) -> View<'_> {
        let slot = slot as usize;
        let from = self.plans[slot];
        let (include, rest) = self
            .plans
            .get(slot + 1)
            .map_or((self.include.len(), self.rest.len()), |next| {
                (next.include as usize, next.rest as usize)
            });
        let include = from.include as usize..include;
        View {
            rule: from.rule,
            include: &self.include[include.clone()],
            weights: &self.weights[include],
            values: &self.values,
            rest: &self.rest[from.rest as usize..rest],
        }
    }
}

/// Hashes a weight. Weights have few digits, which are in the upper bits; the table uses both the upper and the lower
/// bits.
fn hash(weight: f64) -> u64 {
    let mixed = weight.to_bits().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 32)
}

impl<'a> View<'a> {
    /// Returns the terms that satisfy `has`, and their weights.
    #[inline]
    pub(super) fn include(&self, has: impl Fn(u32) -> bool) -> impl Iterator<Item = (u32, f64)> {
        let terms = self.include.iter().zip(self.weights);
        terms
            .filter(move |&(&term, _)| has(term))
            .map(|(&term, &weight)| (term, self.values[weight as usize]))
    }

    pub(super) fn include_len(&self) -> usize {
        self.include.len()
    }

    pub(super) fn feeds(&self) -> &'a [u32] {
        self.lists().list()
    }

    pub(super) fn exclude(&self) -> &'a [u32] {
        let mut lists = self.lists();
        lists.list();
        lists.list()
    }

    /// Returns the terms of what the customer sells, and their weights.
    fn offers(&self) -> impl Iterator<Item = (u32, f64)> {
        let mut lists = self.lists();
        for _ in 0..3 {
            lists.list();
        }
        let values = self.values;
        let pairs = lists.list().chunks_exact(2);
        pairs.map(move |pair| (pair[0], values[pair[1] as usize]))
    }

    fn related(&self) -> &'a [u32] {
        let mut lists = self.lists();
        lists.list();
        lists.list();
        lists.list()
    }

    pub(super) fn require(&self) -> impl Iterator<Item = &'a [u32]> {
        let (mut lists, count) = self.groups();
        (0..count).map(move |_| lists.list())
    }

    pub(super) fn names(&self) -> impl Iterator<Item = PackedName<'a>> {
        let (mut lists, count) = self.groups();
        for _ in 0..count {
            lists.list();
        }
        std::iter::from_fn(move || {
            let flags = lists.next()?;
            let kind = if flags & 1 == 1 {
                NameKind::Own
            } else {
                NameKind::Watched
            };
            Some(PackedName {
                kind,
                cased: flags & 2 == 2,
                on_topic_percent: u8::try_from((flags >> 2) & 127).unwrap_or(u8::MAX),
                ordinary_posts: u16::try_from(flags >> 9).unwrap_or(u16::MAX),
                spellings: lists.list(),
                context: lists.list(),
            })
        })
    }

    fn lists(&self) -> Lists<'a> {
        Lists(self.rest)
    }

    fn groups(&self) -> (Lists<'a>, u32) {
        let mut lists = self.lists();
        for _ in 0..4 {
            lists.list();
        }
        let count = lists.next().unwrap_or_default();
        (lists, count)
    }

    pub(super) fn numbered(&self) -> Numbered {
        Numbered {
            rule: self.rule,
            include: self.include(|_| true).collect(),
            names: self
                .names()
                .map(|name| NumberedName {
                    kind: name.kind,
                    cased: name.cased,
                    on_topic_percent: name.on_topic_percent,
                    ordinary_posts: name.ordinary_posts,
                    spellings: name.spellings.to_vec(),
                    context: name.context.to_vec(),
                })
                .collect(),
            require: self.require().map(<[u32]>::to_vec).collect(),
            exclude: self.exclude().to_vec(),
            related: self.related().to_vec(),
            offers: self.offers().collect(),
            feeds: self.feeds().to_vec(),
        }
    }

    /// Returns the plan with only the terms that satisfy `has`. The others do not occur in the post, so the result
    /// decides like the whole plan on this post: a group without a term stays, and is not satisfied; a name without its
    /// context is removed, because it does not count. Without `texts`, the texts of terms and names are empty; they do
    /// not affect the decision.
    pub(super) fn plan(
        &self,
        terms: &Terms,
        readings: impl Fn(u32) -> Readings,
        feeds: impl Fn(u32) -> FeedName,
        has: impl Fn(u32) -> bool,
        whole: bool,
        texts: bool,
    ) -> Plan {
        let text = |term| {
            let text = if texts { terms.text(term) } else { "" };
            text.to_owned()
        };
        let kept = |list: &[u32]| -> Vec<Plain> {
            let kept = list.iter().filter(|&&term| has(term));
            kept.map(|&term| Plain {
                text: text(term),
                readings: readings(term),
            })
            .collect()
        };
        let names = self.names().filter_map(|packed| {
            let name = Name {
                text: text(*packed.spellings.first()?),
                kind: packed.kind,
                spellings: (packed.spellings.iter().copied())
                    .filter(|&term| has(term))
                    .map(|term| Spelling {
                        cased: packed.cased.then(|| text::cased_letters(terms.text(term))),
                        readings: readings(term),
                        text: text(term),
                    })
                    .collect(),
                context: kept(packed.context),
                on_topic_percent: packed.on_topic_percent,
                ordinary_posts: packed.ordinary_posts,
            };
            let in_context = packed.context.is_empty() || !name.context.is_empty();
            let counts = !name.spellings.is_empty() && in_context;
            (whole || counts).then_some(name)
        });
        let mut plan = Plan::from_parts(
            self.rule,
            self.include(&has)
                .map(|(term, weight)| Term {
                    text: text(term),
                    readings: readings(term),
                    weight,
                })
                .collect(),
            names.collect(),
            self.require().map(kept).collect(),
            kept(self.exclude()),
        );
        plan.related = kept(self.related());
        let offers = self.offers().filter(|(term, _)| has(*term));
        plan.offers = offers
            .map(|(term, weight)| Term {
                text: text(term),
                readings: readings(term),
                weight,
            })
            .collect();
        plan.watching(
            self.feeds()
                .iter()
                .filter(|_| whole)
                .map(|&feed| feeds(feed)),
        )
    }
}

struct Lists<'a>(&'a [u32]);

impl<'a> Lists<'a> {
    fn next(&mut self) -> Option<u32> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn list(&mut self) -> &'a [u32] {
        let count = self.next().unwrap_or_default() as usize;
        let (list, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        list
    }
}
