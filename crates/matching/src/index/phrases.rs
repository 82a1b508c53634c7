//! Finds many phrases in a post in one pass over its words.
//!
//! A word costs one lookup among the words as written, and one among the stems if there are any. The few words that
//! begin a longer phrase are followed through a trie. Its edges are in one hash table behind a bit filter. The result
//! equals that of [`PostText::count`](crate::PostText).

use super::{
    sieve::Sieves,
    table::{NONE, Table},
};
use crate::{
    phrase::Phrase,
    text::{code::Keys, scan::Found},
    words::Words,
};

/// Maximum number of steps in a post: a hundred times those of the longest text that a person wrote. Phrases that only
/// begin behind them are not found, like those behind [`MAX_BYTES`](crate::post::MAX_BYTES).
pub(super) const MAX_STEPS: u32 = 1 << 22;

/// Bits per edge in the filter: one absent edge in this many is looked up in vain.
const BITS_AN_EDGE: usize = 8;

/// Phrases to search for, selected by their first words: all, those that keys may begin with, or all others.
#[derive(Clone, Copy)]
pub(crate) enum Wanted<'a> {
    All,
    Keys(Sieves<'a>),
    Others(Sieves<'a>),
}

#[derive(Debug, Default)]
pub(crate) struct Phrases {
    exact: Table,
    stems: Table,
    /// Words that follow others, by [`edge`].
    edges: Table,
    /// A bit for each edge's hash: for most words, the next word has no edge.
    ahead: Vec<u64>,
    /// Number of trie nodes: words that another word follows in some phrase.
    nodes: u32,
    count: u32,
    /// True if some phrase may span the end of a sentence.
    over_breaks: bool,
}

impl Phrases {
    /// Returns the number of the phrase, assigned on first insertion, and the hash of its first word.
    pub(crate) fn insert(&mut self, phrase: &Phrase, keys: &Keys) -> (u32, u64) {
        let Some((&begin, rest)) = phrase.hashes.split_first() else {
            return (NONE, 0);
        };
        let words = if phrase.stemmed {
            &mut self.stems
        } else {
            &mut self.exact
        };
        let mut to = words.entry(begin);
        for (nth, &word) in (1..).zip(rest) {
            let over_break = phrase.after_break.contains(&nth);
            self.over_breaks |= over_break;
            if to.node == NONE {
                to.node = self.nodes;
                self.nodes += 1;
            }
            let edge = edge(keys, to.node, word, over_break);
            to = self.edges.entry(edge);
        }
        if to.phrase == NONE {
            to.phrase = self.count;
            self.count += 1;
        }
        (to.phrase, begin)
    }

    /// Finishes the insertion. `phrase` maps each phrase to its final number.
    pub(crate) fn finish(&mut self, mut phrase: impl FnMut(u32) -> u32) {
        self.exact.finish(&mut phrase);
        self.stems.finish(&mut phrase);
        self.edges.finish(&mut phrase);
        let bits = self.edges.len() * BITS_AN_EDGE;
        self.ahead = vec![0; bits.div_ceil(64).next_power_of_two()];
        for edge in self.edges.keys() {
            let (at, bit) = place(edge, self.ahead.len());
            self.ahead[at] |= bit;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.count as usize
    }

    /// Returns the memory used, in bytes.
    pub(super) fn memory(&self) -> usize {
        let tables = [&self.exact, &self.stems, &self.edges].map(Table::memory);
        tables.iter().sum::<usize>() + self.ahead.capacity() * size_of::<u64>()
    }

    /// Calls `found` with the first and the last word of each occurrence of each phrase whose first word is wanted.
    /// Returns the number of steps that phrases of several words took.
    pub(crate) fn find(
        &self,
        words: &Words,
        wanted: Wanted<'_>,
        room: &mut Room,
        mut found: impl FnMut(u32, &Found, &Found),
    ) -> u32 {
        let Room { places, begun } = room;
        let tokens = words.tokens();
        let mut steps = 0_u32;
        for (table, stemmed) in [(&self.exact, false), (&self.stems, true)] {
            if table.is_empty() {
                continue;
            }
            let hashes = words.hashes(stemmed);
            begun.clear();
            match wanted {
                Wanted::All => sift(hashes, places, |_| true),
                Wanted::Keys(sieves) => sift(hashes, places, |hash| sieves.has(hash)),
                Wanted::Others(sieves) => sift(hashes, places, |hash| !sieves.has(hash)),
            }
            table.keep_known(places, |at| hashes[at as usize]);
            for &at in places.iter() {
                let Some(to) = table.get(hashes[at as usize]) else {
                    continue;
                };
                if to.phrase != NONE {
                    let token = &tokens[at as usize];
                    found(to.phrase, token, token);
                }
                if to.node != NONE {
                    begun.push((at, to.node));
                }
            }
            let mut walk = Walk {
                phrases: self,
                keys: Keys::of_process(),
                words,
                hashes,
                steps: 0,
            };
            for &(at, node) in begun.iter() {
                let first = &tokens[at as usize];
                walk.follow(at as usize, node, &mut |phrase, last| {
                    found(phrase, first, &tokens[last]);
                });
            }
            steps = steps.saturating_add(walk.steps);
        }
        steps
    }
}

/// Working memory for the words that begin a phrase.
#[derive(Debug, Default)]
pub(crate) struct Room {
    places: Vec<u32>,
    begun: Vec<(u32, u32)>,
}

struct Walk<'a> {
    phrases: &'a Phrases,
    keys: Keys,
    words: &'a Words,
    hashes: &'a [u64],
    steps: u32,
}

impl Walk<'_> {
    /// Follows all phrases that reach `node` with the word `at`. The recursion is as deep as the longest phrase, which
    /// has fifty words.
    fn follow(&mut self, at: usize, node: u32, found: &mut impl FnMut(u32, usize)) {
        if self.steps >= MAX_STEPS {
            return;
        }
        let from = &self.words.tokens()[at];
        let next = from.place + from.width;
        let mut here = self.words.at_place(next, at);
        let gap = here.is_empty();
        if gap {
            if !self.phrases.over_breaks {
                return;
            }
            here = self.words.at_place(next + 1, at);
        }
        for nth in here.clone() {
            let hash = self.hashes[nth];
            // Of two equal readings, the narrower counts: it comes first.
            if self.hashes[here.start..nth].contains(&hash) {
                continue;
            }
            self.steps = self.steps.saturating_add(1);
            if !gap {
                let edge = edge(&self.keys, node, hash, false);
                self.take(nth, edge, found);
            }
            if self.phrases.over_breaks {
                let edge = edge(&self.keys, node, hash, true);
                self.take(nth, edge, found);
            }
        }
    }

    #[inline]
    fn take(&mut self, at: usize, edge: u64, found: &mut impl FnMut(u32, usize)) {
        let (place, bit) = place(edge, self.phrases.ahead.len());
        if self.phrases.ahead[place] & bit == 0 {
            return;
        }
        let Some(to) = self.phrases.edges.get(edge) else {
            return;
        };
        if to.phrase != NONE {
            found(to.phrase, at);
        }
        if to.node != NONE {
            self.follow(at, to.node, found);
        }
    }
}

/// Collects the positions of the hashes that satisfy `may`, without a branch for each.
#[inline]
fn sift(hashes: &[u64], places: &mut Vec<u32>, may: impl Fn(u64) -> bool) {
    places.clear();
    places.resize(hashes.len(), 0);
    let mut kept = 0;
    for (at, &hash) in (0..).zip(hashes) {
        places[kept] = at;
        kept += usize::from(may(hash));
    }
    places.truncate(kept);
}

/// Returns the hash of the edge from a node for a word.
#[inline]
fn edge(keys: &Keys, node: u32, word: u64, over_break: bool) -> u64 {
    keys.hash_pair(word, (u64::from(node) << 1) | u64::from(over_break))
}

/// Returns the position of the edge's bit in a filter of this many words, a power of two.
#[inline]
fn place(edge: u64, words: usize) -> (usize, u64) {
    let at = (edge >> 6) as usize & (words - 1);
    (at, 1 << (edge % 64))
}

#[cfg(test)]
mod tests {
    use super::{MAX_STEPS, Phrases, Room, Wanted};
    use crate::{phrase::Readings, text::code::Keys, words::Words};

    /// Each `aa-aa` can be read in two ways, so very many phrases begin at each word.
    #[test]
    fn steps_of_all_phrases_in_a_post_are_limited() {
        let keys = Keys::of_process();
        let mut phrases = Phrases::default();
        for bits in 0..1_u32 << 10 {
            let words = (0..10).map(|n| if bits >> n & 1 == 1 { "aaaa" } else { "aa aa" });
            let term = words.collect::<Vec<_>>().join(" ");
            for phrase in Readings::exact(&term).unwrap().phrases() {
                phrases.insert(phrase, &keys);
            }
        }
        phrases.finish(|phrase| phrase);
        let words = Words::of(&"aa-aa ".repeat(20_000));
        let mut found = 0;
        let steps = phrases.find(&words, Wanted::All, &mut Room::default(), |_, _, _| {
            found += 1
        });
        assert!(found > 1_000, "{found}");
        let range = MAX_STEPS..MAX_STEPS + 1_000;
        assert!(range.contains(&steps), "{steps}");
    }
}
