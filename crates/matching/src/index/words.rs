//! A post's words as the index reads them, in buffers that a thread keeps.
//!
//! Nothing is allocated for a post once the buffers have their size. Stems are made when the first
//! tier asks for them; a memo of the commonest words saves the stemmer, which takes 0.2 µs a word.

use super::{
    phrases::{Flavour, Token},
    terms::number,
};
use crate::text::{
    self,
    code::{Code, Keys},
    scan::Scan,
};

/// Places of the memo: 8,192 of 48 bytes.
const MEMO_BITS: u32 = 13;

#[derive(Debug, Default)]
pub(super) struct Words {
    scan: Scan,
    title: u32,
    exact: Vec<Token>,
    stems: Vec<Token>,
    stemmed: bool,
    ids: Vec<u32>,
    begun: Vec<(u32, u32)>,
    memo: Vec<Stem>,
}

/// A word and its stem. Depends on nothing but the word, and so is never out of date.
#[derive(Debug, Clone, Copy, Default)]
struct Stem {
    word: Code,
    stem: Code,
    hash: u64,
}

impl Words {
    /// The first `title` bytes are the title.
    pub(super) fn read(&mut self, text: &str, title: usize) {
        self.scan.read(text);
        self.title = number(title);
        self.stemmed = false;
        self.exact.clear();
        self.exact
            .extend(self.scan.tokens.iter().map(|found| Token {
                code: found.code,
                hash: found.hash,
                place: found.place,
                width: found.width,
                start: found.start,
            }));
    }

    /// Words that start before this byte are the title's.
    pub(super) fn title(&self) -> u32 {
        self.title
    }

    /// How many tokens there are, other readings of words included.
    pub(super) fn count(&self) -> u32 {
        number(self.exact.len())
    }

    /// How many words the post has.
    pub(super) fn length(&self) -> u32 {
        self.scan.length
    }

    pub(super) fn flavour(&mut self, stemmed: bool) -> Flavour<'_> {
        if stemmed && !self.stemmed {
            self.stem();
        }
        Flavour {
            tokens: if stemmed { &self.stems } else { &self.exact },
            ids: &mut self.ids,
            begun: &mut self.begun,
        }
    }

    fn stem(&mut self) {
        let keys = Keys::of_process();
        self.memo.resize(1 << MEMO_BITS, Stem::default());
        self.stems.clear();
        for (token, found) in self.exact.iter().zip(&self.scan.tokens) {
            let place = token.hash >> (u64::BITS - MEMO_BITS);
            let Some(known) = usize::try_from(place)
                .ok()
                .and_then(|place| self.memo.get_mut(place))
            else {
                continue;
            };
            if known.word != token.code {
                let form = String::from_utf8_lossy(self.scan.form(found));
                let stem = keys.code(text::stem(&form).as_bytes());
                *known = Stem {
                    word: token.code,
                    stem,
                    hash: keys.hash(stem),
                };
            }
            self.stems.push(Token {
                code: known.stem,
                hash: known.hash,
                ..*token
            });
        }
        self.stemmed = true;
    }
}
