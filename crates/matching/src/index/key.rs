//! A plan's key: the cheapest set of terms that the plan needs. A post can match only if it contains some of them.
//!
//! Each group of `require` is such a set. So are the terms and names together, where the rule asks for one of them. The
//! commonest terms can be left out if they cannot reach the score alone: then the others must add the rest. Terms that
//! occur rarely are cheap.
//!
//! The required contribution of the key's terms is measured in units of [`PASS`]. It is rounded up for each term, so
//! that no plan is left out that could match.

use std::cell::RefCell;

use domain::Focus;

use super::{packed::Numbered, terms::TermsBuilder};
use crate::{
    features::max_saturation,
    model::{self, Features},
    plan::Rule,
    post::PostText,
    topic_scale::TopicScale,
};

/// Sum that a plan's key terms must reach before the plan is evaluated.
pub(super) const PASS: u16 = 4_000;
/// Contribution of a term that is sufficient alone, however weak.
pub(super) const ENOUGH: u16 = 4_095;

/// Cost of a candidate relative to a posting, with the typical share of one watcher per ten posts.
const COST_OF_A_LOOK: f32 = 10.0;

/// Share of the required sum that the left-out terms may contribute: more saves postings, less saves candidates.
const LEFT_OUT: f64 = 0.5;
/// The same for plans with a focus, whose candidates cost more, and whose sum depends on the post ([`Needs`]).
const LEFT_OUT_OF_TOPIC: f64 = 0.0;
/// Tolerance for sums that are computed in another order, and rounded.
const SLACK: f64 = 1e-6;

/// Terms and their contributions, up to [`PASS`]; `None` when no term is necessary.
pub(super) type Key = Option<Vec<(u32, u16)>>;

/// Number of sample points between the surprise that the best post needs and the maximum.
const STEPS: usize = 32;

/// Topic score that a post needs to pass the gate by topic alone.
///
/// A key requires the sum for a post with the best answers of classifier and lexicon. Most posts need a higher sum, by
/// a factor that is the same for all plans: the lowest that any plan has.
#[derive(Debug, Clone)]
pub(super) struct Needs {
    /// Surprise that the best post needs.
    least: f64,
    /// Lowest ratio of the topic score at each step to that at the first one.
    ratios: [f64; STEPS],
}

impl Default for Needs {
    fn default() -> Self {
        Self {
            least: need(GATE),
            ratios: [f64::INFINITY; STEPS],
        }
    }
}

/// The gate that a topic can pass without a name.
const GATE: Focus = Focus::Sales;

impl Needs {
    fn surprise(&self, step: usize) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let part = step as f64 / (STEPS - 1) as f64;
        self.least + part * (TopicScale::MAX - self.least)
    }

    fn add(&mut self, scale: TopicScale) {
        if self.least.is_infinite() {
            return;
        }
        let first = scale.topic(self.least);
        for step in 0..STEPS {
            // Multiplied, so that rounding never raises a need.
            let ratio =
                scale.topic(self.surprise(step).min(TopicScale::MAX)) / first * (1.0 - SLACK);
            let lowest = &mut self.ratios[step];
            *lowest = lowest.min(if first > 0.0 { ratio } else { 1.0 });
        }
    }

    /// Returns the sum of contributions that a plan needs in this post; `u16::MAX` when no topic is sufficient.
    pub(super) fn pass(&self, post: &PostText) -> u16 {
        let of_post = Features::of_post(GATE, post);
        let fails = |step: &usize| {
            let surprise = self.surprise(*step);
            let features = Features {
                surprise,
                ..of_post
            };
            model::gate_margin(GATE, &features) + SLACK < 0.0
        };
        let failed = (0..STEPS).take_while(fails).count();
        if failed == STEPS {
            return u16::MAX;
        }
        let ratio = failed.checked_sub(1).map_or(1.0, |step| self.ratios[step]);
        let pass = (ratio.max(1.0) * f64::from(PASS)).min(f64::from(u16::MAX - 1));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "within the bounds of the type"
        )]
        let pass = pass as u16;
        pass
    }
}

/// Chooses keys, and remembers what their plans need.
#[derive(Default)]
pub(super) struct Chooser {
    needs: RefCell<Needs>,
}

impl Chooser {
    pub(super) fn needs(self) -> Needs {
        self.needs.into_inner()
    }

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

    /// Returns the terms and names if the plan requires that some of them occur.
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
                // With a threshold of zero, any term is sufficient.
                let need = match (threshold > 0.0, gate == Focus::Sales) {
                    (true, true) => {
                        let mut needs = self.needs.borrow_mut();
                        needs.add(scale);
                        scale.topic(needs.least)
                    }
                    (true, false) => f64::INFINITY,
                    (false, _) => 0.0,
                };
                let mut set = weighed(plan, terms, need, max_saturation(), LEFT_OUT_OF_TOPIC);
                set.extend(names());
                set
            }
            Rule::Sum { threshold } if threshold > 0.0 => {
                weighed(plan, terms, threshold, 1.0, LEFT_OUT)
            }
            Rule::AnyTerm => weighed(plan, terms, 0.0, 1.0, LEFT_OUT),
            Rule::AnyName => names().collect(),
            Rule::Sum { .. } | Rule::Groups => return None,
        };
        Some(distinct(set))
    }
}

/// Returns the surprise that a post without a name needs to pass the gate; infinite when no topic is sufficient.
fn need(gate: Focus) -> f64 {
    let passes = |surprise| {
        let features = Features {
            surprise,
            ..Features::best(gate)
        };
        model::gate_margin(gate, &features) + SLACK >= 0.0
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
}

/// Returns the terms that must contribute `need` together, when each contributes at most `most` times its weight.
fn weighed(
    plan: &Numbered,
    terms: &TermsBuilder,
    need: f64,
    most: f64,
    may_leave_out: f64,
) -> Vec<(u32, u16)> {
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
        let goes = (left_out + weight) * most <= need * may_leave_out;
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

/// Returns each term once. A term with two roles, such as a name of both kinds, is sufficient alone.
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
