//! Names that posts call a subject by: the customer's own, and those to watch.
//!
//! A name that is also a word of the language (`United`, `Giant`) counts only in its own case and
//! beside a word of the subject; its unmistakable spellings (`United Airlines`, `@united`) stand in an
//! entry of their own, which asks for neither. Names of persons are not taken.
//!
//! [`own`] collects the customer's, [`versus`] those that the pages compare with, [`domain`] reads
//! hosts and handles.

mod domain;
mod own;
mod versus;

use std::collections::HashSet;

use ::domain::instructions::{MAX_TERM_CHARS, NameKind, Term, WatchedName};
use matching::text;

use crate::{background, compile::Page};

/// Entries of one kind.
const MAX_NAMES: usize = 60;
const MAX_ALIASES: usize = 8;
const MAX_CONTEXT: usize = 16;

/// All spellings of one thing, the best first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    pub spellings: Vec<String>,
    /// Spellings that count only in their own case and beside a word of the subject: `PIA`.
    pub doubtful: Vec<String>,
}

/// What the pages call their subject, and whom they compare it with.
#[derive(Debug, Clone, Default)]
pub struct Names {
    pub own: Vec<Named>,
    pub watched: Vec<Named>,
}

impl Names {
    /// `given` are the customer's own wishes of whom to watch; without them the pages decide.
    #[must_use]
    pub fn find(pages: &[Page], given: &[String]) -> Self {
        let own = own::own(pages);
        let mut watched: Vec<Named> = Vec::new();
        let from_pages = if given.is_empty() {
            versus::rivals(pages, &own)
        } else {
            Vec::new()
        };
        for name in given.iter().chain(&from_pages) {
            let name = clean(name);
            let known =
                |named: &Named| named.spellings.iter().any(|s| squeeze(s) == squeeze(&name));
            if !squeeze(&name).is_empty() && !watched.iter().any(known) {
                watched.push(Named::new(name));
            }
        }
        watched.truncate(MAX_NAMES);
        Self { own, watched }
    }

    /// What the customer is called, for the brief.
    #[must_use]
    pub fn primary(&self) -> Option<&str> {
        self.own.first().map(|named| named.spellings[0].as_str())
    }

    /// Stems that belong to names and so make no terms. Of a name of several words only those that
    /// are not also words of the subject: `Tunnelry VPN` leaves `vpn`.
    #[must_use]
    pub fn stems(&self) -> HashSet<String> {
        let mut stems = HashSet::new();
        for spelling in self
            .own
            .iter()
            .chain(&self.watched)
            .flat_map(|n| &n.spellings)
        {
            for (at, stem) in crate::terms::stems(spelling).enumerate() {
                if at == 0 || !background::is_known(&stem) {
                    stems.insert(stem.trim_start_matches(['@', '#']).to_owned());
                    stems.insert(stem);
                }
            }
        }
        stems
    }

    /// The entries of the instructions. `terms` serve as context for names that are also words.
    #[must_use]
    pub fn entries(&self, terms: &[Term]) -> Vec<WatchedName> {
        let own = self.own.iter().map(|named| (NameKind::Own, named));
        let watched = self.watched.iter().map(|named| (NameKind::Watched, named));
        own.chain(watched)
            .flat_map(|(kind, named)| named.entries(kind, terms))
            .collect()
    }
}

impl Named {
    pub(crate) fn new(name: String) -> Self {
        let doubtful = acronym(&name).into_iter().collect();
        let spellings = with_variants(name);
        Self {
            spellings,
            doubtful,
        }
    }

    pub(crate) fn entries(&self, kind: NameKind, terms: &[Term]) -> Vec<WatchedName> {
        let (mut words, clear): (Vec<_>, Vec<_>) = self
            .spellings
            .iter()
            .filter(|spelling| spelling.chars().count() <= MAX_TERM_CHARS)
            .cloned()
            .partition(|spelling| is_also_a_word(spelling));
        // A word is found with its mark too; both would count twice.
        let unmarked: Vec<String> = clear.iter().map(|s| text::fold(s).into_owned()).collect();
        let clear = clear
            .into_iter()
            .filter(|spelling| match spelling.strip_prefix('@') {
                Some(handle) => !unmarked.contains(&text::fold(handle).into_owned()),
                None => true,
            });
        let clear: Vec<String> = clear.collect();
        words.extend(self.doubtful.iter().cloned());
        let entry = |spellings: Vec<String>, case_sensitive, context| {
            let mut spellings = spellings.into_iter();
            let text = spellings.next()?;
            Some(WatchedName {
                text,
                kind,
                aliases: spellings.take(MAX_ALIASES).collect(),
                case_sensitive,
                context,
            })
        };
        let clear = entry(clear, false, Vec::new());
        let words = entry(words, true, self.context(terms));
        clear.into_iter().chain(words).collect()
    }

    /// The subject's words, and the rest of the name's other spellings (`airlines`).
    fn context(&self, terms: &[Term]) -> Vec<String> {
        let mut context: Vec<String> = Vec::new();
        let of_names = self.spellings.iter().flat_map(|spelling| {
            let words = text::words(spelling).skip(1);
            words.map(|word| word.text.into_owned()).collect::<Vec<_>>()
        });
        let of_terms = terms.iter().map(|term| term.text.clone());
        for word in of_names.chain(of_terms) {
            if !background::is_stop_word(&word) && !word.contains(' ') && !context.contains(&word) {
                context.push(word);
            }
        }
        context.truncate(MAX_CONTEXT);
        context
    }
}

/// Whether a spelling by itself may mean something else.
fn is_also_a_word(spelling: &str) -> bool {
    if spelling.starts_with(['@', '#']) || is_camel_case(spelling) {
        return false;
    }
    let mut words = text::words(spelling);
    let (Some(word), None) = (words.next(), words.next()) else {
        return false;
    };
    // Two letters are an abbreviation of many things.
    word.text.chars().nth(2).is_none()
        || background::is_stop_word(&word.text)
        || background::is_ordinary(&text::stem(&word.text))
}

/// `iPhone`, `YouTube`: nobody writes a word like that.
fn is_camel_case(word: &str) -> bool {
    word.chars().skip(1).any(char::is_uppercase) && word.chars().any(char::is_lowercase)
}

/// The spelling, and the one without spaces.
fn with_variants(name: String) -> Vec<String> {
    let joined: String = name.split_whitespace().collect();
    let spaced = joined.len() < name.len();
    let mut spellings = vec![name];
    // Shorter ones are words by chance.
    if spaced && joined.len() >= 6 && joined.chars().all(char::is_alphanumeric) {
        spellings.push(joined);
    }
    spellings
}

/// `PIA` of `Private Internet Access`.
fn acronym(name: &str) -> Option<String> {
    let initials: Option<String> = name
        .split_whitespace()
        .map(|word| word.chars().next().filter(|c| c.is_uppercase()))
        .collect();
    initials.filter(|initials| (3..=5).contains(&initials.chars().count()))
}

/// Without what surrounds a name: legal forms, marks, quotes.
fn clean(name: &str) -> String {
    let name = name.replace(['®', '™', '©'], " ");
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

/// Letters and digits alone, folded: `Brew-Forge` and `brewforge` are one.
pub(crate) fn squeeze(name: &str) -> String {
    text::fold(name)
        .chars()
        .filter(|c| c.is_alphanumeric())
        .collect()
}

#[cfg(test)]
mod tests;
