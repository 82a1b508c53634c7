//! Cues: phrases that people use to ask, complain, compare, sell or show, in six languages.
//!
//! One file per language in `cues/`, one section per class, one phrase per line; `~` at the start of a line includes
//! inflections. A post is searched once, regardless of the number of plans, and only if it may concern a plan with a
//! focus.

use std::sync::LazyLock;

use domain::Focus;

use crate::{
    index::phrases::{Phrases, Room, Wanted},
    language::Language,
    phrase::Readings,
    text::{code::Keys, scan::Found},
    words::Words,
};

/// Meaning of a cue for its sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Class {
    /// Asks what to choose, buy, hire or switch to.
    Need,
    /// A need described as a problem, without asking for a product.
    Problem,
    /// Complaint, outage, breach, lawsuit, bad press.
    Trouble,
    /// Praise, thanks, launch, success.
    Praise,
    /// Comparison or review of products.
    Compare,
    /// Sale, coupon, discount.
    Deal,
    /// Job advertisement, or a person who looks for work.
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
    /// Start of a question.
    Question,
    /// Preposition that makes the following name a place or a source.
    BeforeName,
    /// Word after a name that is the subject of its sentence.
    AfterName,
    /// Word before a name that something else is made for.
    ForName,
    /// Word after a name that makes it the attribute of something else (`iPad case`).
    Accessory,
}

impl Class {
    pub(crate) const ALL: [Self; 20] = [
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
        Self::ForName,
        Self::Accessory,
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
            Self::ForName => "for_name",
            Self::Accessory => "accessory",
        }
    }

    pub(crate) fn bit(self) -> u32 {
        1 << self as u32
    }

    /// Returns the focus that uses the class.
    fn focus(self) -> Option<Focus> {
        match self {
            Self::Need => Some(Focus::Sales),
            Self::Compare => Some(Focus::Competitor),
            Self::Trouble => Some(Focus::Crisis),
            _ => None,
        }
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

/// Maximum number of different cues counted for a focus; more say nothing new.
pub(crate) const CAP: u8 = 4;

/// All cues in a post, found in one pass over its words.
#[derive(Debug, Default)]
pub(crate) struct Cues {
    /// All cues, by position.
    pub(crate) all: Vec<Cue>,
    /// Number of different cues for each focus, up to [`CAP`], by `Focus as usize`: a quick figure, available before
    /// sentences are analysed.
    pub(crate) counts: [u8; Focus::ALL.len()],
}

impl Cues {
    pub(crate) fn find(words: &Words, language: Language) -> Self {
        Lexicon::get(language).find(words).0
    }
}

/// The cues of a language.
#[derive(Default)]
struct Lexicon {
    phrases: Phrases,
    /// The classes of each phrase.
    classes: Vec<Vec<Class>>,
}

impl Lexicon {
    fn get(language: Language) -> &'static Self {
        static LEXICONS: LazyLock<Vec<Lexicon>> =
            LazyLock::new(|| Language::ALL.into_iter().map(Lexicon::of).collect());
        &LEXICONS[language as usize]
    }

    fn of(language: Language) -> Self {
        let keys = Keys::of_process();
        let mut lexicon = Self::default();
        for (class, line) in lines(language) {
            let readings = readings(line).unwrap_or_default();
            for phrase in readings.phrases() {
                let number = lexicon.phrases.insert(phrase, &keys).0 as usize;
                if number == lexicon.classes.len() {
                    lexicon.classes.push(Vec::new());
                }
                if !lexicon.classes[number].contains(&class) {
                    lexicon.classes[number].push(class);
                }
            }
        }
        lexicon.phrases.finish(|phrase| phrase);
        lexicon
    }

    /// Returns the cues, and the number of steps that phrases of several words took.
    fn find(&self, words: &Words) -> (Cues, u32) {
        let mut cues = Cues::default();
        let mut seen = vec![0_u64; self.classes.len().div_ceil(64)];
        let mut room = Room::default();
        let found = |phrase: u32, first: &Found, last: &Found| {
            let classes = &self.classes[phrase as usize];
            let (start, end) = (first.start as usize, last.end as usize);
            let of_class = |&class| Cue { start, end, class };
            cues.all.extend(classes.iter().map(of_class));
            let (seen, bit) = (&mut seen[phrase as usize / 64], 1 << (phrase % 64));
            if *seen & bit == 0 {
                *seen |= bit;
                for focus in classes.iter().filter_map(|class| class.focus()) {
                    let count = &mut cues.counts[focus as usize];
                    *count = (*count + 1).min(CAP);
                }
            }
        };
        let steps = self.phrases.find(words, Wanted::All, &mut room, found);
        cues.all.sort_unstable();
        cues.all.dedup();
        (cues, steps)
    }
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

/// Returns each phrase with its class, as written.
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

    use domain::Focus;
    use proptest::prelude::*;

    use super::{CAP, Class, Cue, Lexicon, file, lines, readings};
    use crate::{PostText, language::Language, phrase::Phrase, words::Words};

    fn languages() -> impl Iterator<Item = Language> {
        let all = Language::ALL.into_iter();
        all.filter(|language| *language != Language::Other)
    }

    fn phrases(language: Language) -> BTreeSet<(Class, Phrase)> {
        let readings = lines(language).map(|(class, line)| (class, readings(line).unwrap()));
        let phrases = readings.map(|(class, readings)| (class, readings.phrases().to_vec()));
        let each = |(class, phrases): (Class, Vec<Phrase>)| {
            phrases.into_iter().map(move |phrase| (class, phrase))
        };
        phrases.flat_map(each).collect()
    }

    /// Panics where one pass finds other cues than a search for each phrase in turn.
    fn compare(language: Language, all: &BTreeSet<(Class, Phrase)>, title: &str, text: &str) {
        let post = PostText::new(Some(title), Some(text));
        let mut expected = BTreeSet::new();
        let mut counts = [0_u8; Focus::ALL.len()];
        for (class, phrase) in all {
            let mut any = false;
            post.ranges(phrase, |start, end| {
                any = true;
                expected.insert(Cue {
                    start,
                    end,
                    class: *class,
                });
            });
            if let Some(focus) = class.focus().filter(|_| any) {
                let count = &mut counts[focus as usize];
                *count = (*count + 1).min(CAP);
            }
        }
        let (cues, _) = Lexicon::get(language).find(post.words());
        let expected: Vec<Cue> = expected.into_iter().collect();
        assert_eq!(
            (cues.all, cues.counts),
            (expected, counts),
            "{title:?} {text:?}"
        );
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
    fn cues_have_their_positions() {
        let post = PostText::new(Some("Can anyone recommend a CRM?"), Some("Ours is broken."));
        let found = |class: Class| {
            let cue = post.cues().all.iter().find(|cue| cue.class == class);
            cue.map(|cue| &post.source()[cue.start..cue.end])
        };
        assert!(found(Class::Need).is_some_and(|cue| cue.contains("recommend")));
        assert_eq!(found(Class::Trouble), Some("broken"));
        assert_eq!(found(Class::Hiring), None);
    }

    #[test]
    fn cue_counts_depend_on_the_focus() {
        let post = PostText::new(
            Some("Can anyone recommend a good CRM?"),
            Some("We are looking for something cheap."),
        );
        assert!(post.lexicon(Focus::Sales) >= 2);
        assert_eq!(post.lexicon(Focus::Crisis), 0);
        let angry = "terrible, awful, broken, refund now, scam, worst ever";
        assert_eq!(PostText::new(None, Some(angry)).lexicon(Focus::Crisis), CAP);
        let german = "Kann mir jemand eine gute Kaffeemaschine empfehlen? Meine ist kaputt, ich suche eine neue.";
        assert!(PostText::new(None, Some(german)).lexicon(Focus::Sales) >= 1);
    }

    #[test]
    fn every_cue_is_found_in_one_pass() {
        for language in languages() {
            let all = phrases(language);
            let texts: Vec<String> = all
                .iter()
                .map(|(_, phrase)| phrase.words.join(" "))
                .collect();
            for some in texts.chunks(20) {
                compare(language, &all, "", &some.join(". "));
            }
        }
    }

    /// Counts work in steps along phrases and in cues: each has a bounded number per word.
    #[test]
    fn posts_of_only_cues_take_few_steps_per_word() {
        for language in languages() {
            let all = phrases(language);
            let lexicon = Lexicon::get(language);
            let texts = all.iter().map(|(_, phrase)| phrase.words.join(" ") + " ");
            let tied = texts.clone().map(|text| text.replace(' ', "-"));
            for unit in texts.chain(tied) {
                let words = Words::of(&unit.repeat(4_000 / unit.len()));
                let (cues, steps) = lexicon.find(&words);
                let tokens = words.tokens().len();
                assert!(
                    steps as usize <= 20 * tokens,
                    "{unit:?}: {steps} for {tokens}"
                );
                assert!(
                    cues.all.len() <= 10 * tokens,
                    "{unit:?}: {}",
                    cues.all.len()
                );
            }
        }
    }

    proptest! {
        #[test]
        fn cues_side_by_side_are_found_in_one_pass(
            picks in prop::collection::vec((0..5_000_usize, prop::sample::select(vec![" ", ". ", "-", "\n\n", "'s "])), 0..12)
        ) {
            let all = phrases(Language::English);
            let phrases: Vec<&Phrase> = all.iter().map(|(_, phrase)| phrase).collect();
            let words = picks.iter().map(|(pick, gap)| {
                phrases[pick % phrases.len()].words.join(" ") + gap
            });
            let text: String = words.collect();
            compare(Language::English, &all, "Looking for a refund", &text);
        }
    }
}
