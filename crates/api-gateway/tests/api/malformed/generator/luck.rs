//! Random choices.

use rand::{Rng, rngs::StdRng, seq::IndexedRandom};

pub(super) fn pick<'a, T>(rng: &mut StdRng, items: &'a [T]) -> &'a T {
    items.choose(rng).expect("there is something to pick from")
}

pub(super) fn bytes(rng: &mut StdRng, length: usize) -> Vec<u8> {
    (0..length).map(|_| rng.random()).collect()
}

pub(super) fn word(rng: &mut StdRng) -> String {
    let length = rng.random_range(1..30);
    let letters: Vec<char> = "abcXYZ_-.\u{fc}\u{4e00}".chars().collect();
    let text: String = (0..length).map(|_| *pick(rng, &letters)).collect();
    format!("zz{}", encoded(text.as_bytes()))
}

pub(super) fn encoded(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("%{byte:02x}")).collect()
}
