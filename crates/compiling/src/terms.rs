//! Words and phrases that describe the subject of the pages.
//!
//! A term's weight is its inverse document frequency in ordinary posts times its salience on the pages. Salience grows
//! with the logarithm of its occurrences, where titles and headings count more. Repetition in the body counts once per
//! block and less each time, so that title, headings and description also matter on a long page. Weights are absolute,
//! not relative to the page, so that a score means the same for every customer. [`crate::names`] handles names.

pub(crate) mod offers;
pub(crate) mod sells;

use std::{
    borrow::Borrow,
    collections::{BTreeMap, HashSet},
};

use domain::instructions::{MAX_TERM_CHARS, Term};
use matching::text::{self, Kind, Token};

use crate::{
    background,
    extract::PageText,
    figures,
    language::{self, CommonWords},
};

/// Number of candidates; [`crate::topic`] selects among them.
const MAX_WORDS: usize = 70;
const MAX_PHRASES: usize = 40;
const MAX_PHRASE_WORDS: usize = 3;
/// Maximum number of words read from all pages together. It limits memory, and no page with a subject needs so many.
const MAX_WORDS_READ: usize = 40_000;
/// Minimum inverse document frequency; commoner words alone say too little.
const MIN_IDF: f64 = 3.0;
/// Inverse document frequency of a term that has salience 1 and weight 1.
const IDF_OF_WEIGHT_ONE: f64 = 8.0;
const MAX_WEIGHT: f64 = 3.0;
/// Maximum inverse document frequency; rarer words say no more.
const MAX_IDF: f64 = 8.0;
/// Exponent of the salience. Measurements show that its exact value matters little.
const SALIENCE_POWER: f64 = 1.0;
/// Maximum salience that the body adds, regardless of repetition: the same as the title.
const MAX_BODY_SALIENCE: f64 = 2.0;
/// Minimum prominence of standard wording that is a subject: a title and two headings, for example.
const WEB_SALIENCE: f64 = 5.0;
/// Number of body blocks that must contain it too.
const WEB_BLOCKS: f64 = 3.0;
/// Weight of a phrase relative to its words, which count too where it occurs.
const PHRASE: f64 = 0.75;

/// Returns the best terms of the pages, heaviest first. `names` are stems that belong to names.
pub fn terms(pages: &[impl Borrow<PageText>], names: &HashSet<String>) -> Vec<Term> {
    let mut counter = Counter::default();
    let mut names = names.clone();
    names.extend(
        pages
            .iter()
            .flat_map(|page| &page.borrow().people)
            .flat_map(|person| {
                // A name that is also a word (`Baker`) may be the page's subject.
                stems(person).filter(|stem| !background::is_ordinary(stem))
            }),
    );
    for page in pages {
        counter.words_left = MAX_WORDS_READ / pages.len();
        counter.add_page(page.borrow(), &names);
    }
    let mut terms = counter.words();
    terms.extend(counter.phrases());
    sort(&mut terms);
    terms
}

/// Returns the stems of all words of a text.
pub fn stems(text: &str) -> impl Iterator<Item = String> {
    text::words(text).map(|word| text::stem(&word.text).into_owned())
}

/// Returns the weight of a term that occurs once on a page; `None` for one that says too little.
pub fn weight_of(text: &str) -> Option<f64> {
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

/// Returns whether it contains a word that is neither a stop word nor standard wording of web pages.
pub fn says_something(text: &str) -> bool {
    text::words(text).any(|word| {
        !background::is_stop_word(&word.text) && !background::is_web_word(&text::stem(&word.text))
    })
}

#[derive(Default)]
struct Counter {
    words: BTreeMap<String, Count>,
    phrases: BTreeMap<Vec<String>, Count>,
    /// Remaining word limit of the current page.
    words_left: usize,
    /// Blocks read so far, on all pages.
    blocks: u32,
}

#[derive(Default)]
struct Count {
    /// Occurrences in titles, headings and descriptions, weighted by place.
    salience: f64,
    /// Number of body blocks that contain it.
    blocks: f64,
    /// The last of these blocks.
    last_block: Option<u32>,
    occurrences: u32,
    /// True if it occurs in a title, heading or description.
    prominent: bool,
    /// Written as one word, in a script without spaces.
    is_compound: bool,
    /// Standard wording of web pages.
    is_web: bool,
    /// Written forms and their counts.
    forms: BTreeMap<String, u32>,
}

impl Count {
    fn add(&mut self, form: &str, place: Place) {
        match place {
            Place::Prominent(weight) => {
                self.salience += weight;
                self.prominent = true;
            }
            Place::Block(block) if self.last_block == Some(block) => {}
            Place::Block(block) => {
                self.blocks += 1.0;
                self.last_block = Some(block);
            }
        }
        self.occurrences += 1;
        *self.forms.entry(form.to_owned()).or_default() += 1;
    }

    /// Returns whether the pages are about it. Standard wording counts only where the pages present it as their
    /// subject: `password` on the pages of a password manager.
    fn is_subject(&self) -> bool {
        !self.is_web || (self.salience >= WEB_SALIENCE && self.blocks >= WEB_BLOCKS)
    }

    /// Returns the commonest form; among equals the first in alphabetical order.
    fn form(&self) -> &str {
        let best = self.forms.iter().rev().max_by_key(|(_, count)| **count);
        best.map_or("", |(form, _)| form)
    }

    fn weight(&self, idf: f64) -> f64 {
        // The first block counts 1, all of them together less than the limit.
        let body = MAX_BODY_SALIENCE * self.blocks / (self.blocks + MAX_BODY_SALIENCE - 1.0);
        let salience = (self.salience + body).ln_1p().powf(SALIENCE_POWER);
        (idf.min(MAX_IDF) / IDF_OF_WEIGHT_ONE * salience).min(MAX_WEIGHT)
    }
}

/// Position of a line.
#[derive(Clone, Copy)]
enum Place {
    /// A title, heading or description, with its factor.
    Prominent(f64),
    /// The block of this number.
    Block(u32),
}

/// A word of a line that may be part of a term.
struct Word {
    form: String,
    stem: String,
    /// Directly after the previous word, with nothing between them.
    tied: bool,
    /// Part of a compound with the previous word, and with the next one: `hand-made`.
    glued: (bool, bool),
    /// A character of a script without spaces.
    character: bool,
    web: bool,
}

impl Word {
    /// Returns whether the word is a single character, which is part of many words.
    fn is_sign(&self) -> bool {
        self.character && self.form.chars().nth(1).is_none()
    }

    fn is_syllable(&self) -> bool {
        self.character && self.form.chars().all(language::is_hangul)
    }
}

impl Counter {
    fn add_page(&mut self, page: &PageText, names: &HashSet<String>) {
        let common = &CommonWords::of(&page.lang);
        let mut add = |line: &str, weight: f64| {
            self.add_line(line, Place::Prominent(weight), common, names);
        };
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
            self.blocks += 1;
            self.add_line(&block.text, Place::Block(self.blocks), common, names);
        }
    }

    fn add_line(
        &mut self,
        line: &str,
        place: Place,
        common: &CommonWords,
        names: &HashSet<String>,
    ) {
        let mut words = content_words(line, common, names);
        words.truncate(self.words_left);
        self.words_left -= words.len();
        for word in words.iter().filter(|word| !word.is_sign()) {
            let count = self.words.entry(word.stem.clone()).or_default();
            count.add(&word.form, place);
            count.is_web |= word.web;
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
                if characters > 0 && characters < run.len() {
                    continue;
                }
                // Two Korean characters form a term; a single one does not, nor does one with a word.
                if run.iter().any(Word::is_syllable) && run.len() != 2 {
                    continue;
                }
                let separator = if characters > 0 { "" } else { " " };
                // A compound in a script without spaces, from end to end.
                let is_compound = characters > 0
                    && !run[0].tied
                    && words.get(end).is_none_or(|next| !next.tied)
                    && !run.iter().any(Word::is_syllable);
                let form = run
                    .iter()
                    .map(|w| w.form.as_str())
                    .collect::<Vec<_>>()
                    .join(separator);
                if characters > 0 && names.contains(&form) {
                    continue;
                }
                let key = run.iter().map(|word| word.stem.clone()).collect();
                let count = self.phrases.entry(key).or_default();
                count.add(&form, place);
                count.is_compound |= is_compound;
                count.is_web |= web > 1;
            }
        }
    }

    fn words(&self) -> Vec<Term> {
        let terms = self.words.iter().filter_map(|(stem, count)| {
            let idf = background::idf(stem);
            (idf >= MIN_IDF && count.is_subject()).then(|| Term {
                text: count.form().to_owned(),
                weight: count.weight(idf),
            })
        });
        best(terms, MAX_WORDS)
    }

    /// Returns phrases that belong together: repeated or in a prominent place, and not adjacent by chance.
    fn phrases(&self) -> Vec<Term> {
        let terms = self.phrases.iter().filter_map(|(stems, count)| {
            let rarest = stems.iter().filter_map(|stem| self.words.get(stem));
            let rarest = rarest
                .map(|word| word.occurrences)
                .min()
                .unwrap_or(count.occurrences);
            let holds = count.is_compound
                || (count.occurrences * 2 >= rarest && (count.occurrences > 1 || count.prominent));
            let idfs = stems.iter().map(|stem| background::idf(stem));
            let idf = idfs.sum::<f64>() / f64::from(u32::try_from(stems.len()).unwrap_or(1));
            (holds && idf >= MIN_IDF && count.is_subject()).then(|| Term {
                text: count.form().to_owned(),
                weight: PHRASE * count.weight(idf),
            })
        });
        best(terms, MAX_PHRASES)
    }
}

fn content_words(line: &str, common: &CommonWords, names: &HashSet<String>) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut free = 0;
    let mut end = 0;
    let mut side = 0;
    let tokens = text::tokens(line);
    let figures = figures::marks(&tokens);
    for (at, first) in tokens.iter().enumerate() {
        if first.place < free || matches!(first.kind, Kind::Joined | Kind::Marked) {
            continue;
        }
        // Phrases do not span commas, brackets and slashes.
        let between = &line[end.min(first.start)..first.start];
        let apart = !between
            .chars()
            .all(|c| c.is_whitespace() || matches!(c, '-' | '\'' | '’'));
        let tied = !apart && first.place == side;

        if let Some(run) = spaceless_run(line, &tokens[at..]) {
            free = run.end_place;
            side = free;
            end = first.start + run.text.len();
            add_spaceless(
                run.text,
                tied && between.is_empty(),
                common,
                names,
                &mut words,
            );
            continue;
        }

        let token = whole_of(&tokens, at);
        free = token.place + token.width;
        end = token.start + token.raw.len();
        side = free;

        let stem = text::stem(&token.text).into_owned();
        let character = token.kind == Kind::Character;
        let letters = token.text.chars().filter(|c| c.is_alphabetic()).count();
        let says_nothing = background::is_stop_word(&token.text)
            || common.is_stop_word(&token.text)
            || figures[at]
            || (token.kind == Kind::Joined && figures::is_figure(token.raw))
            || names.contains(&stem)
            || (!character && (letters == 0 || token.text.chars().nth(1).is_none()))
            // Short words count as function words in a language without a list.
            || (common.is_unlisted && !character && letters <= 3);
        if says_nothing {
            side = u32::MAX;
            continue;
        }
        words.push(Word {
            web: background::is_web_word(&stem) || common.is_furniture(&token.text),
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

/// Consecutive characters of a script without spaces. Korean has spaces, and particles attached to its words: there
/// every two characters count.
struct SpacelessRun<'a> {
    text: &'a str,
    end_place: u32,
}

fn spaceless_run<'a>(line: &'a str, tokens: &[Token<'_>]) -> Option<SpacelessRun<'a>> {
    let is_of_run = |token: &&Token<'_>| {
        token.kind == Kind::Character && !token.raw.starts_with(language::is_hangul)
    };
    let start = tokens.first().filter(is_of_run)?.start;
    let (mut end, mut end_place) = (start, 0);
    for token in tokens.iter().take_while(is_of_run) {
        if token.start != end {
            break;
        }
        end += token.raw.len();
        end_place = token.place + token.width;
    }
    let text = &line[start..end];
    Some(SpacelessRun { text, end_place })
}

/// Cuts a run into words and adds the meaningful ones.
fn add_spaceless(
    run: &str,
    tied: bool,
    common: &CommonWords,
    names: &HashSet<String>,
    words: &mut Vec<Word>,
) {
    let mut tied = tied && !words.is_empty();
    for segment in language::segments(run) {
        let form = text::fold(segment).into_owned();
        let says_nothing = common.is_stop_word(&form)
            || figures::is_calendar_word(&form)
            || language::is_inflection(&form)
            || names.contains(&form);
        if says_nothing {
            tied = false;
            continue;
        }
        words.push(Word {
            web: common.is_furniture(&form),
            stem: form.clone(),
            form,
            tied,
            glued: (false, false),
            character: true,
        });
        tied = true;
    }
}

/// Returns the joined word if one of its parts says little alone: `wi-fi`, `e-mail`, `3.5mm`.
fn whole_of<'a, 'b>(tokens: &'b [Token<'a>], at: usize) -> &'b Token<'a> {
    let first = &tokens[at];
    let joined = tokens[at..]
        .iter()
        .take_while(|token| token.place < first.place + 4)
        .find(|token| token.kind == Kind::Joined && token.place == first.place)
        // An elided article does not count as a part: `l'eau`.
        .filter(|token| !token.raw.contains(['\'', '’']));
    let short_part = |whole: &Token<'_>| {
        tokens[at..]
            .iter()
            .take_while(|token| token.place < whole.place + whole.width)
            .filter(|token| token.kind == Kind::Word)
            .any(|part| part.text.chars().nth(2).is_none() && !background::is_stop_word(&part.text))
    };
    joined.filter(|whole| short_part(whole)).unwrap_or(first)
}

fn best(terms: impl Iterator<Item = Term>, count: usize) -> Vec<Term> {
    let mut terms: Vec<Term> = terms
        // Three decimals are easy to read, and lead to the same decisions.
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

pub fn sort(terms: &mut [Term]) {
    terms.sort_by(|a, b| {
        b.weight
            .total_cmp(&a.weight)
            .then_with(|| a.text.cmp(&b.text))
    });
}

#[cfg(test)]
mod tests;
