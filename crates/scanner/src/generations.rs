//! A cache of bounded size. It has two generations and drops the older one, so the least recently used entries go
//! first.

use std::{collections::HashMap, hash::Hash};

pub(crate) struct Generations<K, V> {
    /// Weight of a generation.
    limit: usize,
    newer: HashMap<K, (V, usize)>,
    newer_weight: usize,
    older: HashMap<K, (V, usize)>,
}

impl<K: Eq + Hash + Copy, V: Clone> Generations<K, V> {
    /// Each generation has at most the weight `limit`, or a single entry.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            newer: HashMap::new(),
            newer_weight: 0,
            older: HashMap::new(),
        }
    }

    pub(crate) fn get(&mut self, key: &K) -> Option<V> {
        if let Some((value, _)) = self.newer.get(key) {
            return Some(value.clone());
        }
        let (value, weight) = self.older.remove(key)?;
        self.put(*key, value.clone(), weight);
        Some(value)
    }

    pub(crate) fn put(&mut self, key: K, value: V, weight: usize) {
        if let Some((_, weight)) = self.newer.remove(&key) {
            self.newer_weight -= weight;
        }
        self.older.remove(&key);
        if self.newer_weight + weight > self.limit {
            self.older = std::mem::take(&mut self.newer);
            self.newer_weight = 0;
        }
        self.newer_weight += weight;
        self.newer.insert(key, (value, weight));
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.limit);
    }

    pub(crate) fn retain(&mut self, is_kept: impl Fn(&K) -> bool) {
        self.older.retain(|key, _| is_kept(key));
        self.newer.retain(|key, _| is_kept(key));
        self.newer_weight = self.newer.values().map(|(_, weight)| weight).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::Generations;

    fn weight(cache: &Generations<u32, u32>) -> usize {
        let all = cache.newer.values().chain(cache.older.values());
        all.map(|(_, weight)| weight).sum()
    }

    #[test]
    fn newest_entries_are_kept_within_the_limit() {
        let mut cache = Generations::new(10);
        for nth in 0..100 {
            cache.put(nth, nth, 3);
            assert!(weight(&cache) <= 20, "{nth}");
            assert_eq!(cache.get(&nth), Some(nth));
        }
        assert_eq!([0, 90].map(|nth| cache.get(&nth)), [None; 2]);
        assert_eq!([97, 98].map(|nth| cache.get(&nth)), [Some(97), Some(98)]);
    }

    #[test]
    fn entries_in_use_survive_others() {
        let mut cache = Generations::new(10);
        cache.put(0, 7, 1);
        for nth in 1..100 {
            cache.put(nth, nth, 3);
            assert_eq!(cache.get(&0), Some(7), "{nth}");
        }
    }

    #[test]
    fn an_entry_that_is_replaced_weighs_once() {
        let mut cache = Generations::new(10);
        for nth in 0..100 {
            cache.put(0, nth, 4);
        }
        cache.put(1, 1, 4);
        assert_eq!([cache.get(&0), cache.get(&1)], [Some(99), Some(1)]);
        assert_eq!((cache.newer_weight, weight(&cache)), (8, 8));
        cache.retain(|key| *key == 1);
        assert_eq!((cache.newer_weight, weight(&cache)), (4, 4));
        cache.clear();
        assert_eq!((cache.get(&1), cache.newer_weight), (None, 0));
    }

    #[test]
    fn an_entry_above_the_limit_fills_a_generation() {
        let mut cache = Generations::new(10);
        cache.put(0, 0, 50);
        cache.put(1, 1, 50);
        assert_eq!(cache.get(&1), Some(1));
        assert_eq!(cache.newer.len(), 1);
    }
}
