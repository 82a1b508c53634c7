//! What must occur in a post before a plan can match: the cheapest of the plan's necessary sets.
//!
//! Each group of `require` is such a set, and so are the terms and names together where the rule asks
//! for one of them. Cheap is what occurs seldom, guessed from the commonness of words; a wrong
//! guess costs time and nothing else.

use std::{
    collections::{BTreeSet, HashMap},
    sync::LazyLock,
};

use crate::{
    phrase::{Phrase, Readings},
    plan::{Plan, Rule},
    text,
};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// At least one of these phrases must occur.
    AnyOf(BTreeSet<Phrase>),
    /// Nothing is necessary: every post of the plan's feeds must be asked about.
    None,
}

impl Key {
    pub(super) fn of(plan: &Plan) -> Self {
        let groups = plan
            .require
            .iter()
            .map(|group| phrases(group.iter().map(|term| &term.readings)));
        let set = groups
            .chain(terms(plan))
            .min_by(|a, b| cost(a).total_cmp(&cost(b)));
        set.map_or(Self::None, Self::AnyOf)
    }
}

/// The terms and names of which one must occur, where one must.
fn terms(plan: &Plan) -> Option<BTreeSet<Phrase>> {
    let positive = plan.include.iter().filter(|term| term.weight > 0.0);
    let include = positive.map(|term| &term.readings);
    let names = || {
        let spellings = plan.names.iter().flat_map(|name| &name.spellings);
        spellings.map(|spelling| &spelling.readings)
    };
    match plan.rule {
        Rule::Focus { .. } => Some(phrases(include.chain(names()))),
        Rule::AnyTerm => Some(phrases(include)),
        Rule::Sum { threshold } if threshold > 0.0 => Some(phrases(include)),
        Rule::AnyName => Some(phrases(names())),
        Rule::Sum { .. } | Rule::Groups => None,
    }
}

fn phrases<'a>(readings: impl Iterator<Item = &'a Readings>) -> BTreeSet<Phrase> {
    readings.flat_map(Readings::phrases).cloned().collect()
}

fn cost(phrases: &BTreeSet<Phrase>) -> f64 {
    phrases
        .iter()
        .map(|phrase| commonness(rarest(phrase)))
        .sum()
}

/// The word by which a phrase is found.
pub(super) fn rarest(phrase: &Phrase) -> &str {
    phrase
        .words
        .iter()
        .map(AsRef::as_ref)
        .min_by(|a, b| commonness(a).total_cmp(&commonness(b)))
        .unwrap_or_default()
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
            Key::AnyOf(phrases) => phrases.iter().map(|p| p.words.join(" ")).collect(),
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
