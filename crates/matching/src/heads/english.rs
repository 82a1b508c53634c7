//! A guess whether a text is English: by its letters, and by its small words.
//!
//! None of these words is longer than eight bytes, so each is one number. A table of these numbers finds a word in a
//! few nanoseconds; comparing with each word takes a hundred.

/// Small words of languages written like English that English does not have.
const FOREIGN: [&str; 59] = [
    "der", "das", "den", "dem", "und", "ist", "nicht", "ein", "eine", "einen", "ich", "für", "mit",
    "auf", "wir", "sich", "auch", "kann", "jemand", "von", "zu", "le", "les", "des", "une", "est",
    "pas", "je", "vous", "pour", "avec", "dans", "que", "qui", "el", "los", "las", "una", "para",
    "con", "por", "es", "il", "che", "per", "sono", "della", "het", "een", "niet", "ik", "voor",
    "och", "är", "som", "att", "mam", "nie", "jest",
];

/// Small words of English.
const SMALL: [&str; 62] = [
    "the", "and", "is", "of", "to", "for", "it", "you", "i", "my", "with", "this", "that", "have",
    "be", "are", "not", "but", "or", "if", "at", "can", "what", "any", "your", "i'm", "it's",
    "don't", "we", "they", "he", "she", "from", "how", "which", "who", "why", "when", "there",
    "been", "has", "had", "would", "should", "just", "get", "out", "up", "about", "some", "do",
    "does", "by", "their", "our", "us", "anyone", "good", "need", "new", "never", "after",
];

/// Size of the table: at least twice the number of words.
const PLACES: usize = 256;
const PLACE_BITS: u32 = PLACES.trailing_zeros();

/// Masks for a number of eight bytes: bytes that are not ASCII, and bytes that are letters. Among the characters of a
/// lower-case word, only letters have that bit.
const HIGH: u64 = 0x8080_8080_8080_8080;
const LETTER: u64 = 0x4040_4040_4040_4040;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Foreign,
    Small,
}

static TABLE: [Option<(u64, Kind)>; PLACES] = table();

const fn table() -> [Option<(u64, Kind)>; PLACES] {
    let mut table = [None; PLACES];
    let mut nth = 0;
    while nth < FOREIGN.len() + SMALL.len() {
        let (word, kind) = if nth < FOREIGN.len() {
            (FOREIGN[nth], Kind::Foreign)
        } else {
            (SMALL[nth - FOREIGN.len()], Kind::Small)
        };
        let key = number(word.as_bytes());
        let mut at = place(key);
        while table[at].is_some() {
            at = (at + 1) % PLACES;
        }
        table[at] = Some((key, kind));
        nth += 1;
    }
    table
}

/// Returns a word of up to eight bytes as a number.
const fn number(word: &[u8]) -> u64 {
    let mut number = 0;
    let mut at = word.len();
    while at > 0 {
        at -= 1;
        number = (number << 8) | word[at] as u64;
    }
    number
}

const fn place(key: u64) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - PLACE_BITS)) as usize
}

/// The same without a loop: the processor would mispredict where the loop ends.
#[inline]
fn number_at_once(word: &[u8]) -> Option<u64> {
    let length = word.len();
    if length > size_of::<u64>() {
        return None;
    }
    if let (Some(head), Some(tail)) = (word.first_chunk(), word.last_chunk()) {
        let [head, tail] = [head, tail].map(|part: &[u8; 4]| u64::from(u32::from_le_bytes(*part)));
        return Some(head | (tail << (8 * (length - 4))));
    }
    let byte = |at: usize| word.get(at).map_or(0, |&byte| u64::from(byte) << (8 * at));
    Some(byte(0) | byte(1) | byte(2))
}

fn kind_of(key: u64) -> Option<Kind> {
    let mut at = place(key);
    while let Some((known, kind)) = TABLE[at] {
        if known == key {
            return Some(kind);
        }
        at = (at + 1) % PLACES;
    }
    None
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct English {
    small: u32,
    foreign: u32,
    ascii: u32,
    other: u32,
}

impl English {
    /// Counts a word, given in lower case.
    #[inline]
    pub(super) fn add(&mut self, word: &[u8]) {
        match number_at_once(word) {
            Some(key) if key & HIGH == 0 => self.ascii += (key & LETTER).count_ones(),
            _ => self.add_long(word),
        }
        match number_at_once(word).and_then(kind_of) {
            Some(Kind::Small) => self.small += 1,
            Some(Kind::Foreign) => self.foreign += 1,
            None => {}
        }
    }

    fn add_long(&mut self, word: &[u8]) {
        if word.is_ascii() {
            let letters = word.iter().filter(|byte| byte.is_ascii_alphabetic());
            self.ascii += u32::try_from(letters.count()).unwrap_or(u32::MAX);
            return;
        }
        let letters = String::from_utf8_lossy(word);
        for c in letters.chars().filter(|c| c.is_alphabetic()) {
            if c.is_ascii() {
                self.ascii += 1;
            } else {
                self.other += 1;
            }
        }
    }

    /// Works like [`Self::verdict`]; `None` where the small words do not decide.
    pub(super) fn guess(&self) -> Option<bool> {
        let plain = self.foreign == 0 && self.other == 0;
        match self.verdict() {
            true if plain || self.small > self.foreign => Some(true),
            true => None,
            false => Some(false),
        }
    }

    pub(super) fn verdict(&self) -> bool {
        self.other * 3 <= self.ascii && (self.foreign < 2 || self.foreign <= self.small)
    }
}

#[cfg(test)]
mod tests {
    use super::{English, FOREIGN, Kind, SMALL, kind_of, number, number_at_once};

    fn kind(word: &[u8]) -> Option<Kind> {
        let key = number_at_once(word)?;
        assert_eq!(key, number(word));
        kind_of(key)
    }

    #[test]
    fn block_and_single_letter_counts_are_equal() {
        for word in [
            "", "a", "it's", "?", "!", "$", "0", "b2b", "urlurl", "12345678", "abcdefgh",
        ] {
            let [mut one, mut other] = [English::default(), English::default()];
            one.add(word.as_bytes());
            other.add_long(word.as_bytes());
            assert_eq!((one.ascii, one.other), (other.ascii, other.other), "{word}");
        }
    }

    #[test]
    fn small_word_table_finds_exactly_its_words() {
        for word in FOREIGN.iter().chain(&SMALL) {
            assert!(word.len() <= 8, "{word}");
        }
        for word in FOREIGN {
            assert!(kind(word.as_bytes()) == Some(Kind::Foreign), "{word}");
        }
        for word in SMALL {
            assert!(kind(word.as_bytes()) == Some(Kind::Small), "{word}");
        }
        for word in [
            "",
            "th",
            "them",
            "thee",
            "a",
            "zz",
            "?",
            "shoulders",
            "shoulder",
        ] {
            assert!(kind(word.as_bytes()).is_none(), "{word}");
        }
    }
}
