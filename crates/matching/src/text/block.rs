//! Reads text in blocks of 64 bytes: finds ASCII letters and digits and all non-ASCII bytes, and converts ASCII to
//! lower case.
//!
//! Takes 40 ns for a post of 650 bytes with AVX2, 0.4 µs without. A test proves that both give the same result.

pub(super) const BLOCK: usize = 64;
/// Number of zero bytes after the text in `lower`, so that 16 bytes can be read from any position.
pub(super) const PADDING: usize = 16;

/// Result of one pass over a text; bit `i % 64` of word `i / 64` describes byte `i`.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Blocks {
    /// ASCII letters and digits.
    pub(super) letters: Vec<u64>,
    /// Bytes of non-ASCII characters.
    pub(super) high: Vec<u64>,
    /// The text with ASCII letters in lower case, then zeros.
    pub(super) lower: Vec<u8>,
}

impl Blocks {
    pub(super) fn read_portably(&mut self, text: &[u8]) {
        self.read_with(text, portable);
    }

    /// `kernel` writes the lower case of a block, and returns its letters and its non-ASCII bytes.
    pub(super) fn read_with(
        &mut self,
        text: &[u8],
        kernel: impl Fn(&[u8; BLOCK], &mut [u8; BLOCK]) -> (u64, u64),
    ) {
        let count = text.len().div_ceil(BLOCK);
        self.letters.clear();
        self.high.clear();
        self.lower.clear();
        self.lower.resize(count * BLOCK + PADDING, 0);
        let (blocks, rest) = text.as_chunks::<BLOCK>();
        let (lower, _) = self.lower.as_chunks_mut::<BLOCK>();
        for (block, lower) in blocks.iter().zip(&mut *lower) {
            let (letters, high) = kernel(block, lower);
            self.letters.push(letters);
            self.high.push(high);
        }
        if !rest.is_empty() {
            let mut block = [0; BLOCK];
            block[..rest.len()].copy_from_slice(rest);
            let (letters, high) = kernel(&block, &mut lower[count - 1]);
            self.letters.push(letters);
            self.high.push(high);
        }
    }
}

#[cfg(test)]
thread_local! {
    /// True if this thread must not use vector instructions.
    pub(crate) static PORTABLY: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

fn portable(block: &[u8; BLOCK], lower: &mut [u8; BLOCK]) -> (u64, u64) {
    let (mut letters, mut high) = (0, 0);
    for (at, (byte, lower)) in block.iter().zip(lower).enumerate() {
        *lower = byte.to_ascii_lowercase();
        letters |= u64::from(byte.is_ascii_alphanumeric()) << at;
        high |= u64::from(!byte.is_ascii()) << at;
    }
    (letters, high)
}
