//! The decision on one post for one plan in its simplest form: it scores every term, name and phrase in turn.
//!
//! This is the definition. The index only finds quickly which plans to evaluate; its answers must equal these, bit for
//! bit, unless a post spends the budget of its searches ([`steps`]).

mod spans;

use domain::{FeedName, Focus, Match, instructions::NameKind};

use crate::{
    evidence::Evidence,
    model::{self, Features},
    plan::{Plain, Plan, Rule},
    post::PostText,
    steps,
    strength::{gate_features, occurs, strength_of_name, strength_of_term},
};

pub use spans::Span;

/// Precision when sums of weights are compared: a customer expects 0.7 + 0.1 to reach 0.8.
const PRECISION: f64 = 1e9;

/// Decision on whether a post is worth the customer's attention, with the reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    pub value: bool,
    /// With a focus: the probability that a person would keep the post; 0 where the gate rejects it. Without a focus:
    /// the sum of the weights of the terms that occur.
    pub score: f64,
    /// The terms and names that occur and counted, strongest first.
    pub terms: Vec<String>,
    pub focus: Option<Focus>,
    pub reason: Reason,
    /// Positions of the terms in the post; only set for matches.
    pub spans: Vec<Span>,
}

/// Rule that decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    Matched,
    BelowThreshold,
    /// A group of `require` has no term that occurs.
    Require,
    Exclude,
    NotWatched,
    /// No term or name of the plan occurs.
    NoTerm,
}

impl From<Decision> for Match {
    fn from(decision: Decision) -> Self {
        Self {
            score: decision.score,
            terms: decision.terms,
            focus: decision.focus,
            spans: decision.spans.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }
}

/// Decides on a post. If `feed` is `None`, it decides as if the plan watched the post's feed.
///
/// Refused posts get terms, score and focus too, so that a reader can see what was missing.
pub fn evaluate(plan: &Plan, post: &PostText, feed: Option<&FeedName>) -> Decision {
    let mut verdict = Verdict::of(plan, post);
    if feed.is_some_and(|feed| !plan.watches(feed)) {
        verdict.reason = Reason::NotWatched;
    }
    verdict.explain(plan, post)
}

/// A decision before it is described in words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Verdict {
    score: f64,
    reason: Reason,
}

impl Verdict {
    /// Decides on the assumption that the plan watches the post's feed.
    pub(crate) fn of(plan: &Plan, post: &PostText) -> Self {
        let (verdict, _) = steps::within(steps::OF_PLAN, || {
            let scored = Scored::of(plan, post);
            Self {
                score: scored.score,
                reason: reason(plan, post, &scored),
            }
        });
        verdict
    }

    pub(crate) fn value(&self) -> bool {
        self.reason == Reason::Matched
    }

    pub(crate) fn score(&self) -> f64 {
        self.score
    }

    pub(crate) fn explain(self, plan: &Plan, post: &PostText) -> Decision {
        let (decision, _) = steps::within(steps::OF_PLAN, || Decision {
            value: self.value(),
            score: self.score,
            terms: terms(plan, post),
            focus: plan.focus(),
            reason: self.reason,
            spans: if self.value() {
                spans::of(plan, post)
            } else {
                Vec::new()
            },
        });
        decision
    }
}

fn reason(plan: &Plan, post: &PostText, scored: &Scored) -> Reason {
    let hit = |term: &Plain| occurs(post, &term.readings);
    if plan.exclude.iter().any(hit) {
        return Reason::Exclude;
    }
    if !plan.require.iter().all(|group| group.iter().any(hit)) {
        return Reason::Require;
    }
    let (needs_term, reached) = match plan.rule {
        Rule::Focus { threshold, .. } => (true, scored.score >= threshold),
        Rule::Sum { threshold } => (threshold > 0.0, scored.score >= rounded(threshold)),
        Rule::AnyTerm => (true, scored.score > 0.0),
        Rule::AnyName => (true, true),
        Rule::Groups => (false, true),
    };
    match (needs_term && !scored.any, reached) {
        (true, _) => Reason::NoTerm,
        (false, true) => Reason::Matched,
        (false, false) => Reason::BelowThreshold,
    }
}

/// Score, and whether any term or name contributed to it.
struct Scored {
    score: f64,
    any: bool,
}

impl Scored {
    fn of(plan: &Plan, post: &PostText) -> Self {
        match plan.rule {
            Rule::Focus { focus, .. } => Self::with_focus(plan, post, focus),
            Rule::Sum { .. } | Rule::AnyTerm => {
                let mut sum = 0.0;
                let mut any = false;
                for term in plan
                    .include
                    .iter()
                    .filter(|term| occurs(post, &term.readings))
                {
                    sum += term.weight;
                    any |= term.weight > 0.0;
                }
                Self {
                    score: rounded(sum),
                    any,
                }
            }
            Rule::AnyName => Self {
                score: 0.0,
                any: plan
                    .names
                    .iter()
                    .any(|name| strength_of_name(post, name) > 0.0),
            },
            Rule::Groups => Self {
                score: 0.0,
                any: false,
            },
        }
    }

    fn with_focus(plan: &Plan, post: &PostText, focus: Focus) -> Self {
        let Some((gate, features, any)) = gate_features(plan, post) else {
            return Self {
                score: 0.0,
                any: false,
            };
        };
        if !any || !passes_gate(gate, features, post) {
            return Self { score: 0.0, any };
        }
        let evidence = Evidence::of(plan, post);
        Self {
            score: model::probability(focus, &evidence),
            any,
        }
    }
}

fn passes_gate(gate: Focus, features: Features, post: &PostText) -> bool {
    let features = Features {
        surprise: features.surprise,
        own_name: features.own_name,
        watched_names: features.watched_names,
        ..Features::of_post(gate, post)
    };
    model::gate_margin(gate, &features) >= 0.0
}

/// Further terms say little more, and a match of a plan with hundreds would take many times the memory of its post.
const MAX_TERMS: usize = 50;

/// Returns what counted, strongest first, then the terms that satisfied the groups; at most [`MAX_TERMS`].
fn terms(plan: &Plan, post: &PostText) -> Vec<String> {
    let mut shares: Vec<(f64, &str)> = Vec::new();
    match plan.rule {
        Rule::Focus { focus, .. } => {
            for term in &plan.include {
                let share = model::topic_share(focus, strength_of_term(post, term));
                shares.push((share, &term.text));
            }
            for name in &plan.names {
                let strength = strength_of_name(post, name);
                let share = match name.kind {
                    NameKind::Own => model::own_name_share(focus, strength),
                    NameKind::Watched => model::watched_name_share(focus, strength),
                };
                shares.push((share, &name.text));
            }
        }
        Rule::Sum { .. } | Rule::AnyTerm => {
            for term in &plan.include {
                if occurs(post, &term.readings) {
                    shares.push((term.weight, &term.text));
                }
            }
        }
        Rule::AnyName => {
            for name in &plan.names {
                shares.push((strength_of_name(post, name), &name.text));
            }
        }
        Rule::Groups => {}
    }
    shares.retain(|(share, _)| *share > 0.0);
    shares.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));

    let of_groups = plan
        .require
        .iter()
        .filter_map(|group| group.iter().find(|term| occurs(post, &term.readings)));
    let mut terms: Vec<String> = Vec::new();
    let all = shares
        .into_iter()
        .map(|(_, text)| text)
        .chain(of_groups.map(|term| term.text.as_str()));
    for text in all {
        if terms.len() == MAX_TERMS {
            break;
        }
        if !terms.iter().any(|term| term == text) {
            terms.push(text.to_owned());
        }
    }
    terms
}

fn rounded(sum: f64) -> f64 {
    (sum * PRECISION).round() / PRECISION
}

#[cfg(test)]
mod tests;
