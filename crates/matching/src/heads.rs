//! Three linear classifiers of what a post is about to do: buy, compare, complain.
//!
//! Each is a sum of weights of the words and word pairs that occur, by hash; those of the title, or of
//! the opening where there is none, count once more in places of their own. A post is asked once,
//! whatever the number of plans, and only when a plan with a focus wants to know: one pass over its
//! first words, a few microseconds.
//!
//! The classifiers know English alone. Of a post that is not, they say what they say of most posts, and
//! the lexicon decides.

use std::sync::LazyLock;

use domain::Focus;

use crate::model_file::ModelFile;

/// Words and word pairs share this many places, as a power of two.
pub const BUCKET_BITS: u32 = 16;
const BUCKETS: usize = 1 << BUCKET_BITS;
/// What stands further behind says little about what the author wants.
const MAX_WORDS: usize = 160;
/// What opens a post without a title.
const OPENING_WORDS: usize = 20;

/// A classifier's answer is kept within these, so that none decides alone; told from the lowest on.
const LOWEST: f64 = -4.0;
const HIGHEST: f64 = 2.0;
/// The largest answer, as [`answer`] tells it.
pub(crate) const MAX_ANSWER: f64 = HIGHEST - LOWEST;
/// What most posts get: too little to match by topic or name alone, and the lexicon may add to it.
const UNDECIDED: f64 = 2.5;

/// What is compiled in; a test holds that it can be read.
static MODEL: LazyLock<ModelFile> =
    LazyLock::new(|| ModelFile::parse(include_bytes!("../model/model.bin")).unwrap_or_default());

pub(crate) fn model() -> &'static ModelFile {
    &MODEL
}

/// A trained classifier.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Head {
    pub intercept: f64,
    /// What a weight of 1 stands for.
    pub scale: f64,
    /// By bucket.
    pub weights: Vec<i8>,
}

impl Head {
    /// The logit of the post being of the kind.
    #[must_use]
    pub fn logit(&self, features: &HeadFeatures) -> f64 {
        let weight = |bucket: &u32| self.weights.get(*bucket as usize).copied().unwrap_or(0);
        let sum: i32 = features.buckets.iter().map(|b| i32::from(weight(b))).sum();
        self.intercept + self.scale * f64::from(sum) * features.value()
    }
}

/// What the classifiers see of a post.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadFeatures {
    /// Distinct, in the order of their first occurrence.
    pub buckets: Vec<u32>,
    english: bool,
}

impl HeadFeatures {
    #[must_use]
    pub fn of(title: &str, text: &str) -> Self {
        let mut seen = Seen::default();
        let mut count = 0;
        let mut english = English::default();
        let mut pass = |part: &str, opening: usize, seen: &mut Seen| {
            let mut before = None;
            words(part, |word| {
                english.add(word);
                let body = hash(word, 0);
                seen.add(body);
                let opens = before.is_none_or(|(at, _)| at < opening);
                let at = before.map_or(0, |(at, _)| at) + 1;
                if opens && opening > 0 {
                    seen.add(hash(word, 1));
                }
                if let Some((_, pair)) = before {
                    let pair = mix(pair, body);
                    seen.add(pair);
                    if opens && opening > 0 {
                        seen.add(mix(pair, 1));
                    }
                }
                before = Some((at, body));
                count += 1;
                count < MAX_WORDS
            });
        };
        let titled = !title.trim().is_empty();
        pass(title, MAX_WORDS, &mut seen);
        pass(text, if titled { 0 } else { OPENING_WORDS }, &mut seen);
        Self {
            buckets: seen.buckets,
            english: english.verdict(),
        }
    }

    /// What each feature counts: a long post is no stronger for its length.
    #[must_use]
    pub fn value(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
        let count = self.buckets.len().max(1) as f64;
        1.0 / count.sqrt()
    }

    /// The classifier's answer within its bounds, from 0 on.
    #[must_use]
    pub fn answer(&self, logit: f64) -> f64 {
        if self.english {
            logit.clamp(LOWEST, HIGHEST) - LOWEST
        } else {
            UNDECIDED
        }
    }
}

/// The answers of the three classifiers, by `Focus as usize`.
pub(crate) fn answers(title: &str, text: &str) -> [f64; Focus::ALL.len()] {
    let features = HeadFeatures::of(title, text);
    let mut answers = [0.0; Focus::ALL.len()];
    for (answer, head) in answers.iter_mut().zip(&model().heads) {
        *answer = features.answer(head.logit(&features));
    }
    answers
}

/// Buckets, each once.
struct Seen {
    bits: Vec<u64>,
    buckets: Vec<u32>,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            bits: vec![0; BUCKETS / 64],
            buckets: Vec::with_capacity(4 * MAX_WORDS),
        }
    }
}

impl Seen {
    fn add(&mut self, hash: u64) {
        let bucket = (hash >> (64 - BUCKET_BITS)) as u32;
        let bit = 1 << (bucket % 64);
        let word = &mut self.bits[bucket as usize / 64];
        if *word & bit == 0 {
            *word |= bit;
            self.buckets.push(bucket);
        }
    }
}

/// FNV-1a, then mixed so that the highest bits depend on all.
fn hash(word: &str, seed: u64) -> u64 {
    let folded = word.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    mix(folded, seed)
}

fn mix(a: u64, b: u64) -> u64 {
    let mixed = (a.rotate_left(23) ^ b).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// Tells `found` each word in lower case, for as long as it answers true. Addresses are one word,
/// numbers another, handles none: who is addressed says nothing about what is meant.
fn words(text: &str, mut found: impl FnMut(&str) -> bool) {
    let mut word = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let next = if first.is_alphanumeric() {
            let end = end_of_word(rest);
            let (raw, behind) = rest.split_at(end);
            word.clear();
            if is_address(raw, behind) {
                word.push_str("urlurl");
                rest = &rest[rest.find(char::is_whitespace).unwrap_or(rest.len())..];
            } else {
                if first.is_numeric() {
                    word.push('0');
                } else {
                    lower(raw, &mut word);
                }
                rest = behind;
            }
            Some(word.as_str())
        } else {
            rest = &rest[first.len_utf8()..];
            match first {
                '@' => {
                    let handle = |c: char| !(c.is_alphanumeric() || c == '_');
                    rest = &rest[rest.find(handle).unwrap_or(rest.len())..];
                    None
                }
                '?' => Some("?"),
                '!' => Some("!"),
                '$' => Some("$"),
                _ => None,
            }
        };
        if next.is_some_and(|word| !found(word)) {
            return;
        }
    }
}

fn lower(raw: &str, word: &mut String) {
    if raw.is_ascii() {
        word.push_str(raw);
        word.make_ascii_lowercase();
    } else {
        let plain = raw.chars().map(|c| if c == '’' { '\'' } else { c });
        word.extend(plain.flat_map(char::to_lowercase));
    }
}

/// Letters and digits, and an apostrophe between them.
fn end_of_word(text: &str) -> usize {
    ascii_end(text.as_bytes()).unwrap_or_else(|| any_end(text))
}

/// The same where nothing but ASCII decides.
fn ascii_end(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match (text.get(at), text.get(at + 1)) {
            (Some(byte), _) if byte.is_ascii_alphanumeric() => at += 1,
            (Some(b'\''), Some(next)) if next.is_ascii_alphanumeric() => at += 1,
            (Some(b'\''), Some(next)) if !next.is_ascii() => return None,
            (Some(byte), _) if !byte.is_ascii() => return None,
            _ => return Some(at),
        }
    }
}

fn any_end(text: &str) -> usize {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let inner =
            matches!(c, '\'' | '’') && chars.peek().is_some_and(|(_, next)| next.is_alphanumeric());
        if !c.is_alphanumeric() && !inner {
            return at;
        }
    }
    text.len()
}

fn is_address(word: &str, behind: &str) -> bool {
    (matches!(word, "http" | "https" | "HTTP" | "HTTPS") && behind.starts_with("://"))
        || (word.eq_ignore_ascii_case("www") && behind.starts_with('.'))
}

/// A guess at whether a text is English: by its letters, and by its small words.
#[derive(Default)]
struct English {
    small: u32,
    foreign: u32,
    ascii: u32,
    other: u32,
}

/// Small words of languages written like English that English does not have.
fn is_foreign(word: &str) -> bool {
    matches!(
        word,
        "der"
            | "das"
            | "den"
            | "dem"
            | "und"
            | "ist"
            | "nicht"
            | "ein"
            | "eine"
            | "einen"
            | "ich"
            | "für"
            | "mit"
            | "auf"
            | "wir"
            | "sich"
            | "auch"
            | "kann"
            | "jemand"
            | "von"
            | "zu"
            | "le"
            | "les"
            | "des"
            | "une"
            | "est"
            | "pas"
            | "je"
            | "vous"
            | "pour"
            | "avec"
            | "dans"
            | "que"
            | "qui"
            | "el"
            | "los"
            | "las"
            | "una"
            | "para"
            | "con"
            | "por"
            | "es"
            | "il"
            | "che"
            | "per"
            | "sono"
            | "della"
            | "het"
            | "een"
            | "niet"
            | "ik"
            | "voor"
            | "och"
            | "är"
            | "som"
            | "att"
            | "mam"
            | "nie"
            | "jest"
    )
}

/// Small words of English.
fn is_small(word: &str) -> bool {
    matches!(
        word,
        "the"
            | "and"
            | "is"
            | "of"
            | "to"
            | "for"
            | "it"
            | "you"
            | "i"
            | "my"
            | "with"
            | "this"
            | "that"
            | "have"
            | "be"
            | "are"
            | "not"
            | "but"
            | "or"
            | "if"
            | "at"
            | "can"
            | "what"
            | "any"
            | "your"
            | "i'm"
            | "it's"
            | "don't"
            | "we"
            | "they"
            | "he"
            | "she"
            | "from"
            | "how"
            | "which"
            | "who"
            | "why"
            | "when"
            | "there"
            | "been"
            | "has"
            | "had"
            | "would"
            | "should"
            | "just"
            | "get"
            | "out"
            | "up"
            | "about"
            | "some"
            | "do"
            | "does"
            | "by"
            | "their"
            | "our"
            | "us"
            | "anyone"
            | "good"
            | "need"
            | "new"
            | "never"
            | "after"
    )
}

impl English {
    fn add(&mut self, word: &str) {
        for c in word.chars().filter(|c| c.is_alphabetic()) {
            if c.is_ascii() {
                self.ascii += 1;
            } else {
                self.other += 1;
            }
        }
        self.small += u32::from(is_small(word));
        self.foreign += u32::from(is_foreign(word));
    }

    fn verdict(&self) -> bool {
        self.other * 3 <= self.ascii && (self.foreign < 2 || self.foreign <= self.small)
    }
}

#[cfg(test)]
mod tests {
    use domain::Focus;

    use super::{HeadFeatures, UNDECIDED, answers, model, words};
    use crate::model_file::ModelFile;

    #[test]
    fn the_model_that_is_shipped_can_be_read() {
        let parsed = ModelFile::parse(include_bytes!("../model/model.bin"));
        assert_eq!(parsed.as_ref(), Some(model()));
        assert!(model().heads.iter().all(|head| head.scale > 0.0));
    }

    #[test]
    fn addresses_numbers_and_handles_are_not_words() {
        let mut found = Vec::new();
        words(
            "@acme: Don’t pay $45.90! https://a.example/x?y=z WWW.b.example ok Größe…",
            |word| {
                found.push(word.to_owned());
                true
            },
        );
        let expected = [
            "don't", "pay", "$", "0", "0", "!", "urlurl", "urlurl", "ok", "größe",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_wanted_is_told_apart() {
        let of = |text: &str| answers("", text);
        let buys = of("Can anyone recommend a good dishwasher? Looking to buy one this week.");
        let compares = of("The Corvo is way better than the Lynx, I switched and it is faster.");
        let angry = of("Worst service ever. Three weeks and still no refund, nobody answers.");
        for (focus, best) in [
            (Focus::Sales, buys),
            (Focus::Competitor, compares),
            (Focus::Crisis, angry),
        ] {
            for other in [buys, compares, angry] {
                assert!(other[focus as usize] <= best[focus as usize], "{focus:?}");
            }
        }
    }

    #[test]
    fn other_languages_are_neither_for_nor_against() {
        for text in [
            "Kann jemand eine gute Maschine empfehlen? Suche etwas Kleines.",
            "Je cherche une bonne machine pour la maison, des conseils ?",
            "おすすめのエスプレッソマシンを教えてください",
            "أبحث عن آلة قهوة جيدة للمنزل",
        ] {
            assert_eq!(answers("", text), [UNDECIDED; 3], "{text}");
        }
        for text in [
            "I love it",
            "Los Angeles flight late, que sera sera, what a day for us",
        ] {
            assert_ne!(answers("", text)[2], UNDECIDED, "{text}");
        }
    }

    #[test]
    fn hostile_posts_cost_a_bounded_number_of_words() {
        let long = "ab ".repeat(1_000_000);
        assert!(HeadFeatures::of(&long, &long).buckets.len() < 640);
        assert!(HeadFeatures::of("", "").buckets.is_empty());
        assert_eq!(HeadFeatures::of("", &"'’'@@@".repeat(999)).buckets.len(), 0);
    }

    proptest::proptest! {
        #[test]
        fn words_end_alike_with_and_without_the_short_cut(text in "([a-zA-Z0-9']|é|’|\\PC| ){0,12}") {
            let any = super::any_end(&text);
            proptest::prop_assert!(super::ascii_end(text.as_bytes()).is_none_or(|end| end == any));
            proptest::prop_assert_eq!(super::end_of_word(&text), any);
        }
    }
}
