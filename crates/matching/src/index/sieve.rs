//! Bit filters for the first words of the keys of a feed's plans: a few bits per word, which stay in the nearest cache.
//!
//! Most posts concern no plan of their feed, and most of a post's words begin no key. One bit per word shows this.
//! Otherwise each word would need a lookup beyond the cache, among the words of all plans of all feeds.

use super::number::number;

/// Bits per word: at most one in this many words that begin no key passes the filter.
const BITS_A_WORD: usize = 16;
const MAX_BITS: usize = 1 << 22;
const WORD: usize = 64;

#[derive(Debug, Default)]
pub(super) struct SieveList {
    bits: Vec<u64>,
    /// Start of each filter, and the end of the last.
    begins: Vec<u32>,
}

/// Filter of one feed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sieve<'a>(&'a [u64]);

impl SieveList {
    /// Adds a filter for words by their hashes; at most `most` hashes are distinct.
    pub(super) fn push(&mut self, most: usize, hashes: impl Iterator<Item = u64>) {
        let begin = self.bits.len();
        self.begins.push(number(begin));
        let bits = (most * BITS_A_WORD).clamp(WORD, MAX_BITS);
        self.bits.resize(begin + bits.next_power_of_two() / WORD, 0);
        let own = &mut self.bits[begin..];
        let mut set = 0;
        for hash in hashes {
            let (at, bit) = place(hash, own.len());
            set += usize::from(own[at] & bit == 0);
            own[at] |= bit;
        }
        // Many keys begin with the same word.
        let mut length = own.len();
        while length > 1 && length / 2 * WORD >= set * BITS_A_WORD {
            length /= 2;
            let (kept, folded) = own[..length * 2].split_at_mut(length);
            for (kept, folded) in kept.iter_mut().zip(folded) {
                *kept |= *folded;
            }
        }
        self.bits.truncate(begin + length);
    }

    pub(super) fn finish(&mut self) {
        self.begins.push(number(self.bits.len()));
        self.bits.shrink_to_fit();
        self.begins.shrink_to_fit();
    }

    pub(super) fn get(&self, at: usize) -> Sieve<'_> {
        Sieve(&self.bits[self.begins[at] as usize..self.begins[at + 1] as usize])
    }

    /// Returns the memory used, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.bits.capacity() * size_of::<u64>() + self.begins.capacity() * size_of::<u32>()
    }
}

/// Filters of one feed, and of the plans with many feeds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sieves<'a>(pub(super) [Sieve<'a>; 2]);

impl Sieves<'_> {
    #[inline]
    pub(super) fn has(self, hash: u64) -> bool {
        self.0[0].has(hash) | self.0[1].has(hash)
    }
}

impl Sieve<'_> {
    #[inline]
    fn has(self, hash: u64) -> bool {
        let (at, bit) = place(hash, self.0.len());
        self.0[at] & bit != 0
    }
}

/// Returns the position of the hash's bit in a filter of this many words, a power of two.
#[inline]
fn place(hash: u64, words: usize) -> (usize, u64) {
    // The hash table uses the upper bits.
    let at = (hash >> 6) as usize & (words - 1);
    (at, 1 << (hash % 64))
}

#[cfg(test)]
mod tests {
    use super::SieveList;

    #[test]
    fn sieve_keeps_inserted_keys_and_rejects_most_others() {
        let hash = |nth: u64| {
            let mixed = (nth + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (mixed ^ (mixed >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb) ^ (mixed >> 29)
        };
        let mut sieves = SieveList::default();
        // The second case adds each word four times.
        for (count, times) in [(1_000, 1), (1_000, 4), (0, 1), (1, 1)] {
            let hashes = (0..count * times).map(|nth| hash(nth % count.max(1)));
            let most = usize::try_from(count * times).unwrap();
            sieves.push(most, hashes);
        }
        sieves.finish();
        for (at, count) in [(0, 1_000), (1, 1_000), (2, 0), (3, 1)] {
            let sieve = sieves.get(at);
            assert!((0..count).all(|nth| sieve.has(hash(nth))));
            let wrong = (10_000..20_000).filter(|&nth| sieve.has(hash(nth))).count();
            assert!(wrong < 1_000, "{wrong} of 10,000");
        }
        assert_eq!(sieves.get(0).0.len(), sieves.get(1).0.len());
        assert!(!sieves.get(2).has(0));
    }
}
