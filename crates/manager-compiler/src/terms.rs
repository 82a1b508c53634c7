//! Words and phrases that say what the pages are about.
//!
//! A term's weight is its inverse document frequency in posts at large times its salience on the
//! pages: how often it stands there, counting titles and headings more, logarithmically. Repetition in
//! the body counts once per block and less each time, so that a long page is known by its title, headings
//! and description too. Weights are absolute, not relative to the page, so that a score means the same for every customer. Names are
//! left to [`crate::names`].

pub(crate) mod offers;

use std::collections::{BTreeMap, HashSet};

use domain::instructions::{MAX_TERM_CHARS, Term};
use matching::text::{self, Kind, Token};

use crate::{
    background,
    extract::PageText,
    figures,
    language::{self, CommonWords},
};

/// Candidates; [`crate::topic`] chooses among them.
const MAX_WORDS: usize = 70;
const MAX_PHRASES: usize = 40;
const MAX_PHRASE_WORDS: usize = 3;
/// The most words that are read, of all pages together: bounds memory, and no pages that are about
/// something need so many to say it.
const MAX_WORDS_READ: usize = 40_000;
/// Commoner words than this say too little by themselves.
const MIN_IDF: f64 = 3.0;
/// What a term of salience 1 and this inverse document frequency weighs 1.
const IDF_OF_WEIGHT_ONE: f64 = 8.0;
const MAX_WEIGHT: f64 = 3.0;
/// Rarer words say no more.
const MAX_IDF: f64 = 8.0;
/// Repetition says less and less: measured, the exact power matters little.
const SALIENCE_POWER: f64 = 1.0;
/// What the body can add at most, however often it repeats a word: as much as the title.
const MAX_BODY_SALIENCE: f64 = 2.0;
/// What a phrase counts beside its words, which count too where it occurs.
const PHRASE: f64 = 0.75;

/// The best terms of the pages, heaviest first. `names` are stems that belong to names.
#[must_use]
pub fn terms(pages: &[PageText], names: &HashSet<String>) -> Vec<Term> {
    let mut counter = Counter::default();
    let mut names = names.clone();
    names.extend(
        pages
            .iter()
            .flat_map(|page| &page.people)
            .flat_map(|person| {
                // A name that is also a word (`Baker`) may be what the page is about.
                stems(person).filter(|stem| !background::is_ordinary(stem))
            }),
    );
    for page in pages {
        counter.words_left = MAX_WORDS_READ / pages.len();
        counter.add_page(page, &names);
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
    /// Blocks read so far, of all pages.
    blocks: u32,
}

#[derive(Default)]
struct Count {
    /// Occurrences in titles, headings and descriptions, weighed by place.
    salience: f64,
    /// Blocks of the body that have it.
    blocks: f64,
    /// The last of them.
    last_block: Option<u32>,
    occurrences: u32,
    /// In a title, heading or description.
    prominent: bool,
    /// Written as one, in a script without spaces.
    is_compound: bool,
    /// How it is written, by number of times.
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

    /// The commonest form, the first by the alphabet among equals.
    fn form(&self) -> &str {
        let best = self.forms.iter().rev().max_by_key(|(_, count)| **count);
        best.map_or("", |(form, _)| form)
    }

    fn weight(&self, idf: f64) -> f64 {
        // The first block counts 1, all of them together less than the bound.
        let body = MAX_BODY_SALIENCE * self.blocks / (self.blocks + MAX_BODY_SALIENCE - 1.0);
        let salience = (self.salience + body).ln_1p().powf(SALIENCE_POWER);
        (idf.min(MAX_IDF) / IDF_OF_WEIGHT_ONE * salience).min(MAX_WEIGHT)
    }
}

/// Where a line stands.
#[derive(Clone, Copy)]
enum Place {
    /// A title, heading or description, and what it counts.
    Prominent(f64),
    /// The block of this number.
    Block(u32),
}

/// A word of a line that may be part of a term.
struct Word {
    form: String,
    stem: String,
    /// Right behind the word before, with nothing between them.
    tied: bool,
    /// Part of a compound with the word before, with the word behind: `hand-made`.
    glued: (bool, bool),
    /// Of a script without spaces.
    character: bool,
    web: bool,
}

impl Word {
    /// A single sign, which is part of many words.
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
        for word in words.iter().filter(|word| !word.web && !word.is_sign()) {
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
                if web > 1 || (characters > 0 && characters < run.len()) {
                    continue;
                }
                // Two signs of Korean make a term, one and a word of it do not.
                if run.iter().any(Word::is_syllable) && run.len() != 2 {
                    continue;
                }
                let separator = if characters > 0 { "" } else { " " };
                // A compound of a script without spaces, from one end to the other.
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
            let holds = count.is_compound
                || (count.occurrences * 2 >= rarest && (count.occurrences > 1 || count.prominent));
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
        // Phrases do not reach across commas, brackets and slashes.
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
            // The small words of a language without a list.
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

/// Characters of a script without spaces, side by side. Korean has spaces, and particles that stick to
/// its words: there every two characters count.
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

/// Cuts a run into words and adds those that say something.
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

/// The joined word where a part says little by itself: `wi-fi`, `e-mail`, `3.5mm`.
fn whole_of<'a, 'b>(tokens: &'b [Token<'a>], at: usize) -> &'b Token<'a> {
    let first = &tokens[at];
    let joined = tokens[at..]
        .iter()
        .take_while(|token| token.place < first.place + 4)
        .find(|token| token.kind == Kind::Joined && token.place == first.place)
        // An article that has lost its vowel is no part: `l'eau`.
        .filter(|token| !token.raw.contains(['\'', '’']));
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

#[cfg(test)]
mod tests;
