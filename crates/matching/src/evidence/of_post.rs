//! Evidence in a post that does not depend on the plan.

use std::ops::Range;

use domain::Focus;

use super::{
    cues::{Class, Cue, Cues},
    layout::{Layout, Zone},
    values::Evidence,
};
use crate::words::Words;

/// Length of the text's opening, in bytes.
const OPENING: usize = 200;
/// Maximum distance, in bytes, between a negation and what it negates.
pub(super) const NEGATION_REACH: usize = 24;

/// Values of a post that the evidence of every plan uses.
#[derive(Debug, Default)]
pub(crate) struct PostEvidence {
    pub(super) layout: Layout,
    pub(super) words: Vec<Range<usize>>,
    pub(super) cues: Vec<Cue>,
    /// Classes of the cues of each sentence, without negated ones.
    pub(super) classes: Vec<u32>,
    /// Number of cues of each class in the title and outside of it, without negated and overlapping ones.
    counts: [(f64, f64); Class::ALL.len()],
    /// End of the first sentences of the text.
    pub(super) opening_end: usize,
    title_words: usize,
    pub(super) own: Evidence,
}

impl PostEvidence {
    /// `heads` are the answers of the classifiers, by `Focus as usize`.
    pub(crate) fn of(
        source: &str,
        title_len: usize,
        words: &Words,
        cues: &Cues,
        heads: &[f64; Focus::ALL.len()],
    ) -> Self {
        let layout = Layout::of(source, title_len);
        let words = words.ranges();
        let cues = cues.all.clone();
        let mut evidence = Self {
            classes: vec![0; layout.sentences.len()],
            opening_end: source.floor_char_boundary(layout.title_end + OPENING),
            title_words: words.partition_point(|word| word.start < layout.title_end),
            layout,
            words,
            cues,
            ..Self::default()
        };
        evidence.classify();
        evidence.own = evidence.of_post(source, heads);
        evidence
    }

    fn classify(&mut self) {
        let mut ends = [0; Class::ALL.len()];
        for at in 0..self.cues.len() {
            let cue = self.cues[at];
            if self.is_negated(&cue) || !self.counts(cue.start) {
                continue;
            }
            let sentence = self.layout.sentence(cue.start);
            if let Some(classes) = self.classes.get_mut(sentence) {
                *classes |= cue.class.bit();
            }
            let end = &mut ends[cue.class as usize];
            if cue.start < *end {
                continue;
            }
            *end = cue.end;
            let (title, text) = &mut self.counts[cue.class as usize];
            if cue.start < self.layout.title_end {
                *title += 1.0;
            } else {
                *text += 1.0;
            }
        }
    }

    /// Returns whether the text at the byte is the author's own words.
    pub(super) fn counts(&self, at: usize) -> bool {
        !matches!(
            self.layout.zone(at),
            Zone::Link | Zone::Quote | Zone::Code | Zone::Signature
        )
    }

    fn is_negated(&self, cue: &Cue) -> bool {
        if !matches!(
            cue.class,
            Class::Trouble | Class::Praise | Class::Need | Class::Problem
        ) {
            return false;
        }
        let sentence = self.layout.sentence(cue.start);
        let from = self
            .cues
            .partition_point(|c| c.start + NEGATION_REACH < cue.start);
        self.cues[from..]
            .iter()
            .take_while(|c| c.start < cue.start)
            .any(|c| {
                c.class == Class::Negation
                    && c.end <= cue.start
                    && self.layout.sentence(c.start) == sentence
            })
    }

    /// Returns the cues of the class in the title, and outside of it.
    pub(super) fn count(&self, class: Class) -> (f64, f64) {
        self.counts[class as usize]
    }

    fn of_post(&self, source: &str, heads: &[f64; Focus::ALL.len()]) -> Evidence {
        let title = &source[..self.layout.title_end];
        let has = |class| f64::from(u8::from(self.count(class).0 > 0.0));
        let all = |class| {
            let (title, text) = self.count(class);
            (title + text).ln_1p()
        };
        let title_asks = self
            .layout
            .sentences
            .iter()
            .any(|s| s.asks && s.range.start < self.layout.title_end && s.zone == Zone::Title)
            || self.title_begins_with_question(title);
        let text_words = number(self.words.len() - self.title_words);
        let (_, first_in_text) = self.count(Class::FirstPerson);
        let (first_in_title, _) = self.count(Class::FirstPerson);
        let words = number(self.words.len());
        let headline = text_words < 3.0 && !title_asks && first_in_title == 0.0;
        Evidence {
            title_asks: f64::from(u8::from(title_asks)),
            title_need: has(Class::Need),
            title_problem: has(Class::Problem),
            needs: all(Class::Need),
            problems: all(Class::Problem),
            title_trouble: has(Class::Trouble),
            troubles: all(Class::Trouble),
            title_compare: has(Class::Compare),
            compares: all(Class::Compare),
            title_praise: has(Class::Praise),
            title_deal: has(Class::Deal),
            title_hiring: has(Class::Hiring),
            title_offer: has(Class::Offer),
            title_show: has(Class::Show),
            title_guide: has(Class::Guide),
            title_news: has(Class::News),
            offers: all(Class::Offer),
            solved: all(Class::Solved),
            title_joke: has(Class::Joke),
            first_person: (10.0 * (first_in_title + first_in_text) / (words + 10.0)).min(1.0),
            headline: f64::from(u8::from(headline)),
            tag: f64::from(u8::from(title.trim_start().starts_with(['[', '【']))),
            title_case: self.title_case(source),
            length: (words / 20.0).ln_1p(),
            buying: heads[Focus::Sales as usize],
            comparing: heads[Focus::Competitor as usize],
            complaining: heads[Focus::Crisis as usize],
            ..Evidence::default()
        }
    }

    fn title_begins_with_question(&self, title: &str) -> bool {
        let begin = title.len()
            - title
                .trim_start_matches(|c: char| !c.is_alphanumeric())
                .len();
        self.cues
            .iter()
            .any(|cue| cue.class == Class::Question && cue.start <= begin && cue.end <= title.len())
    }

    /// Returns the share of the title's words, except the first, that begin with a capital.
    fn title_case(&self, source: &str) -> f64 {
        let words = self.words.get(1..self.title_words).unwrap_or_default();
        if words.len() < 3 {
            return 0.5;
        }
        let capital = |word: &&Range<usize>| is_capitalised(&source[(*word).clone()]);
        number(words.iter().filter(capital).count()) / number(words.len())
    }
}

pub(super) fn is_capitalised(word: &str) -> bool {
    word.chars().next().is_some_and(char::is_uppercase)
}

pub(super) fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
