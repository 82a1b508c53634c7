//! Names of a subject in posts: the customer's own, and those to watch.
//!
//! A name that is also an ordinary word (`United`, `Giant`) only counts in its own case and near a word of the subject.
//! Its unmistakable spellings (`United Airlines`, `@united`) are in a separate entry without these conditions. Names of
//! persons are ignored.
//!
//! [`own`] collects the customer's names, with [`companies`] that own it and its [`products`]. [`brands`] contains
//! other spellings and products of well-known names. [`versus`] finds names that a line compares with, [`comparisons`]
//! those on pages about a comparison, and [`domain`] reads hosts and handles.

mod brands;
mod companies;
mod comparisons;
mod contrasts;
mod domain;
mod own;
mod products;
mod versus;

use std::collections::HashSet;

use ::domain::instructions::{MAX_TERM_CHARS, NameKind, Term, WatchedName};
use matching::text;

use crate::{
    background::{self, Usage},
    compile::Page,
};

/// Maximum number of entries of one kind.
const MAX_NAMES: usize = 60;
const MAX_ALIASES: usize = 8;
const MAX_CONTEXT: usize = 16;

/// All spellings of one name, the best first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    pub spellings: Vec<String>,
    /// Spellings that count only in their own case and near a word of the subject: `PIA`.
    pub doubtful: Vec<String>,
    /// True if the customer gave the name, so its case is deliberate.
    pub is_given: bool,
}

/// Names of the pages' subject, and names that they compare it with.
#[derive(Debug, Clone, Default)]
pub struct Names {
    pub own: Vec<Named>,
    pub watched: Vec<Named>,
}

impl Names {
    /// Finds names. `given` are the names that the customer wants to watch; without them the pages decide. A customer
    /// is never its own rival.
    #[must_use]
    pub fn find(pages: &[Page], given: &[String]) -> Self {
        let mut own = own::own(pages);
        let mut compared = versus::rivals(pages, &own);
        compared.retain(|name| !brands::is_technology(name));
        // A shop may sell what it names as a rival: then the customer's choice counts.
        let rivals: Vec<String> = given
            .iter()
            .chain(&compared)
            .map(|name| clean(name))
            .collect();
        own::add_products(&mut own, pages, &rivals);
        let mut is_first = true;
        own.retain(|named| {
            std::mem::take(&mut is_first) || !brands::is_technology(&named.spellings[0])
        });
        let from_pages = if given.is_empty() {
            compared
        } else {
            Vec::new()
        };
        let mut watched: Vec<Named> = Vec::new();
        let given = given.iter().map(|name| (name, true));
        for (name, is_given) in given.chain(from_pages.iter().map(|name| (name, false))) {
            let name = clean(name);
            let is_known = own
                .iter()
                .chain(&watched)
                .any(|named| named.is_spelled(&name));
            if !squeeze(&name).is_empty() && !is_known {
                watched.push(Named {
                    is_given,
                    ..Named::new(name)
                });
            }
        }
        watched.truncate(MAX_NAMES);
        own.iter_mut()
            .chain(&mut watched)
            .for_each(Named::add_spellings_of_brand);
        Self { own, watched }
    }

    /// Returns products of well-known names, each as a separate entry, because its share of posts about the subject is
    /// measured separately.
    #[must_use]
    pub fn products(&self, terms: &[Term]) -> Vec<WatchedName> {
        let mut products: Vec<(NameKind, Named)> = Vec::new();
        let own = self.own.iter().map(|named| (NameKind::Own, named));
        let watched = self.watched.iter().map(|named| (NameKind::Watched, named));
        for (kind, named) in own.chain(watched) {
            let brand = brands::find(&named.spellings[0]);
            for product in brand.iter().flat_map(|brand| &brand.products) {
                let mut all = self.own.iter().chain(&self.watched);
                // A mention of `Ford Focus` is already a mention of Ford.
                let is_known = all.any(|named| named.is_part_of(product))
                    || products.iter().any(|(_, named)| named.is_spelled(product));
                if !is_known {
                    let named = Named {
                        spellings: vec![(*product).to_owned()],
                        ..Named::default()
                    };
                    products.push((kind, named));
                }
            }
        }
        let entries = products
            .iter()
            .flat_map(|(kind, named)| named.entries(*kind, terms));
        entries.collect()
    }

    /// Returns the customer's name, for the brief.
    #[must_use]
    pub fn primary(&self) -> Option<&str> {
        self.own.first().map(|named| named.spellings[0].as_str())
    }

    /// Returns stems that belong to names and so do not become terms. For a name of several words, only those that are
    /// not also words of the subject: `Tunnelry VPN` leaves `vpn`.
    #[must_use]
    pub fn stems(&self) -> HashSet<String> {
        let mut stems = HashSet::new();
        for spelling in self
            .own
            .iter()
            .chain(&self.watched)
            .flat_map(|n| &n.spellings)
        {
            // A single character is not a word.
            if spelling.chars().any(text::spaceless) {
                stems.insert(squeeze(spelling));
                continue;
            }
            for (at, stem) in crate::terms::stems(spelling).enumerate() {
                if at == 0 || !background::is_known(&stem) {
                    stems.insert(stem.trim_start_matches(['@', '#']).to_owned());
                    stems.insert(stem);
                }
            }
        }
        stems
    }

    /// Returns the entries of the instructions. `terms` are the context for names that are also words.
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
        let mut doubtful: Vec<String> = acronym(&name).into_iter().collect();
        let mut spellings = with_variants(name);
        match split_camel_case(&spellings[0]) {
            Some(split) if is_unmistakable(&split) => spellings.push(split),
            split => doubtful.extend(split),
        }
        Self {
            spellings,
            doubtful,
            is_given: false,
        }
    }

    fn add_spellings_of_brand(&mut self) {
        let Some(brand) = brands::find(&self.spellings[0]) else {
            return;
        };
        for name in &brand.names {
            if !self.is_spelled(name) {
                self.spellings.push((*name).to_owned());
            }
        }
    }

    /// Returns whether one of its spellings is this name.
    fn is_spelled(&self, name: &str) -> bool {
        let name = squeeze(name);
        self.spellings
            .iter()
            .any(|spelling| squeeze(spelling) == name)
    }

    /// Returns whether this name contains one of its spellings.
    fn is_part_of(&self, name: &str) -> bool {
        let fold = |name: &str| format!(" {} ", text::fold(name));
        let name = fold(name);
        self.spellings
            .iter()
            .any(|spelling| name.contains(&fold(spelling)))
    }

    pub(crate) fn entries(&self, kind: NameKind, terms: &[Term]) -> Vec<WatchedName> {
        let (mut clear, mut cased, mut words) = (Vec::new(), Vec::new(), Vec::new());
        for spelling in &self.spellings {
            if spelling.chars().count() <= MAX_TERM_CHARS {
                let list = match usage(spelling) {
                    Usage::Name if self.is_given && is_in_capitals(spelling) => &mut cased,
                    Usage::Name => &mut clear,
                    Usage::Both => &mut cased,
                    Usage::Word => &mut words,
                };
                list.push(spelling.clone());
            }
        }
        // Matching also finds a word with its mark; both would count twice.
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
                on_topic_percent: None,
                ordinary_posts: None,
            })
        };
        let clear = entry(clear, false, Vec::new());
        let cased = entry(cased, true, Vec::new());
        let words = entry(words, true, self.context(terms));
        clear.into_iter().chain(cased).chain(words).collect()
    }

    /// Returns the subject's words, and the rest of the name's other spellings (`airlines`).
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

/// Returns whether a spelling alone may mean something else.
fn usage(spelling: &str) -> Usage {
    if spelling.starts_with(['@', '#']) || is_camel_case(spelling) {
        return Usage::Name;
    }
    let mut words = text::words(spelling);
    let (Some(word), None) = (words.next(), words.next()) else {
        return Usage::Name;
    };
    // Two letters are an abbreviation of many things.
    if word.text.chars().nth(2).is_none() || background::is_stop_word(&word.text) {
        return Usage::Word;
    }
    match background::usage(&text::stem(&word.text)) {
        // `AWS` is not a form of `aw`.
        Usage::Word if is_in_capitals(spelling) => Usage::Both,
        usage => usage,
    }
}

/// Returns whether a word is written in capitals: `AWS`, `NAPA`.
fn is_in_capitals(word: &str) -> bool {
    const MIN_LETTERS: usize = 3;
    let is_capital = |c: char| c.is_uppercase() || c.is_ascii_digit();
    word.chars().all(is_capital) && word.chars().filter(|c| c.is_uppercase()).count() >= MIN_LETTERS
}

/// Returns whether a word is camel case (`iPhone`, `YouTube`), which ordinary words never are.
fn is_camel_case(word: &str) -> bool {
    word.chars().skip(1).any(char::is_uppercase) && word.chars().any(char::is_lowercase)
}

/// Splits camel case: `Git Lab` for `GitLab`.
fn split_camel_case(name: &str) -> Option<String> {
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
fn is_unmistakable(words: &str) -> bool {
    const RARE_IDF: f64 = 7.0;
    text::words(words).any(|word| background::idf(&text::stem(&word.text)) > RARE_IDF)
}

/// Returns the spelling, and the one without spaces.
fn with_variants(name: String) -> Vec<String> {
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
fn acronym(name: &str) -> Option<String> {
    let initials: Option<String> = name
        .split_whitespace()
        .map(|word| word.chars().next().filter(|c| c.is_uppercase()))
        .collect();
    initials.filter(|initials| (3..=5).contains(&initials.chars().count()))
}

/// Removes what surrounds a name: legal forms, marks, quotes.
fn clean(name: &str) -> String {
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

/// Returns whether it is the name of a person that the pages quote or list.
fn is_person(pages: &[Page], name: &str) -> bool {
    let name = squeeze(&clean(name));
    let mut people = pages.iter().flat_map(|page| &page.text.people);
    people.any(|person| squeeze(person) == name)
}

/// Returns only letters and digits, folded, so that `Brew-Forge` and `brewforge` are equal.
pub(crate) fn squeeze(name: &str) -> String {
    text::fold(name)
        .chars()
        .filter(|c| c.is_alphanumeric())
        .collect()
}

#[cfg(test)]
mod tests;
