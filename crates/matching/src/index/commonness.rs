//! How common words are, guessed: a short list knows the commonest, the length tells of the others.
//!
//! A wrong guess costs time and nothing else.

use std::{collections::HashMap, sync::LazyLock};

use crate::{phrase::Phrase, text};

/// In how many of a million posts the phrase is: no more than its rarest word.
pub(super) fn of(phrase: &Phrase) -> f32 {
    let words = phrase.words.iter().map(|word| of_word(word));
    words.fold(f32::MAX, f32::min)
}

fn of_word(word: &str) -> f32 {
    static COMMON: LazyLock<HashMap<String, f32>> = LazyLock::new(|| {
        let words = include_str!("common_words.txt").split_whitespace();
        let ranked = words.zip(1_u16..).flat_map(|(word, rank)| {
            // Zipf's law, with the commonest in nine of ten posts.
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
