//! The accounts' shares of a day's paid posts.
//!
//! Each of `n` accounts that watch a platform has an `n`th of its day. What an account leaves of its share is kept for
//! it, in proportion to the rest of the day: at midnight all of it, at noon half. All else is for any account that asks. So an
//! account alone may spend the whole day at once; among several, none spends what is another's before that one can no
//! longer need it.

use std::time::Duration;

use domain::Id;

const DAY: Duration = Duration::from_secs(86_400);

/// An account that watches the platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) account: Id,
    /// True if it watches the feed that posts are wanted for.
    pub(super) watches: bool,
    /// Its posts of today.
    pub(super) taken: u32,
}

/// Number of the `left` posts that a feed may use, and the account they count for, if any watches it.
pub(super) fn allowance(
    per_day: u32,
    left: u32,
    shares: &[Share],
    day_ends_in: Duration,
) -> (Option<Id>, u32) {
    let accounts = u32::try_from(shares.len()).unwrap_or(u32::MAX).max(1);
    let share = u64::from(per_day.div_ceil(accounts));
    let unspent = |one: &Share| share.saturating_sub(u64::from(one.taken));
    let all_unspent: u64 = shares.iter().map(unspent).sum();
    let (rest, day) = (day_ends_in.min(DAY).as_secs(), DAY.as_secs());
    let allowed = |one: &Share| {
        let kept = ((all_unspent - unspent(one)) * rest).div_ceil(day);
        let free = u64::from(left).saturating_sub(kept).max(unspent(one));
        u32::try_from(free).unwrap_or(u32::MAX).min(left)
    };
    let watching = shares.iter().filter(|one| one.watches);
    // Of two that may have as many, the one that has had fewer.
    let best = watching.max_by_key(|one| (allowed(one), std::cmp::Reverse(one.taken)));
    best.map_or((None, left), |one| (Some(one.account), allowed(one)))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const MIDNIGHT: Duration = DAY;
    const NOON: Duration = Duration::from_secs(43_200);

    fn account(number: u128) -> Id {
        Id::from_uuid(Uuid::from_u128(number))
    }

    fn share(number: u128, watches: bool, taken: u32) -> Share {
        Share {
            account: account(number),
            watches,
            taken,
        }
    }

    #[test]
    fn an_account_alone_has_the_whole_day() {
        let shares = [share(1, true, 30)];
        assert_eq!(
            allowance(100, 70, &shares, MIDNIGHT),
            (Some(account(1)), 70)
        );
    }

    #[test]
    fn what_others_leave_is_kept_for_them_and_released_with_the_day() {
        let one = account(1);
        let shares = |taken| [share(1, true, taken), share(2, false, 0)];
        let first = |taken, rest| allowance(100, 100 - taken, &shares(taken), rest);
        assert_eq!(first(0, MIDNIGHT), (Some(one), 50));
        assert_eq!(first(50, MIDNIGHT), (Some(one), 0));
        assert_eq!(first(50, NOON), (Some(one), 25));
        assert_eq!(first(75, NOON), (Some(one), 0));
        assert_eq!(first(75, Duration::ZERO), (Some(one), 25));
        // The other's is there all the same.
        let other = [share(1, false, 75), share(2, true, 0)];
        assert_eq!(allowance(100, 25, &other, NOON), (Some(account(2)), 25));
    }

    #[test]
    fn a_feed_of_several_is_of_the_share_that_has_the_most_left() {
        let shares = [share(1, true, 50), share(2, true, 10), share(3, false, 0)];
        let (account, allowed) = allowance(150, 90, &shares, MIDNIGHT);
        assert_eq!((account, allowed), (Some(self::account(2)), 40));
    }

    #[test]
    fn more_accounts_than_posts_get_one_each_while_there_are_any() {
        let shares: Vec<Share> = (0..10).map(|n| share(n, n == 9, 0)).collect();
        assert_eq!(allowance(3, 3, &shares, MIDNIGHT), (Some(account(9)), 1));
        assert_eq!(allowance(3, 0, &shares, MIDNIGHT), (Some(account(9)), 0));
    }
}
