//! Estimates of how common words are: guessed at first, then learned from incoming posts.
//!
//! One post in [`SAMPLE`] is counted, in a lock-free table that all indexes of the process share. The guess is based on
//! a short list of the commonest words, and on the length of the others. A wrong estimate costs only time, so counts
//! may collide and be lost.

use std::{
    collections::HashMap,
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};

use crate::{
    phrase::Phrase,
    text::{self, code::Keys},
};

/// One in this many posts is counted.
pub(super) const SAMPLE: u32 = 16;

const BITS: u32 = 17;
/// After this many counted posts all counts are halved, because what people write about changes.
const FORGET: u32 = 1 << 20;
/// Weight of the guess, as a number of posts.
const GUESS: f32 = 50.0;
/// Each further word makes a phrase rarer, at least by this factor.
const FURTHER_WORD: f32 = 0.2;

static SEEN: [AtomicU32; 1 << BITS] = [const { AtomicU32::new(0) }; 1 << BITS];
static POSTS: AtomicU32 = AtomicU32::new(0);

/// Counts a post, given the hashes of its words.
pub(super) fn learn(words: impl Iterator<Item = u64>) {
    for hash in words {
        SEEN[place(hash)].fetch_add(1, Relaxed);
    }
    if POSTS.fetch_add(1, Relaxed) == FORGET {
        POSTS.store(FORGET / 2, Relaxed);
        for count in &SEEN {
            count.store(count.load(Relaxed) / 2, Relaxed);
        }
    }
}

/// Returns the number of counted posts.
pub(super) fn learned() -> u32 {
    POSTS.load(Relaxed)
}

/// Returns how many of a million posts contain the phrase: no more than contain its rarest word.
pub(super) fn of(phrase: &Phrase) -> f32 {
    let keys = Keys::of_process();
    #[expect(clippy::cast_precision_loss, reason = "a guess")]
    let posts = learned() as f32;
    let word = |word: &str| {
        let hash = keys.hash(keys.code(word.as_bytes()));
        #[expect(clippy::cast_precision_loss, reason = "a guess")]
        let seen = SEEN[place(hash)].load(Relaxed) as f32;
        (seen * 1e6 + guess(word) * GUESS) / (posts + GUESS)
    };
    let words = phrase.words.iter();
    words
        .map(|one| word(one))
        .reduce(|rarest, next| rarest.min(next) * FURTHER_WORD)
        .unwrap_or_default()
}

fn place(hash: u64) -> usize {
    (hash >> (u64::BITS - BITS)) as usize
}

fn guess(word: &str) -> f32 {
    static COMMON: LazyLock<HashMap<String, f32>> = LazyLock::new(|| {
        let words = include_str!("common_words.txt").split_whitespace();
        let ranked = words.zip(1_u16..).flat_map(|(word, rank)| {
            // Zipf's law; the commonest word occurs in nine of ten posts.
            let share = 900_000.0 / (1.0 + f32::from(rank) / 20.0);
            [
                (text::stem(word).into_owned(), share),
                (word.to_owned(), share),
            ]
        });
        ranked.collect()
    });
    COMMON.get(word).copied().unwrap_or_else(|| {
        match (word.chars().count(), word.chars().any(text::spaceless)) {
            (_, true) => 20_000.0,
            (0..=3, _) => 8_000.0,
            (4..=5, _) => 4_000.0,
            (6..=8, _) => 2_000.0,
            _ => 1_000.0,
        }
    })
}
