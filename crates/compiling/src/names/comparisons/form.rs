//! How names of others are written.

use matching::text;

use crate::{
    background::{self, Usage},
    figures,
    names::{products, spelling::is_camel_case},
};

pub(super) const MAX_NAME_WORDS: usize = 3;
const MONTHS_AND_DAYS: &str =
    "january february march april may june july august september october november december
monday tuesday wednesday thursday friday saturday sunday";

/// Returns whether one of its words is known as a name, or written like one.
pub(super) fn is_brand(name: &str) -> bool {
    let is_name_word = |word: &str| {
        let folded = folded(word);
        let stem = text::stem(&folded);
        is_camel_case(word)
            || (background::usage(&stem) == Usage::Name
                && background::is_known(&stem)
                && !background::is_stop_word(&folded)
                && !background::is_web_word(&stem)
                && !MONTHS_AND_DAYS
                    .split_whitespace()
                    .any(|other| other == folded))
    };
    !figures::is_figure(name)
        && folded(name).chars().nth(2).is_some()
        && name.split_whitespace().any(is_name_word)
}

pub(super) fn is_of_others(name: &str) -> bool {
    text::words(name).any(|word| products::is_of_others(&word.text))
}

/// Returns whether the name is an abbreviation (`SSO`, `APIs`): more often a feature than a rival.
pub(super) fn is_abbreviation(name: &str) -> bool {
    name.trim_end_matches('s').chars().all(char::is_uppercase)
}

pub(super) fn is_short(text: &str) -> bool {
    (1..=MAX_NAME_WORDS).contains(&text.split_whitespace().count())
}

pub(super) fn folded(name: &str) -> String {
    let name = name.trim_matches(|c: char| !c.is_alphanumeric());
    let name = name.trim_end_matches("'s").trim_end_matches("’s");
    text::fold(name).into_owned()
}
