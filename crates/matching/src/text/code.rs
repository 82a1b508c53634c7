//! Words as numbers of 128 bits, which the index compares instead of strings.
//!
//! A word of up to 15 bytes is its own code, so two codes are equal only if the words are. A longer word is hashed with
//! random keys of the process, so that an attacker cannot cause collisions. An accidental collision is less likely than
//! a hardware error.

use std::{
    hash::{BuildHasher, RandomState},
    sync::LazyLock,
};

/// Maximum length of a word that is its own code, in bytes.
const SHORT: usize = 15;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Code(u128);

/// Random hash keys, chosen when the process starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keys([u64; 4]);

impl Keys {
    pub(crate) fn of_process() -> Self {
        static KEYS: LazyLock<Keys> = LazyLock::new(|| {
            let random = RandomState::new();
            Keys([0_u8, 1, 2, 3].map(|nth| random.hash_one(nth)))
        });
        *KEYS
    }

    #[inline]
    pub(crate) fn code(&self, word: &[u8]) -> Code {
        if word.len() <= SHORT {
            return Code::short(short(word), word.len());
        }
        self.long(word)
    }

    /// Returns the code of `text[start..end]`; at least 16 bytes must follow `start`.
    #[inline]
    pub(super) fn code_within(&self, text: &[u8], start: usize, end: usize) -> Code {
        let length = end - start;
        match text[start..].first_chunk::<16>() {
            Some(bytes) if length <= SHORT => {
                let kept = (1_u128 << (8 * length)) - 1;
                Code::short(u128::from_le_bytes(*bytes) & kept, length)
            }
            _ => self.code(&text[start..end]),
        }
    }

    /// Returns the table hash of a code, evenly distributed.
    #[inline]
    pub(crate) fn hash(&self, code: Code) -> u64 {
        let [low, high] = code.halves();
        fold(low ^ self.0[0], high ^ self.0[1])
    }

    /// The same for a hash and a number.
    #[inline]
    pub(crate) fn hash_pair(&self, hash: u64, number: u64) -> u64 {
        fold(hash ^ self.0[2], number ^ self.0[3])
    }

    #[cold]
    fn long(&self, word: &[u8]) -> Code {
        let (mut one, mut other) = (self.0[0] ^ word.len() as u64, self.0[3]);
        for chunk in word.chunks(16) {
            let mut bytes = [0; 16];
            bytes[..chunk.len()].copy_from_slice(chunk);
            let [low, high] = Code(u128::from_le_bytes(bytes)).halves();
            one = fold(one ^ low ^ self.0[1], high ^ self.0[2]);
            other = fold(other ^ high ^ self.0[0], low ^ self.0[1]) ^ one.rotate_left(32);
        }
        let joined = (u128::from(one) << 64) | u128::from(other);
        Code(joined | (0xff << 120))
    }
}

impl Code {
    fn short(bytes: u128, length: usize) -> Self {
        Self(bytes | ((length as u128) << 120))
    }

    #[expect(clippy::cast_possible_truncation, reason = "halves")]
    fn halves(self) -> [u64; 2] {
        [self.0 as u64, (self.0 >> 64) as u64]
    }
}

/// Returns up to 15 bytes as a number, with the first byte lowest. Reads from both ends, which may overlap, to avoid a
/// copy byte by byte.
#[inline]
fn short(word: &[u8]) -> u128 {
    let length = word.len();
    if let (Some(first), Some(last)) = (word.first_chunk(), word.last_chunk()) {
        let last = u128::from(u64::from_le_bytes(*last));
        return u128::from(u64::from_le_bytes(*first)) | (last << (8 * (length - 8)));
    }
    if let (Some(first), Some(last)) = (word.first_chunk(), word.last_chunk()) {
        let last = u128::from(u32::from_le_bytes(*last));
        return u128::from(u32::from_le_bytes(*first)) | (last << (8 * (length - 4)));
    }
    let bytes = (0..).step_by(8).zip(word);
    bytes.fold(0, |all, (at, &byte)| all | (u128::from(byte) << at))
}

/// Multiplies to 128 bits and folds the halves: fast, and as secure as its secret keys.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "halves")]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::Keys;

    #[test]
    fn different_words_have_different_codes() {
        let keys = Keys::of_process();
        let long = "a".repeat(100);
        let words = (1..=100).map(|length| &long[..length]);
        let codes: BTreeSet<_> = words
            .chain([
                "b",
                "ab",
                "東",
                "東京",
                "aaaaaaaaaaaaaaab",
                "baaaaaaaaaaaaaaa",
            ])
            .map(|word| keys.code(word.as_bytes()))
            .collect();
        assert_eq!(codes.len(), 106);
    }

    #[test]
    fn word_has_the_same_code_at_every_position() {
        let keys = Keys::of_process();
        let text = "some words, and averyverylongword, a"
            .bytes()
            .chain([0; 16])
            .collect::<Vec<_>>();
        for (start, end) in [
            (0, 4),
            (5, 10),
            (12, 15),
            (16, 33),
            (35, 36),
            (5, 20),
            (5, 21),
        ] {
            assert_eq!(
                keys.code_within(&text, start, end),
                keys.code(&text[start..end])
            );
        }
    }
}
