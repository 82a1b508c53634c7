//! Phrases that tell a focus: somebody wants to buy, somebody compares, somebody is in trouble.
//!
//! Written by hand, one a line in `lexicons/`; `~` at the start of a line takes English inflections
//! in. A post is asked once, whatever the number of plans, and only when a plan with a focus wants to know.

use std::{collections::HashMap, sync::LazyLock};

use domain::Focus;

use crate::{
    phrase::{Phrase, Readings},
    post::PostText,
};

/// More phrases than this say nothing more.
pub(crate) const CAP: u8 = 4;

/// How many different phrases of each focus's lexicon occur, up to [`CAP`], by `Focus as usize`.
pub(crate) fn counts(post: &PostText) -> [u8; Focus::ALL.len()] {
    static LEXICONS: LazyLock<Lexicons> = LazyLock::new(Lexicons::shipped);
    let mut counts = [0_u8; Focus::ALL.len()];
    for (stemmed, by_word) in [(false, &LEXICONS.exact), (true, &LEXICONS.stemmed)] {
        for (focus, phrase) in post
            .forms(stemmed)
            .filter_map(|form| by_word.get(form))
            .flatten()
        {
            let count = &mut counts[*focus as usize];
            if *count < CAP && post.contains(phrase) {
                *count += 1;
            }
        }
    }
    counts
}

/// Phrases by their first word.
#[derive(Default)]
struct Lexicons {
    exact: HashMap<Box<str>, Vec<(Focus, Phrase)>>,
    stemmed: HashMap<Box<str>, Vec<(Focus, Phrase)>>,
}

impl Lexicons {
    fn shipped() -> Self {
        let mut lexicons = Self::default();
        for (focus, phrase) in phrases() {
            let by_word = if phrase.stemmed {
                &mut lexicons.stemmed
            } else {
                &mut lexicons.exact
            };
            let phrases = by_word.entry(phrase.words[0].clone()).or_default();
            phrases.push((focus, phrase));
        }
        lexicons
    }
}

/// What is counted.
pub(crate) fn phrases() -> impl Iterator<Item = (Focus, Phrase)> {
    Focus::ALL.into_iter().flat_map(|focus| {
        let readings = lines(focus).filter_map(readings);
        readings.flat_map(move |readings| {
            let phrases = readings.phrases().to_vec();
            phrases.into_iter().map(move |phrase| (focus, phrase))
        })
    })
}

fn lines(focus: Focus) -> impl Iterator<Item = &'static str> {
    let file = match focus {
        Focus::Sales => include_str!("lexicons/sales.txt"),
        Focus::Competitor => include_str!("lexicons/competitor.txt"),
        Focus::Crisis => include_str!("lexicons/crisis.txt"),
    };
    file.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
}

fn readings(line: &str) -> Option<Readings> {
    match line.strip_prefix('~') {
        Some(phrase) => Readings::stemmed(phrase),
        None => Readings::exact(line),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use domain::Focus;

    use super::{CAP, lines, readings};
    use crate::PostText;

    #[test]
    fn every_line_is_a_phrase_and_stands_once() {
        for focus in Focus::ALL {
            let mut different = BTreeSet::new();
            for line in lines(focus) {
                let readings = readings(line);
                assert!(readings.is_some() && different.insert(readings), "{line}");
            }
            assert!(different.len() >= 60, "{focus:?}");
        }
    }

    #[test]
    fn phrases_tell_the_focus() {
        let post = PostText::new(
            Some("Can anyone recommend a good CRM?"),
            Some("We are looking for something cheap."),
        );
        assert!(post.lexicon(Focus::Sales) >= 2);
        assert_eq!(post.lexicon(Focus::Crisis), 0);
        let angry = "terrible, awful, broken, refund now, scam, worst ever";
        assert_eq!(PostText::new(None, Some(angry)).lexicon(Focus::Crisis), CAP);
    }
}
