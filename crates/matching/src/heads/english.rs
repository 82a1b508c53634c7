//! A guess at whether a text is English: by its letters, and by its small words.
//!
//! None of these words is longer than eight bytes, so that each is one number, and is found among them in a
//! table of numbers: a few nanoseconds a word, where comparing with each takes a hundred.

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

/// Twice as many places as words, at least.
const PLACES: usize = 256;
const PLACE_BITS: u32 = PLACES.trailing_zeros();

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

/// Of a word of up to eight bytes.
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

fn kind(word: &[u8]) -> Option<Kind> {
    if word.len() > size_of::<u64>() {
        return None;
    }
    let key = number(word);
    let mut at = place(key);
    while let Some((known, kind)) = TABLE[at] {
        if known == key {
            return Some(kind);
        }
        at = (at + 1) % PLACES;
    }
    None
}

#[derive(Default)]
pub(super) struct English {
    small: u32,
    foreign: u32,
    ascii: u32,
    other: u32,
}

impl English {
    /// A word in lower case.
    pub(super) fn add(&mut self, word: &[u8]) {
        if word.is_ascii() {
            let letters = word.iter().filter(|byte| byte.is_ascii_alphabetic());
            self.ascii += u32::try_from(letters.count()).unwrap_or(u32::MAX);
        } else {
            let letters = String::from_utf8_lossy(word);
            for c in letters.chars().filter(|c| c.is_alphabetic()) {
                if c.is_ascii() {
                    self.ascii += 1;
                } else {
                    self.other += 1;
                }
            }
        }
        match kind(word) {
            Some(Kind::Small) => self.small += 1,
            Some(Kind::Foreign) => self.foreign += 1,
            None => {}
        }
    }

    pub(super) fn verdict(&self) -> bool {
        self.other * 3 <= self.ascii && (self.foreign < 2 || self.foreign <= self.small)
    }
}

#[cfg(test)]
mod tests {
    use super::{FOREIGN, Kind, SMALL, kind};

    #[test]
    fn each_word_is_found_as_what_it_is_and_no_other() {
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
