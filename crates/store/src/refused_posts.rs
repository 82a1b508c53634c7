//! Posts of matches that the daily quota of Scans refused.
//!
//! Feeds keep their newest posts only, for all accounts together ([`crate::recent_posts`]). So an account that waits
//! for its quota has its posts here as well, for each Manager, until they are matched again ([`of`], [`forget`]). Those
//! that exceed [`MAX_BYTES`] of their account or are older than [`MAX_AGE`] are dropped, the longest refused first. Those
//! that exceed the account's [`WriteLimit`] are not stored. The number of both is returned to be reported.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use diesel::{
    QueryableByName,
    sql_types::{Array, BigInt, Double, Integer, Jsonb, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{FeedName, ManagerName, Post};
use uuid::Uuid;

use crate::{Error, QueryError, QueryResult, prepared::query, scans::key_of, words};

mod write_limit;

pub use write_limit::{WriteLimit, Written};

/// Maximum size of an account's refused posts as JSON, exceeded by about [`SLACK_BYTES`] at most.
pub const MAX_BYTES: i64 = 200_000_000;
/// How long a refused post waits.
pub const MAX_AGE: Duration = Duration::from_hours(7 * 24);
/// Maximum number of posts that [`of`] returns.
pub const AT_ONCE: usize = 1_000;
/// Size of posts after which [`of`] returns no further one.
pub const PAGE_BYTES: i64 = 8_000_000;
/// Average size of new posts after which an account is trimmed.
const SLACK_BYTES: i64 = 4_000_000;
/// Number of posts that are removed in one statement.
const BATCH: i64 = 5_000;

/// Refused posts of a feed.
#[derive(Debug, Default)]
pub struct Refused {
    /// Oldest first, and each post once.
    pub posts: Vec<Post>,
    /// True if there may be more.
    pub more: bool,
}

/// Stores refused matches of a feed, those of the newest posts first, as far as the limit admits them. Adds what it writes
/// to that of the `transaction` that refused them, which is to be counted after its commit ([`WriteLimit::count`]). Returns
/// the number of matches that the limit did not admit, and of older ones that were dropped.
pub async fn insert(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    refused: &[(ManagerName, &Post)],
    limit: &WriteLimit,
    transaction: &mut Written,
) -> QueryResult<usize> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = SqlUuid)]
        account_id: Uuid,
        #[diesel(sql_type = BigInt)]
        bytes: i64,
    }
    let mut posts = HashMap::new();
    let mut matches = BTreeSet::new();
    for (manager, post) in refused {
        let (key, namespace) = (key_of(&post.id), manager.namespace.to_uuid());
        posts.insert(key, *post);
        matches.insert((
            Reverse(post.time),
            key,
            namespace,
            manager.manager.to_uuid(),
        ));
    }
    if matches.is_empty() {
        return Ok(0);
    }
    let accounts = accounts_of(conn, matches.iter().map(|one| one.2).collect()).await?;
    let mut values = HashMap::new();
    for (key, post) in &posts {
        let value = serde_json::to_value(post);
        let value = value.map_err(|error| QueryError::SerializationError(error.into()))?;
        let value = words::json(value);
        let bytes = i32::try_from(value.to_string().len()).unwrap_or(i32::MAX);
        values.insert(*key, (bytes, value));
    }
    // In the order of keys, which is the order of locks.
    let mut waits = BTreeSet::new();
    let (mut all_bytes, mut dropped, mut admitted) = (0, 0, transaction.clone());
    for (_, key, namespace, manager) in matches {
        // A Namespace without an account was deleted.
        let Some(account) = accounts.get(&namespace) else {
            continue;
        };
        let bytes = i64::from(values[&key].0);
        if limit.admits(*account, bytes, &mut admitted) {
            all_bytes += bytes;
            waits.insert((namespace, manager, key));
        } else {
            dropped += 1;
        }
    }
    if waits.is_empty() {
        return Ok(dropped);
    }
    let (mut keys, mut times, mut sizes, mut stored) = (vec![], vec![], vec![], vec![]);
    for key in waits.iter().map(|one| one.2).collect::<BTreeSet<_>>() {
        if let Some((bytes, value)) = values.remove(&key) {
            keys.push(key);
            times.push(posts[&key].time.to_chrono());
            sizes.push(bytes);
            stored.push(value);
        }
    }
    let (namespaces, managers): (Vec<Uuid>, Vec<Uuid>) =
        waits.iter().map(|one| (one.0, one.1)).unzip();
    // Those that an earlier transaction stored are not written again.
    let written: Vec<Row> = query!(
        "refused_posts/insert",
        Text: feed.as_str(),
        Array<SqlUuid>: namespaces,
        Array<SqlUuid>: managers,
        Array<SqlUuid>: waits.iter().map(|one| one.2).collect::<Vec<_>>(),
        Array<SqlUuid>: keys,
        Array<Timestamptz>: times,
        Array<Integer>: sizes,
        Array<Jsonb>: stored,
    )
    .load(conn)
    .await?;
    for row in written {
        transaction.add(row.account_id, row.bytes);
    }
    // Each byte causes a trim with the same probability, so that nothing has to be counted.
    if rand::random_range(0..SLACK_BYTES) >= all_bytes {
        return Ok(dropped);
    }
    let namespaces: BTreeSet<Uuid> = waits.iter().map(|one| one.0).collect();
    let trimmed = trim(conn, namespaces.into_iter().collect()).await?;
    Ok(dropped + trimmed)
}

/// Returns the account of each of these Namespaces. By primary key.
async fn accounts_of(
    conn: &mut AsyncPgConnection,
    namespaces: BTreeSet<Uuid>,
) -> QueryResult<HashMap<Uuid, Uuid>> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = SqlUuid)]
        id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        account_id: Uuid,
    }
    let namespaces: Vec<Uuid> = namespaces.into_iter().collect();
    let rows: Vec<Row> = query!("refused_posts/accounts", Array<SqlUuid>: namespaces)
        .load(conn)
        .await?;
    Ok({ rows.into_iter() }
        .map(|row| (row.id, row.account_id))
        .collect())
}

/// Removes posts beyond the limit of these Namespaces' accounts, the longest refused first. Leaves rows that another
/// transaction has locked. Served by `refused_posts_account_idx`; reads all rows of the accounts, but not their texts.
async fn trim(conn: &mut AsyncPgConnection, namespaces: Vec<Uuid>) -> QueryResult<usize> {
    query!(
        "refused_posts/trim",
        Array<SqlUuid>: namespaces,
        BigInt: MAX_BYTES,
    )
    .execute(conn)
    .await
}

/// Returns posts of the feed that were refused to these Managers, the oldest first: up to [`AT_ONCE`], and at least one.
/// By primary key.
pub async fn of(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    managers: &[ManagerName],
) -> Result<Refused, Error> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = Jsonb)]
        post: serde_json::Value,
        #[diesel(sql_type = Integer)]
        bytes: i32,
    }
    if managers.is_empty() {
        return Ok(Refused::default());
    }
    let (namespaces, ids) = ids(managers);
    let rows: Vec<Row> = query!(
        "refused_posts/of",
        Text: feed.as_str(),
        Array<SqlUuid>: namespaces,
        Array<SqlUuid>: ids,
        BigInt: i64::try_from(AT_ONCE).unwrap_or(i64::MAX),
        BigInt: PAGE_BYTES,
    )
    .load(conn)
    .await?;
    let bytes: i64 = rows.iter().map(|row| i64::from(row.bytes)).sum();
    let more = rows.len() == AT_ONCE || bytes >= PAGE_BYTES;
    let posts = rows.into_iter().map(|row| serde_json::from_value(row.post));
    let posts = posts.collect::<Result<_, _>>().map_err(Error::Json)?;
    Ok(Refused { posts, more })
}

/// Removes posts that were matched again for these Managers. Call in the transaction that stores their Scans. By primary
/// key.
pub async fn forget(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    managers: &[ManagerName],
    posts: &[Post],
) -> QueryResult<()> {
    if managers.is_empty() || posts.is_empty() {
        return Ok(());
    }
    let (namespaces, ids) = ids(managers);
    let keys: Vec<Uuid> = posts.iter().map(|post| key_of(&post.id)).collect();
    query!(
        "refused_posts/forget",
        Text: feed.as_str(),
        Array<SqlUuid>: namespaces,
        Array<SqlUuid>: ids,
        Array<SqlUuid>: keys,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Removes some posts that have waited for too long, and returns their number. Served by `refused_posts_time_idx`.
pub async fn purge_old(conn: &mut AsyncPgConnection) -> QueryResult<usize> {
    query!(
        "refused_posts/purge_old",
        Double: MAX_AGE.as_secs_f64(),
        BigInt: BATCH,
    )
    .execute(conn)
    .await
}

fn ids(managers: &[ManagerName]) -> (Vec<Uuid>, Vec<Uuid>) {
    let ids = managers.iter();
    ids.map(|one| (one.namespace.to_uuid(), one.manager.to_uuid()))
        .unzip()
}
