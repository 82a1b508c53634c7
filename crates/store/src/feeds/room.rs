//! How many feeds of a platform one replica may poll at a time, and which account's feed comes next.

use domain::Id;
use uuid::Uuid;

use crate::fair::{Places, Turns};

/// Capacity for polls of one platform: for young polls, for polls of feeds that were slow last time, and for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    quick: Places,
    slow: Places,
    all: Places,
}

/// A due feed, with the accounts that watch it.
pub(super) struct Candidate {
    pub(super) name: String,
    pub(super) slow: bool,
    pub(super) accounts: Vec<Id>,
}

impl Room {
    #[must_use]
    pub fn new(quick: usize, slow: usize, all: usize) -> Self {
        Self {
            quick: Places::new(quick),
            slow: Places::new(slow),
            all: Places::new(all),
        }
    }

    fn places(&self, slow: bool) -> &Places {
        if slow { &self.slow } else { &self.quick }
    }

    /// Takes capacity for a poll.
    pub fn take(&mut self, account: Id, slow: bool) {
        if slow {
            self.slow.take(account);
        } else {
            self.quick.take(account);
        }
        self.all.take(account);
    }

    /// Takes capacity for a poll that has become slow.
    pub fn take_overdue(&mut self, account: Id) {
        self.all.take(account);
    }

    /// Returns true if `account` may start another poll, of a feed that was `slow` or not.
    #[must_use]
    pub fn admits(&self, account: Id, slow: bool) -> bool {
        self.all.admits(account) && self.places(slow).admits(account)
    }

    /// Returns true if no one may start a poll.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.free(false) == 0 && self.free(true) == 0
    }

    pub(super) fn free(&self, slow: bool) -> i64 {
        let free = self.places(slow).free().min(self.all.free());
        i64::try_from(free).unwrap_or(i64::MAX)
    }

    /// Returns the accounts that may not start another poll.
    pub(super) fn refused(&self, slow: bool) -> Vec<Uuid> {
        let refused = self.places(slow).refused().chain(self.all.refused());
        refused.map(|account| account.to_uuid()).collect()
    }

    /// Chooses feeds and the accounts that their polls count for, and takes their capacity. `candidates` must be in
    /// the order in which an account's feeds are polled.
    pub(super) fn choose(
        &mut self,
        mut candidates: Vec<Candidate>,
        turns: &mut Turns,
    ) -> impl Iterator<Item = (String, Id)> {
        let mut chosen = Vec::new();
        loop {
            let next = candidates.iter().enumerate().filter_map(|(at, feed)| {
                let may = feed
                    .accounts
                    .iter()
                    .filter(|id| self.admits(**id, feed.slow));
                let order = |id: &Id| (self.all.held_by(*id), turns.of(*id), *id);
                let first = may.copied().min_by_key(order)?;
                let (held, turn, _) = order(&first);
                Some((held, turn, at, first))
            });
            let Some((_, _, at, account)) = next.min() else {
                return chosen.into_iter();
            };
            let feed = candidates.remove(at);
            self.take(account, feed.slow);
            turns.serve(account);
            chosen.push((feed.name, account));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(number: u128) -> Id {
        Id::from_uuid(Uuid::from_u128(number))
    }

    fn feed(name: &str, accounts: &[u128]) -> Candidate {
        Candidate {
            name: name.to_owned(),
            slow: false,
            accounts: accounts.iter().map(|n| account(*n)).collect(),
        }
    }

    fn chosen(room: &mut Room, turns: &mut Turns, feeds: Vec<Candidate>) -> Vec<(String, Id)> {
        room.choose(feeds, turns).collect()
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
}
