//! The words of a post: cut once, hashed, and found again by their hashes.
//!
//! When a post is dropped, the thread keeps its buffers for the next one. Stems are computed on demand; a cache of the
//! commonest words saves the stemmer, which takes 0.2 µs per word.

use std::{cell::Cell, ops::Range, sync::OnceLock};

use crate::text::{
    self,
    code::Keys,
    scan::{Found, Scan},
};

/// Size of the cache: 16,384 sets of four words, one cache line each, 1 MB in all. A post has some rare words, and each
/// miss costs as much as fifty hits.
const MEMO_BITS: u32 = 14;

thread_local! {
    static SCAN: Cell<Option<Scan>> = const { Cell::new(None) };
    static MEMO: Cell<Vec<Set>> = const { Cell::new(Vec::new()) };
}

/// The words, by place; a word comes before its other readings.
#[derive(Debug)]
pub(crate) struct Words {
    scan: Scan,
    stems: OnceLock<Vec<u64>>,
    by_form: OnceLock<ByForm>,
    by_stem: OnceLock<ByForm>,
}

impl Drop for Words {
    fn drop(&mut self) {
        // Fails if the thread is ending; the buffers are then dropped.
        let _ = SCAN.try_with(|kept| kept.set(Some(std::mem::take(&mut self.scan))));
    }
}

impl Words {
    pub(crate) fn of(text: &str) -> Self {
        // Taken out while in use: a panic must not leave a half-used buffer behind.
        let mut scan = SCAN.take().unwrap_or_default();
        scan.read(text);
        Self {
            scan,
            stems: OnceLock::new(),
            by_form: OnceLock::new(),
            by_stem: OnceLock::new(),
        }
    }

    pub(crate) fn tokens(&self) -> &[Found] {
        &self.scan.tokens
    }

    /// Returns the number of words, without other readings.
    pub(crate) fn length(&self) -> u32 {
        self.scan.length
    }

    /// Returns the hashes of the tokens, or of their stems.
    pub(crate) fn hashes(&self, stemmed: bool) -> &[u64] {
        if stemmed {
            self.stems.get_or_init(|| self.stemmed())
        } else {
            &self.scan.hashes
        }
    }

    /// Returns all hashes that were computed so far.
    pub(crate) fn known_hashes(&self) -> impl Iterator<Item = u64> {
        let stems = self.stems.get().into_iter().flatten();
        self.scan.hashes.iter().chain(stems).copied()
    }

    /// Returns the tokens with the hash, ascending.
    pub(crate) fn of_hash(&self, hash: u64, stemmed: bool) -> impl Iterator<Item = usize> {
        let hashes = self.hashes(stemmed);
        let by_form = if stemmed {
            &self.by_stem
        } else {
            &self.by_form
        };
        let by_form = by_form.get_or_init(|| ByForm::new(hashes));
        std::iter::successors(by_form.first(hash, hashes), |&at| by_form.next(at))
    }

    /// Returns the tokens at a place, which must be after the token `at`.
    pub(crate) fn at_place(&self, place: u32, at: usize) -> Range<usize> {
        let tokens = self.tokens();
        let behind = &tokens[at + 1..];
        let begin = at
            + 1
            + behind
                .iter()
                .take_while(|token| token.place < place)
                .count();
        let here = tokens[begin..].iter();
        begin..begin + here.take_while(|token| token.place == place).count()
    }

    /// Returns the byte ranges of all words, in the order of the text, without other readings.
    pub(crate) fn ranges(&self) -> Vec<Range<usize>> {
        let tokens = self.tokens();
        let mut ranges: Vec<Range<usize>> = Vec::with_capacity(tokens.len());
        for here in tokens.chunk_by(|one, next| one.place == next.place) {
            // Of `@acme` and `acme` one counts, always the same.
            let narrow = here.iter().filter(|token| token.width == 1);
            if let Some(token) = narrow.min_by_key(|token| self.scan.form(token)) {
                let range = token.start as usize..token.end as usize;
                if ranges.last().is_none_or(|last| last.end <= range.start) {
                    ranges.push(range);
                }
            }
        }
        ranges
    }

    fn stemmed(&self) -> Vec<u64> {
        let keys = Keys::of_process();
        let mut memo = MEMO.take();
        memo.resize(1 << MEMO_BITS, Set::default());
        let words = self.scan.hashes.iter().zip(self.tokens());
        let stem = |(&hash, token)| {
            let make = || {
                let form = String::from_utf8_lossy(self.scan.form(token));
                keys.hash(keys.code(text::stem(&form).as_bytes()))
            };
            let place = usize::try_from(hash >> (u64::BITS - MEMO_BITS)).ok();
            match place.and_then(|place| memo.get_mut(place)) {
                Some(set) => set.stem(hash, make),
                None => make(),
            }
        };
        let stems = words.map(stem).collect();
        MEMO.set(memo);
        stems
    }
}

/// The hashes of a word and of its stem. They depend only on the word, so they are never out of date.
#[derive(Debug, Clone, Copy, Default)]
struct Stem {
    /// Hash of the word; zero in a free entry.
    word: u64,
    stem: u64,
}

/// Words with the same highest bits. A word that is seen moves ahead, and the last is replaced.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct Set([Stem; 4]);

impl Set {
    /// Returns the hash of the word's stem, from the cache or from `make`.
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

/// Finds the tokens with a hash: a table of the first token of each hash, and a link from each token to the next.
#[derive(Debug)]
struct ByForm {
    /// First tokens. The length is a power of two, and at least half of the slots are free.
    first: Vec<u32>,
    next: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl ByForm {
    fn new(hashes: &[u64]) -> Self {
        let places = (2 * hashes.len()).next_power_of_two();
        let mut by_form = Self {
            first: vec![NONE; places],
            next: vec![NONE; hashes.len()],
        };
        let numbers = 0..u32::try_from(hashes.len()).unwrap_or(NONE);
        for (number, &hash) in numbers.zip(hashes).rev() {
            let place = by_form.place(hash, hashes);
            let first = std::mem::replace(&mut by_form.first[place], number);
            by_form.next[number as usize] = first;
        }
        by_form
    }

    /// Returns the slot of the first token with the hash, or the free slot for it. The hashes are secret, so an
    /// attacker cannot cause collisions.
    fn place(&self, hash: u64, hashes: &[u64]) -> usize {
        let last = self.first.len() - 1;
        let mut place = usize::try_from(hash & last as u64).unwrap_or_default();
        while self.first[place] != NONE && hashes[self.first[place] as usize] != hash {
            place = (place + 1) & last;
        }
        place
    }

    fn first(&self, hash: u64, hashes: &[u64]) -> Option<usize> {
        index(self.first[self.place(hash, hashes)])
    }

    fn next(&self, at: usize) -> Option<usize> {
        index(self.next[at])
    }
}

fn index(number: u32) -> Option<usize> {
    (number != NONE).then_some(number as usize)
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use proptest::prelude::*;

    use super::Words;
    use crate::text::{self, code::Keys};

    /// Returns the narrow tokens of each place by their forms, without overlapping ones.
    fn ranges(text: &str) -> Vec<Range<usize>> {
        let mut tokens = text::tokens(text);
        tokens.retain(|token| token.width == 1);
        tokens.sort_by(|a, b| (a.place, &a.text).cmp(&(b.place, &b.text)));
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for token in tokens {
            if ranges.last().is_none_or(|last| last.end <= token.start) {
                ranges.push(token.start..token.start + token.raw.len());
            }
        }
        ranges
    }

    fn compare(text: &str) {
        let words = Words::of(text);
        assert_eq!(words.ranges(), ranges(text), "{text:?}");
        let keys = Keys::of_process();
        let mut tokens = text::tokens(text);
        tokens.sort_by_key(|token| token.place);
        let stem = |form: &str| keys.hash(keys.code(text::stem(form).as_bytes()));
        let stems: Vec<u64> = tokens.iter().map(|token| stem(&token.text)).collect();
        assert_eq!(words.hashes(true), stems, "{text:?}");
        for stemmed in [false, true] {
            let hashes = words.hashes(stemmed);
            for &hash in hashes {
                let expected = (0..hashes.len()).filter(|&at| hashes[at] == hash);
                assert!(words.of_hash(hash, stemmed).eq(expected), "{text:?}");
            }
            assert_eq!(words.of_hash(7, stemmed).next(), None);
        }
    }

    #[test]
    fn marked_and_joined_words_are_one_range() {
        for text in [
            "",
            "@acme acme's #a-b c++ .net",
            "Wi-Fi, don't; AT&T a & b 東京タワー @東",
        ] {
            compare(text);
        }
    }

    #[test]
    fn every_token_of_a_post_of_one_word_is_found() {
        let words = Words::of(&"bikes ".repeat(1_000));
        for stemmed in [false, true] {
            let hash = words.hashes(stemmed)[0];
            assert!(words.of_hash(hash, stemmed).eq(0..1_000));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn words_are_those_of_the_tokens(text in "(\\PC|[ .'@#+&,_-]|[a-zA-Z0-9]{1,9}|bik(e|es|ing)|한|é|e\u{301}|\u{ad}|[\n.?!] | & |n't|'s){0,60}") {
            compare(&text);
        }
    }
}
