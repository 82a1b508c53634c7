//! Capacity that accounts share, for example for polls or compilations.
//!
//! An account may take a place while it holds fewer places than are free. So one account alone gets half of all
//! places, two get a third each, and `n` accounts get one part in `n + 1` each. An account that holds none finds a
//! place at once, unless there are more busy accounts than places. Then the account with the fewest places comes
//! first, and among these the one that was served the longest ago ([`Turns`]).
//!
//! Each replica shares its own places by what it holds itself, so a dead replica leaves nothing behind.

use std::{
    collections::{BTreeSet, HashMap},
    time::{Duration, Instant},
};

use domain::Id;

/// A number of places, and how many of them each account holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    capacity: usize,
    weight: usize,
    /// Number of places of an account that count as taken.
    most: usize,
    taken: usize,
    held: HashMap<Id, usize>,
}

impl Places {
    pub fn new(capacity: usize) -> Self {
        Self::weighted(capacity, 1)
    }

    /// An account may take a place while it holds fewer than `weight` times as many as are free. So one account alone
    /// gets all but one part in `weight + 1`.
    pub fn weighted(capacity: usize, weight: usize) -> Self {
        Self {
            capacity,
            weight,
            most: usize::MAX,
            taken: 0,
            held: HashMap::new(),
        }
    }

    /// Places that an account holds beyond what it could take alone do not count as taken, and an account that holds
    /// none may take one, even if all are taken. So accounts that hold too many block no other.
    #[must_use]
    pub fn ignoring_excess(mut self) -> Self {
        self.most = self
            .capacity
            .saturating_mul(self.weight)
            .div_ceil(self.weight + 1);
        self
    }

    /// Takes a place, even if the account may not ([`Self::admits`]), because the work has already started.
    pub fn take(&mut self, account: Id) {
        self.take_some(account, 1);
    }

    /// Same as [`Self::take`], for `count` places.
    pub fn take_some(&mut self, account: Id, count: usize) {
        self.set(account, self.held_by(account) + count);
    }

    /// Returns `count` places that the account has taken.
    pub fn release(&mut self, account: Id, count: usize) {
        self.set(account, self.held_by(account).saturating_sub(count));
    }

    fn set(&mut self, account: Id, held: usize) {
        self.taken -= self.held_by(account).min(self.most);
        self.taken += held.min(self.most);
        if held == 0 {
            self.held.remove(&account);
        } else {
            self.held.insert(account, held);
        }
    }

    /// Returns true if `account` may take a place.
    pub fn admits(&self, account: Id) -> bool {
        self.admitted(account) > 0
    }

    /// Number of places that `account` may take, one after the other.
    pub fn admitted(&self, account: Id) -> usize {
        let held = self.held_by(account);
        let admitted = self
            .free()
            .saturating_mul(self.weight)
            .saturating_sub(held)
            .div_ceil(self.weight + 1);
        let ignores_excess = self.most != usize::MAX;
        admitted.max(usize::from(ignores_excess && held == 0))
    }

    pub fn free(&self) -> usize {
        self.capacity.saturating_sub(self.taken)
    }

    pub fn held_by(&self, account: Id) -> usize {
        self.held.get(&account).copied().unwrap_or(0)
    }

    /// The accounts that hold places, and how many.
    pub fn holders(&self) -> impl Iterator<Item = (Id, usize)> + '_ {
        self.held.iter().map(|(account, held)| (*account, *held))
    }

    /// The accounts that may not take a place now.
    pub fn refused(&self) -> impl Iterator<Item = Id> + '_ {
        self.held.keys().copied().filter(|id| !self.admits(*id))
    }
}

/// How long a pause lasts ([`Round::pause`]).
const PAUSE: Duration = Duration::from_secs(1);

/// Accounts that had their turn. After all that wait have had one, a new round begins.
#[derive(Debug, Clone, Default)]
pub struct Round {
    served: BTreeSet<Id>,
    pause_until: Option<Instant>,
}

impl Round {
    pub fn serve(&mut self, account: Id) {
        self.served.insert(account);
    }

    /// The accounts that must wait for the next round: none during a pause.
    pub fn served(&self) -> impl Iterator<Item = Id> + '_ {
        let served = (!self.is_paused()).then_some(&self.served);
        served.into_iter().flatten().copied()
    }

    /// Begins the next round if a query without the accounts that had their turn has found nothing. Such a query reads
    /// past their whole backlogs, so the next one is a second later: until then no account is left out, and the oldest
    /// items come first. Returns false if no account had a turn, or a pause has not ended yet.
    pub fn pause(&mut self) -> bool {
        if self.is_paused() || !self.end() {
            return false;
        }
        self.pause_until = Some(Instant::now() + PAUSE);
        true
    }

    fn is_paused(&self) -> bool {
        self.pause_until.is_some_and(|end| Instant::now() < end)
    }

    /// Begins the next round. Returns false if no account was served in this one.
    pub fn end(&mut self) -> bool {
        !std::mem::take(&mut self.served).is_empty()
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

    /// Rank of the account: lower if it was served longer ago, and zero if it never was.
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

    /// Takes places for `id` until it may not take another, and returns their number.
    fn fill(places: &mut Places, id: Id) -> usize {
        let mut taken = 0;
        while places.admits(id) {
            places.take(id);
            taken += 1;
        }
        taken
    }

    #[test]
    fn single_account_leaves_half_of_the_capacity() {
        for capacity in 1..100 {
            let mut places = Places::new(capacity);
            assert_eq!(fill(&mut places, account(1)), capacity.div_ceil(2));
            assert_eq!(places.free(), capacity / 2);
        }
    }

    #[test]
    fn accounts_that_hold_too_many_keep_no_other_from_its_first_place() {
        let mut places = Places::new(8).ignoring_excess();
        for hanging in [1, 2] {
            places.take_some(account(hanging), 100);
        }
        assert_eq!(places.free(), 0);
        assert_eq!(fill(&mut places, account(1)), 0);
        assert_eq!(fill(&mut places, account(3)), 1);
    }

    #[test]
    fn a_round_looks_past_the_served_accounts_once_in_a_while() {
        let mut round = Round::default();
        assert!(!round.pause(), "no account had a turn");
        round.serve(account(1));
        assert_eq!(round.served().count(), 1);
        assert!(round.pause());
        // Until the pause is over, nothing is left out, and the end is not put off.
        round.serve(account(1));
        assert_eq!(round.served().count(), 0);
        assert!(!round.pause());
        round.pause_until = Some(Instant::now());
        assert_eq!(round.served().count(), 1);
    }

    #[test]
    fn account_without_places_gets_any_free_place() {
        let mut places = Places::new(8);
        let taken: Vec<usize> = (1..=5).map(|n| fill(&mut places, account(n))).collect();
        assert_eq!(taken, [4, 2, 1, 1, 0]);
        let refused = places.refused().count();
        assert_eq!((places.free(), refused), (0, 4));
    }

    #[test]
    fn one_account_alone_leaves_a_part_by_its_weight() {
        for (weight, left) in [(1, 32), (3, 16), (7, 8)] {
            let mut places = Places::weighted(64, weight);
            assert_eq!(fill(&mut places, account(1)), 64 - left);
            assert!(places.admits(account(2)));
        }
    }

    #[test]
    fn excess_of_an_account_blocks_no_other() {
        let mut places = Places::new(8).ignoring_excess();
        places.take_some(account(1), 20);
        assert_eq!((places.free(), places.admitted(account(2))), (4, 2));
        places.release(account(1), 18);
        assert_eq!((places.free(), places.admitted(account(2))), (6, 3));
        places.release(account(1), 2);
        assert_eq!(places, Places::new(8).ignoring_excess());
    }

    #[test]
    fn admitted_places_are_those_that_can_be_taken_in_a_row() {
        for (capacity, weight) in (0..20).zip([1, 3, 7].into_iter().cycle()) {
            let mut places = Places::weighted(capacity, weight);
            for id in [account(1), account(2)] {
                let admitted = places.admitted(id);
                assert_eq!(fill(&mut places, id), admitted, "of {capacity}");
            }
        }
    }

    #[test]
    fn released_places_can_be_taken_again() {
        let mut places = Places::new(4);
        // More than there are.
        places.take_some(account(1), 6);
        assert_eq!((places.free(), places.admits(account(2))), (0, false));
        places.release(account(1), 5);
        assert_eq!((places.free(), places.held_by(account(1))), (3, 1));
        places.release(account(1), 1);
        assert_eq!(places, Places::new(4));
    }

    #[test]
    fn longest_waiting_account_has_the_lowest_turn() {
        let mut turns = Turns::default();
        turns.serve(account(1));
        turns.serve(account(2));
        turns.serve(account(1));
        let mut order = [account(1), account(2), account(3)];
        order.sort_by_key(|id| turns.of(*id));
        assert_eq!(order, [account(3), account(2), account(1)]);
    }
}
