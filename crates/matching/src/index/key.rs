//! What must occur in a post before a plan can match: the cheapest of the plan's necessary sets.
//!
//! Each group of `require` is such a set. So are the terms and names together where the rule asks for
//! one of them; and of the terms, the commonest can be left out, as far as they cannot lift the score
//! by themselves: then the others must bring the rest. Cheap is what occurs seldom.
//!
//! What the key's terms must bring is measured in parts of [`PASS`]: rounded up for each term, so that
//! no plan is left out that could match.

use std::{cell::RefCell, collections::HashMap};

use domain::Focus;

use super::{packed::Numbered, terms::TermsBuilder};
use crate::{
    features::max_saturation,
    model::{self, Features},
    plan::Rule,
    topic_scale::TopicScale,
};

/// So much must come together before a plan is looked at.
pub(super) const PASS: u16 = 4_000;
/// A term that is enough by itself, however weak.
pub(super) const ENOUGH: u16 = 4_095;

/// What a candidate costs beside a posting, when one watcher in ten posts' feeds is as usual.
const COST_OF_A_LOOK: f32 = 10.0;

/// How much of what is needed the terms that are left out may bring: more saves postings, less saves
/// candidates.
const LEFT_OUT: f64 = 0.5;
/// What sums may differ by, for they are taken in another order, and rounded.
const SLACK: f64 = 1e-6;

/// Terms and what each brings, up to [`PASS`]; `None` when nothing is necessary.
pub(super) type Key = Option<Vec<(u32, u16)>>;

/// Chooses keys, and remembers what it worked out for the plans before.
#[derive(Default)]
pub(super) struct Chooser {
    needs: RefCell<HashMap<Focus, f64>>,
}

impl Chooser {
    pub(super) fn key(&self, plan: &Numbered, terms: &TermsBuilder) -> Key {
        let cost = |set: &[(u32, u16)]| -> f32 {
            let cost = |&(term, parts): &(u32, u16)| {
                let looks = if parts >= PASS { COST_OF_A_LOOK } else { 0.0 };
                terms.cost(term) * (1.0 + looks)
            };
            set.iter().map(cost).sum()
        };
        let groups = plan.require.iter().map(|group| {
            let group = group.iter().map(|&term| (term, ENOUGH));
            distinct(group.collect())
        });
        groups
            .chain(self.scoring(plan, terms))
            .min_by(|a, b| cost(a).total_cmp(&cost(b)))
    }

    /// The terms and names of which some must occur, where they must.
    fn scoring(&self, plan: &Numbered, terms: &TermsBuilder) -> Key {
        let names = || {
            let spellings = plan.names.iter().flat_map(|name| &name.spellings);
            spellings.map(|&term| (term, ENOUGH))
        };
        let set = match plan.rule {
            Rule::Focus {
                threshold,
                scale,
                gate,
                ..
            } => {
                // Every post with a term reaches a threshold of zero.
                let need = match (threshold > 0.0, gate == Focus::Sales) {
                    (true, true) => scale.topic(self.need(gate)),
                    (true, false) => f64::INFINITY,
                    (false, _) => 0.0,
                };
                let mut set = weighed(plan, terms, need, max_saturation());
                set.extend(names());
                set
            }
            Rule::Sum { threshold } if threshold > 0.0 => weighed(plan, terms, threshold, 1.0),
            Rule::AnyTerm => weighed(plan, terms, 0.0, 1.0),
            Rule::AnyName => names().collect(),
            Rule::Sum { .. } | Rule::Groups => return None,
        };
        Some(distinct(set))
    }

    /// The surprise without which no post passes the gate where no name occurs; infinite when no topic is
    /// enough.
    fn need(&self, focus: Focus) -> f64 {
        *self.needs.borrow_mut().entry(focus).or_insert_with(|| {
            let passes = |surprise| {
                let features = Features {
                    surprise,
                    ..Features::best(focus)
                };
                model::gate_margin(focus, &features) + SLACK >= 0.0
            };
            let (mut low, mut high) = (0.0, TopicScale::MAX);
            if !passes(high) {
                return f64::INFINITY;
            }
            for _ in 0..48 {
                let middle = f64::midpoint(low, high);
                if passes(middle) {
                    high = middle;
                } else {
                    low = middle;
                }
            }
            low
        })
    }
}

/// The terms that must bring `need` together, when each brings at most `most` times its weight.
fn weighed(plan: &Numbered, terms: &TermsBuilder, need: f64, most: f64) -> Vec<(u32, u16)> {
    if need.is_infinite() {
        return Vec::new();
    }
    let positive = plan.include.iter().filter(|(_, weight)| *weight > 0.0);
    let set: Vec<(u32, f64)> = positive.copied().collect();
    let all: f64 = set.iter().map(|(_, weight)| weight).sum();
    let need = need - SLACK * (need + 1e-3 * all + 1e-3);
    if need <= 0.0 {
        return set.into_iter().map(|(term, _)| (term, ENOUGH)).collect();
    }
    // The costliest for its weight goes first.
    let worth = |(term, weight): (u32, f64)| (f64::from(terms.cost(term)) / weight, term, weight);
    let mut set: Vec<_> = set.into_iter().map(worth).collect();
    set.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut left_out = 0.0;
    set.retain(|&(.., weight)| {
        let goes = (left_out + weight) * most <= need * LEFT_OUT;
        if goes {
            left_out += weight;
        }
        !goes
    });
    let need = need - left_out * most;
    set.into_iter()
        .map(|(_, term, weight)| (term, parts(weight, need)))
        .collect()
}

fn parts(weight: f64, need: f64) -> u16 {
    let parts = (weight / need * f64::from(PASS)).ceil();
    if parts < f64::from(ENOUGH) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole, and between 0 and 4,095"
        )]
        let parts = parts as u16;
        parts.max(1)
    } else {
        ENOUGH
    }
}

/// Each term once. One that is two things, as a name of both kinds, is enough.
fn distinct(mut set: Vec<(u32, u16)>) -> Vec<(u32, u16)> {
    set.sort_unstable();
    set.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 = ENOUGH;
        }
        same
    });
    set
}
