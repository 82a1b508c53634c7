//! A small hash table from numbers to their positions in a list, for a few of very many numbers.
//!
//! It is kept small, so that it stays in the nearest cache. A table that a long post made large is dropped again.

const SMALL: usize = 512;

#[derive(Debug, Default)]
pub(super) struct Places {
    /// Key, and position plus one; zero marks a free slot. The length is a power of two.
    slots: Vec<(u32, u32)>,
    len: usize,
}

impl Places {
    pub(super) fn clear(&mut self) {
        if self.len > 0 {
            self.slots.truncate(SMALL);
            self.slots.fill((0, 0));
            self.len = 0;
        }
    }

    #[inline]
    pub(super) fn get(&self, key: u32) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        self.slots[self.find(key)].1.checked_sub(1)
    }

    /// Returns the position of the key; a new key gets the position `next`.
    #[inline]
    pub(super) fn place(&mut self, key: u32, next: u32) -> u32 {
        if self.len * 2 >= self.slots.len() {
            self.grow();
        }
        let at = self.find(key);
        let slot = &mut self.slots[at];
        if slot.1 == 0 {
            *slot = (key, next + 1);
            self.len += 1;
        }
        slot.1 - 1
    }

    /// Returns the slot of the key, or the free slot where it belongs.
    #[inline]
    fn find(&self, key: u32) -> usize {
        let mask = self.slots.len() - 1;
        let mixed = u64::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let mut at = mixed as usize & mask;
        while self.slots[at].1 != 0 && self.slots[at].0 != key {
            at = (at + 1) & mask;
        }
        at
    }

    #[cold]
    fn grow(&mut self) {
        let slots = (self.slots.len() * 2).max(SMALL);
        let before = std::mem::replace(&mut self.slots, vec![(0, 0); slots]);
        for slot in before.into_iter().filter(|slot| slot.1 != 0) {
            let at = self.find(slot.0);
            self.slots[at] = slot;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Places;

    #[test]
    fn each_key_keeps_its_first_position() {
        let mut places = Places::default();
        for count in [3, 10_000, 40] {
            assert_eq!(places.get(1), None);
            for round in 0..2 {
                for nth in 0..count {
                    assert_eq!(places.place(nth * 7, nth + round), nth);
                }
            }
            assert_eq!((places.get(14), places.get(1)), (Some(2), None));
            places.clear();
            assert!(places.slots.len() <= super::SMALL);
        }
    }
}
