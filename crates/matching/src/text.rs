//! Words: the rules that cut a post, a page and a term, and give words a common spelling.
//!
//! The same rules apply to all three, so that a term is found where a person would find it. Cutting takes time and
//! memory linear in the text and never fails.
//!
//! - A **word** is a run of letters and digits with their marks, [`fold()`]ed.
//! - Words joined by one of `- . _ & '` (or `,` between digits) each count separately, and the whole counts as one
//!   **joined** word too: `Wi-Fi` is `wi`, `fi` and `wifi`; `node.js` is `node`, `js` and `nodejs`. Contractions are
//!   only one word (`don't` is `dont`), and `acme's` is both `acme` and `acmes`.
//! - `@acme`, `#acme`, `c++`, `c#`, `disney+` and `.net` are **marked**: the word counts without its mark and with it.
//!   A term with a mark only matches words with the mark. A single letter followed by a mark is only the marked word:
//!   `c++` does not contain `c`.
//! - `&` alone is the word `and`.
//! - In scripts without spaces, and in Hangul, whose particles are attached to the word, every character is a word. A
//!   term of several characters is a phrase, and so matches as a substring.
//! - Words have **places** (positions). Phrases are words in consecutive places. The end of a sentence and an empty
//!   line leave a place free, so that no phrase spans them. A full stop after three letters or fewer counts as an
//!   abbreviation (`Dr. Martens`, `vs. Nike`).

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

/// More connected words than this are a link or a path, and are not joined.
const MAX_JOINED: usize = 4;
/// Longer words are not stemmed: no English word is this long.
const MAX_STEMMED_BYTES: usize = 40;

/// Form of a token in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A single word.
    Word,
    /// One character of a script without spaces.
    Character,
    /// Another reading of words that the text joins: `wifi` for `Wi-Fi`.
    Joined,
    /// Another reading of a word with its mark: `@acme`, `c++`.
    Marked,
}

/// A word of a text, or another reading of one or more words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token<'a> {
    /// The folded form, which is compared.
    pub text: Cow<'a, str>,
    /// The original form in the text.
    pub raw: &'a str,
    /// Byte offset of `raw`.
    pub start: usize,
    /// The place of its first word.
    pub place: u32,
    /// Number of places that it covers.
    pub width: u32,
    pub kind: Kind,
}

/// Returns all tokens of a text, including other readings, by place; a word comes before its other readings.
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

/// Returns only the words, one per place, for counting words.
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

/// Returns the stem of a folded English word (Snowball); returns any other word unchanged.
///
/// Takes about 0.2 µs per word: cache the results for frequent words.
pub fn stem(word: &str) -> Cow<'_, str> {
    let english = (3..=MAX_STEMMED_BYTES).contains(&word.len())
        && word.bytes().all(|b| b.is_ascii_lowercase());
    if english {
        Stemmer::new(Algorithm::English).stem(word)
    } else {
        Cow::Borrowed(word)
    }
}

/// Returns whether the character belongs to a script that is written without spaces between words, or to Hangul.
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

/// Gap between a word and the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gap {
    Start,
    /// No character: a change of script.
    None,
    /// One character that joins words.
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

/// Returns the grapheme cluster at `at`, and its first character.
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

/// Returns the gap between the word `last` and the one that starts at `start`.
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

/// Returns whether the gap between two words ends a sentence or a paragraph.
fn breaks(before: &str, between: &str) -> bool {
    let mut lines = 0;
    let mut stop = None;
    for c in between.chars() {
        match c {
            '\n' => lines += 1,
            '!' | '?' | ';' | ':' | '…' | '|' => stop = Some(c),
            '。' | '！' | '？' | '；' | '．' | '؟' | '۔' | '।' => return true,
            '.' if stop.is_none() => stop = Some('.'),
            // A full stop inside a word, as in a link, ends nothing.
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

/// Returns whether the character between two words joins them: `,` only between digits, and none with a script without
/// spaces.
fn ties(text: &str, last: &Atom<'_>, atom: &Atom<'_>) -> bool {
    let digits = |raw: &str| raw.bytes().all(|b| b.is_ascii_digit());
    !last.spaceless
        && !atom.spaceless
        && (&text[last.end()..atom.start] != "," || (digits(last.raw) && digits(atom.raw)))
}

/// Writes the tokens of joined words, and returns the next free place.
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
    // `and` for a lone ampersand between this word and the one before.
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

/// Returns the byte of an `&` with spaces around it right before the word at `start`.
fn lone_ampersand(text: &str, start: usize) -> Option<usize> {
    let before = text[..start].strip_suffix(' ')?.strip_suffix('&')?;
    before.ends_with(' ').then_some(before.len())
}

/// Words of a run that become tokens, next to the run as a whole.
enum Parts {
    All,
    /// The word without its possessive `'s`.
    First,
    /// Only the whole run is a token: `don't`, `C++`.
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

/// Returns whether a full stop begins a word (`.net`) and does not end or split one.
fn stands_alone(text: &str, stop: usize) -> bool {
    text[..stop]
        .chars()
        .next_back()
        .is_none_or(|c| c.is_whitespace() || matches!(c, '(' | '"' | '/' | ','))
}

/// Returns the length of `+`, `++` or `#` right after a word, if no word follows.
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
