//! The only module of this crate with `unsafe` code: AVX2, where the machine has it.
//!
//! All data is in fixed-size arrays of 64 bytes; no pointer outlives a line. Miri checks the module if AVX2 is enabled:
//! `RUSTFLAGS="-C target-feature=+avx2" PROPTEST_CASES=6 PROPTEST_DISABLE_FAILURE_PERSISTENCE=1 cargo +nightly miri
//! test -p matching --lib text::simd`.
#![cfg_attr(
    target_arch = "x86_64",
    expect(
        unsafe_code,
        reason = "vector instructions, asked for at run time; each block has its argument"
    )
)]

use super::block::Blocks;

impl Blocks {
    /// Replaces the previous text and reuses its memory.
    pub(super) fn read(&mut self, text: &[u8]) {
        #[cfg(test)]
        if super::block::PORTABLY.get() {
            return self.read_portably(text);
        }
        if !read(self, text) {
            self.read_portably(text);
        }
    }
}

/// Reads the text with vector instructions; returns `false`, and does nothing, without them.
#[cfg(target_arch = "x86_64")]
fn read(blocks: &mut Blocks, text: &[u8]) -> bool {
    if !std::is_x86_feature_detected!("avx2") {
        return false;
    }
    // SAFETY: the line above checks that this machine has AVX2, the only requirement of the function.
    unsafe { avx2::read(blocks, text) };
    true
}

/// Other machines use the portable code.
#[cfg(not(target_arch = "x86_64"))]
fn read(_: &mut Blocks, _: &[u8]) -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        __m256i, _mm256_add_epi8, _mm256_and_si256, _mm256_cmpeq_epi8, _mm256_loadu_si256,
        _mm256_min_epu8, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8,
        _mm256_storeu_si256, _mm256_sub_epi8,
    };

    use super::super::block::{BLOCK, Blocks};

    #[target_feature(enable = "avx2")]
    pub(super) fn read(blocks: &mut Blocks, text: &[u8]) {
        // A closure inherits the target features of the enclosing function.
        blocks.read_with(text, |block, lower| kernel(block, lower));
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn kernel(block: &[u8; BLOCK], lower: &mut [u8; BLOCK]) -> (u64, u64) {
        let ([first, second], _) = block.as_chunks::<32>() else {
            return (0, 0);
        };
        let ([first_lower, second_lower], _) = lower.as_chunks_mut::<32>() else {
            return (0, 0);
        };
        let (low_letters, low_high) = half(first, first_lower);
        let (high_letters, high_high) = half(second, second_lower);
        let join = |low: u32, high: u32| u64::from(low) | (u64::from(high) << 32);
        (join(low_letters, high_letters), join(low_high, high_high))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn half(bytes: &[u8; 32], lower: &mut [u8; 32]) -> (u32, u32) {
        // SAFETY: 32 bytes are readable, and an unaligned load requires no more.
        let text = unsafe { _mm256_loadu_si256(bytes.as_ptr().cast::<__m256i>()) };
        let upper = within(text, b'A', b'Z');
        let folded = _mm256_add_epi8(text, _mm256_and_si256(upper, splat(0x20)));
        let letters = _mm256_or_si256(within(folded, b'a', b'z'), within(text, b'0', b'9'));
        // SAFETY: 32 bytes are writable, and an unaligned store requires no more.
        unsafe { _mm256_storeu_si256(lower.as_mut_ptr().cast::<__m256i>(), folded) };
        (mask(letters), mask(text))
    }

    /// Returns a mask of the bytes between `first` and `last`.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn within(bytes: __m256i, first: u8, last: u8) -> __m256i {
        let from_first = _mm256_sub_epi8(bytes, splat(first));
        let width = splat(last - first);
        _mm256_cmpeq_epi8(_mm256_min_epu8(from_first, width), from_first)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn splat(byte: u8) -> __m256i {
        _mm256_set1_epi8(byte.cast_signed())
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn mask(bytes: __m256i) -> u32 {
        _mm256_movemask_epi8(bytes).cast_unsigned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::block::Blocks, read};

    fn both(text: &[u8]) -> (Blocks, Blocks) {
        let (mut one, mut other) = (Blocks::default(), Blocks::default());
        one.read(text);
        other.read_portably(text);
        (one, other)
    }

    #[test]
    fn bytes_are_classified_equally_at_every_position() {
        if !read(&mut Blocks::default(), b"x") {
            eprintln!("SKIPPED: without AVX2 the portable code would be compared with itself");
        }
        for shift in 0..64 {
            let text: Vec<u8> = std::iter::repeat_n(b'x', shift).chain(0..=255).collect();
            let (one, other) = both(&text);
            assert_eq!(one, other);
        }
    }

    proptest! {
        #[test]
        fn vector_and_plain_code_are_equal(text in prop::collection::vec(any::<u8>(), 0..300)) {
            let (one, other) = both(&text);
            prop_assert_eq!(one, other);
        }
    }
}
