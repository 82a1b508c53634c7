//! Recent posts of each feed, matched or not.
//!
//! The scanner stores a poll's new posts in the poll's transaction ([`insert`]). Previews ([`newest`], [`by_url`])
//! and backfills of new Managers ([`since`]) read them. A feed keeps about its newest [`MAX_POSTS`], at most about
//! [`MAX_BYTES`] of them, and none older than [`MAX_AGE`]. Since `feeds.kept_since` all of its posts are stored.
//!
//! An account has a quota of bytes, divided by the number of its feeds: none of them keeps more than that, unless another
//! account that watches it has more to give. So the feeds that one account alone watches stay within its quota, and
//! nothing is counted over feeds.
//!
//! Storing costs one INSERT per poll, and one more DELETE for every [`SLACK`] posts or [`SLACK_BYTES`]. [`purge`] removes
//! old posts of feeds that bring nothing any more, and those that exceed the feed's part since their account watches more
//! feeds.

use std::{collections::HashSet, time::Duration};

use chrono::{DateTime, Utc};
use diesel::{
    prelude::*,
    sql_types::{
        Array, BigInt, Double, Integer, Jsonb, Nullable, Text, Timestamptz, Uuid as SqlUuid,
    },
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{FeedName, Id, Post, Timestamp, preview::Recent};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::{
    Error, QueryError, QueryResult, feed_post_ids, feeds::OpenGap, prepared::query, scans::key_of,
    schema::recent_posts, words,
};

/// Maximum number of posts of a feed, exceeded by about [`SLACK`] at most.
pub const MAX_POSTS: i64 = 1_000;
/// Maximum size of a feed's posts as JSON, exceeded by about [`SLACK_BYTES`] at most.
pub const MAX_BYTES: i64 = 20_000_000;
/// Maximum number of posts that [`by_url`] reads: a post can be in each feed of an account.
pub const MAX_AT_URLS: u32 = 100;
/// Maximum age by the post's own time.
pub const MAX_AGE: Duration = Duration::from_hours(72);
/// Average number of new posts after which a feed is trimmed.
const SLACK: usize = 200;
/// Average size of new posts after which a feed is trimmed.
const SLACK_BYTES: i64 = 200_000;
/// A feed that so many accounts watch may keep the maximum, because each account's part of it is small.
const MANY_ACCOUNTS: i64 = 10;
/// Maximum number of posts that exceed the part of their feed and are removed at a time.
const PURGED_AT_ONCE: i64 = 2_000;
/// Smallest difference between the times of two posts.
const INSTANT: Duration = Duration::from_micros(1);

/// A post, and a feed that brought it.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept {
    pub feed: FeedName,
    pub post: Post,
}

#[derive(Queryable, Selectable, QueryableByName)]
#[diesel(table_name = recent_posts)]
struct RecentPostRow {
    feed: String,
    post: serde_json::Value,
}

impl RecentPostRow {
    fn into_kept(self) -> Result<Option<Kept>, Error> {
        let post = serde_json::from_value(self.post).map_err(Error::Json)?;
        // Names were parsed before they were stored.
        Ok(self.feed.parse().ok().map(|feed| Kept { feed, post }))
    }
}

fn read(rows: Vec<RecentPostRow>) -> Result<Vec<Kept>, Error> {
    rows.into_iter()
        .filter_map(|row| row.into_kept().transpose())
        .collect()
}

/// Stores posts of `feed`, given oldest first. Existing posts stay unchanged. Returns the start of the period whose
/// posts are still stored, if older ones had to go. Call in the transaction that moves the feed's cursor, with the
/// feed locked. `account_bytes` is the quota of each account for the posts of all its feeds.
pub async fn insert(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    posts: &[Post],
    now: Timestamp,
    account_bytes: u32,
) -> QueryResult<Option<Timestamp>> {
    let oldest = now.minus(MAX_AGE);
    let (mut keys, mut times, mut urls, mut values, mut sizes) =
        (vec![], vec![], vec![], vec![], vec![]);
    let (mut all_bytes, mut cut) = (0, None);
    // Only the newest posts of a very large poll are stored.
    for post in posts.iter().rev().filter(|post| post.time >= oldest) {
        let value = serde_json::to_value(post);
        let value = value.map_err(|error| QueryError::SerializationError(error.into()))?;
        let value = words::json(value);
        let bytes = i32::try_from(value.to_string().len()).unwrap_or(i32::MAX);
        let total = all_bytes + i64::from(bytes);
        if keys.len() >= usize::try_from(MAX_POSTS).unwrap_or(usize::MAX) || total > MAX_BYTES {
            cut = Some(post.time.plus(INSTANT));
            break;
        }
        all_bytes = total;
        keys.push(key_of(&post.id));
        times.push(post.time.to_chrono());
        urls.push(url_key(&post.url));
        values.push(value);
        sizes.push(bytes);
    }
    let count = keys.len();
    if count == 0 {
        return Ok(cut);
    }
    query!(
        "recent_posts/insert",
        Text: feed.as_str(),
        Array<SqlUuid>: keys,
        Array<Timestamptz>: times,
        Array<SqlUuid>: urls,
        Array<Jsonb>: values,
        Array<Integer>: sizes,
    )
    .execute(conn)
    .await?;
    // Each new post and each byte causes a trim with the same probability, so that nothing has to be counted.
    if rand::random_range(0..SLACK) < count || rand::random_range(0..SLACK_BYTES) < all_bytes {
        return Ok(cut.max(Some(trim(conn, feed, oldest, account_bytes).await?)));
    }
    Ok(cut)
}

/// Returns the ids of those of `posts` that are late, or lie in one of `gaps`: posts that are neither here nor in
/// [`crate::feed_post_ids`], although they are young enough to be in one of the two. Pass posts that
/// [`crate::feed_post_ids::known`] does not contain. Leaves out quarantined posts, and posts older than both
/// `kept_since` and `ids_since` that lie in no gap. Served by the primary key, `quarantined_posts_feed_idx` and
/// `feed_gaps_pkey`.
pub async fn unkept(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    posts: &[Post],
    gaps: &[OpenGap],
) -> QueryResult<HashSet<String>> {
    #[derive(QueryableByName)]
    struct Unkept {
        #[diesel(sql_type = Text)]
        id: String,
    }
    let keys: Vec<Uuid> = posts.iter().map(|post| key_of(&post.id)).collect();
    let times: Vec<_> = posts.iter().map(|post| post.time.to_chrono()).collect();
    let ids: Vec<&str> = posts.iter().map(|post| post.id.as_str()).collect();
    let unkept: Vec<Unkept> = query!(
        "recent_posts/find_unkept",
        Text: feed.as_str(),
        Array<SqlUuid>: keys,
        Array<Timestamptz>: times,
        Array<Text>: ids,
        Double: feed_post_ids::MAX_AGE.as_secs_f64(),
        Array<BigInt>: gaps.iter().map(|gap| gap.id).collect::<Vec<_>>(),
    )
    .load(conn)
    .await?;
    Ok(unkept.into_iter().map(|row| row.id).collect())
}

/// Removes posts beyond the feed's limits, the oldest first. Returns the start of the period whose posts are still
/// stored. Served by `recent_posts_newest_idx`, `account_feeds_feed_idx` and `account_feeds_pkey`; reads all posts of
/// the feed, but not their texts. A feed of [`MANY_ACCOUNTS`] may keep the maximum.
async fn trim(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    oldest: Timestamp,
    account_bytes: u32,
) -> QueryResult<Timestamp> {
    #[derive(QueryableByName)]
    struct Cut {
        #[diesel(sql_type = Timestamptz)]
        time: DateTime<Utc>,
    }
    let cut: Cut = query!(
        "recent_posts/trim",
        Text: feed.as_str(),
        Timestamptz: oldest.to_chrono(),
        BigInt: MAX_POSTS,
        BigInt: MAX_BYTES,
        BigInt: i64::from(account_bytes),
        BigInt: MANY_ACCOUNTS,
    )
    .get_result(conn)
    .await?;
    Ok(cut.time.into())
}

/// Returns the newest posts of these feeds, newest first, and each once even if several feeds brought it. Served by
/// `recent_posts_newest_idx`; only the returned posts are read whole, by the primary key.
pub async fn newest(
    conn: &mut AsyncPgConnection,
    feeds: &[FeedName],
    recent: Recent,
) -> Result<Vec<Kept>, Error> {
    let names: Vec<&str> = feeds.iter().map(FeedName::as_str).collect();
    let rows: Vec<RecentPostRow> = query!(
        "recent_posts/newest",
        Array<Text>: names,
        BigInt: i64::from(recent.count),
        Double: MAX_AGE.as_secs_f64(),
        Nullable<Timestamptz>: recent.start_time.map(Timestamp::to_chrono),
        Nullable<Timestamptz>: recent.end_time.map(Timestamp::to_chrono),
    )
    .load(conn)
    .await?;
    read(rows)
}

/// Returns since when all posts of all these feeds are stored; `None` without feeds, or if one stores none yet. `window` is
/// how far back the first reading of a feed goes: an account does not learn how long others have watched a feed. By the
/// primary keys.
pub async fn kept_since(
    conn: &mut AsyncPgConnection,
    account: Id,
    feeds: &[FeedName],
    window: Duration,
) -> QueryResult<Option<Timestamp>> {
    #[derive(QueryableByName)]
    struct Since {
        #[diesel(sql_type = Nullable<Timestamptz>)]
        since: Option<DateTime<Utc>>,
    }
    let names: Vec<&str> = feeds.iter().map(FeedName::as_str).collect();
    let kept: Since = query!(
        "recent_posts/kept_since",
        Array<Text>: names,
        SqlUuid: account.to_uuid(),
        Double: MAX_AGE.as_secs_f64(),
        Double: window.as_secs_f64(),
    )
    .get_result(conn)
    .await?;
    Ok(kept.since.map(Timestamp::from))
}

/// Returns those of the feeds that a Manager of the Namespace watches. By the primary key of `feed_watchers`.
pub async fn watched(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    feeds: &[FeedName],
) -> QueryResult<Vec<FeedName>> {
    #[derive(QueryableByName)]
    struct Name {
        #[diesel(sql_type = Text)]
        name: String,
    }
    let names: Vec<&str> = feeds.iter().map(FeedName::as_str).collect();
    let watched: Vec<Name> = query!(
        "recent_posts/watched",
        Array<Text>: names,
        SqlUuid: namespace.to_uuid(),
    )
    .load(conn)
    .await?;
    let names = watched.into_iter().map(|row| row.name.parse());
    Ok(names.filter_map(Result::ok).collect())
}

/// Returns posts by their address or by [`Post::id`], each with the feeds that brought it, among the feeds that any
/// Manager of the Namespace watches. An address's scheme, fragment and closing slash are ignored. At most the
/// newest [`MAX_AT_URLS`]. Served by `recent_posts_url_idx` and the primary key.
pub async fn by_url(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    urls: &[String],
) -> Result<Vec<Kept>, Error> {
    let addresses: Vec<Uuid> = urls.iter().map(|url| url_key(url)).collect();
    let keys: Vec<Uuid> = urls.iter().map(|id| key_of(id)).collect();
    let rows: Vec<RecentPostRow> = query!(
        "recent_posts/by_url",
        Array<SqlUuid>: addresses,
        Array<SqlUuid>: keys,
        SqlUuid: namespace.to_uuid(),
        BigInt: i64::from(MAX_AT_URLS),
    )
    .load(conn)
    .await?;
    read(rows)
}

/// Returns a feed's posts since that time, oldest first. Served by `recent_posts_newest_idx`.
pub async fn since(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    since: Timestamp,
) -> Result<Vec<Post>, Error> {
    let rows: Vec<RecentPostRow> = recent_posts::table
        .filter(recent_posts::feed.eq(feed.as_str()))
        .filter(recent_posts::time.ge(since.to_chrono()))
        .order(recent_posts::time.asc())
        .select(RecentPostRow::as_select())
        .load(conn)
        .await?;
    Ok(read(rows)?.into_iter().map(|kept| kept.post).collect())
}

/// Removes old posts from the next `limit` feeds by name after `after`, and the oldest of those that exceed the feed's part
/// of `account_bytes`. A feed that an account has left counts as one of its feeds until it is forgotten. Returns the last
/// feed, or `None` at the end. Served by the indexes of [`trim`]; reads all posts of feeds of accounts with many feeds, but
/// not their texts.
pub async fn purge(
    conn: &mut AsyncPgConnection,
    after: &str,
    limit: i64,
    account_bytes: u32,
) -> QueryResult<Option<String>> {
    #[derive(QueryableByName)]
    struct Last {
        #[diesel(sql_type = Nullable<Text>)]
        last: Option<String>,
    }
    let page: Last = query!(
        "recent_posts/purge",
        Text: after,
        BigInt: limit,
        Double: MAX_AGE.as_secs_f64(),
        BigInt: MAX_BYTES,
        BigInt: i64::from(account_bytes),
        BigInt: MANY_ACCOUNTS,
        BigInt: PURGED_AT_ONCE,
    )
    .get_result(conn)
    .await?;
    Ok(page.last)
}

/// Returns true if [`by_url`] finds the post by `url`.
pub fn is_at(post: &Post, url: &str) -> bool {
    post.id == url || url_key(&post.url) == url_key(url)
}

/// Key that finds an address.
fn url_key(url: &str) -> Uuid {
    let url = words::text(url.trim());
    let bare = url.split_once("://").map_or(&*url, |(_, rest)| rest);
    let bare = bare.split('#').next().unwrap_or_default();
    let end = bare.find(['/', '?']).unwrap_or(bare.len());
    let (host, path) = bare.split_at(end);
    let plain = format!(
        "{}{}",
        host.to_ascii_lowercase(),
        path.trim_end_matches('/')
    );
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&Sha256::digest(plain.as_bytes())[..16]);
    Uuid::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::url_key;

    #[test]
    fn address_key_ignores_scheme_fragment_and_closing_slash() {
        let same = [
            "https://Forum.Example/t/1",
            "http://forum.example/t/1/",
            " https://forum.example/t/1#reply-3",
        ];
        for url in same {
            assert_eq!(url_key(url), url_key(same[0]), "{url}");
        }
        let other = [
            "https://forum.example/T/1",
            "https://forum.example/t/1?page=2",
            "https://example/t/1",
            "",
        ];
        for url in other {
            assert_ne!(url_key(url), url_key(same[0]), "{url}");
        }
    }
}
