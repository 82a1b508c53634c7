//! Leases of background work: which replica may work on an item, fairly by account.
//!
//! A replica that looks for work passes a [`Claim`]. A kind of work returns the items that are due with the accounts
//! that they count for, [`Room::choose`] chooses among them, and the kind, or [`table`] for kinds without a column
//! for it, stores the leases. A lease lasts as long as the replica knows of it and lives: a lease that it has
//! forgotten is free again, and one of a replica without heartbeat is taken over.
//!
//! A lease that is taken over counts as a crash of its item, until the item is done ([`Leased::crashes`]). The item may have
//! been what ended the process. After the second crash in a row, a replica begins one such suspect at a time
//! (`docs/adr/0048`), so that the third crash shows which of them it is. That one is set aside ([`Setback`]). It may be innocent, so it is tried
//! again, after a longer rest each time. A rest that begins counts too: with 3, 5, 7… in its row an item is to be set
//! aside, with 4, 6, 8… it has rested and is tried.

use std::time::Duration;

use domain::Id;
use uuid::Uuid;

use crate::{fair::Turns, replicas};

pub(crate) mod candidates;
mod room;
pub mod table;

pub use room::{Candidate, Room};

/// Number of crashes in a row that make an item a suspect.
pub(crate) const SUSPECT: i32 = 2;
/// Number of crashes in a row after which an item is set aside.
pub const MAX_CRASHES: u32 = 3;
/// Each further rest is four times as long. An innocent feed must not wait for long.
const FIRST_REST: Duration = Duration::from_secs(60);
const LONGEST_REST: Duration = Duration::from_secs(24 * 3_600);

/// Maximum number of items that one call chooses from. The longest due item of each account is considered before any
/// account's second.
pub(crate) const MAX_CANDIDATES: i64 = 1_000;

/// A replica's search for work of one kind.
#[derive(Debug)]
pub struct Claim<'a> {
    pub replica: Uuid,
    /// True if leases of silent replicas may be taken over.
    pub take_over: bool,
    /// Keys of the items that the replica has in hand or has postponed.
    pub known: &'a [String],
    pub room: &'a mut Room,
    pub turns: &'a mut Turns,
}

/// An item that is leased to a replica.
#[derive(Debug, Clone, PartialEq)]
pub struct Leased<T> {
    pub key: String,
    /// The account that it counts for.
    pub account: Id,
    /// True if it took long last time.
    pub is_slow: bool,
    /// Number of processes in a row that died while they had it in hand, and of the rests between them.
    pub crashes: u32,
    pub item: T,
}

impl<T> Leased<T> {
    /// An item that needs no lease, of no account.
    pub fn unleased(key: &str, item: T) -> Self {
        Self {
            key: key.to_owned(),
            account: Id::NIL,
            is_slow: false,
            crashes: 0,
            item,
        }
    }
}

/// Result of a search for work.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed<T> {
    /// The longest due first.
    pub items: Vec<Leased<T>>,
    /// True if other replicas took some of the chosen items first: another search finds others.
    pub is_contended: bool,
    /// Time until another item is due, if that is known.
    pub next_due: Option<Duration>,
}

impl<T> Default for Claimed<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            is_contended: false,
            next_due: None,
        }
    }
}

/// Why an item is set aside, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setback {
    /// Reason for the owner of the item.
    pub reason: String,
    pub retry_in: Duration,
}

impl Setback {
    /// Returns the setback of an item with this [`Leased::crashes`]; `None` if it is to be tried now.
    pub fn after_crashes(crashes: u32) -> Option<Self> {
        let further = crashes.checked_sub(MAX_CRASHES)?;
        let (rests, has_rested) = (further / 2, further % 2 == 1);
        let times = MAX_CRASHES + rests;
        (!has_rested).then(|| Self {
            reason: format!("the service stopped {times} times in a row while it worked on this"),
            retry_in: FIRST_REST
                .saturating_mul(1 << (2 * rests.min(8)))
                .min(LONGEST_REST),
        })
    }

    /// Returns the setback of an item that panicked [`MAX_CRASHES`] times.
    pub fn after_panic() -> Self {
        Self {
            reason: "an internal error of the service; its log has the details".to_owned(),
            retry_in: Duration::from_secs(300),
        }
    }
}

/// Condition that the replica `$replica`, which may take over if `$take_over`, can lease the item whose holder is
/// in `column`. Items that it has in hand are left out separately.
pub(crate) fn is_free(column: &str, replica: &str, take_over: &str) -> String {
    let alive = replicas::ALIVE;
    format!("({column} IS NULL OR {column} = {replica} OR {take_over} AND NOT {column} {alive})")
}

/// Number of crashes of an item that `$replica` leases now. Writing it with the lease costs no statement. A holder that
/// shut down is no longer in `replicas`, and does not count. Nor does one that died while it was to set the item aside,
/// because it had not tried the item.
pub(crate) fn crashes(count: &str, holder: &str, replica: &str) -> String {
    let died = died(holder, replica);
    format!(
        "{count} + CASE WHEN {died} AND NOT ({count} >= 3 AND {count} % 2 = 1) THEN 1 ELSE 0 END::smallint"
    )
}

/// Condition that the `holder` of a lease died, as `replica` sees it.
fn died(holder: &str, replica: &str) -> String {
    format!("{holder} <> {replica} AND {holder} IN (SELECT id FROM replicas)")
}

/// Number of crashes as stored.
pub(crate) fn count(crashes: i16) -> u32 {
    u32::try_from(crashes).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quotas;

    /// Value of `crash_count` when a row is set aside.
    const RESTED: &str = "crash_count + CASE WHEN crash_count >= 3 THEN crash_count % 2 ELSE 0 END";

    #[test]
    fn statements_in_files_have_the_same_rules() {
        let check = |file: &str, rule: &str| {
            let sql = file.split_whitespace().collect::<Vec<_>>().join(" ");
            let sql = sql.replace("( ", "(");
            assert!(sql.contains(rule), "{rule} is not in {sql}");
        };
        let states = include_str!("../queries/leases/states.sql");
        let take = include_str!("../queries/leases/take.sql");
        let look_backs = include_str!("../queries/look_backs/lease.sql");
        let managers = include_str!("../queries/managers/claim.sql");
        for (file, count, holder, replica, take_over) in [
            (states, "l.crash_count", "l.leased_by", "$3", "$4"),
            (take, "l.crash_count", "l.leased_by", "$3", "$4"),
            (look_backs, "crash_count", "leased_by", "$1", "$2"),
            (managers, "m.crash_count", "m.compiled_by", "$1", "$2"),
        ] {
            check(file, &is_free(holder, replica, take_over));
            check(file, &crashes(count, holder, replica));
        }
        check(states, &format!("END::smallint >= {SUSPECT} AS is_suspect"));
        check(include_str!("../queries/leases/set_aside.sql"), RESTED);
        check(include_str!("../queries/leases/purge.sql"), replicas::ALIVE);
        let orphans = include_str!("../queries/deliveries/free_orphans.sql");
        let (first, longest) = (FIRST_REST.as_secs(), LONGEST_REST.as_secs());
        let rest =
            format!("least({first} * 4 ^ least(orphans.crashes - {MAX_CRASHES}, 8), {longest})");
        check(orphans, &rest);
        check(orphans, &died("d.leased_by", "$1"));
        let waiting = include_str!("../queries/backfills/waiting_for.sql");
        check(waiting, quotas::TODAY);
        check(waiting, quotas::HAS_SCANS_LEFT);
    }

    #[test]
    fn an_item_is_set_aside_for_longer_after_each_further_crash_and_tried_in_between() {
        let minutes: Vec<_> = (2..=15)
            .map(|crashes| Setback::after_crashes(crashes).map(|it| it.retry_in.as_secs() / 60))
            .collect();
        let rests = [1, 4, 16, 64, 256, 1_024, 1_440].map(|rest| [None, Some(rest)]);
        assert_eq!(minutes, rests.concat());
        let reason = Setback::after_crashes(7).unwrap().reason;
        assert!(reason.contains(" 5 times "), "{reason}");
    }

    #[test]
    fn statements_in_files_repeat_the_rules_of_leases() {
        let take = include_str!("../queries/feeds/take.sql");
        let next_due = include_str!("../queries/feeds/next_due.sql");
        let set_aside = include_str!("../queries/feeds/set_aside.sql");
        let finish = include_str!("../queries/erasure/finish.sql");
        let advance = include_str!("../queries/erasure/advance.sql");
        let overdue = include_str!("../queries/scans/overdue.sql");
        let free = is_free("leased_by", "$2", "$4");
        let of_scans = is_free("l.leased_by", "$5", "$6");
        let crashes = crashes("feeds.crash_count", "feeds.leased_by", "$2");
        let copies = [
            (take, free.as_str()),
            (take, crashes.as_str()),
            (next_due, free.as_str()),
            (set_aside, RESTED),
            (finish, RESTED),
            (advance, RESTED),
            (overdue, of_scans.as_str()),
        ];
        for (sql, rule) in copies {
            let sql = sql.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(sql.contains(rule), "no `{rule}` in `{sql}`");
        }
    }
}
