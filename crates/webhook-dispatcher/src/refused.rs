//! What the database refused: retried alone, less and less often, so that it blocks nothing else.

use std::{
    collections::HashMap,
    hash::Hash,
    time::{Duration, Instant},
};

const FIRST_RETRY: Duration = Duration::from_secs(2);
const MAX_RETRY: Duration = Duration::from_secs(60);
/// Number of refused items above which the cause cannot be a single one.
const MAX_REFUSED: usize = 1_000;

/// Refused items, with the time and delay of their next try.
pub(crate) struct Refused<T>(HashMap<T, (Instant, Duration)>);

impl<T> Default for Refused<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T: Copy + Eq + Hash> Refused<T> {
    pub(crate) fn due(&self, now: Instant) -> Vec<T> {
        let due = self.0.iter().filter(|(_, (time, _))| *time <= now);
        due.map(|(item, _)| *item).collect()
    }

    pub(crate) fn all(&self) -> Vec<T> {
        self.0.keys().copied().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn remove(&mut self, item: T) {
        self.0.remove(&item);
    }

    /// Postpones an item, and returns the time until its next try.
    pub(crate) fn put_off(&mut self, item: T, now: Instant) -> Duration {
        if self.0.len() >= MAX_REFUSED && !self.0.contains_key(&item) {
            self.0.clear();
        }
        let longer = |(_, wait): &(Instant, Duration)| (*wait * 2).min(MAX_RETRY);
        let wait = self.0.get(&item).map_or(FIRST_RETRY, longer);
        self.0.insert(item, (now + wait, wait));
        wait
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Refused;

    #[test]
    fn a_refused_item_is_tried_less_and_less_often() {
        let (mut refused, now) = (Refused::default(), Instant::now());
        let waits: Vec<u64> = (0..7)
            .map(|_| refused.put_off("scan", now).as_secs())
            .collect();
        assert_eq!(waits, [2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(refused.due(now + Duration::from_secs(59)), [""; 0]);
        assert_eq!(refused.due(now + Duration::from_secs(60)), ["scan"]);
    }
}
