//! What must occur in a post before a plan can match: the cheapest of the plan's necessary sets.
//!
//! Each group of `require` is such a set, and so are the terms and names together where the rule asks
//! for one of them. Cheap is what occurs seldom, guessed from the commonness of words; a wrong
//! guess costs time and nothing else.
//!
//! A key of terms and names also tells how far those that occur can lift the score: a plan that they
//! cannot lift over its threshold is not asked. The [`Bound`] is never lower than the score.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, LazyLock},
};

use domain::instructions::NameKind;

use crate::{
    model::{self, Features},
    phrase::{Phrase, Readings},
    plan::{Plan, Rule},
    post::PostText,
    text,
};

/// Kept with the plan: it depends on nothing else.
#[derive(Debug, Clone)]
pub(crate) enum Key {
    /// At least one of these phrases must occur.
    AnyOf(Vec<KeyPhrase>),
    /// Nothing is necessary: every post of the plan's feeds must be asked about.
    None,
}

#[derive(Debug, Clone)]
pub(crate) struct KeyPhrase {
    pub(super) phrase: Arc<Phrase>,
    pub(super) part: Part,
}

/// What a phrase is to its plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Part {
    /// It occurs, so the plan must be asked.
    Ask,
    /// A term of this weight.
    Term(f64),
    Own,
    Watched,
}

impl Key {
    pub(crate) fn of(plan: &Plan) -> Self {
        let groups = plan.require.iter().map(|group| {
            let mut set = Set::default();
            for term in group {
                set.add(&term.readings, Part::Ask);
            }
            set
        });
        let set = groups
            .chain(terms(plan))
            .min_by(|a, b| a.cost().total_cmp(&b.cost()));
        match set {
            Some(Set(phrases)) => Self::AnyOf(
                phrases
                    .into_iter()
                    .map(|(phrase, part)| KeyPhrase {
                        phrase: Arc::new(phrase),
                        part,
                    })
                    .collect(),
            ),
            None => Self::None,
        }
    }
}

/// How far the phrases that occur can lift one plan.
#[derive(Debug, Default)]
pub(super) struct Bound {
    ask: bool,
    topic: f64,
    own: bool,
    watched: bool,
}

/// What the bound may be too low by, for sums are taken in another order.
const SLACK: f64 = 1e-6;

impl Bound {
    /// `saturation` is that of the phrase in the post.
    pub(super) fn add(&mut self, part: Part, saturation: f64) {
        match part {
            Part::Ask => self.ask = true,
            Part::Term(weight) => self.topic += weight * saturation,
            Part::Own => self.own = true,
            Part::Watched => self.watched = true,
        }
    }

    pub(super) fn may_reach(&self, plan: &Plan, post: &PostText) -> bool {
        let strength = |named: bool| if named { model::MAX_NAME_STRENGTH } else { 0.0 };
        match plan.rule {
            _ if self.ask => true,
            Rule::Focus { focus, threshold } => {
                let best = Features {
                    topic: self.topic,
                    own_name: strength(self.own),
                    watched_names: strength(self.watched),
                    lexicon: f64::from(post.lexicon(focus)),
                };
                model::score(focus, &best) + SLACK >= threshold
            }
            Rule::Sum { .. } | Rule::AnyTerm | Rule::AnyName | Rule::Groups => true,
        }
    }
}

/// Phrases, each once.
#[derive(Default)]
struct Set(BTreeMap<Phrase, Part>);

impl Set {
    fn add(&mut self, readings: &Readings, part: Part) {
        for phrase in readings.phrases() {
            // One phrase that is two things, as a name of both kinds, leaves no bound.
            self.0
                .entry(phrase.clone())
                .and_modify(|known| {
                    if *known != part {
                        *known = Part::Ask;
                    }
                })
                .or_insert(part);
        }
    }

    fn cost(&self) -> f64 {
        let rarest_word = |phrase: &Phrase| {
            let words = phrase.words.iter().map(|word| commonness(word));
            words.fold(f64::MAX, f64::min)
        };
        self.0.keys().map(rarest_word).sum()
    }
}

/// The terms and names of which one must occur, where one must.
fn terms(plan: &Plan) -> Option<Set> {
    let (include, names, bounded) = match plan.rule {
        Rule::Focus { .. } => (true, true, true),
        Rule::AnyTerm => (true, false, false),
        Rule::Sum { threshold } if threshold > 0.0 => (true, false, false),
        Rule::AnyName => (false, true, false),
        Rule::Sum { .. } | Rule::Groups => return None,
    };
    let part = |part| if bounded { part } else { Part::Ask };
    let mut set = Set::default();
    for term in plan
        .include
        .iter()
        .filter(|term| include && term.weight > 0.0)
    {
        set.add(&term.readings, part(Part::Term(term.weight)));
    }
    for name in plan.names.iter().filter(|_| names) {
        let kind = match name.kind {
            NameKind::Own => Part::Own,
            NameKind::Watched => Part::Watched,
        };
        for spelling in &name.spellings {
            set.add(&spelling.readings, part(kind));
        }
    }
    Some(set)
}

/// A guess at how many of a million posts have the word: a short list knows the commonest, the
/// length tells of the others.
fn commonness(word: &str) -> f64 {
    static COMMON: LazyLock<HashMap<String, f64>> = LazyLock::new(|| {
        let words = include_str!("common_words.txt").split_whitespace();
        let ranked = words.zip(1_u32..).flat_map(|(word, rank)| {
            // Zipf's law, with the commonest in nine of ten posts.
            let share = 900_000.0 / (1.0 + f64::from(rank) / 20.0);
            [
                (text::stem(word).into_owned(), share),
                (word.to_owned(), share),
            ]
        });
        ranked.collect()
    });
    COMMON.get(word).copied().unwrap_or_else(|| {
        match (word.chars().count(), word.chars().any(text::spaceless)) {
            (_, true) => 20_000.0,
            (0..=3, _) => 8_000.0,
            (4..=5, _) => 4_000.0,
            (6..=8, _) => 2_000.0,
            _ => 1_000.0,
        }
    })
}

#[cfg(test)]
mod tests {
    use domain::Instructions;
    use serde_json::json;

    use super::Key;
    use crate::Plan;

    fn key(instructions: serde_json::Value) -> Vec<String> {
        let instructions: Instructions = serde_json::from_value(instructions).unwrap();
        match Key::of(&Plan::compile(&instructions).unwrap()) {
            Key::AnyOf(phrases) => phrases
                .iter()
                .map(|key| key.phrase.words.join(" "))
                .collect(),
            Key::None => vec!["*".to_owned()],
        }
    }

    #[test]
    fn the_rarest_necessary_set_is_the_key() {
        let terms = json!([{"text": "crm", "weight": 1}, {"text": "the", "weight": 1}, {"text": "not", "weight": -1}]);
        for (instructions, expected) in [
            (json!({"include": terms}), vec!["crm", "the"]),
            (json!({"include": terms, "threshold": 0}), vec!["*"]),
            (
                json!({"include": terms, "require": [["kubernetes"], ["the", "a"]]}),
                vec!["kubernetes"],
            ),
            (json!({"exclude": ["spam"]}), vec!["*"]),
            (
                json!({"names": [{"text": "Wi-Fi", "kind": "OWN"}]}),
                vec!["wi fi", "wifi"],
            ),
        ] {
            assert_eq!(key(instructions), expected);
        }
    }
}
