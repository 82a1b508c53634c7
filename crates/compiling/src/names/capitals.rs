//! Runs of capitalised words, which may be names.

use matching::text;

use super::spelling::{clean, squeeze};
use crate::{background, figures};

const MAX_NAME_WORDS: usize = 4;

/// Returns the run of capitalised words that begins here.
pub(super) fn name_after(words: &[&str]) -> Option<String> {
    let mut name: Vec<&str> = Vec::new();
    for word in words.iter().take(MAX_NAME_WORDS) {
        if !is_capitalised(word) {
            break;
        }
        name.push(word);
        // Punctuation ends a name, except for the full stop inside `proxy.sh`.
        if word.ends_with([',', '.', ';', ':', '!', '?', ')', '|']) {
            break;
        }
    }
    checked(&name)
}

/// Returns the run of capitalised words that ends here.
pub(super) fn name_before(words: &[&str]) -> Option<String> {
    let from = words
        .iter()
        .rposition(|word| !is_capitalised(word) || word.ends_with([',', ':', '|']));
    let run = &words[from.map_or(0, |at| at + 1)..];
    (run.len() <= MAX_NAME_WORDS)
        .then(|| checked(run))
        .flatten()
}

pub(super) fn is_capitalised(word: &str) -> bool {
    let word = word.trim_start_matches(['(', '"', '“', '\'']);
    word.chars()
        .next()
        .is_some_and(|c| c.is_uppercase() || c.is_ascii_digit())
        || word.chars().any(char::is_uppercase)
}

pub(super) fn checked(words: &[&str]) -> Option<String> {
    let name = clean(&words.join(" "));
    let says_something = text::words(&name).any(|word| {
        !background::is_stop_word(&word.text) && word.text.chars().any(char::is_alphabetic)
    });
    (says_something && !figures::is_figure(&name) && squeeze(&name).len() >= 2).then_some(name)
}
