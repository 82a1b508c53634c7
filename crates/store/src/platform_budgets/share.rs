//! Shares of accounts in a day's paid posts.
//!
//! Each of `n` accounts that watch a platform has one `n`th of its day. The unused part of a share is reserved for its
//! account in proportion to the rest of the day: all of it at midnight, half at noon. Enough of it for a first read is
//! reserved until the day ends. Everything else is available to any account. So a single account may spend the whole
//! day at once. Among several, no account spends another's share before that account can no longer need it.

use std::time::Duration;

use domain::Id;

const DAY: Duration = Duration::from_secs(86_400);
/// The fewest posts that X returns for a request: with fewer, an account cannot read at all.
const SMALLEST_READ: u64 = 10;

/// An account that watches the platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) account: Id,
    /// True if it watches the feed that the posts are for.
    pub(super) watches: bool,
    /// Its posts of today.
    pub(super) taken: u32,
}

/// Returns how many of the `left` posts a feed may use, and the account they count for, if any watches it.
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
    let first_read = |one: &Share| match (rest, one.taken) {
        (1.., 0) => unspent(one).min(SMALLEST_READ),
        _ => 0,
    };
    let first_reads: u64 = shares.iter().map(first_read).sum();
    let allowed = |one: &Share| {
        let kept = ((all_unspent - unspent(one)) * rest).div_ceil(day);
        let kept = kept.max(first_reads - first_read(one));
        let free = u64::from(left).saturating_sub(kept).max(unspent(one));
        u32::try_from(free).unwrap_or(u32::MAX).min(left)
    };
    let watching = shares.iter().filter(|one| one.watches);
    // Among accounts with the same allowance, the one that has taken fewer.
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
    fn single_account_has_the_whole_day() {
        let shares = [share(1, true, 30)];
        assert_eq!(
            allowance(100, 70, &shares, MIDNIGHT),
            (Some(account(1)), 70)
        );
    }

    #[test]
    fn unused_shares_are_reserved_and_released_over_the_day() {
        let one = account(1);
        let shares = |taken| [share(1, true, taken), share(2, false, 0)];
        let first = |taken, rest| allowance(100, 100 - taken, &shares(taken), rest);
        assert_eq!(first(0, MIDNIGHT), (Some(one), 50));
        assert_eq!(first(50, MIDNIGHT), (Some(one), 0));
        assert_eq!(first(50, NOON), (Some(one), 25));
        assert_eq!(first(75, NOON), (Some(one), 0));
        // Late in the day enough for a first read stays reserved.
        assert_eq!(first(75, Duration::from_secs(60)), (Some(one), 15));
        assert_eq!(first(90, Duration::from_secs(60)), (Some(one), 0));
        assert_eq!(first(75, Duration::ZERO), (Some(one), 25));
        // The other account still has its own share.
        let other = [share(1, false, 75), share(2, true, 0)];
        assert_eq!(allowance(100, 25, &other, NOON), (Some(account(2)), 25));
    }

    #[test]
    fn shared_feed_uses_the_share_with_the_most_posts_left() {
        let shares = [share(1, true, 50), share(2, true, 10), share(3, false, 0)];
        let (account, allowed) = allowance(150, 90, &shares, MIDNIGHT);
        assert_eq!((account, allowed), (Some(self::account(2)), 40));
    }

    #[test]
    fn accounts_get_one_post_each_if_there_are_fewer_posts() {
        let shares: Vec<Share> = (0..10).map(|n| share(n, n == 9, 0)).collect();
        assert_eq!(allowance(3, 3, &shares, MIDNIGHT), (Some(account(9)), 1));
        assert_eq!(allowance(3, 0, &shares, MIDNIGHT), (Some(account(9)), 0));
    }
}
