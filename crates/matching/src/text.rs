//! Words: how a post, a page and a term are cut and brought into one spelling.
//!
//! The same rules serve all three, so that what a person writes into a term is found where a person
//! would find it. Cutting takes time and memory linear in the text and never fails.
//!
//! - A **word** is a run of letters and digits with their marks, [`fold()`]ed.
//! - Words that one of `- . _ & '` (or `,` between digits) ties together each count by themselves,
//!   and the whole counts as one **joined** word too: `Wi-Fi` is `wi`, `fi` and `wifi`; `node.js` is
//!   `node`, `js` and `nodejs`. Contractions are one word only (`don't` is `dont`), and `acme's` is
//!   `acme`, and `acmes` as well.
//! - `@acme`, `#acme`, `c++`, `c#`, `disney+` and `.net` are **marked**: the word without its mark
//!   counts, and the word with it. A term that carries the mark asks for the mark. A single letter
//!   with a mark behind it is that word alone: `c++` is no `c`.
//! - `&` by itself is the word `and`.
//! - In scripts without spaces, and in Hangul, whose particles stick to the word, every character is
//!   a word: a term of several is a phrase, and so matches as a substring.
//! - Words have **places**. Phrases are words in places side by side; the end of a sentence and an
//!   empty line leave a place free, so that no phrase reaches across. A full stop behind three
//!   letters or fewer is taken for an abbreviation (`Dr. Martens`, `vs. Nike`).

pub(crate) mod block;
pub(crate) mod code;
mod fold;
pub(crate) mod scan;
mod simd;

use std::borrow::Cow;

use frostem::{Algorithm, Stemmer};
use unicode_segmentation::UnicodeSegmentation;

pub(crate) use fold::cased_letters;
pub use fold::fold;

/// More words than this tied together are a link or a path, and are not joined.
const MAX_JOINED: usize = 4;
/// Longer words are not stemmed: no English word is.
const MAX_STEMMED_BYTES: usize = 40;

/// How a token stands in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A word by itself.
    Word,
    /// One character of a script without spaces.
    Character,
    /// Another reading of words that the text ties together: `wifi` for `Wi-Fi`.
    Joined,
    /// Another reading of a word with its mark: `@acme`, `c++`.
    Marked,
}

/// A word of a text, or another reading of some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token<'a> {
    /// The folded form, which is compared.
    pub text: Cow<'a, str>,
    /// As it stands in the text.
    pub raw: &'a str,
    /// The byte at which `raw` starts.
    pub start: usize,
    /// The place of its (first) word.
    pub place: u32,
    /// How many places it covers.
    pub width: u32,
    pub kind: Kind,
}

/// All tokens of a text, other readings included, by place; a word before its other readings.
#[must_use]
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::with_capacity(text.len() / 5);
    let mut place = 0_u32;
    let mut before = Gap::Start;
    let mut run: Vec<Atom<'_>> = Vec::new();
    for atom in Atoms::new(text) {
        let tied = atom.gap == Gap::Tie && run.last().is_some_and(|last| ties(text, last, &atom));
        if !tied {
            place = flush(text, &mut run, before, place, &mut tokens);
            before = atom.gap;
        }
        run.push(atom);
    }
    flush(text, &mut run, before, place, &mut tokens);
    tokens
}

/// The words alone, one a place: what counts when words are counted.
pub fn words(text: &str) -> impl Iterator<Item = Token<'_>> {
    let mut next = 0;
    tokens(text).into_iter().filter(move |token| {
        let first = token.place >= next && token.kind != Kind::Joined;
        if first {
            next = token.place + 1;
        }
        first
    })
}

/// The stem of an English word (Snowball), given folded; any other word as it is.
///
/// About 0.2 µs a word: who sees the same words often keeps the answers.
#[must_use]
pub fn stem(word: &str) -> Cow<'_, str> {
    let english = (3..=MAX_STEMMED_BYTES).contains(&word.len())
        && word.bytes().all(|b| b.is_ascii_lowercase());
    if english {
        Stemmer::new(Algorithm::English).stem(word)
    } else {
        Cow::Borrowed(word)
    }
}

/// Whether the character belongs to a script that is written without spaces between words, or to
/// Hangul.
#[must_use]
pub fn spaceless(c: char) -> bool {
    matches!(u32::from(c),
        0x0e00..=0x0eff        // Thai, Lao
        | 0x0f00..=0x0fff      // Tibetan
        | 0x1000..=0x109f      // Myanmar
        | 0x1100..=0x11ff      // Hangul Jamo
        | 0x1780..=0x17ff      // Khmer
        | 0x3005..=0x3007 | 0x3040..=0x31ff  // Kana, Bopomofo, Jamo
        | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0x2_0000..=0x3_ffff // Han
        | 0xa960..=0xa97f | 0xac00..=0xd7ff  // Hangul
        | 0xff66..=0xffdc      // half-width Katakana and Hangul
    )
}

/// What stands before a word, behind the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gap {
    Start,
    /// Nothing at all: a change of script.
    None,
    /// One character that ties words together.
    Tie,
    Apart,
    /// The end of a sentence or paragraph.
    Break,
}

/// A run of letters and digits, or one character of a script without spaces.
#[derive(Debug)]
struct Atom<'a> {
    raw: &'a str,
    start: usize,
    gap: Gap,
    spaceless: bool,
}

impl Atom<'_> {
    fn end(&self) -> usize {
        self.start + self.raw.len()
    }
}

struct Atoms<'a> {
    text: &'a str,
    at: usize,
    last: Option<(usize, usize)>,
}

impl<'a> Atoms<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            last: None,
        }
    }

    fn cluster(&self, at: usize) -> Option<(&'a str, char)> {
        cluster(self.text, at)
    }

    fn gap(&self, start: usize) -> Gap {
        self.last
            .map_or(Gap::Start, |last| gap_between(self.text, last, start))
    }
}

impl<'a> Iterator for Atoms<'a> {
    type Item = Atom<'a>;

    fn next(&mut self) -> Option<Atom<'a>> {
        let start = loop {
            let (cluster, lead) = self.cluster(self.at)?;
            if is_letter(lead) {
                break self.at;
            }
            self.at += cluster.len();
        };
        let (first, lead) = self.cluster(start)?;
        let mut end = start + first.len();
        let spaceless = spaceless(lead);
        if !spaceless {
            while let Some((cluster, lead)) = self.cluster(end) {
                let goes_on = is_letter(lead) && !self::spaceless(lead);
                if !goes_on && !fold::vanishes(lead) {
                    break;
                }
                end += cluster.len();
            }
        }
        let gap = self.gap(start);
        self.at = end;
        self.last = Some((start, end));
        Some(Atom {
            raw: &self.text[start..end],
            start,
            gap,
            spaceless,
        })
    }
}

/// The grapheme cluster at `at`, and the character that leads it.
fn cluster(text: &str, at: usize) -> Option<(&str, char)> {
    let rest = &text[at..];
    let lead = rest.chars().next()?;
    let plain = lead.is_ascii() && rest.as_bytes().get(1).is_none_or(u8::is_ascii);
    let cluster = if plain {
        &rest[..1]
    } else {
        rest.graphemes(true).next()?
    };
    Some((cluster, lead))
}

/// What stands between the word `last` and the one that starts at `start`.
fn gap_between(text: &str, (last_start, last_end): (usize, usize), start: usize) -> Gap {
    let between = &text[last_end..start];
    let mut chars = between.chars();
    match (chars.next(), chars.next()) {
        (None, _) => Gap::None,
        (Some('-' | '.' | '_' | '&' | '\'' | '’' | ',' | '‐' | '‑'), None) => Gap::Tie,
        _ if breaks(&text[last_start..last_end], between) => Gap::Break,
        _ => Gap::Apart,
    }
}

fn is_letter(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_alphanumeric()
    } else {
        c.is_alphanumeric() && !fold::vanishes(c)
    }
}

/// Whether what stands between two words ends a sentence or a paragraph.
fn breaks(before: &str, between: &str) -> bool {
    let mut lines = 0;
    let mut stop = None;
    for c in between.chars() {
        match c {
            '\n' => lines += 1,
            '!' | '?' | ';' | ':' | '…' | '|' => stop = Some(c),
            '。' | '！' | '？' | '；' | '．' | '؟' | '۔' | '।' => return true,
            '.' if stop.is_none() => stop = Some('.'),
            // A stop inside of a word, as in a link, ends nothing.
            c if c.is_whitespace() => match stop {
                Some('.') if before.chars().nth(3).is_none() => stop = None,
                Some(_) => return true,
                None => {}
            },
            _ => {}
        }
    }
    lines > 1
}

/// Whether the tie between two words holds: `,` only between digits, none to a script without spaces.
fn ties(text: &str, last: &Atom<'_>, atom: &Atom<'_>) -> bool {
    let digits = |raw: &str| raw.bytes().all(|b| b.is_ascii_digit());
    !last.spaceless
        && !atom.spaceless
        && (&text[last.end()..atom.start] != "," || (digits(last.raw) && digits(atom.raw)))
}

/// Writes the tokens of words tied together, and answers the next free place.
fn flush<'a>(
    text: &'a str,
    run: &mut Vec<Atom<'a>>,
    before: Gap,
    place: u32,
    tokens: &mut Vec<Token<'a>>,
) -> u32 {
    let Some(first) = run.first() else {
        return place;
    };
    let start = first.start;
    let end = run.last().map_or(start, Atom::end);
    let mut place = place.saturating_add(u32::from(before == Gap::Break));
    // `and` for a lone ampersand, between this word and the one before.
    if before == Gap::Apart
        && let Some(at) = lone_ampersand(text, start)
    {
        tokens.push(Token {
            text: Cow::Borrowed("and"),
            raw: &text[at..=at],
            start: at,
            place,
            width: 1,
            kind: Kind::Word,
        });
        place = place.saturating_add(1);
    }

    let first_place = place;
    let readings = readings(text, run, start, end);
    let parts: &[Atom<'_>] = match readings.parts {
        Parts::All => run,
        Parts::First => &run[..1],
        Parts::None => &[],
    };
    for atom in parts {
        tokens.push(Token {
            text: fold(atom.raw),
            raw: atom.raw,
            start: atom.start,
            place,
            width: 1,
            kind: if atom.spaceless {
                Kind::Character
            } else {
                Kind::Word
            },
        });
        place = place.saturating_add(1);
    }
    let width = (place - first_place).max(1);
    let alone = parts.is_empty();
    for (form, range, kind) in [
        readings.joined.map(|form| (form, start..end, Kind::Joined)),
        readings
            .marked
            .map(|(form, range)| (form, range, Kind::Marked)),
    ]
    .into_iter()
    .flatten()
    {
        tokens.push(Token {
            text: Cow::Owned(form),
            raw: &text[range.clone()],
            start: range.start,
            place: first_place,
            width,
            kind: if alone { Kind::Word } else { kind },
        });
    }
    run.clear();
    first_place.saturating_add(width)
}

/// The byte of an `&` that stands between spaces right before the word at `start`.
fn lone_ampersand(text: &str, start: usize) -> Option<usize> {
    let before = text[..start].strip_suffix(' ')?.strip_suffix('&')?;
    before.ends_with(' ').then_some(before.len())
}

enum Parts {
    All,
    /// The word without its possessive `'s`.
    First,
    /// None: the other reading is the word.
    None,
}

struct Readings {
    parts: Parts,
    joined: Option<String>,
    marked: Option<(String, std::ops::Range<usize>)>,
}

fn readings(text: &str, run: &[Atom<'_>], start: usize, end: usize) -> Readings {
    let mut parts = Parts::All;
    let mut joined = None;
    if (2..=MAX_JOINED).contains(&run.len()) {
        joined = Some(run.iter().map(|atom| fold(atom.raw)).collect::<String>());
        if let [word, suffix] = run
            && matches!(&text[word.end()..suffix.start], "'" | "’")
        {
            match fold(suffix.raw).as_ref() {
                "s" => parts = Parts::First,
                "t" | "re" | "ve" | "ll" | "d" | "m" => parts = Parts::None,
                _ => {}
            }
        }
    }

    let whole = || match &joined {
        Some(joined) => joined.clone(),
        None => run.iter().map(|atom| fold(atom.raw)).collect(),
    };
    let word_before = |at: usize| text[..at].chars().next_back().is_some_and(is_letter);
    let bytes = text.as_bytes();
    let lead = start.checked_sub(1).map(|at| (at, bytes[at]));
    let spaceless = run.iter().any(|atom| atom.spaceless);
    let marked = match lead {
        Some((at, b'@' | b'#')) if !word_before(at) => {
            Some((format!("{}{}", char::from(bytes[at]), whole()), at..end))
        }
        Some((at, b'.')) if run.len() == 1 && !spaceless && stands_alone(text, at) => {
            Some((format!(".{}", whole()), at..end))
        }
        _ if spaceless || run.len() > MAX_JOINED => None,
        _ => {
            let marks = trailing_marks(&text[end..]);
            (marks > 0).then(|| {
                let form = format!("{}{}", whole(), &text[end..end + marks]);
                if run.len() == 1 && run[0].raw.chars().nth(1).is_none() {
                    parts = Parts::None;
                }
                (form, start..end + marks)
            })
        }
    };
    Readings {
        parts,
        joined,
        marked,
    }
}

/// Whether a full stop begins a word (`.net`) rather than ending or cutting one.
fn stands_alone(text: &str, stop: usize) -> bool {
    text[..stop]
        .chars()
        .next_back()
        .is_none_or(|c| c.is_whitespace() || matches!(c, '(' | '"' | '/' | ','))
}

/// The length of `+`, `++` or `#` right behind a word and before none.
fn trailing_marks(rest: &str) -> usize {
    let marks = if rest.starts_with('#') {
        1
    } else {
        rest.bytes().take_while(|&b| b == b'+').count()
    };
    let open = rest[marks..]
        .chars()
        .next()
        .is_some_and(|c| is_letter(c) || matches!(c, '+' | '#'));
    if marks > 2 || open { 0 } else { marks }
}

#[cfg(test)]
mod tests;
