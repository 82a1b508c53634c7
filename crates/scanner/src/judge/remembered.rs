//! The verdicts of late: what is matched again is not asked again.
//!
//! A post comes again when plans changed while it was judged, when its poll could not be stored, and by another
//! feed of the same Manager. Bounded by two generations of which the older goes: a few hundred kilobytes.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
};

use domain::ManagerName;
use serde_json::Value;

const GENERATION: usize = 5_000;

#[derive(Default)]
pub(super) struct Remembered {
    hasher: RandomState,
    newer: HashMap<Key, bool>,
    older: HashMap<Key, bool>,
}

/// The Manager, and what it was asked, brief included: with other instructions it is another question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key(ManagerName, u64);

impl Remembered {
    pub(super) fn key(&self, manager: &ManagerName, material: &Value) -> Key {
        Key(*manager, self.hasher.hash_one(material.to_string()))
    }

    pub(super) fn get(&self, key: Key) -> Option<bool> {
        let found = self.newer.get(&key).or_else(|| self.older.get(&key));
        found.copied()
    }

    pub(super) fn put(&mut self, key: Key, verdict: bool) {
        if self.newer.len() >= GENERATION {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(key, verdict);
    }
}

#[cfg(test)]
mod tests {
    use domain::{Id, ManagerName};
    use serde_json::json;

    use super::{GENERATION, Remembered};

    #[test]
    fn the_newest_verdicts_are_remembered_in_bounded_room() {
        let manager = ManagerName {
            namespace: Id::generate(),
            manager: Id::generate(),
        };
        let mut remembered = Remembered::default();
        let keys: Vec<_> = (0..3 * GENERATION)
            .map(|nth| remembered.key(&manager, &json!({ "post": nth })))
            .collect();
        for (nth, key) in keys.iter().enumerate() {
            remembered.put(*key, nth % 3 == 0);
        }
        assert_eq!(remembered.get(keys[0]), None);
        for (nth, key) in keys.iter().enumerate().skip(2 * GENERATION) {
            assert_eq!(remembered.get(*key), Some(nth % 3 == 0));
        }
        assert!(remembered.newer.len() + remembered.older.len() <= 2 * GENERATION);
    }
}
