//! Creates Scans: each post once, each Scan once, with ascending createTimes.
//!
//! A near-duplicate of an earlier Scan of a Manager that collapses duplicates becomes a place of that Scan
//! ([`super::likes`]), under the lock of the Manager's clock. So two scanners that find two such posts at once run
//! one after the other.
//!
//! A match that exceeds the account's quota is refused: it returns its key, so that a later run over the same posts
//! can create its Scan. All limits of a transaction are read first, [`mod@decide`] applies them in memory, and then the
//! outcome is written.
//!
//! Nine statements for a poll with matches, regardless of their number (one more for each further 250 posts); one,
//! which counts, for a poll with posts and no match; none for one without posts. Locks are taken in one order
//! everywhere (post keys, scan keys, clocks, and at the end of the transaction days of accounts, each sorted), so
//! two scanners may wait for each other but never deadlock.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, TimeDelta, Utc};
use diesel::sql_types::{Array, Bool, Jsonb, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{FeedName, Id, ManagerName, Match, Post, ScanName, Timestamp};
use uuid::Uuid;

use self::{
    accounts::Capacity,
    clocks::{Clocks, advance_clocks, lock_clocks, record_refused},
    decide::{Limits, decide},
    keys::{claim_keys, release_keys},
    posts::store_posts,
    readable::readable,
};
use super::likes::{Key, Likes};
use crate::{
    Error, QueryResult,
    prepared::query,
    stats::{self, Deltas},
    words,
};

mod accounts;
mod clocks;
mod decide;
mod keys;
mod posts;
mod readable;

pub use accounts::ScanCounter;
pub(crate) use posts::key_of;
pub(super) use posts::{post_key, row_key};

/// A match that becomes a Scan, unless the Manager already has one of this post.
#[derive(Debug, Clone, PartialEq)]
pub struct NewScan<'a> {
    pub manager: ManagerName,
    pub post: &'a Post,
    pub matched: Match,
}

/// Scans that were made, and matches that the quotas of accounts refused.
#[derive(Debug, Default)]
pub struct Recorded<'a> {
    /// In the order of the matches, which is also the order of their createTimes.
    pub made: Vec<ScanName>,
    pub refused: Vec<(ManagerName, &'a Post)>,
}

/// Origin of matches.
#[derive(Debug, Clone, Copy)]
pub enum Origin<'a> {
    /// New posts of a feed. Refused posts are recorded for [`crate::backfills::catch_up`].
    Poll,
    /// First reading of a feed. Its posts are past ones; refused ones are recorded as well.
    FirstReading,
    /// A backfill. Its caller repeats it if posts are refused.
    Past {
        /// True if the Scans are not delivered.
        silently: bool,
        /// Start of the posts of these Managers that were refused before, after the Managers' own limits had
        /// admitted them.
        catch_up: &'a HashMap<ManagerName, Timestamp>,
    },
}

/// Same as [`record_from`], for new posts and without a default for the quota of Scans a day.
pub async fn record(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    matches: &[NewScan<'_>],
    now: Timestamp,
) -> Result<Vec<ScanName>, Error> {
    let mut counter = ScanCounter::new(u32::MAX);
    let recorded = record_from(conn, feed, 0, matches, now, Origin::Poll, &mut counter).await?;
    counter.store(conn).await?;
    Ok(recorded.made)
}

/// Stores the new ones of `matches`, found through `feed`, up to the account's daily quota of Scans. A poll counts
/// its new `posts` for the feed. The age of past posts says nothing about the speed of Scans, and is in no
/// statistics. Call inside a transaction that ends soon after with [`ScanCounter::store`], because the Managers'
/// clocks stay locked until its end.
pub async fn record_from<'a>(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    posts: u64,
    matches: &[NewScan<'a>],
    now: Timestamp,
    origin: Origin<'_>,
    counter: &mut ScanCounter,
) -> Result<Recorded<'a>, Error> {
    let mut deltas = Deltas::default();
    deltas.posts(feed, now, posts);
    let recorded = make(conn, feed, matches, now, origin, counter, &mut deltas).await?;
    stats::append(conn, &deltas).await?;
    Ok(recorded)
}

async fn make<'a>(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    matches: &[NewScan<'a>],
    now: Timestamp,
    origin: Origin<'_>,
    counter: &mut ScanCounter,
    deltas: &mut Deltas,
) -> Result<Recorded<'a>, Error> {
    if matches.is_empty() {
        return Ok(Recorded::default());
    }
    // Sorted by key, and each post once, even if several Managers match it.
    let posts: BTreeMap<Uuid, &Post> = matches
        .iter()
        .map(|one| (row_key(feed, one.post), one.post))
        .collect();
    let stored = store_posts(conn, feed, &posts, now).await?;

    // Sorted: every transaction locks them in this order.
    let wanted: BTreeSet<Key> = matches
        .iter()
        .map(|one| (one.manager, post_key(one.post)))
        .collect();
    let mut fresh = claim_keys(conn, &wanted, now).await?;
    if fresh.is_empty() {
        return Ok(Recorded::default());
    }
    let Clocks {
        quotas,
        collapsing,
        accounts,
    } = lock_clocks(conn, &fresh).await?;
    // A Manager without a clock was deleted during the poll. Its keys are purged and must not come back.
    let gone: Vec<Key> = fresh
        .extract_if(.., |(manager, _)| !quotas.contains_key(manager))
        .collect();
    release_keys(conn, &gone).await?;
    let silently = matches!(origin, Origin::Past { silently: true, .. });
    let collapsed: Vec<_> = matches
        .iter()
        .map(|one| ((one.manager, post_key(one.post)), one.post))
        .filter(|(key, _)| collapsing.contains(&key.0) && fresh.contains(key))
        .collect();
    let mut limits = Limits {
        quotas,
        capacity: Capacity::new(counter, accounts),
        likes: Likes::load(conn, &collapsed, silently).await?,
    };

    let decisions = decide(matches, fresh, origin, &mut limits);

    for manager in &decisions.suppressed {
        deltas.suppressed(*manager, now, 1);
    }
    release_keys(conn, &decisions.released).await?;
    record_refused(conn, &decisions.refused_since(origin, now)).await?;
    let mut clocks = advance_clocks(conn, &decisions.scans, &limits.quotas).await?;
    let mut made_of = HashMap::new();
    let mut names = Vec::with_capacity(decisions.scans.len());
    let mut rows = Vec::with_capacity(decisions.scans.len());
    for (key, one) in decisions.scans {
        let stored = stored.get(&row_key(feed, one.post));
        let (Some(post), Some(clock)) = (stored, clocks.get_mut(&one.manager)) else {
            continue;
        };
        let time = *clock;
        *clock += TimeDelta::microseconds(1);
        let name = ScanName {
            namespace: one.manager.namespace,
            manager: one.manager.manager,
            scan: Id::at(time.into()),
        };
        let made = Timestamp::from(time);
        match origin {
            Origin::Poll => deltas.scan(one.manager, made, made.since(one.post.time)),
            Origin::FirstReading | Origin::Past { .. } => deltas.past_scan(one.manager, made),
        }
        let matched = serde_json::to_value(readable(&one.matched)).map_err(Error::Json)?;
        rows.push((time, *post, words::json(matched)));
        names.push(name);
        made_of.insert(key, name);
    }
    insert_scans(conn, &names, rows, silently).await?;
    limits.likes.store(conn, &made_of, silently).await?;
    Ok(Recorded {
        made: names,
        refused: decisions.refused,
    })
}

/// One statement for any number of Scans, because a poll may match for thousands of Managers.
async fn insert_scans(
    conn: &mut AsyncPgConnection,
    names: &[ScanName],
    rows: Vec<(DateTime<Utc>, Id, serde_json::Value)>,
    silently: bool,
) -> QueryResult<()> {
    let ids = |id: fn(&ScanName) -> Id| -> Vec<Uuid> {
        names.iter().map(|name| id(name).to_uuid()).collect()
    };
    let times: Vec<_> = rows.iter().map(|(time, ..)| *time).collect();
    let post_ids: Vec<_> = rows.iter().map(|(_, post, _)| post.to_uuid()).collect();
    let post_times: Vec<_> = rows
        .iter()
        .map(|(_, post, _)| post.time().to_chrono())
        .collect();
    let matched: Vec<_> = rows.into_iter().map(|(_, _, matched)| matched).collect();
    query!(
        "scans/insert",
        Array<SqlUuid>: ids(|name| name.namespace),
        Array<SqlUuid>: ids(|name| name.manager),
        Array<SqlUuid>: ids(|name| name.scan),
        Array<Timestamptz>: times,
        Array<SqlUuid>: post_ids,
        Array<Timestamptz>: post_times,
        Array<Jsonb>: matched,
        Bool: silently,
    )
    .execute(conn)
    .await?;
    Ok(())
}
