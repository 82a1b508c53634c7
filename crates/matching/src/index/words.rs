//! A post's words as the index reads them, in buffers that a thread keeps.
//!
//! Nothing is allocated for a post once the buffers have their size. Stems are made when the first
//! tier asks for them; a memo of the commonest words saves the stemmer, which takes 0.2 µs a word.

use super::{phrases::Flavour, terms::number};
use crate::text::{
    self,
    code::{Code, Keys},
    scan::{Found, Scan},
};

/// Places of the memo: 65,536 of 32 bytes. A post has some rare words, and each that is not here costs as much as
/// fifty that are.
const MEMO_BITS: u32 = 16;

#[derive(Debug, Default)]
pub(super) struct Words {
    scan: Scan,
    title: u32,
    stems: Vec<Found>,
    stemmed: bool,
    places: Vec<u32>,
    begun: Vec<(u32, u32)>,
    memo: Vec<Stem>,
}

/// A word and the hash of its stem. Depends on nothing but the word, and so is never out of date.
#[derive(Debug, Clone, Copy, Default)]
struct Stem {
    word: Code,
    hash: u64,
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
        self.memo.resize(1 << MEMO_BITS, Stem::default());
        self.stems.clear();
        for token in &self.scan.tokens {
            let place = token.hash >> (u64::BITS - MEMO_BITS);
            let Some(known) = usize::try_from(place)
                .ok()
                .and_then(|place| self.memo.get_mut(place))
            else {
                continue;
            };
            if known.word != token.code {
                let form = String::from_utf8_lossy(self.scan.form(token));
                let stem = keys.code(text::stem(&form).as_bytes());
                *known = Stem {
                    word: token.code,
                    hash: keys.hash(stem),
                };
            }
            // Of stems the hash alone is looked at.
            let mut stem = *token;
            stem.hash = known.hash;
            self.stems.push(stem);
        }
        self.stemmed = true;
    }
}
