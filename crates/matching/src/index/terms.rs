//! The terms of a segment's plans. Each is stored once, regardless of how many plans have it.
//!
//! A term is its text and whether it is searched for among stems; its phrases follow from these.

use std::borrow::Cow;

use super::{
    commonness,
    number::number,
    phrases::Phrases,
    table::{NONE, Table},
};
use crate::{phrase::Readings, text::code::Keys};

#[derive(Debug, Default)]
pub(super) struct Terms {
    pub(super) phrases: Phrases,
    terms: Vec<Term>,
    texts: String,
    /// Lists of the terms of phrases that belong to several terms, or whose term has several phrases. Each list follows
    /// its length.
    shared: Vec<u32>,
}

/// Bit that marks a shared phrase. A phrase that is the only one of its only term has the number of that term. The
/// others have this bit, and the position of their list.
const SHARED: u32 = 1 << 31;

/// The terms of a phrase.
pub(super) enum OfPhrase<'a> {
    /// One term, which has no other phrase.
    One(u32),
    Shared(&'a [u32]),
}

#[derive(Debug, Clone, Copy)]
struct Term {
    text: u32,
    text_len: u16,
    stemmed: bool,
}

impl Terms {
    pub(super) fn text(&self, term: u32) -> &str {
        let term = self.terms[term as usize];
        &self.texts[term.text as usize..][..usize::from(term.text_len)]
    }

    pub(super) fn is_stemmed(&self, term: u32) -> bool {
        self.terms[term as usize].stemmed
    }

    /// Returns the readings that the plan had when it was compiled: they are a function of the text.
    pub(super) fn readings(&self, term: u32) -> Readings {
        let readings = if self.is_stemmed(term) {
            Readings::stemmed(self.text(term))
        } else {
            Readings::exact(self.text(term))
        };
        readings.unwrap_or_default()
    }

    /// Returns the hash of the term's text: secret, and the only thing that is compared, see [`Table`].
    fn hash(keys: &Keys, text: &str, stemmed: bool) -> u64 {
        let hash = keys.hash(keys.code(text.as_bytes()));
        keys.hash_pair(hash, stemmed.into())
    }

    pub(super) fn of_phrase(&self, phrase: u32) -> OfPhrase<'_> {
        if phrase & SHARED == 0 {
            return OfPhrase::One(phrase);
        }
        let list = &self.shared[(phrase & !SHARED) as usize..];
        OfPhrase::Shared(&list[1..][..list[0] as usize])
    }

    pub(super) fn len(&self) -> usize {
        self.terms.len()
    }

    /// Returns the memory used, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.phrases.memory()
            + self.terms.capacity() * size_of::<Term>()
            + self.texts.capacity()
            + self.shared.capacity() * size_of::<u32>()
    }
}

/// Readings of the terms that posts contained recently: cutting and stemming a term takes 1 µs. Readings depend only on
/// the term, so they are never out of date.
#[derive(Debug, Default)]
pub(super) struct RecentReadings(Vec<Option<(u64, Readings)>>);

/// Size of the cache, as a power of two: about 1 MB when it is full.
const RECENT_BITS: u32 = 12;

impl RecentReadings {
    pub(super) fn get(&mut self, terms: &Terms, term: u32) -> Readings {
        let hash = Terms::hash(
            &Keys::of_process(),
            terms.text(term),
            terms.is_stemmed(term),
        );
        self.0.resize(1 << RECENT_BITS, None);
        let slot = &mut self.0[(hash >> (u64::BITS - RECENT_BITS)) as usize];
        match slot {
            Some((known, readings)) if *known == hash => readings.clone(),
            _ => {
                let readings = terms.readings(term);
                *slot = Some((hash, readings.clone()));
                readings
            }
        }
    }
}

/// Collects terms.
pub(super) struct TermsBuilder {
    keys: Keys,
    terms: Terms,
    /// Terms (stored in place of phrases), by [`Terms::hash`].
    by_text: Table,
    /// Hashes of the terms that are inserted together.
    hashes: Vec<u64>,
    /// Phrases of each term, one or two.
    phrases: Vec<[u32; 2]>,
    /// Hashes of the first words of these phrases; zero where there is no second phrase.
    begins: Vec<[u64; 2]>,
    /// Estimate of how common each term is.
    costs: Vec<f32>,
}

impl TermsBuilder {
    pub(super) fn new() -> Self {
        Self {
            keys: Keys::of_process(),
            terms: Terms::default(),
            by_text: Table::default(),
            hashes: Vec::new(),
            phrases: Vec::new(),
            begins: Vec::new(),
            costs: Vec::new(),
        }
    }

    /// Returns the numbers of these terms. Their texts and their slots are far apart in memory: all texts are read
    /// before the first slot, so that no read waits for the previous one.
    pub(super) fn insert_all<'a>(
        &mut self,
        terms: impl Iterator<Item = (&'a str, &'a Readings)> + Clone,
        stemmed: bool,
    ) -> Vec<u32> {
        let mut hashes = std::mem::take(&mut self.hashes);
        hashes.clear();
        let hash = |(text, _)| Terms::hash(&self.keys, text, stemmed);
        hashes.extend(terms.clone().map(hash));
        let numbers = hashes
            .iter()
            .zip(terms)
            .map(|(&hash, (text, readings))| {
                self.insert_hashed(hash, text, stemmed, || Cow::Borrowed(readings))
            })
            .collect();
        self.hashes = hashes;
        numbers
    }

    /// Returns the number of the term. Calls `readings` only when the term is new.
    pub(super) fn insert<'a>(
        &mut self,
        text: &str,
        stemmed: bool,
        readings: impl FnOnce() -> Cow<'a, Readings>,
    ) -> u32 {
        let hash = Terms::hash(&self.keys, text, stemmed);
        self.insert_hashed(hash, text, stemmed, readings)
    }

    fn insert_hashed<'a>(
        &mut self,
        hash: u64,
        text: &str,
        stemmed: bool,
        readings: impl FnOnce() -> Cow<'a, Readings>,
    ) -> u32 {
        let known = &mut self.by_text.entry(hash).phrase;
        if *known != NONE {
            return *known;
        }
        let id = number(self.terms.terms.len());
        *known = id;
        let readings = readings();
        let (mut phrases, mut begins) = ([NONE; 2], [0; 2]);
        let mut cost = 0.0;
        for (at, phrase) in readings.phrases().iter().enumerate().take(2) {
            (phrases[at], begins[at]) = self.terms.phrases.insert(phrase, &self.keys);
            cost += commonness::of(phrase);
        }
        self.costs.push(cost);
        self.phrases.push(phrases);
        self.begins.push(begins);
        self.terms.terms.push(Term {
            text: number(self.terms.texts.len()),
            text_len: u16::try_from(text.len()).unwrap_or(u16::MAX),
            stemmed,
        });
        self.terms.texts.push_str(text);
        id
    }

    /// Returns an estimate of how many of a million posts contain the term.
    pub(super) fn cost(&self, term: u32) -> f32 {
        self.costs[term as usize]
    }

    /// Returns the terms, and the hashes of the first words of each term's phrases; zero where there is no second
    /// phrase.
    pub(super) fn finish(self) -> (Terms, Vec<[u64; 2]>) {
        let mut terms = self.terms;
        let pairs = (0..).zip(&self.phrases).flat_map(|(id, phrases)| {
            let phrases = phrases.iter().filter(|&&phrase| phrase != NONE);
            phrases.map(move |&phrase| (phrase, id))
        });
        let (begins, of_phrase) = gather(terms.phrases.len(), pairs);
        let shared = &mut terms.shared;
        terms.phrases.finish(|phrase| {
            let phrase = phrase as usize;
            let list = &of_phrase[begins[phrase] as usize..begins[phrase + 1] as usize];
            match list {
                &[term] if self.phrases[term as usize][1] == NONE => term,
                _ => {
                    let at = number(shared.len());
                    shared.push(number(list.len()));
                    shared.extend_from_slice(list);
                    at | SHARED
                }
            }
        });
        terms.shared.shrink_to_fit();
        terms.texts.shrink_to_fit();
        terms.terms.shrink_to_fit();
        (terms, self.begins)
    }
}

/// Sorts values by group: those of group `g` are at `begins[g]..begins[g + 1]`.
pub(super) fn gather(
    groups: usize,
    pairs: impl Iterator<Item = (u32, u32)> + Clone,
) -> (Vec<u32>, Vec<u32>) {
    let mut begins = vec![0_u32; groups + 2];
    for (group, _) in pairs.clone() {
        begins[group as usize + 2] += 1;
    }
    for at in 2..begins.len() {
        begins[at] += begins[at - 1];
    }
    let mut values = vec![0; begins.last().map_or(0, |&count| count as usize)];
    for (group, value) in pairs {
        let next = &mut begins[group as usize + 1];
        values[*next as usize] = value;
        *next += 1;
    }
    begins.pop();
    (begins, values)
}
