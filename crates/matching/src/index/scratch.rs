//! Working memory of a thread for deciding on a post.

use std::ops::Range;

use super::{
    commonness,
    phrases::{self, Room, Wanted},
    places::Places,
    terms::{OfPhrase, RecentReadings, Terms},
};
use crate::{PostText, model, post::MAX_STEPS};

#[derive(Debug, Default)]
pub(super) struct Scratch {
    room: Room,
    posts: u32,
    pub(super) readings: RecentReadings,
    hits: Vec<Hit>,
    /// Position of each phrase among the hits.
    place_of: Places,
    pub(super) found: Found,
    pub(super) candidates: Vec<u32>,
    /// Watches that the topic alone made candidates.
    pub(super) by_topic: Vec<u32>,
    /// Sum of the contributions of the terms found, for each watch of a feed.
    pub(super) parts: Vec<u16>,
    pub(super) lists: Vec<List>,
}

/// A phrase that occurs.
#[derive(Debug, Clone, Copy)]
struct Hit {
    phrase: u32,
    title: u32,
    text: u32,
}

/// Location of the postings of a term that was found.
#[derive(Debug, Clone)]
pub(super) struct List {
    pub(super) term: u32,
    pub(super) frequency: f64,
    pub(super) bucket: Range<u32>,
}

/// A term that occurs in a post.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoundTerm {
    pub(super) term: u32,
    /// Frequency of the reading that occurs most.
    pub(super) frequency: f64,
    /// Number of occurrences of all readings.
    pub(super) mentions: u32,
    pub(super) in_title: bool,
}

/// The terms that occur in a post, and how often.
#[derive(Debug, Default)]
pub(super) struct Found {
    bits: Vec<u64>,
    terms: Vec<FoundTerm>,
    /// Position of each term in `terms`: for terms of shared phrases immediately, for all after [`Self::index_terms`].
    place_of: Places,
    steps: u32,
}

impl Found {
    #[inline]
    pub(super) fn has(&self, term: u32) -> bool {
        self.bits[term as usize / 64] >> (term % 64) & 1 == 1
    }

    /// Returns a term that occurs. Call [`Self::index_terms`] first.
    pub(super) fn get(&self, term: u32) -> &FoundTerm {
        let place = self.place_of.get(term).unwrap_or_default();
        &self.terms[place as usize]
    }

    pub(super) fn terms(&self) -> &[FoundTerm] {
        &self.terms
    }

    /// Prepares for queries about single terms.
    pub(super) fn index_terms(&mut self) {
        for (place, found) in (0..).zip(&self.terms) {
            self.place_of.place(found.term, place);
        }
    }

    fn begin(&mut self, terms: usize) {
        self.terms.clear();
        self.place_of.clear();
        self.steps = 0;
        let words = terms.div_ceil(64);
        if self.bits.len() < words {
            self.bits.resize(words, 0);
        }
    }

    #[inline]
    fn add(&mut self, found: FoundTerm) {
        self.bits[found.term as usize / 64] |= 1 << (found.term % 64);
        self.terms.push(found);
    }

    /// Adds a reading of a term; the reading that occurs most counts.
    fn add_reading(&mut self, found: FoundTerm) {
        let next = super::number::number(self.terms.len());
        let place = self.place_of.place(found.term, next);
        if place == next {
            self.add(found);
        } else {
            let term = &mut self.terms[place as usize];
            term.frequency = term.frequency.max(found.frequency);
            term.mentions = term.mentions.saturating_add(found.mentions);
            term.in_title |= found.in_title;
        }
    }
}

impl Scratch {
    /// Counts the words of a sample of the posts.
    pub(super) fn learn(&mut self, post: &PostText) {
        if let Some(words) = post.known_words() {
            self.posts = self.posts.wrapping_add(1);
            if self.posts.is_multiple_of(commonness::SAMPLE) {
                commonness::learn(words.known_hashes());
            }
        }
    }

    /// Returns whether a plan's own search would count every occurrence of every phrase, too. For one phrase it takes
    /// at most the steps of the search for all phrases here, and one for each word of the post.
    pub(super) fn is_exact(&self, post: &PostText) -> bool {
        let words = super::number::number(post.words().tokens().len());
        words.saturating_add(self.found.steps) < MAX_STEPS
    }

    /// Returns whether the search for terms may have ended before the post.
    pub(super) fn is_cut(&self) -> bool {
        self.found.steps >= phrases::MAX_STEPS
    }

    /// Finds the wanted terms that occur in a post: all in one call, or first those of keys, and the others in a
    /// second call.
    pub(super) fn find(&mut self, terms: &Terms, post: &PostText, wanted: Wanted<'_>) {
        let title = post.title_len();
        let (hits, place_of, found) = (&mut self.hits, &mut self.place_of, &mut self.found);
        if !matches!(wanted, Wanted::Others(_)) {
            hits.clear();
            place_of.clear();
            found.begin(terms.len());
        }
        // All occurrences of a phrase are found together, because they begin with the same word.
        let known = hits.len();
        let steps = terms
            .phrases
            .find(post.words(), wanted, &mut self.room, |phrase, first, _| {
                let next = super::number::number(hits.len());
                let place = place_of.place(phrase, next);
                if place == next {
                    hits.push(Hit {
                        phrase,
                        title: 0,
                        text: 0,
                    });
                }
                let hit = &mut hits[place as usize];
                let in_title = u32::from((first.start as usize) < title);
                hit.title += in_title;
                hit.text += 1 - in_title;
            });

        found.steps = found.steps.saturating_add(steps);
        for hit in &self.hits[known..] {
            let of_term = |term| FoundTerm {
                term,
                frequency: model::frequency(hit.title, hit.text),
                mentions: hit.title.saturating_add(hit.text),
                in_title: hit.title > 0,
            };
            match terms.of_phrase(hit.phrase) {
                OfPhrase::One(term) => found.add(of_term(term)),
                OfPhrase::Shared(list) => {
                    for &term in list {
                        found.add_reading(of_term(term));
                    }
                }
            }
        }
    }

    /// Clears the terms found.
    pub(super) fn forget(&mut self) {
        for found in &self.found.terms {
            self.found.bits[found.term as usize / 64] = 0;
        }
        self.found.terms.clear();
    }
}
