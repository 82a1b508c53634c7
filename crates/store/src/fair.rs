//! Places that accounts share: for polls, for compilations.
//!
//! An account may take a place while it holds fewer than are free. So one account alone gets half of all places, two
//! get a third each, and `n` an `n + 1`th: an account that holds none finds a place at once, unless there are more
//! busy accounts than places. Then the account with the fewest comes first, and of these the one that was served the
//! longest ago ([`Turns`]).
//!
//! Each replica shares its own places by what it holds itself. So nothing is left behind by one that dies.

use std::collections::HashMap;

use domain::Id;

/// A number of places, and who holds how many of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    free: usize,
    held: HashMap<Id, usize>,
}

impl Places {
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            free: capacity,
            held: HashMap::new(),
        }
    }

    /// Takes a place, whether or not the account [`may`](Self::admits): work in hand is in hand.
    pub fn take(&mut self, account: Id) {
        self.free = self.free.saturating_sub(1);
        *self.held.entry(account).or_default() += 1;
    }

    /// Returns true if `account` may take a place.
    #[must_use]
    pub fn admits(&self, account: Id) -> bool {
        self.held_by(account) < self.free
    }

    #[must_use]
    pub fn free(&self) -> usize {
        self.free
    }

    #[must_use]
    pub fn held_by(&self, account: Id) -> usize {
        self.held.get(&account).copied().unwrap_or(0)
    }

    /// The accounts that may not take a place now.
    pub fn refused(&self) -> impl Iterator<Item = Id> + '_ {
        self.held.keys().copied().filter(|id| !self.admits(*id))
    }
}

/// When each account was last served.
#[derive(Debug, Clone, Default)]
pub struct Turns {
    last: HashMap<Id, u64>,
    next: u64,
}

impl Turns {
    pub fn serve(&mut self, account: Id) {
        self.next += 1;
        self.last.insert(account, self.next);
    }

    /// Lower for an account that was served longer ago; zero for one that never was.
    #[must_use]
    pub fn of(&self, account: Id) -> u64 {
        self.last.get(&account).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(number: u128) -> Id {
        Id::from_uuid(uuid::Uuid::from_u128(number))
    }

    /// Takes places for `id` until it may not take another. How many that were.
    fn fill(places: &mut Places, id: Id) -> usize {
        let mut taken = 0;
        while places.admits(id) {
            places.take(id);
            taken += 1;
        }
        taken
    }

    #[test]
    fn an_account_alone_leaves_half_of_the_places() {
        for capacity in 1..100 {
            let mut places = Places::new(capacity);
            assert_eq!(fill(&mut places, account(1)), capacity.div_ceil(2));
            assert_eq!(places.free(), capacity / 2);
        }
    }

    #[test]
    fn an_account_that_holds_none_finds_a_place_while_one_is_free() {
        let mut places = Places::new(8);
        let taken: Vec<usize> = (1..=5).map(|n| fill(&mut places, account(n))).collect();
        assert_eq!(taken, [4, 2, 1, 1, 0]);
        let refused = places.refused().count();
        assert_eq!((places.free(), refused), (0, 4));
    }

    #[test]
    fn whoever_waits_longest_has_the_lowest_turn() {
        let mut turns = Turns::default();
        turns.serve(account(1));
        turns.serve(account(2));
        turns.serve(account(1));
        let mut order = [account(1), account(2), account(3)];
        order.sort_by_key(|id| turns.of(*id));
        assert_eq!(order, [account(3), account(2), account(1)]);
    }
}
