//! Finds all of many phrases in a post in one pass over its words.
//!
//! A word costs one look-up among the words as written, and one among the stems where there are any.
//! The few that begin a phrase of several words are followed through a trie, whose edges lie in one
//! hash table. What is found is what [`PostText::count`](crate::PostText) counts.

use hashbrown::HashTable;

use super::words::Words;
use crate::{
    phrase::Phrase,
    text::{
        code::{Code, Keys},
        scan::Found,
    },
};

pub(super) const NONE: u32 = u32::MAX;

#[derive(Debug, Default)]
pub(super) struct Phrases {
    exact: HashTable<Entry>,
    stems: HashTable<Entry>,
    edges: HashTable<Edge>,
    /// Nodes of the trie: words that another word follows in some phrase.
    nodes: u32,
    words: u32,
    count: u32,
    /// Whether some phrase may reach over the end of a sentence.
    over_breaks: bool,
}

/// A word of some phrase.
#[derive(Debug, Clone, Copy)]
struct Entry {
    code: Code,
    word: u32,
    to: Target,
}

/// What a word, or a word behind others, is.
#[derive(Debug, Clone, Copy)]
struct Target {
    /// The phrase that ends here, or `NONE`.
    phrase: u32,
    /// The node from which longer phrases go on, or `NONE`.
    node: u32,
}

#[derive(Debug, Clone, Copy)]
struct Edge {
    key: u64,
    to: Target,
}

const NOWHERE: Target = Target {
    phrase: NONE,
    node: NONE,
};

impl Phrases {
    /// The number of the phrase, which it is given the first time that it is seen.
    pub(super) fn insert(&mut self, phrase: &Phrase, keys: &Keys) -> u32 {
        let Some((first, rest)) = phrase.words.split_first() else {
            return NONE;
        };
        let mut first = self.entry(first, phrase.stemmed, keys).to;
        let mut edge = None;
        for (nth, word) in (1..).zip(rest) {
            let word = self.entry(word, phrase.stemmed, keys).word;
            let over_break = phrase.after_break.contains(&nth);
            self.over_breaks |= over_break;
            if first.node == NONE {
                first.node = self.nodes;
                self.nodes += 1;
                self.store(phrase, edge, first, keys);
            }
            let key = key(first.node, word, over_break);
            first = self.edge(key, keys);
            edge = Some(key);
        }
        if first.phrase == NONE {
            first.phrase = self.count;
            self.count += 1;
            self.store(phrase, edge, first, keys);
        }
        first.phrase
    }

    /// Where the way through the phrase has come to: its first word, or an edge behind it.
    fn store(&mut self, phrase: &Phrase, edge: Option<u64>, to: Target, keys: &Keys) {
        if let Some(key) = edge {
            let hash = keys.hash_number(key);
            if let Some(edge) = self.edges.find_mut(hash, |edge| edge.key == key) {
                edge.to = to;
            }
        } else {
            let code = keys.code(phrase.words[0].as_bytes());
            let table = if phrase.stemmed {
                &mut self.stems
            } else {
                &mut self.exact
            };
            if let Some(entry) = table.find_mut(keys.hash(code), |entry| entry.code == code) {
                entry.to = to;
            }
        }
    }

    fn entry(&mut self, word: &str, stemmed: bool, keys: &Keys) -> Entry {
        let code = keys.code(word.as_bytes());
        let words = &mut self.words;
        let table = if stemmed {
            &mut self.stems
        } else {
            &mut self.exact
        };
        let entry = table.entry(
            keys.hash(code),
            |entry| entry.code == code,
            |entry| keys.hash(entry.code),
        );
        *entry
            .or_insert_with(|| {
                *words += 1;
                Entry {
                    code,
                    word: *words - 1,
                    to: NOWHERE,
                }
            })
            .get()
    }

    fn edge(&mut self, key: u64, keys: &Keys) -> Target {
        let entry = self.edges.entry(
            keys.hash_number(key),
            |edge| edge.key == key,
            |edge| keys.hash_number(edge.key),
        );
        entry.or_insert(Edge { key, to: NOWHERE }).get().to
    }

    pub(super) fn len(&self) -> usize {
        self.count as usize
    }

    /// Bytes of memory held.
    pub(super) fn memory(&self) -> usize {
        self.exact.allocation_size() + self.stems.allocation_size() + self.edges.allocation_size()
    }

    /// Tells `found` each occurrence of each phrase, and the byte at which it starts. Answers in how
    /// many steps phrases of several words were followed.
    pub(super) fn find(&self, words: &mut Words, mut found: impl FnMut(u32, u32)) -> u32 {
        let mut steps = 0_u32;
        for (table, stemmed) in [(&self.exact, false), (&self.stems, true)] {
            if table.is_empty() {
                continue;
            }
            let Flavour { tokens, ids, begun } = words.flavour(stemmed);
            ids.clear();
            begun.clear();
            for (at, token) in (0..).zip(tokens) {
                let Some(entry) = table.find(token.hash, |entry| entry.code == token.code) else {
                    ids.push(NONE);
                    continue;
                };
                ids.push(entry.word);
                if entry.to.phrase != NONE {
                    found(entry.to.phrase, token.start);
                }
                if entry.to.node != NONE {
                    begun.push((at, entry.to.node));
                }
            }
            let mut walk = Walk {
                phrases: self,
                keys: Keys::of_process(),
                words: tokens,
                ids,
                steps: 0,
            };
            for &(at, node) in begun.iter() {
                let start = tokens[at as usize].start;
                walk.follow(at as usize, node, &mut |phrase| found(phrase, start));
            }
            steps = steps.saturating_add(walk.steps);
        }
        steps
    }
}

/// Words as written, or their stems, with room for what they are to some phrases.
pub(super) struct Flavour<'a> {
    pub(super) tokens: &'a [Found],
    pub(super) ids: &'a mut Vec<u32>,
    pub(super) begun: &'a mut Vec<(u32, u32)>,
}

struct Walk<'a> {
    phrases: &'a Phrases,
    keys: Keys,
    words: &'a [Found],
    /// The number of each word among the phrases' words, or `NONE`.
    ids: &'a [u32],
    steps: u32,
}

impl Walk<'_> {
    /// Follows all phrases that have come to `node` with the word `at`. As deep as the longest phrase,
    /// which has fifty words.
    fn follow(&mut self, at: usize, node: u32, found: &mut impl FnMut(u32)) {
        let from = &self.words[at];
        let mut next = from.place + from.width;
        let rest = &self.words[at + 1..];
        let ahead = rest.iter().take_while(|word| word.place < next).count();
        let begin = at + 1 + ahead;
        let gap = self.words.get(begin).is_none_or(|word| word.place > next);
        if gap {
            if !self.phrases.over_breaks {
                return;
            }
            next += 1;
        }
        let here = self.words[begin..]
            .iter()
            .take_while(|word| word.place == next)
            .count();
        for nth in begin..begin + here {
            let id = self.ids[nth];
            // Of two readings that are one, the narrower counts: it comes first.
            if id == NONE || self.ids[begin..nth].contains(&id) {
                continue;
            }
            self.steps = self.steps.saturating_add(1);
            if !gap {
                self.take(nth, key(node, id, false), found);
            }
            if self.phrases.over_breaks {
                self.take(nth, key(node, id, true), found);
            }
        }
    }

    fn take(&mut self, at: usize, key: u64, found: &mut impl FnMut(u32)) {
        let hash = self.keys.hash_number(key);
        let Some(edge) = self.phrases.edges.find(hash, |edge| edge.key == key) else {
            return;
        };
        let to = edge.to;
        if to.phrase != NONE {
            found(to.phrase);
        }
        if to.node != NONE {
            self.follow(at, to.node, found);
        }
    }
}

fn key(node: u32, word: u32, over_break: bool) -> u64 {
    (u64::from(node) << 33) | (u64::from(word) << 1) | u64::from(over_break)
}
