//! Room to work in, kept by each thread: what a post needs while it is decided.

use super::{
    commonness,
    phrases::NONE,
    terms::{Terms, number},
    words::Words,
};
use crate::{PostText, model, post::MAX_STEPS};

#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) words: Words,
    read: bool,
    posts: u32,
    phrases: Vec<Hit>,
    /// Where each phrase stands among the hits.
    place_of: Vec<u32>,
    pub(super) found: Found,
    pub(super) candidates: Vec<u32>,
    /// What the terms found bring to each watch of a feed.
    pub(super) parts: Vec<u16>,
}

/// A phrase that occurs.
#[derive(Debug, Clone, Copy)]
struct Hit {
    phrase: u32,
    title: u32,
    text: u32,
}

/// The terms that occur in a post, and how often.
#[derive(Debug, Default)]
pub(super) struct Found {
    bits: Vec<u64>,
    /// Frequencies by term; only those of terms that occur say anything.
    terms: Vec<(u32, f64)>,
    place_of: Vec<u32>,
    steps: u32,
}

impl Found {
    #[inline]
    pub(super) fn has(&self, term: u32) -> bool {
        self.bits[term as usize / 64] >> (term % 64) & 1 == 1
    }

    /// Of a term that occurs.
    pub(super) fn frequency(&self, term: u32) -> f64 {
        self.terms[self.place_of[term as usize] as usize].1
    }

    pub(super) fn terms(&self) -> &[(u32, f64)] {
        &self.terms
    }
}

impl Scratch {
    /// Makes ready for another post.
    pub(super) fn begin(&mut self) {
        self.read = false;
    }

    /// Reads the post, once however many segments ask.
    pub(super) fn read(&mut self, post: &PostText) {
        if !self.read {
            self.words.read(post.source(), post.title_len());
            self.read = true;
            self.posts = self.posts.wrapping_add(1);
            if self.posts.is_multiple_of(commonness::SAMPLE) {
                commonness::learn(self.words.hashes());
            }
        }
    }

    /// Whether the definition counts every occurrence of every phrase too: it takes no more steps for
    /// a phrase than were taken here for all, and one for each of its first words.
    pub(super) fn is_exact(&self) -> bool {
        let steps = self.words.count().saturating_add(self.found.steps);
        steps < MAX_STEPS
    }

    /// Finds the terms that occur.
    pub(super) fn find(&mut self, terms: &Terms) {
        let title = self.words.title();
        if self.place_of.len() < terms.phrases.len() {
            self.place_of.resize(terms.phrases.len(), NONE);
        }
        let (hits, place_of) = (&mut self.phrases, &mut self.place_of);
        hits.clear();
        self.found.steps = terms.phrases.find(&mut self.words, |phrase, start| {
            let place = &mut place_of[phrase as usize];
            if *place == NONE {
                *place = number(hits.len());
                hits.push(Hit {
                    phrase,
                    title: 0,
                    text: 0,
                });
            }
            let hit = &mut hits[*place as usize];
            if start < title {
                hit.title += 1;
            } else {
                hit.text += 1;
            }
        });

        let found = &mut self.found;
        found.terms.clear();
        if found.place_of.len() < terms.len() {
            found.place_of.resize(terms.len(), NONE);
            found.bits.resize(terms.len().div_ceil(64), 0);
        }
        for hit in &self.phrases {
            self.place_of[hit.phrase as usize] = NONE;
            let frequency = model::frequency(hit.title, hit.text);
            for &term in terms.of_phrase(hit.phrase) {
                let bit = 1 << (term % 64);
                let bits = &mut found.bits[term as usize / 64];
                if *bits & bit == 0 {
                    *bits |= bit;
                    found.place_of[term as usize] = number(found.terms.len());
                    found.terms.push((term, frequency));
                } else {
                    // The reading that occurs most counts.
                    let place = found.place_of[term as usize] as usize;
                    let most = &mut found.terms[place].1;
                    *most = most.max(frequency);
                }
            }
        }
    }

    /// Leaves no trace of the terms found.
    pub(super) fn forget(&mut self) {
        for &(term, _) in &self.found.terms {
            self.found.bits[term as usize / 64] = 0;
        }
        self.found.terms.clear();
    }
}
