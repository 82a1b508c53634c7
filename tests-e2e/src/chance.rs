//! Pseudo-random numbers that are the same for the same seed.

/// xorshift generator.
pub(crate) struct Chance(u64);

impl Chance {
    /// Seeds that are close to each other give unrelated numbers.
    pub(crate) fn new(seed: u64) -> Self {
        // SplitMix: xorshift starts badly with small numbers, and fails with zero.
        let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((mixed ^ (mixed >> 31)) | 1)
    }

    /// Returns a number less than `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    /// Returns true once in `count` times on average.
    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// Returns one of the items; `None` if there are no items.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let count = u64::try_from(items.len()).unwrap();
        let index = (count > 0).then(|| self.below(count))?;
        items.get(usize::try_from(index).unwrap())
    }

    /// Puts the items into a random order.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            let bound = u64::try_from(end + 1).unwrap();
            items.swap(end, usize::try_from(self.below(bound)).unwrap());
        }
    }
}
