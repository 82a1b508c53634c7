//! Numbers that look random and are the same for the same seed.

/// xorshift.
pub(crate) struct Chance(u64);

impl Chance {
    /// Seeds that are near each other give numbers that are not.
    pub(crate) fn new(seed: u64) -> Self {
        // Splitmix: xorshift begins badly with small numbers, and not at all with zero.
        let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((mixed ^ (mixed >> 31)) | 1)
    }

    /// Less than `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}
