//! A post's words as the index reads them, in buffers that a thread keeps.
//!
//! Nothing is allocated for a post once the buffers have their size. Stems are made when the first
//! tier asks for them; a memo of the commonest words saves the stemmer, which takes 0.2 µs a word.

use super::{phrases::Flavour, terms::number};
use crate::text::{
    self,
    code::Keys,
    scan::{Found, Scan},
};

/// Sets of the memo: 16,384 of four places, a line of the cache each, 1 MB in all. A post has some rare words,
/// and each that is not here costs as much as fifty that are.
const MEMO_BITS: u32 = 14;

#[derive(Debug, Default)]
pub(super) struct Words {
    scan: Scan,
    title: u32,
    stems: Vec<Found>,
    stemmed: bool,
    places: Vec<u32>,
    begun: Vec<(u32, u32)>,
    memo: Vec<Set>,
}

/// The hashes of a word and of its stem. Depends on nothing but the word, and so is never out of date.
#[derive(Debug, Clone, Copy, Default)]
struct Stem {
    /// Zero where there is none.
    word: u64,
    stem: u64,
}

/// Words that share the highest bits. A word moves ahead when it is seen, and the last makes room.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct Set([Stem; 4]);

impl Set {
    /// The hash of the word's stem, from here or by `make`.
    #[inline]
    fn stem(&mut self, word: u64, make: impl FnOnce() -> u64) -> u64 {
        let word = word.max(1);
        let Some(at) = self.0.iter().position(|known| known.word == word) else {
            let stem = make();
            self.0[3] = Stem { word, stem };
            self.0.swap(2, 3);
            return stem;
        };
        let stem = self.0[at].stem;
        if at > 0 {
            self.0.swap(at - 1, at);
        }
        stem
    }
}

impl Words {
    /// The first `title` bytes are the title.
    pub(super) fn read(&mut self, text: &str, title: usize) {
        self.scan.read(text);
        self.title = number(title);
        self.stemmed = false;
    }

    /// Words that start before this byte are the title's.
    pub(super) fn title(&self) -> u32 {
        self.title
    }

    /// How many tokens there are, other readings of words included.
    pub(super) fn count(&self) -> u32 {
        number(self.scan.tokens.len())
    }

    /// How many words the post has.
    pub(super) fn length(&self) -> u32 {
        self.scan.length
    }

    pub(super) fn hashes(&self) -> impl Iterator<Item = u64> {
        // Stems are of the post before, or of none: that they are late by one changes no guess.
        let words = self.scan.tokens.iter().chain(&self.stems);
        words.map(|token| token.hash)
    }

    pub(super) fn flavour(&mut self, stemmed: bool) -> Flavour<'_> {
        if stemmed && !self.stemmed {
            self.stem();
        }
        Flavour {
            tokens: if stemmed {
                &self.stems
            } else {
                &self.scan.tokens
            },
            places: &mut self.places,
            begun: &mut self.begun,
        }
    }

    fn stem(&mut self) {
        let keys = Keys::of_process();
        self.memo.resize(1 << MEMO_BITS, Set::default());
        self.stems.clear();
        for token in &self.scan.tokens {
            let place = token.hash >> (u64::BITS - MEMO_BITS);
            let Some(set) = usize::try_from(place)
                .ok()
                .and_then(|place| self.memo.get_mut(place))
            else {
                continue;
            };
            // Of stems the hash alone is looked at.
            let mut stem = *token;
            stem.hash = set.stem(token.hash, || {
                let form = String::from_utf8_lossy(self.scan.form(token));
                keys.hash(keys.code(text::stem(&form).as_bytes()))
            });
            self.stems.push(stem);
        }
        self.stemmed = true;
    }
}
