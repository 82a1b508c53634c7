//! This says in plain words what a customer sells. Posts are compared with it by meaning.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::term;
use crate::{Issue, json::Object};

pub const MAX_SUMMARY_CHARS: usize = 500;
pub const MAX_PHRASES: usize = 20;

/// Says what a customer sells. At least one of both fields is set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Sells {
    /// One or two sentences that say what is sold, and to whom.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Goods and services, one phrase for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<String>,
}

impl Sells {
    /// Itself, or `None` if it says nothing.
    #[must_use]
    pub fn or_none(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }

    /// Takes over each field that `given` sets.
    pub fn replace_with(&mut self, given: &Self) {
        if !given.summary.is_empty() {
            self.summary.clone_from(&given.summary);
        }
        if !given.offers.is_empty() {
            self.offers.clone_from(&given.offers);
        }
    }
}

/// Parses the optional field `sells` of instructions or of an input. An object that says nothing counts as absent.
pub(crate) fn parse(parent: &Object<'_>) -> Option<Sells> {
    let object = parent.object("sells", parent.take("sells"))?;
    let summary = object
        .trimmed("summary", object.take("summary"), 0..=MAX_SUMMARY_CHARS)
        .unwrap_or_default();
    if summary.contains(char::is_control) {
        object.report("summary", Issue::InvalidFormat);
    }
    let offers = offers(&object);
    object.finish();
    Sells { summary, offers }.or_none()
}

fn offers(object: &Object<'_>) -> Vec<String> {
    let given = object.take("offers");
    let items = object.array("offers", given).unwrap_or_default();
    if items.len() > MAX_PHRASES {
        object.report("offers", Issue::TooMany);
        return Vec::new();
    }
    let mut seen = HashSet::new();
    let mut offers = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let phrase = phrase(item).and_then(|phrase| {
            let is_new = seen.insert(phrase.to_lowercase());
            is_new.then_some(phrase).ok_or(Issue::Duplicate)
        });
        match phrase {
            Ok(phrase) => offers.push(phrase),
            Err(issue) => object.report(&format!("offers[{at}]"), issue),
        }
    }
    offers
}

/// A phrase for goods or a service: a [`term`] without control characters.
fn phrase(item: &Value) -> Result<String, Issue> {
    let phrase = term(item)?;
    if phrase.contains(char::is_control) {
        return Err(Issue::InvalidFormat);
    }
    Ok(phrase)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use serde_json::{Value, json};

    use super::{Sells, parse};
    use crate::{Instructions, Issue, Issues, json::Object};

    /// Returns what was parsed, or the fields that failed.
    fn parsed(sells: Value) -> Result<Option<Sells>, Vec<(String, Issue)>> {
        let issues = RefCell::new(Issues::default());
        let instructions = json!({ "sells": sells });
        let object = Object::at(&instructions, "instructions".to_owned(), &issues).unwrap();
        let sells = parse(&object);
        object.finish();
        let issues = issues.into_inner();
        let failed = issues.as_slice().iter();
        let failed: Vec<_> = failed.map(|one| (one.field.clone(), one.issue)).collect();
        if failed.is_empty() {
            Ok(sells)
        } else {
            Err(failed)
        }
    }

    #[test]
    fn sells_is_trimmed_and_its_limits_are_inclusive() {
        let phrases: Vec<_> = (10..30).map(|n| format!("{n}{}", "é".repeat(98))).collect();
        let (summary, offers) = ("ü".repeat(500), phrases.clone());
        let expected = Sells { summary, offers };
        let padded: Vec<_> = phrases.iter().map(|one| format!(" {one}\n")).collect();
        let given = json!({"summary": format!(" {}\t", expected.summary), "offers": padded});
        assert_eq!(parsed(given), Ok(Some(expected)));
    }

    #[test]
    fn sells_without_words_counts_as_absent() {
        for nothing in [
            json!(null),
            json!({}),
            json!({"summary": " ", "offers": []}),
            json!({"summary": null, "offers": null}),
        ] {
            assert_eq!(parsed(nothing.clone()), Ok(None), "{nothing}");
        }
    }

    #[test]
    fn only_given_fields_are_replaced() {
        let sells = |summary: &str, offers: &[&str]| Sells {
            summary: summary.to_owned(),
            offers: offers.iter().map(|offer| (*offer).to_owned()).collect(),
        };
        for (given, expected) in [
            (sells("", &["coffee"]), sells("Tea.", &["coffee"])),
            (sells("Coffee.", &[]), sells("Coffee.", &["tea", "cups"])),
        ] {
            let mut compiled = sells("Tea.", &["tea", "cups"]);
            compiled.replace_with(&given);
            assert_eq!(compiled, expected);
        }
    }

    #[test]
    fn each_wrong_field_of_sells_is_named() {
        let many: Vec<_> = (0..21).map(|n| format!("phrase {n}")).collect();
        for (wrong, field, issue) in [
            (json!("tea"), "", Issue::InvalidType),
            (json!({"price": 1}), ".price", Issue::UnknownField),
            (json!({"summary": 1}), ".summary", Issue::InvalidType),
            (
                json!({"summary": "x".repeat(501)}),
                ".summary",
                Issue::TooLong,
            ),
            (
                json!({"summary": "a\u{1b}[31mb"}),
                ".summary",
                Issue::InvalidFormat,
            ),
            (json!({"offers": "tea"}), ".offers", Issue::InvalidType),
            (json!({ "offers": many }), ".offers", Issue::TooMany),
            (
                json!({"offers": ["tea", 1]}),
                ".offers[1]",
                Issue::InvalidType,
            ),
            (json!({"offers": [" "]}), ".offers[0]", Issue::TooShort),
            (
                json!({"offers": ["x".repeat(101)]}),
                ".offers[0]",
                Issue::TooLong,
            ),
            (
                json!({"offers": ["!?"]}),
                ".offers[0]",
                Issue::InvalidFormat,
            ),
            (
                json!({"offers": ["green\ntea"]}),
                ".offers[0]",
                Issue::InvalidFormat,
            ),
            (
                json!({"offers": ["Tea", "coffee", "tea "]}),
                ".offers[2]",
                Issue::Duplicate,
            ),
        ] {
            let expected = (format!("instructions.sells{field}"), issue);
            assert_eq!(parsed(wrong.clone()), Err(vec![expected]), "{wrong}");
        }
    }

    #[test]
    fn stored_instructions_without_sells_stay_valid() {
        let stored = json!({"include": [{"text": "tea", "weight": 1.0}]});
        let instructions: Instructions = serde_json::from_value(stored).unwrap();
        assert_eq!(instructions.sells, None);
        let written = serde_json::to_value(&instructions).unwrap();
        assert_eq!(written.get("sells"), None);
    }
}
