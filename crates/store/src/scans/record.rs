//! Makes Scans: each post once, each Scan once, createTimes that ascend.
//!
//! What says the same as an earlier Scan of a Manager that collapses duplicates becomes a place of that one
//! ([`super::likes`]), under the lock of the Manager's clock: two scanners that find the two posts at once
//! follow one another.
//!
//! Eight statements for a poll with matches, regardless of their number (one more for each further 250
//! of posts); one, which counts, for a poll with posts and no match; none for one without posts. Locks
//! are taken in one order everywhere (post keys, scan keys, clocks, each sorted), so two scanners wait
//! for each other but never in a circle.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, TimeDelta, Utc};
use diesel::{
    sql_query,
    sql_types::{Array, Bool, Jsonb, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{FeedName, Id, ManagerName, Match, Post, ScanName, Timestamp};
use uuid::Uuid;

use self::{
    clocks::{advance_clocks, lock_clocks},
    keys::{claim_keys, give_back_keys},
    posts::store_posts,
    readable::readable,
};
use super::likes::Likes;
use crate::{
    Error, QueryResult,
    prepared::Prepared,
    stats::{self, Deltas},
    words,
};

mod clocks;
mod keys;
mod posts;
mod readable;

pub(crate) use posts::key_of;
pub(super) use posts::{post_key, row_key};

/// A match that becomes a Scan, unless the Manager has one of this post already.
#[derive(Debug, Clone, PartialEq)]
pub struct NewScan<'a> {
    pub manager: ManagerName,
    pub post: &'a Post,
    pub matched: Match,
}

/// Stores what is new of `matches`, found through `feed`, and returns the Scans made, in the order of
/// the matches, which their createTimes follow. Call inside of a transaction that ends soon after: the
/// Managers' clocks stay locked to its end.
///
/// # Errors
/// When the database does not answer.
pub async fn record(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    matches: &[NewScan<'_>],
    now: Timestamp,
) -> Result<Vec<ScanName>, Error> {
    record_poll(conn, feed, 0, matches, now).await
}

/// Same as [`record`], for a poll that read `posts` new posts, which are counted for the feed.
///
/// # Errors
/// When the database does not answer.
pub async fn record_poll(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    posts: u64,
    matches: &[NewScan<'_>],
    now: Timestamp,
) -> Result<Vec<ScanName>, Error> {
    let mut deltas = Deltas::default();
    deltas.posts(feed, now, posts);
    let names = make(conn, feed, matches, now, How::Fresh, &mut deltas).await?;
    stats::append(conn, &deltas).await?;
    Ok(names)
}

/// Same as [`record`], for posts of the past: how old they are says nothing about how fast Scans are made, and is
/// in no statistics. Made `silently`, no one is to be sent them.
///
/// # Errors
/// When the database does not answer.
pub async fn record_past(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    matches: &[NewScan<'_>],
    now: Timestamp,
    silently: bool,
) -> Result<Vec<ScanName>, Error> {
    let mut deltas = Deltas::default();
    let how = How::Past { silently };
    let names = make(conn, feed, matches, now, how, &mut deltas).await?;
    stats::append(conn, &deltas).await?;
    Ok(names)
}

/// Origin of Scans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Fresh,
    Past { silently: bool },
}

async fn make(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    matches: &[NewScan<'_>],
    now: Timestamp,
    how: How,
    deltas: &mut Deltas,
) -> Result<Vec<ScanName>, Error> {
    if matches.is_empty() {
        return Ok(Vec::new());
    }
    // Sorted by key, and each post once, though several Managers match it.
    let posts: BTreeMap<Uuid, &Post> = matches
        .iter()
        .map(|one| (row_key(feed, one.post), one.post))
        .collect();
    let stored = store_posts(conn, feed, &posts, now).await?;

    // Sorted, as all lock them.
    let wanted: BTreeSet<(ManagerName, Uuid)> = matches
        .iter()
        .map(|one| (one.manager, post_key(one.post)))
        .collect();
    let mut fresh = claim_keys(conn, &wanted, now).await?;
    if fresh.is_empty() {
        return Ok(Vec::new());
    }
    let (mut clocks, collapsing) = lock_clocks(conn, &fresh).await?;
    // Without a clock the Manager is gone, deleted while the poll went on, and its keys purged: they
    // must not come back.
    let gone: Vec<(ManagerName, Uuid)> = fresh
        .extract_if(.., |(manager, _)| !clocks.contains_key(manager))
        .collect();
    give_back_keys(conn, &gone).await?;
    // What says the same again, or is held back by a bound, keeps its key: it was decided on, once.
    let silently = how == How::Past { silently: true };
    let mut likes = Likes::load(conn, &fresh, &collapsing, matches, silently).await?;
    let mut decided = BTreeSet::new();
    let mut put_off = Vec::new();
    for one in matches {
        let key = (one.manager, post_key(one.post));
        if !fresh.contains(&key) || !decided.insert(key) {
            continue;
        }
        if likes.is_again(key, one.post) {
            fresh.remove(&key);
            continue;
        }
        if let Some(Some(quota)) = clocks.get_mut(&one.manager) {
            let admitted = match how {
                How::Fresh => quota.admits(one.matched.score),
                How::Past { silently } => silently || quota.admits_past(),
            };
            if !admitted {
                fresh.remove(&key);
                deltas.suppressed(one.manager, now, 1);
                if how != How::Fresh {
                    put_off.push(key);
                }
                continue;
            }
        }
        likes.is_new(key);
    }
    // A repeated request for the past returns what found no capacity in it.
    give_back_keys(conn, &put_off).await?;
    let mut clocks = advance_clocks(conn, &fresh, &clocks).await?;

    let mut made_of = HashMap::new();
    let mut names = Vec::with_capacity(fresh.len());
    let mut rows = Vec::with_capacity(fresh.len());
    for one in matches {
        let key = (one.manager, post_key(one.post));
        let row = row_key(feed, one.post);
        let (Some(post), true) = (stored.get(&row), fresh.remove(&key)) else {
            continue;
        };
        let Some(clock) = clocks.get_mut(&one.manager) else {
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
        match how {
            How::Fresh => deltas.scan(one.manager, made, made.since(one.post.time)),
            How::Past { .. } => deltas.past_scan(one.manager, made),
        }
        let matched = serde_json::to_value(readable(&one.matched)).map_err(Error::Json)?;
        rows.push((time, *post, words::json(matched)));
        names.push(name);
        made_of.insert(key, name);
    }
    insert_scans(conn, &names, rows, silently).await?;
    likes.store(conn, &made_of, silently).await?;
    Ok(names)
}

/// In one statement, however many there are: a poll may match for thousands of Managers.
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
    Prepared(
        sql_query(
            "INSERT INTO scans (namespace_id, manager_id, id, create_time, update_time, post_id, \
             post_receive_time, value, matched, fanned_out) \
         SELECT namespace_id, manager_id, id, time, time, post_id, post_time, true, matched, $8 \
         FROM unnest($1, $2, $3, $4, $5, $6, $7) \
             AS given (namespace_id, manager_id, id, time, post_id, post_time, matched)",
        )
        .bind::<Array<SqlUuid>, _>(ids(|name| name.namespace))
        .bind::<Array<SqlUuid>, _>(ids(|name| name.manager))
        .bind::<Array<SqlUuid>, _>(ids(|name| name.scan))
        .bind::<Array<Timestamptz>, _>(times)
        .bind::<Array<SqlUuid>, _>(post_ids)
        .bind::<Array<Timestamptz>, _>(post_times)
        .bind::<Array<Jsonb>, _>(matched)
        .bind::<Bool, _>(silently),
    )
    .execute(conn)
    .await?;
    Ok(())
}
