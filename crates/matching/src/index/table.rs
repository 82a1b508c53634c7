//! A hash table with secret 64-bit hashes as keys, laid out for fast lookups.
//!
//! A slot is 16 bytes and contains everything, so a lookup touches one cache line. The hash is the key. Two words with
//! the same hash are less likely than a hardware error, and cannot be provoked: each process chooses a random hash
//! function. The table grows while it is filled; `finish` cuts it to size.

/// Marker for no phrase, or no node.
pub(super) const NONE: u32 = u32::MAX;

/// Target of a word, or of a word after others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Target {
    /// The phrase that ends here, or `NONE`.
    pub(super) phrase: u32,
    /// The node where longer phrases continue, or `NONE`.
    pub(super) node: u32,
}

const NOWHERE: Target = Target {
    phrase: NONE,
    node: NONE,
};

#[derive(Debug, Clone, Copy)]
struct Slot {
    /// Hash, or zero in a free slot.
    key: u64,
    to: Target,
}

const FREE: Slot = Slot {
    key: 0,
    to: NOWHERE,
};

#[derive(Debug, Default)]
pub(super) struct Table {
    slots: Vec<Slot>,
    len: usize,
}

impl Table {
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns every hash in the table.
    pub(super) fn keys(&self) -> impl Iterator<Item = u64> {
        let keys = self.slots.iter().map(|slot| slot.key);
        keys.filter(|&key| key != 0)
    }

    #[inline]
    pub(super) fn get(&self, hash: u64) -> Option<Target> {
        let key = key(hash);
        let mut at = self.home(key);
        loop {
            let slot = self.slots.get(at)?;
            if slot.key == key {
                return Some(slot.to);
            }
            if slot.key == 0 {
                return None;
            }
            at = self.after(at);
        }
    }

    /// Keeps the positions of hashes that may be in the table: all that are, and few others. Reads one slot for each.
    /// The reads do not depend on each other, so many cache misses overlap.
    #[inline]
    pub(super) fn keep_known(&self, places: &mut Vec<u32>, hash: impl Fn(u32) -> u64) {
        if self.is_empty() {
            return places.clear();
        }
        let mut kept = 0;
        for nth in 0..places.len() {
            let at = places[nth];
            places[kept] = at;
            kept += usize::from(self.slots[self.home(key(hash(at)))].key != 0);
        }
        places.truncate(kept);
    }

    /// Returns the target of the hash for writing; a new entry has no target.
    pub(super) fn entry(&mut self, hash: u64) -> &mut Target {
        if self.len * 4 >= self.slots.len() * 3 {
            self.resize((self.slots.len() * 2).max(16));
        }
        let key = key(hash);
        let mut at = self.home(key);
        while self.slots[at].key != key && self.slots[at].key != 0 {
            at = self.after(at);
        }
        let slot = &mut self.slots[at];
        self.len += usize::from(slot.key == 0);
        slot.key = key;
        &mut slot.to
    }

    /// Finishes the table: every second slot is used. `phrase` maps each phrase to its final number.
    pub(super) fn finish(&mut self, mut phrase: impl FnMut(u32) -> u32) {
        self.resize(self.len * 2);
        for slot in &mut self.slots {
            if slot.to.phrase != NONE {
                slot.to.phrase = phrase(slot.to.phrase);
            }
        }
    }

    /// Returns the memory used, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }

    fn resize(&mut self, slots: usize) {
        let before = std::mem::replace(&mut self.slots, vec![FREE; slots]);
        for slot in before.into_iter().filter(|slot| slot.key != 0) {
            let mut at = self.home(slot.key);
            while self.slots[at].key != 0 {
                at = self.after(at);
            }
            self.slots[at] = slot;
        }
    }

    /// Maps the key to a slot, in proportion to its value.
    #[inline]
    fn home(&self, key: u64) -> usize {
        let product = u128::from(key) * self.slots.len() as u128;
        #[expect(clippy::cast_possible_truncation, reason = "the upper half")]
        let home = (product >> 64) as usize;
        home
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        if at + 1 == self.slots.len() {
            0
        } else {
            at + 1
        }
    }
}

#[inline]
fn key(hash: u64) -> u64 {
    hash.max(1)
}

#[cfg(test)]
mod tests {
    use super::Table;

    /// Hashes spread over the whole range, including zero and clusters at both ends.
    fn hashes() -> Vec<u64> {
        let spread = (0..5_000_u64).map(|nth| nth.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let ends = (0..50).flat_map(|nth| [nth * 2, u64::MAX - nth]);
        let mut hashes: Vec<u64> = spread.chain(ends).collect();
        hashes.sort_unstable();
        hashes.dedup();
        hashes
    }

    #[test]
    fn table_finds_exactly_the_inserted_keys() {
        let hashes = hashes();
        let (known, unknown): (Vec<_>, Vec<_>) =
            (0_u32..).zip(hashes).partition(|(n, _)| n % 3 > 0);
        let mut table = Table::default();
        assert!(table.get(7).is_none());
        for &(number, hash) in known.iter().chain(&known) {
            table.entry(hash).phrase = number;
            table.entry(hash).node = number + 1;
        }
        for finished in [false, true] {
            let change = u32::from(finished);
            if finished {
                table.finish(|phrase| phrase + 1);
            }
            for &(number, hash) in &known {
                let to = table.get(hash).unwrap();
                assert_eq!((to.phrase, to.node), (number + change, number + 1));
            }
            assert!(unknown.iter().all(|&(_, hash)| table.get(hash).is_none()));
            let may_be = |hashes: &[(u32, u64)]| {
                let mut places: Vec<u32> = (0..).take(hashes.len()).collect();
                table.keep_known(&mut places, |at| hashes[at as usize].1);
                places.len()
            };
            assert_eq!(may_be(&known), known.len());
            assert!(may_be(&unknown) < unknown.len());
        }
        assert_eq!(table.memory(), known.len() * 2 * 16);
    }
}
