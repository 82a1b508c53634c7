//! How many items of a kind one replica may have in hand, and which account's item comes next.

use domain::Id;
use uuid::Uuid;

use crate::fair::{Places, Turns};

/// Capacity of a replica for one kind of work: for young items, for items that were slow last time, and for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    quick: Places,
    slow: Places,
    all: Places,
    /// True if a suspect is in hand.
    has_suspect: bool,
}

/// An item that is due, with the accounts that it may count for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate<K> {
    pub key: K,
    pub slow: bool,
    /// True if it may be what ended earlier processes.
    pub is_suspect: bool,
    pub accounts: Vec<Id>,
}

impl Room {
    pub fn new(quick: usize, slow: usize, all: usize) -> Self {
        Self {
            quick: Places::new(quick),
            slow: Places::new(slow),
            all: Places::new(all),
            has_suspect: false,
        }
    }

    fn places(&self, slow: bool) -> &Places {
        if slow { &self.slow } else { &self.quick }
    }

    /// Takes capacity for an item.
    pub fn take(&mut self, account: Id, slow: bool) {
        if slow {
            self.slow.take(account);
        } else {
            self.quick.take(account);
        }
        self.all.take(account);
    }

    /// Takes capacity for an item that has become slow.
    pub fn take_overdue(&mut self, account: Id) {
        self.all.take(account);
    }

    /// Takes the only place for suspects.
    pub fn take_suspect(&mut self) {
        self.has_suspect = true;
    }

    /// Returns true if `account` may start another item, which was `slow` last time or not.
    pub fn admits(&self, account: Id, slow: bool) -> bool {
        self.all.admits(account) && self.places(slow).admits(account)
    }

    /// Returns true if no one may start an item.
    pub fn is_full(&self) -> bool {
        self.free(false) == 0 && self.free(true) == 0
    }

    pub(crate) fn free(&self, slow: bool) -> i64 {
        let free = self.places(slow).free().min(self.all.free());
        i64::try_from(free).unwrap_or(i64::MAX)
    }

    /// Number of suspects that may be started.
    pub(crate) fn suspects(&self) -> i64 {
        i64::from(!self.has_suspect)
    }

    /// Returns the accounts that may not start another item.
    pub(crate) fn refused(&self, slow: bool) -> Vec<Uuid> {
        let refused = self.places(slow).refused().chain(self.all.refused());
        refused.map(|account| account.to_uuid()).collect()
    }

    /// Chooses items and the accounts that they count for, and takes their capacity. `candidates` must be in the
    /// order in which an account's items are worked on.
    ///
    /// Accounts with the fewest items in hand come first, then those that were served the longest ago.
    pub(crate) fn choose<K>(
        &mut self,
        mut candidates: Vec<Candidate<K>>,
        turns: &mut Turns,
    ) -> Vec<(K, Id)> {
        let mut chosen = Vec::new();
        loop {
            let next = candidates.iter().enumerate().filter_map(|(at, item)| {
                if item.is_suspect && self.has_suspect {
                    return None;
                }
                let may = { item.accounts.iter() }.filter(|id| self.admits(**id, item.slow));
                let order = |id: &Id| (self.all.held_by(*id), turns.of(*id), *id);
                let first = may.copied().min_by_key(order)?;
                let (held, turn, _) = order(&first);
                Some((held, turn, at, first))
            });
            let Some((_, _, at, account)) = next.min() else {
                return chosen;
            };
            let item = candidates.remove(at);
            self.take(account, item.slow);
            self.has_suspect |= item.is_suspect;
            turns.serve(account);
            chosen.push((item.key, account));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(number: u128) -> Id {
        Id::from_uuid(Uuid::from_u128(number))
    }

    fn feed(name: &str, accounts: &[u128]) -> Candidate<String> {
        Candidate {
            key: name.to_owned(),
            slow: false,
            is_suspect: false,
            accounts: accounts.iter().map(|n| account(*n)).collect(),
        }
    }

    fn chosen(
        room: &mut Room,
        turns: &mut Turns,
        feeds: Vec<Candidate<String>>,
    ) -> Vec<(String, Id)> {
        room.choose(feeds, turns)
    }

    #[test]
    fn accounts_take_turns_regardless_of_their_number_of_feeds() {
        let mut room = Room::new(6, 6, 6);
        let many = (0..5).map(|n| feed(&format!("a{n}"), &[1]));
        let candidates = many.chain([feed("b", &[2])]).collect();
        let chosen = chosen(&mut room, &mut Turns::default(), candidates);
        let names: Vec<&str> = chosen.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a0", "b", "a1", "a2"]);
    }

    #[test]
    fn shared_feed_counts_for_the_account_with_the_fewest_polls() {
        let mut room = Room::new(8, 8, 8);
        room.take(account(1), false);
        let candidates = vec![feed("a", &[1]), feed("shared", &[1, 2])];
        let mut turns = Turns::default();
        assert_eq!(
            chosen(&mut room, &mut turns, candidates),
            [
                ("shared".to_owned(), account(2)),
                ("a".to_owned(), account(1))
            ]
        );
    }

    #[test]
    fn account_that_was_served_longer_ago_comes_first() {
        let mut turns = Turns::default();
        let both = || vec![feed("a", &[1]), feed("b", &[2])];
        let mut first = Vec::new();
        for _ in 0..4 {
            // One place, which is free again each time.
            let chosen = chosen(&mut Room::new(1, 1, 1), &mut turns, both());
            first.extend(chosen.into_iter().map(|(name, _)| name));
        }
        assert_eq!(first, ["a", "b", "a", "b"]);
    }

    #[test]
    fn a_replica_has_one_suspect_in_hand_next_to_other_items() {
        let mut room = Room::new(9, 9, 9);
        let suspect = |name| Candidate {
            is_suspect: true,
            ..feed(name, &[1])
        };
        let candidates = || vec![suspect("a"), suspect("b"), feed("c", &[1])];
        let names = |chosen: Vec<(String, Id)>| -> Vec<String> {
            chosen.into_iter().map(|(name, _)| name).collect()
        };
        let mut turns = Turns::default();
        assert_eq!(
            names(chosen(&mut room, &mut turns, candidates())),
            ["a", "c"]
        );
        let mut room = Room::new(9, 9, 9);
        room.take_suspect();
        assert_eq!(names(chosen(&mut room, &mut turns, candidates())), ["c"]);
    }
}
