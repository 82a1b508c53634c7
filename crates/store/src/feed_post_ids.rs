//! The ids of the posts that each feed brought in the last week, as short hashes.
//!
//! They distinguish posts that become visible days late from posts that were read before, for much less than the posts
//! themselves: eight bytes each, appended to one row per feed and hour of the posts' times. Written with the posts
//! ([`record`]), in the transaction that moves the feed's cursor. Since `feeds.ids_since` all posts are in them.

use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use chrono::{DateTime, Utc};
use diesel::{
    prelude::*,
    sql_types::{Array, BigInt, Bytea, Integer, Text, Timestamptz},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{FeedName, Post, Timestamp};

use crate::{QueryResult, prepared::query, scans::key_of, schema::feed_post_ids};

/// How far back late posts can be found, by the post's own time.
pub const MAX_AGE: Duration = Duration::from_hours(7 * 24);
/// How long rows are kept: a little longer than they are needed.
const KEPT: Duration = Duration::from_hours(8 * 24);
/// Maximum number of ids of a feed in an hour, because each poll writes the row of its hour again. Posts of a full
/// hour do not count as late, because it does not have all ids.
const MAX_IDS: usize = 10_000;
const ID_BYTES: usize = 8;
const HOUR_MICROS: i64 = 3_600_000_000;

/// The ids of a feed's posts from a period.
#[derive(Debug, Default)]
pub struct Known {
    ids: HashSet<u64>,
    /// Hours whose ids are incomplete, by their number.
    full: HashSet<i64>,
}

impl Known {
    /// Returns true if the feed has brought the post, or may have.
    pub fn contains(&self, post_id: &str, time: Timestamp) -> bool {
        self.ids.contains(&hash(post_id)) || self.full.contains(&hour(time))
    }
}

/// Records posts of `feed`. Call in the transaction that moves the feed's cursor, with the feed locked. One statement
/// by primary key, or none if all posts are old.
pub async fn record(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    posts: &[Post],
    now: Timestamp,
) -> QueryResult<()> {
    let oldest = now.minus(MAX_AGE);
    let mut hours: BTreeMap<i64, Vec<u8>> = BTreeMap::new();
    for post in posts.iter().filter(|post| post.time >= oldest) {
        let ids = hours.entry(hour(post.time)).or_default();
        ids.extend(hash(&post.id).to_be_bytes());
    }
    if hours.is_empty() {
        return Ok(());
    }
    let (hours, ids): (Vec<_>, Vec<_>) = hours
        .into_iter()
        .map(|(hour, ids)| (start_of(hour), ids))
        .unzip();
    let most = i32::try_from(MAX_IDS * ID_BYTES).unwrap_or(i32::MAX);
    query!(
        "feed_post_ids/record",
        Text: feed.as_str(),
        Array<Timestamptz>: hours,
        Array<Bytea>: ids,
        Integer: most,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Returns the ids of the posts that `feed` brought, whose time is `since` or later. Served by the primary key.
pub async fn known(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    since: Timestamp,
) -> QueryResult<Known> {
    // A corrected post may have another time than when it was recorded.
    let from = since.minus(Duration::from_hours(24)).to_chrono();
    let rows: Vec<(DateTime<Utc>, Vec<u8>)> = feed_post_ids::table
        .filter(feed_post_ids::feed.eq(feed.as_str()))
        .filter(feed_post_ids::hour.gt(from))
        .select((feed_post_ids::hour, feed_post_ids::ids))
        .load(conn)
        .await?;
    let mut known = Known::default();
    for (start, ids) in rows {
        if ids.len() >= MAX_IDS * ID_BYTES {
            known.full.insert(hour(start.into()));
        }
        let (ids, _) = ids.as_chunks::<ID_BYTES>();
        known
            .ids
            .extend(ids.iter().map(|id| u64::from_be_bytes(*id)));
    }
    Ok(known)
}

/// Removes old ids of the next `limit` feeds by name after `after`. Returns the last of them, or `None` at the end.
pub async fn purge_old(
    conn: &mut AsyncPgConnection,
    after: &str,
    limit: i64,
) -> QueryResult<Option<String>> {
    #[derive(QueryableByName)]
    struct Last {
        #[diesel(sql_type = diesel::sql_types::Nullable<Text>)]
        last: Option<String>,
    }
    let page: Last = query!(
        "feed_post_ids/purge_old",
        Text: after,
        BigInt: limit,
        Timestamptz: Timestamp::now().minus(KEPT).to_chrono(),
    )
    .get_result(conn)
    .await?;
    Ok(page.last)
}

fn hash(post_id: &str) -> u64 {
    let mut first = [0; ID_BYTES];
    first.copy_from_slice(&key_of(post_id).as_bytes()[..ID_BYTES]);
    u64::from_be_bytes(first)
}

fn hour(time: Timestamp) -> i64 {
    time.micros().div_euclid(HOUR_MICROS)
}

fn start_of(hour: i64) -> DateTime<Utc> {
    let start = Timestamp::from_micros(hour.saturating_mul(HOUR_MICROS));
    start.map_or(DateTime::UNIX_EPOCH, Timestamp::to_chrono)
}
