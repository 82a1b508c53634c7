//! Words and phrases that say what the pages are about.
//!
//! A term's weight is its inverse document frequency in posts at large times its salience on the
//! pages: how often it stands there, counting titles and headings more, logarithmically. Weights are
//! absolute, not relative to the page, so that a score means the same for every customer. Names are
//! left to [`crate::names`].

use std::collections::{BTreeMap, HashSet};

use domain::instructions::{MAX_TERM_CHARS, Term};
use matching::text::{self, Kind, Token};

use crate::{background, extract::PageText};

const MAX_WORDS: usize = 28;
const MAX_PHRASES: usize = 12;
const MAX_PHRASE_WORDS: usize = 3;
/// The most words that are read, of all pages together: bounds memory, and no pages that are about
/// something need so many to say it.
const MAX_WORDS_READ: usize = 40_000;
/// Commoner words than this say too little by themselves.
const MIN_IDF: f64 = 3.0;
/// What a term of salience 1 and this inverse document frequency weighs 1.
const IDF_OF_WEIGHT_ONE: f64 = 8.0;
const MAX_WEIGHT: f64 = 3.0;
/// Repetition says less and less: measured, the exact power matters little.
const SALIENCE_POWER: f64 = 0.5;
/// What a phrase counts beside its words, which count too where it occurs.
const PHRASE: f64 = 0.75;

/// The best terms of the pages, heaviest first. `names` are stems that belong to names.
#[must_use]
pub fn terms(pages: &[PageText], names: &HashSet<String>) -> Vec<Term> {
    let mut counter = Counter::default();
    for page in pages {
        counter.words_left = MAX_WORDS_READ / pages.len();
        counter.add_page(page, names);
    }
    let mut terms = counter.words();
    terms.extend(counter.phrases());
    sort(&mut terms);
    terms
}

/// The stems of all words of a text.
pub fn stems(text: &str) -> impl Iterator<Item = String> {
    text::words(text).map(|word| text::stem(&word.text).into_owned())
}

/// What a term weighs that stands once on a page; `None` for one that says too little.
pub(crate) fn weight_of(text: &str) -> Option<f64> {
    if !says_something(text) {
        return None;
    }
    let stems: Vec<String> = stems(text).collect();
    let idfs = stems.iter().map(|stem| background::idf(stem));
    let idf = idfs.sum::<f64>() / f64::from(u32::try_from(stems.len()).unwrap_or(u32::MAX));
    let count = Count {
        salience: 1.0,
        ..Count::default()
    };
    let part = if stems.len() > 1 { PHRASE } else { 1.0 };
    (idf >= MIN_IDF).then(|| part * count.weight(idf))
}

/// Whether a word of it is neither a small word nor furniture of web pages.
pub(crate) fn says_something(text: &str) -> bool {
    text::words(text).any(|word| {
        !background::is_stop_word(&word.text) && !background::is_web_word(&text::stem(&word.text))
    })
}

#[derive(Default)]
struct Counter {
    words: BTreeMap<String, Count>,
    phrases: BTreeMap<Vec<String>, Count>,
    /// Of the page being read.
    words_left: usize,
}

#[derive(Default)]
struct Count {
    /// Occurrences, weighed by place.
    salience: f64,
    occurrences: u32,
    /// In a title, heading or description.
    prominent: bool,
    /// How it is written, by number of times.
    forms: BTreeMap<String, u32>,
}

impl Count {
    fn add(&mut self, form: &str, place: f64) {
        self.salience += place;
        self.occurrences += 1;
        self.prominent |= place > 1.0;
        *self.forms.entry(form.to_owned()).or_default() += 1;
    }

    /// The commonest form, the first by the alphabet among equals.
    fn form(&self) -> &str {
        let best = self.forms.iter().rev().max_by_key(|(_, count)| **count);
        best.map_or("", |(form, _)| form)
    }

    fn weight(&self, idf: f64) -> f64 {
        let salience = self.salience.ln_1p().powf(SALIENCE_POWER);
        (idf / IDF_OF_WEIGHT_ONE * salience).min(MAX_WEIGHT)
    }
}

/// A word of a line that may be part of a term.
struct Word {
    form: String,
    stem: String,
    /// Right behind the word before, with nothing between them.
    tied: bool,
    /// Part of a compound with the word before, with the word behind: `hand-made`.
    glued: (bool, bool),
    character: bool,
    web: bool,
}

impl Counter {
    fn add_page(&mut self, page: &PageText, names: &HashSet<String>) {
        let foreign = !matches!(page.lang.as_str(), "" | "en");
        let mut add = |line: &str, place: f64| self.add_line(line, place, foreign, names);
        add(&page.title, 2.0);
        if page.og_title != page.title {
            add(&page.og_title, 1.5);
        }
        add(&page.description, 1.5);
        if page.og_description != page.description {
            add(&page.og_description, 1.2);
        }
        for heading in &page.headings {
            // A page's title is often its first heading too; both count.
            add(
                &heading.text,
                [2.0, 1.5, 1.2][usize::from(heading.level.clamp(1, 3) - 1)],
            );
        }
        for text in &page.structured_text {
            add(text, 1.2);
        }
        for block in &page.blocks {
            add(&block.text, 1.0);
        }
    }

    fn add_line(&mut self, line: &str, place: f64, foreign: bool, names: &HashSet<String>) {
        let mut words = content_words(line, foreign, names);
        words.truncate(self.words_left);
        self.words_left -= words.len();
        for word in words.iter().filter(|word| !word.web && !word.character) {
            let count = self.words.entry(word.stem.clone()).or_default();
            count.add(&word.form, place);
        }
        for start in 0..words.len() {
            for end in start + 2..=(start + MAX_PHRASE_WORDS).min(words.len()) {
                let run = &words[start..end];
                if run[1..].iter().any(|word| !word.tied) {
                    break;
                }
                if run[0].glued.0 || run[run.len() - 1].glued.1 {
                    continue;
                }
                let web = run.iter().filter(|word| word.web).count();
                let characters = run.iter().filter(|word| word.character).count();
                // Of scripts without spaces, two characters make a word.
                if web > 1 || (characters > 0 && run.len() != 2) || characters == 1 {
                    continue;
                }
                let separator = if characters == 2 { "" } else { " " };
                let form = run
                    .iter()
                    .map(|w| w.form.as_str())
                    .collect::<Vec<_>>()
                    .join(separator);
                let key = run.iter().map(|word| word.stem.clone()).collect();
                self.phrases.entry(key).or_default().add(&form, place);
            }
        }
    }

    fn words(&self) -> Vec<Term> {
        let terms = self.words.iter().filter_map(|(stem, count)| {
            let idf = background::idf(stem);
            (idf >= MIN_IDF).then(|| Term {
                text: count.form().to_owned(),
                weight: count.weight(idf),
            })
        });
        best(terms, MAX_WORDS)
    }

    /// Phrases that hold together: repeated, or in a prominent place, and no chance neighbours.
    fn phrases(&self) -> Vec<Term> {
        let terms = self.phrases.iter().filter_map(|(stems, count)| {
            let rarest = stems.iter().filter_map(|stem| self.words.get(stem));
            let rarest = rarest
                .map(|word| word.occurrences)
                .min()
                .unwrap_or(count.occurrences);
            let holds =
                count.occurrences * 2 >= rarest && (count.occurrences > 1 || count.prominent);
            let idfs = stems.iter().map(|stem| background::idf(stem));
            let idf = idfs.sum::<f64>() / f64::from(u32::try_from(stems.len()).unwrap_or(1));
            (holds && idf >= MIN_IDF).then(|| Term {
                text: count.form().to_owned(),
                weight: PHRASE * count.weight(idf),
            })
        });
        best(terms, MAX_PHRASES)
    }
}

fn content_words(line: &str, foreign: bool, names: &HashSet<String>) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut free = 0;
    let mut end = 0;
    let mut side = 0;
    let tokens = text::tokens(line);
    for (at, first) in tokens.iter().enumerate() {
        if first.place < free || matches!(first.kind, Kind::Joined | Kind::Marked) {
            continue;
        }
        let token = whole_of(&tokens, at);
        free = token.place + token.width;
        // Phrases do not reach across commas, brackets and slashes.
        let between = &line[end.min(token.start)..token.start];
        let apart = !between
            .chars()
            .all(|c| c.is_whitespace() || matches!(c, '-' | '\'' | '’'));
        end = token.start + token.raw.len();
        let tied = !apart && first.place == side;
        side = free;

        let stem = text::stem(&token.text).into_owned();
        let character = token.kind == Kind::Character;
        let letters = token.text.chars().filter(|c| c.is_alphabetic()).count();
        let says_nothing = background::is_stop_word(&token.text)
            || names.contains(&stem)
            || (!character && (letters == 0 || token.text.chars().nth(1).is_none()))
            // The small words of other languages, which the list does not have.
            || (foreign && !character && letters <= 3);
        if says_nothing {
            side = u32::MAX;
            continue;
        }
        words.push(Word {
            web: background::is_web_word(&stem),
            form: match token.kind {
                Kind::Joined => token.raw.to_lowercase(),
                _ => token.text.to_string(),
            },
            stem,
            tied: tied && !words.is_empty(),
            glued: (between == "-", line[end..].starts_with('-')),
            character,
        });
    }
    words
}

/// The joined word where a part says little by itself: `wi-fi`, `e-mail`, `3.5mm`.
fn whole_of<'a, 'b>(tokens: &'b [Token<'a>], at: usize) -> &'b Token<'a> {
    let first = &tokens[at];
    let joined = tokens[at..]
        .iter()
        .take_while(|token| token.place < first.place + 4)
        .find(|token| token.kind == Kind::Joined && token.place == first.place);
    let short_part = |whole: &Token<'_>| {
        tokens[at..]
            .iter()
            .filter(|token| token.kind == Kind::Word && token.place < whole.place + whole.width)
            .any(|part| part.text.chars().nth(2).is_none() && !background::is_stop_word(&part.text))
    };
    joined.filter(|whole| short_part(whole)).unwrap_or(first)
}

fn best(terms: impl Iterator<Item = Term>, count: usize) -> Vec<Term> {
    let mut terms: Vec<Term> = terms
        // Three decimals read well, and decide the same.
        .map(|term| Term {
            weight: (term.weight * 1e3).round() / 1e3,
            ..term
        })
        .filter(|term| term.weight > 0.0 && term.text.chars().count() <= MAX_TERM_CHARS)
        .collect();
    sort(&mut terms);
    terms.truncate(count);
    terms
}

pub(crate) fn sort(terms: &mut [Term]) {
    terms.sort_by(|a, b| {
        b.weight
            .total_cmp(&a.weight)
            .then_with(|| a.text.cmp(&b.text))
    });
}
