//! The cues of all focuses, looked for in the words that the index has cut: 2 µs a post, where the
//! definition takes 40 to cut and stem them by itself. What is counted is the same.

use std::sync::LazyLock;

use domain::Focus;

use super::{
    phrases::{Phrases, Wanted},
    words::Words,
};
use crate::{evidence::cues, language::Language, lexicon, post::MAX_STEPS, text::code::Keys};

/// How many different phrases of each lexicon occur, up to the cap; `None` where the definition would
/// not count to the end.
pub(super) fn counts(words: &mut Words, language: Language) -> Option<[u8; Focus::ALL.len()]> {
    static LEXICONS: LazyLock<Vec<Lexicons>> =
        LazyLock::new(|| Language::ALL.into_iter().map(Lexicons::of).collect());
    let lexicons = &LEXICONS[language as usize];
    let mut seen = vec![0_u64; lexicons.phrases.len().div_ceil(64)];
    let mut counts = [0; Focus::ALL.len()];
    let steps = lexicons.phrases.find(words, Wanted::All, |phrase, _| {
        let (seen, bit) = (&mut seen[phrase as usize / 64], 1 << (phrase % 64));
        if *seen & bit == 0 {
            *seen |= bit;
            for &focus in &lexicons.focuses[phrase as usize] {
                let count: &mut u8 = &mut counts[focus as usize];
                *count = (*count + 1).min(lexicon::CAP);
            }
        }
    });
    (words.count().saturating_add(steps) < MAX_STEPS).then_some(counts)
}

struct Lexicons {
    phrases: Phrases,
    /// The focuses that ask for each phrase.
    focuses: Vec<Vec<Focus>>,
}

impl Lexicons {
    fn of(language: Language) -> Self {
        let keys = Keys::of_process();
        let mut phrases = Phrases::default();
        let mut focuses: Vec<Vec<Focus>> = Vec::new();
        for (class, phrase) in cues::phrases(language) {
            let Some(focus) = lexicon::focus(class) else {
                continue;
            };
            let (number, _) = phrases.insert(phrase, &keys);
            let number = number as usize;
            if number == focuses.len() {
                focuses.push(Vec::new());
            }
            focuses[number].push(focus);
        }
        phrases.finish(|phrase| phrase);
        Self { phrases, focuses }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::counts;
    use crate::{
        PostText, evidence::cues, index::words::Words, language::Language, lexicon, phrase::Phrase,
    };

    fn compare(title: &str, text: &str) -> u32 {
        let post = PostText::new(Some(title), Some(text));
        let mut words = Words::default();
        words.read(post.source(), post.title_len());
        let counted = counts(&mut words, post.language());
        assert_eq!(counted, Some(lexicon::counts(&post)), "{title:?} {text:?}");
        counted.into_iter().flatten().map(u32::from).sum()
    }

    #[test]
    fn every_phrase_of_every_lexicon_is_counted_alike() {
        for language in Language::ALL {
            for (_, phrase) in cues::phrases(language) {
                compare("", &phrase.words.join(" "));
            }
        }
    }

    proptest! {
        #[test]
        fn phrases_side_by_side_are_counted_alike(
            picks in prop::collection::vec((0..700_usize, prop::sample::select(vec![" ", ". ", "-", "\n\n"])), 0..12)
        ) {
            let phrases: Vec<&Phrase> = cues::phrases(Language::English).map(|(_, phrase)| phrase).collect();
            let words = picks.iter().map(|(pick, gap)| {
                phrases[pick % phrases.len()].words.join(" ") + gap
            });
            let text: String = words.collect();
            compare("Looking for a refund", &text);
        }
    }
}
