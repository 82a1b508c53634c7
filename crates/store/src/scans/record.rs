//! Makes Scans: each post once, each Scan once, createTimes that ascend.
//!
//! What says the same as an earlier Scan of a Manager that collapses duplicates becomes a place of that one
//! ([`super::likes`]), under the lock of the Manager's clock: two scanners that find the two posts at once
//! follow one another.
//!
//! Eight statements for a poll with matches, whatever their number (one more for each further thousand
//! of posts); one, which counts, for a poll with posts and no match; none for one without posts. Locks
//! are taken in one order everywhere (post keys, scan keys, clocks, each sorted), so two scanners wait
//! for each other but never in a circle.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use diesel::{
    prelude::*,
    sql_query,
    sql_types::{
        Array, Bool, Date, Double, Integer, Jsonb, Nullable, Timestamptz, Uuid as SqlUuid,
    },
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{FeedName, Id, ManagerName, Match, Post, PostType, ScanName, Timestamp};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{
    likes::Likes,
    quota::{Quota, State},
};
use crate::{
    Error, QueryResult,
    schema::{post_keys, posts},
    stats::{self, Deltas},
    words,
};

/// PostgreSQL takes 65535 parameters a statement, and a post has sixteen.
const POSTS_PER_STATEMENT: usize = 1_000;

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

/// As [`record`], for a poll that read `posts` new posts, which are counted for the feed.
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

/// As [`record`], of posts of the past: how old they are says nothing about how fast Scans are made, and is
/// in no statistics. Made `silently`, nobody is to be sent them.
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

/// Where Scans come from.
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
        .map(|one| (post_key(one.post), one.post))
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
    // Whoever asks for the past again is given what found no room in it.
    give_back_keys(conn, &put_off).await?;
    let mut clocks = advance_clocks(conn, &fresh, &clocks).await?;

    let mut made_of = HashMap::new();
    let mut names = Vec::with_capacity(fresh.len());
    let mut rows = Vec::with_capacity(fresh.len());
    for one in matches {
        let key = (one.manager, post_key(one.post));
        let (Some(post), true) = (stored.get(&key.1), fresh.remove(&key)) else {
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

/// With numbers that are read again as they were written, by PostgreSQL and by us. It keeps those of JSON as
/// decimals of any length, and of long ones serde_json reads a neighbour, or none: a Scan with such a score
/// would be found by no filter, and one with an infinite score could not be read at all. What the engine
/// gives is within these bounds already.
fn readable(matched: &Match) -> Match {
    let mut matched = matched.clone();
    matched.score = readable_number(matched.score);
    if let Some(signals) = &mut matched.signals {
        for signal in [
            &mut signals.buying,
            &mut signals.comparison,
            &mut signals.trouble,
        ] {
            *signal = readable_number(*signal);
        }
    }
    matched
}

/// Fifteen digits at most, of which a `f64` holds all.
fn readable_number(number: f64) -> f64 {
    const DECIMALS: f64 = 1e9;
    const BOUND: f64 = 999_999.0;
    if number.is_nan() {
        return 0.0;
    }
    let rounded = (number.clamp(-BOUND, BOUND) * DECIMALS).round() / DECIMALS;
    // JSON has a zero with a sign, and decimals have not.
    rounded + 0.0
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
    .bind::<Bool, _>(silently)
    .execute(conn)
    .await?;
    Ok(())
}

pub(super) fn post_key(post: &Post) -> Uuid {
    key_of(&post.id)
}

/// What makes a post the same post, by its id.
pub(crate) fn key_of(post_id: &str) -> Uuid {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&Sha256::digest(words::text(post_id).as_bytes())[..16]);
    Uuid::from_bytes(bytes)
}

/// The rows of these posts, made where there were none.
async fn store_posts(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    given: &BTreeMap<Uuid, &Post>,
    now: Timestamp,
) -> QueryResult<HashMap<Uuid, Id>> {
    #[derive(QueryableByName)]
    struct Made {
        #[diesel(sql_type = SqlUuid)]
        post_key: Uuid,
        #[diesel(sql_type = SqlUuid)]
        id: Uuid,
    }
    let keys: Vec<Uuid> = given.keys().copied().collect();
    let ids: Vec<Uuid> = keys.iter().map(|_| Id::at(now).to_uuid()).collect();
    let made: Vec<Made> = sql_query(
        "INSERT INTO post_keys (post_key, id) SELECT * FROM unnest($1, $2) \
         ON CONFLICT DO NOTHING RETURNING post_key, id",
    )
    .bind::<Array<SqlUuid>, _>(keys)
    .bind::<Array<SqlUuid>, _>(ids)
    .load(conn)
    .await?;
    let mut rows: Vec<_> = made
        .iter()
        .filter_map(|Made { post_key, id }| {
            let post = given.get(post_key)?;
            let subforum = post.subforum.as_ref();
            Some((
                posts::id.eq(*id),
                posts::receive_time.eq(now.to_chrono()),
                posts::post_key.eq(*post_key),
                posts::feed.eq(feed.as_str()),
                posts::type_.eq(word(post.post_type)),
                posts::time.eq(post.time.to_chrono()),
                posts::post_id.eq(words::text(&post.id)),
                posts::title.eq(post.title.as_deref().map(words::text)),
                posts::text.eq(post.text.as_deref().map(words::text)),
                posts::url.eq(words::text(&post.url)),
                posts::subforum_id.eq(subforum.map(|at| words::text(&at.id))),
                posts::subforum_name.eq(subforum.map(|at| words::text(&at.name))),
                posts::subforum_url.eq(subforum.map(|at| words::text(&at.url))),
                posts::user_id.eq(words::text(&post.user.id)),
                posts::user_name.eq(words::text(&post.user.name)),
                posts::user_url.eq(words::text(&post.user.url)),
            ))
        })
        .collect();
    while !rows.is_empty() {
        let rest = rows.split_off(rows.len().min(POSTS_PER_STATEMENT));
        diesel::insert_into(posts::table)
            .values(rows)
            .execute(conn)
            .await?;
        rows = rest;
    }

    let mut stored: HashMap<Uuid, Id> = made
        .into_iter()
        .map(|made| (made.post_key, Id::from_uuid(made.id)))
        .collect();
    let known: Vec<Uuid> = given
        .keys()
        .filter(|key| !stored.contains_key(key))
        .copied()
        .collect();
    if !known.is_empty() {
        let rows: Vec<(Uuid, Uuid)> = post_keys::table
            .filter(post_keys::post_key.eq_any(known))
            .select((post_keys::post_key, post_keys::id))
            .load(conn)
            .await?;
        stored.extend(rows.into_iter().map(|(key, id)| (key, Id::from_uuid(id))));
    }
    Ok(stored)
}

fn word(post_type: PostType) -> &'static str {
    match post_type {
        PostType::ForumLink => "FORUM_LINK",
        PostType::ForumComment => "FORUM_COMMENT",
        PostType::MicroblogTweet => "MICROBLOG_TWEET",
        PostType::NetworkPost => "NETWORK_POST",
    }
}

/// Those Manager and post pairs that have no Scan yet, now claimed.
async fn claim_keys(
    conn: &mut AsyncPgConnection,
    wanted: &BTreeSet<(ManagerName, Uuid)>,
    now: Timestamp,
) -> QueryResult<BTreeSet<(ManagerName, Uuid)>> {
    #[derive(QueryableByName)]
    struct Claimed {
        #[diesel(sql_type = SqlUuid)]
        namespace_id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        manager_id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        post_key: Uuid,
    }
    let column = |value: fn(&(ManagerName, Uuid)) -> Uuid| -> Vec<Uuid> {
        wanted.iter().map(value).collect()
    };
    let fresh: Vec<Claimed> = sql_query(
        "INSERT INTO scan_keys (namespace_id, manager_id, post_key, create_time) \
         SELECT namespace_id, manager_id, post_key, $4 \
         FROM unnest($1, $2, $3) AS given (namespace_id, manager_id, post_key) \
         ON CONFLICT DO NOTHING RETURNING namespace_id, manager_id, post_key",
    )
    .bind::<Array<SqlUuid>, _>(column(|(manager, _)| manager.namespace.to_uuid()))
    .bind::<Array<SqlUuid>, _>(column(|(manager, _)| manager.manager.to_uuid()))
    .bind::<Array<SqlUuid>, _>(column(|(_, key)| *key))
    .bind::<Timestamptz, _>(now.to_chrono())
    .load(conn)
    .await?;
    Ok(fresh
        .into_iter()
        .map(|claimed| {
            let manager = ManagerName {
                namespace: Id::from_uuid(claimed.namespace_id),
                manager: Id::from_uuid(claimed.manager_id),
            };
            (manager, claimed.post_key)
        })
        .collect())
}

async fn give_back_keys(
    conn: &mut AsyncPgConnection,
    keys: &[(ManagerName, Uuid)],
) -> QueryResult<()> {
    if keys.is_empty() {
        return Ok(());
    }
    let column =
        |value: fn(&(ManagerName, Uuid)) -> Uuid| -> Vec<Uuid> { keys.iter().map(value).collect() };
    sql_query(
        "DELETE FROM scan_keys AS key USING unnest($1, $2, $3) AS given (namespace_id, manager_id, post_key) \
         WHERE key.namespace_id = given.namespace_id AND key.manager_id = given.manager_id \
           AND key.post_key = given.post_key",
    )
    .bind::<Array<SqlUuid>, _>(column(|(manager, _)| manager.namespace.to_uuid()))
    .bind::<Array<SqlUuid>, _>(column(|(manager, _)| manager.manager.to_uuid()))
    .bind::<Array<SqlUuid>, _>(column(|(_, key)| *key))
    .execute(conn)
    .await?;
    Ok(())
}

/// Locks the clocks of these Managers, as far as there are any, and reads where those that have a bound
/// on their day's Scans stand, and which Managers collapse duplicates. Both are read here, so that a change
/// of them counts at once.
async fn lock_clocks(
    conn: &mut AsyncPgConnection,
    fresh: &BTreeSet<(ManagerName, Uuid)>,
) -> QueryResult<(HashMap<ManagerName, Option<Quota>>, BTreeSet<ManagerName>)> {
    #[derive(QueryableByName)]
    struct Locked {
        #[diesel(sql_type = SqlUuid)]
        namespace_id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        manager_id: Uuid,
        #[diesel(sql_type = Timestamptz)]
        now: DateTime<Utc>,
        #[diesel(sql_type = Nullable<Integer>)]
        max_scans_per_day: Option<i32>,
        #[diesel(sql_type = Nullable<Date>)]
        quota_day: Option<NaiveDate>,
        #[diesel(sql_type = Integer)]
        quota_made: i32,
        #[diesel(sql_type = Integer)]
        quota_suppressed: i32,
        #[diesel(sql_type = Nullable<Double>)]
        quota_lowest: Option<f64>,
        #[diesel(sql_type = Nullable<Double>)]
        quota_highest: Option<f64>,
        #[diesel(sql_type = Bool)]
        collapses: bool,
    }
    let managers: BTreeSet<ManagerName> = fresh.iter().map(|(manager, _)| *manager).collect();
    let column = |id: fn(&ManagerName) -> Id| -> Vec<Uuid> {
        managers.iter().map(|name| id(name).to_uuid()).collect()
    };
    let rows: Vec<Locked> = sql_query(
        "SELECT clock.namespace_id, clock.manager_id, clock_timestamp() AS now, manager.max_scans_per_day, \
             clock.quota_day, clock.quota_made, clock.quota_suppressed, clock.quota_lowest, clock.quota_highest, \
             coalesce(manager.duplicates = 'COLLAPSE', false) AS collapses \
         FROM scan_clocks AS clock \
         LEFT JOIN managers AS manager ON manager.namespace_id = clock.namespace_id AND manager.id = clock.manager_id \
         WHERE (clock.namespace_id, clock.manager_id) IN (SELECT * FROM unnest($1, $2)) \
         ORDER BY clock.namespace_id, clock.manager_id FOR UPDATE OF clock",
    )
    .bind::<Array<SqlUuid>, _>(column(|name| name.namespace))
    .bind::<Array<SqlUuid>, _>(column(|name| name.manager))
    .load(conn)
    .await?;
    let count = |count: i32| u32::try_from(count).unwrap_or_default();
    let mut collapsing = BTreeSet::new();
    let clocks = rows
        .into_iter()
        .map(|row| {
            let name = ManagerName {
                namespace: Id::from_uuid(row.namespace_id),
                manager: Id::from_uuid(row.manager_id),
            };
            if row.collapses {
                collapsing.insert(name);
            }
            let stored = row.quota_day.map(|day| State {
                day,
                made: count(row.quota_made),
                suppressed: count(row.quota_suppressed),
                range: row.quota_lowest.zip(row.quota_highest),
            });
            let max = row.max_scans_per_day.map(count);
            (name, max.map(|max| Quota::new(max, row.now, stored)))
        })
        .collect();
    Ok((clocks, collapsing))
}

/// Moves the clock of each of these Managers that is locked on by as many microseconds as it gets Scans,
/// and stores where its day stands; returns the first new time of each. By the database's clock, after
/// the lock: later commits have later times.
async fn advance_clocks(
    conn: &mut AsyncPgConnection,
    fresh: &BTreeSet<(ManagerName, Uuid)>,
    locked: &HashMap<ManagerName, Option<Quota>>,
) -> QueryResult<HashMap<ManagerName, DateTime<Utc>>> {
    #[derive(QueryableByName)]
    struct Clock {
        #[diesel(sql_type = SqlUuid)]
        namespace_id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        manager_id: Uuid,
        #[diesel(sql_type = Timestamptz)]
        first_time: DateTime<Utc>,
    }
    let mut counts: BTreeMap<ManagerName, i32> = BTreeMap::new();
    for (manager, _) in fresh {
        *counts.entry(*manager).or_default() += 1;
    }
    for (manager, _) in locked.iter().filter(|(_, quota)| quota.is_some()) {
        counts.entry(*manager).or_default();
    }
    let states: Vec<Option<&State>> = counts
        .keys()
        .map(|name| Some(&locked.get(name)?.as_ref()?.state))
        .collect();
    let number = |number: fn(&State) -> u32| -> Vec<Option<i32>> {
        let numbers = states.iter().map(|state| state.map(number));
        numbers
            .map(|n| n.map(|n| i32::try_from(n).unwrap_or(i32::MAX)))
            .collect()
    };
    let score = |score: fn((f64, f64)) -> f64| -> Vec<Option<f64>> {
        let ranges = states
            .iter()
            .map(|state| state.and_then(|state| state.range));
        ranges.map(|range| range.map(score)).collect()
    };
    let days: Vec<_> = states
        .iter()
        .map(|state| state.map(|state| state.day))
        .collect();
    let namespaces: Vec<Uuid> = counts.keys().map(|name| name.namespace.to_uuid()).collect();
    let managers: Vec<Uuid> = counts.keys().map(|name| name.manager.to_uuid()).collect();
    // One of which all is held back keeps its time.
    let clocks: Vec<Clock> = sql_query(
        "UPDATE scan_clocks AS clock SET last_time = CASE WHEN given.count = 0 THEN clock.last_time ELSE \
                 greatest(clock_timestamp(), clock.last_time + interval '1 microsecond') \
                 + (given.count - 1) * interval '1 microsecond' END, \
             quota_day = coalesce(given.day, clock.quota_day), \
             quota_made = coalesce(given.made, clock.quota_made), \
             quota_suppressed = coalesce(given.suppressed, clock.quota_suppressed), \
             quota_lowest = coalesce(given.lowest, clock.quota_lowest), \
             quota_highest = coalesce(given.highest, clock.quota_highest) \
         FROM unnest($1, $2, $3, $4, $5, $6, $7, $8) \
             AS given (namespace_id, manager_id, count, day, made, suppressed, lowest, highest) \
         WHERE clock.namespace_id = given.namespace_id AND clock.manager_id = given.manager_id \
         RETURNING clock.namespace_id, clock.manager_id, \
             clock.last_time - (given.count - 1) * interval '1 microsecond' AS first_time",
    )
    .bind::<Array<SqlUuid>, _>(&namespaces)
    .bind::<Array<SqlUuid>, _>(&managers)
    .bind::<Array<Integer>, _>(counts.values().copied().collect::<Vec<_>>())
    .bind::<Array<Nullable<Date>>, _>(days)
    .bind::<Array<Nullable<Integer>>, _>(number(|state| state.made))
    .bind::<Array<Nullable<Integer>>, _>(number(|state| state.suppressed))
    .bind::<Array<Nullable<Double>>, _>(score(|(low, _)| low))
    .bind::<Array<Nullable<Double>>, _>(score(|(_, high)| high))
    .load(conn)
    .await?;
    Ok(clocks
        .into_iter()
        .map(|clock| {
            let name = ManagerName {
                namespace: Id::from_uuid(clock.namespace_id),
                manager: Id::from_uuid(clock.manager_id),
            };
            (name, clock.first_time)
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::readable_number;

    #[test]
    fn numbers_are_read_as_they_are_written() {
        for (given, kept) in [
            (0.8, 0.8),
            (-1.5, -1.5),
            (0.123_456_789, 0.123_456_789),
            (0.300_000_000_000_000_04, 0.3),
            (5e-324, 0.0),
            (f64::MAX, 999_999.0),
            (f64::NEG_INFINITY, -999_999.0),
            (f64::NAN, 0.0),
        ] {
            let found = readable_number(given);
            assert_eq!(found, kept, "{given}");
            let text = serde_json::to_string(&found).unwrap();
            assert_eq!(serde_json::from_str::<f64>(&text).unwrap(), kept, "{given}");
        }
        assert!(readable_number(-0.0).is_sign_positive());
    }
}
