//! Cues: phrases by which people ask, complain, compare, sell or show, in six languages.
//!
//! One file per language in `cues/`, one section per class, one phrase per line; `~` at the start of
//! a line takes inflections in. A post is searched once, whatever the number of plans, and only for
//! a plan with a focus that the post may concern.

use std::{
    collections::{BTreeSet, HashMap},
    sync::LazyLock,
};

use crate::{
    language::Language,
    phrase::{Phrase, Readings},
    post::PostText,
};

/// What a cue says about its sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Class {
    /// Asks what to choose, buy, hire or switch to.
    Need,
    /// A need told as a problem, without asking for a product.
    Problem,
    /// Complaint, outage, breach, lawsuit, bad press.
    Trouble,
    /// Praise, thanks, launch, success.
    Praise,
    /// Products are compared or judged.
    Compare,
    /// Sale, coupon, discount.
    Deal,
    /// Job advertisement, or somebody for hire.
    Hiring,
    /// The author sells or advertises.
    Offer,
    /// The author shows what they made or own.
    Show,
    /// Guide, tutorial, list.
    Guide,
    /// Neutral news.
    News,
    /// Already solved or chosen.
    Solved,
    Joke,
    FirstPerson,
    Negation,
    /// How a question begins.
    Question,
    /// Preposition before which a name is a place or a source.
    BeforeName,
    /// Word behind a name that is the subject of its sentence.
    AfterName,
}

impl Class {
    pub(crate) const ALL: [Self; 18] = [
        Self::Need,
        Self::Problem,
        Self::Trouble,
        Self::Praise,
        Self::Compare,
        Self::Deal,
        Self::Hiring,
        Self::Offer,
        Self::Show,
        Self::Guide,
        Self::News,
        Self::Solved,
        Self::Joke,
        Self::FirstPerson,
        Self::Negation,
        Self::Question,
        Self::BeforeName,
        Self::AfterName,
    ];

    fn section(self) -> &'static str {
        match self {
            Self::Need => "need",
            Self::Problem => "problem",
            Self::Trouble => "trouble",
            Self::Praise => "praise",
            Self::Compare => "compare",
            Self::Deal => "deal",
            Self::Hiring => "hiring",
            Self::Offer => "offer",
            Self::Show => "show",
            Self::Guide => "guide",
            Self::News => "news",
            Self::Solved => "solved",
            Self::Joke => "joke",
            Self::FirstPerson => "first_person",
            Self::Negation => "negation",
            Self::Question => "question",
            Self::BeforeName => "before_name",
            Self::AfterName => "after_name",
        }
    }

    pub(crate) fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// A cue in a post.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cue {
    /// Byte range in the post's source.
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) class: Class,
}

/// All cues of a post, by place.
pub(crate) fn find(post: &PostText) -> Vec<Cue> {
    let mut cues = Vec::new();
    candidates(post, |class, phrase| {
        post.ranges(phrase, |start, end| cues.push(Cue { start, end, class }));
    });
    cues.sort_unstable();
    cues.dedup();
    cues
}

/// Passes the cues of the post's language to `found` whose first word occurs.
pub(crate) fn candidates(post: &PostText, mut found: impl FnMut(Class, &'static Phrase)) {
    let lexicon = lexicon(post.language());
    for (stemmed, by_word) in [(false, &lexicon.exact), (true, &lexicon.stemmed)] {
        if by_word.is_empty() {
            continue;
        }
        let phrases = post.forms(stemmed).filter_map(|form| by_word.get(form));
        for (class, phrase) in phrases.flatten() {
            found(*class, phrase);
        }
    }
}

/// The cues of a language, each reading once.
pub(crate) fn phrases(language: Language) -> impl Iterator<Item = (Class, &'static Phrase)> {
    let lexicon = lexicon(language);
    let all = lexicon.exact.values().chain(lexicon.stemmed.values());
    all.flatten().map(|(class, phrase)| (*class, phrase))
}

/// Phrases by their first word.
#[derive(Default)]
struct Lexicon {
    exact: HashMap<Box<str>, Vec<(Class, Phrase)>>,
    stemmed: HashMap<Box<str>, Vec<(Class, Phrase)>>,
}

impl Lexicon {
    fn of(language: Language) -> Self {
        let mut lexicon = Self::default();
        let mut seen = BTreeSet::new();
        for (class, line) in lines(language) {
            let Some(readings) = readings(line) else {
                continue;
            };
            for phrase in readings.phrases() {
                if !seen.insert((class, phrase.clone())) {
                    continue;
                }
                let by_word = if phrase.stemmed {
                    &mut lexicon.stemmed
                } else {
                    &mut lexicon.exact
                };
                let phrases = by_word.entry(phrase.words[0].clone()).or_default();
                phrases.push((class, phrase.clone()));
            }
        }
        lexicon
    }
}

fn lexicon(language: Language) -> &'static Lexicon {
    static LEXICONS: LazyLock<Vec<Lexicon>> =
        LazyLock::new(|| Language::ALL.into_iter().map(Lexicon::of).collect());
    &LEXICONS[language as usize]
}

fn readings(line: &str) -> Option<Readings> {
    match line.strip_prefix('~') {
        Some(phrase) => Readings::stemmed(phrase),
        None => Readings::exact(line),
    }
}

fn file(language: Language) -> &'static str {
    match language {
        Language::English => include_str!("../cues/en.txt"),
        Language::German => include_str!("../cues/de.txt"),
        Language::Spanish => include_str!("../cues/es.txt"),
        Language::French => include_str!("../cues/fr.txt"),
        Language::Portuguese => include_str!("../cues/pt.txt"),
        Language::Japanese => include_str!("../cues/ja.txt"),
        Language::Other => "",
    }
}

/// Each phrase with its class, as written.
fn lines(language: Language) -> impl Iterator<Item = (Class, &'static str)> {
    let mut class = None;
    file(language).lines().filter_map(move |line| {
        let line = line.trim();
        if let Some(section) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            class = Class::ALL.into_iter().find(|c| c.section() == section);
            return None;
        }
        if line.is_empty() || line.starts_with('#') {
            return None;
        }
        class.map(|class| (class, line))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Class, file, find, lines, readings};
    use crate::{PostText, language::Language};

    fn languages() -> impl Iterator<Item = Language> {
        let all = Language::ALL.into_iter();
        all.filter(|language| *language != Language::Other)
    }

    #[test]
    fn every_line_is_a_phrase_of_a_known_class() {
        for language in languages() {
            let sections: BTreeSet<&str> = file(language)
                .lines()
                .filter_map(|line| line.trim().strip_prefix('[')?.strip_suffix(']'))
                .collect();
            let known: BTreeSet<&str> = Class::ALL.into_iter().map(Class::section).collect();
            assert_eq!(sections, known, "{language:?}");
            let mut seen = BTreeSet::new();
            for (class, line) in lines(language) {
                let readings = readings(line);
                assert!(readings.is_some(), "{language:?} {class:?} {line}");
                assert!(seen.insert((class, line)), "{language:?} {class:?} {line}");
            }
        }
    }

    #[test]
    fn cues_are_found_where_they_stand() {
        let post = PostText::new(Some("Can anyone recommend a CRM?"), Some("Ours is broken."));
        let cues = find(&post);
        let found = |class: Class| {
            let cue = cues.iter().find(|cue| cue.class == class);
            cue.map(|cue| &post.source()[cue.start..cue.end])
        };
        assert!(found(Class::Need).is_some_and(|cue| cue.contains("recommend")));
        assert_eq!(found(Class::Trouble), Some("broken"));
        assert_eq!(found(Class::Hiring), None);
    }
}
