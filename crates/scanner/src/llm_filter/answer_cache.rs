//! Recent answers, so that a candidate that is matched again is not asked about again.
//!
//! A post comes again if plans changed while the model was asked, if its poll could not be stored, and from
//! another feed of the same Manager. The cache has two generations and drops the older one: a few hundred
//! kilobytes.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
};

use domain::{Focus, ManagerName};
use serde_json::Value;

const GENERATION: usize = 5_000;

#[derive(Default)]
pub(super) struct AnswerCache {
    hasher: RandomState,
    newer: HashMap<Key, bool>,
    older: HashMap<Key, bool>,
}

/// The Manager, and a hash of its question: other instructions make another question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key(ManagerName, u64);

impl AnswerCache {
    pub(super) fn key(&self, manager: &ManagerName, focus: Focus, material: &Value) -> Key {
        let hash = self.hasher.hash_one((focus, material.to_string()));
        Key(*manager, hash)
    }

    pub(super) fn get(&self, key: Key) -> Option<bool> {
        let answer = self.newer.get(&key).or_else(|| self.older.get(&key));
        answer.copied()
    }

    pub(super) fn put(&mut self, key: Key, answer: bool) {
        if self.newer.len() >= GENERATION {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(key, answer);
    }
}

#[cfg(test)]
mod tests {
    use domain::{Focus, Id, ManagerName};
    use serde_json::json;

    use super::{AnswerCache, GENERATION};

    #[test]
    fn cache_keeps_the_newest_answers_in_bounded_memory() {
        let manager = ManagerName {
            namespace: Id::generate(),
            manager: Id::generate(),
        };
        let mut cache = AnswerCache::default();
        let keys: Vec<_> = (0..3 * GENERATION)
            .map(|nth| cache.key(&manager, Focus::Sales, &json!({ "post": nth })))
            .collect();
        for (nth, key) in keys.iter().enumerate() {
            cache.put(*key, nth % 3 == 0);
        }
        assert_eq!(cache.get(keys[0]), None);
        for (nth, key) in keys.iter().enumerate().skip(2 * GENERATION) {
            assert_eq!(cache.get(*key), Some(nth % 3 == 0));
        }
        assert!(cache.newer.len() + cache.older.len() <= 2 * GENERATION);
    }
}
