//! Spellings of names: letter case, variants, and what surrounds a name.

use matching::text;

use crate::background;

/// Returns whether a word is written in capitals: `AWS`, `NAPA`.
pub(super) fn is_in_capitals(word: &str) -> bool {
    const MIN_LETTERS: usize = 3;
    let is_capital = |c: char| c.is_uppercase() || c.is_ascii_digit();
    word.chars().all(is_capital) && word.chars().filter(|c| c.is_uppercase()).count() >= MIN_LETTERS
}

/// Returns whether a word is camel case (`iPhone`, `YouTube`), which ordinary words never are.
pub(super) fn is_camel_case(word: &str) -> bool {
    word.chars().skip(1).any(char::is_uppercase) && word.chars().any(char::is_lowercase)
}

/// Splits camel case: `Git Lab` for `GitLab`.
pub(super) fn split_camel_case(name: &str) -> Option<String> {
    const MIN_PART: usize = 3;
    if !name.chars().all(char::is_alphanumeric) {
        return None;
    }
    let humps: Vec<usize> = name
        .char_indices()
        .zip(name.chars().skip(1))
        .filter(|((_, before), c)| before.is_lowercase() && c.is_uppercase())
        .map(|((at, before), _)| at + before.len_utf8())
        .collect();
    let [hump] = humps[..] else {
        return None;
    };
    let (first, last) = name.split_at(hump);
    let is_long = |part: &str| part.chars().nth(MIN_PART - 1).is_some();
    let is_word = first.starts_with(char::is_uppercase);
    (is_word && is_long(first) && is_long(last)).then(|| format!("{first} {last}"))
}

/// Returns whether consecutive words are always a name: `git lab` is, `drop box` is not.
pub(super) fn is_unmistakable(words: &str) -> bool {
    const RARE_IDF: f64 = 7.0;
    text::words(words).any(|word| background::idf(&text::stem(&word.text)) > RARE_IDF)
}

/// Returns the spelling, and the one without spaces.
pub(super) fn with_variants(name: String) -> Vec<String> {
    let joined: String = name.split_whitespace().collect();
    let spaced = joined.len() < name.len();
    // Shorter ones are words by chance. `Model S` is not `models`.
    let has_letter = name
        .split_whitespace()
        .any(|word| word.chars().nth(1).is_none());
    let is_word = joined.chars().all(char::is_alphanumeric);
    let is_variant = spaced && joined.len() >= 6 && is_word && !has_letter;
    let mut spellings = vec![name];
    if is_variant {
        spellings.push(joined);
    }
    spellings
}

/// Returns the acronym of a name: `PIA` for `Private Internet Access`.
pub(super) fn acronym(name: &str) -> Option<String> {
    let initials: Option<String> = name
        .split_whitespace()
        .map(|word| word.chars().next().filter(|c| c.is_uppercase()))
        .collect();
    initials.filter(|initials| (3..=5).contains(&initials.chars().count()))
}

/// Removes what surrounds a name: legal forms, marks, quotes.
pub(super) fn clean(name: &str) -> String {
    let name = name.replace(['®', '™', '©'], " ");
    // `Comcast Corporation (Nasdaq: CMCSA`
    let name = name.split(" (").next().unwrap_or_default();
    let mut words: Vec<&str> = name.split_whitespace().collect();
    while let Some(last) = words.last() {
        let folded = text::fold(last.trim_matches(|c: char| !c.is_alphanumeric()));
        let legal = matches!(
            folded.as_ref(),
            "inc"
                | "ltd"
                | "llc"
                | "gmbh"
                | "corp"
                | "corporation"
                | "plc"
                | "bv"
                | "ag"
                | "sa"
                | "limited"
        );
        if !legal || words.len() == 1 {
            break;
        }
        words.pop();
    }
    let joined = words.join(" ");
    joined
        .trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '@' | '#' | '+' | '.'))
        .trim_end_matches('.')
        .to_owned()
}

/// Returns only letters and digits, folded, so that `Brew-Forge` and `brewforge` are equal.
pub fn squeeze(name: &str) -> String {
    text::fold(name)
        .chars()
        .filter(|c| c.is_alphanumeric())
        .collect()
}
