//! Finds and erases all stored posts of one author, for an operator whom the author asks for that.
//!
//! No index leads from authors to posts, so [`find`] reads all posts: those of a day at a time, because a snapshot
//! that is held for long delays the vacuum of busy tables. Unlike a deletion that a platform reports, this also
//! concerns feeds that customers named.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, BigInt, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::User;
use uuid::Uuid;

use super::blank;
use crate::QueryResult;

/// Number of rows that one statement erases.
const AT_ONCE: usize = 500;

/// An author, and the author's stored posts.
#[derive(Debug)]
pub struct Author {
    pub user: User,
    /// Keys of posts that became Scans, and are not blank yet.
    posts: Vec<(DateTime<Utc>, Uuid)>,
    /// Keys of recent posts, and of those that wait for a quota.
    recent: Vec<(Uuid, String)>,
}

/// Numbers of rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub posts: usize,
    pub recent_posts: usize,
}

impl Author {
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            posts: self.posts.len(),
            recent_posts: self.recent.len(),
        }
    }
}

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = Text)]
    user_id: String,
    #[diesel(sql_type = Text)]
    user_name: String,
    #[diesel(sql_type = Text)]
    user_url: String,
    #[diesel(sql_type = Timestamptz)]
    time: DateTime<Utc>,
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = Text)]
    feed: String,
}

/// SQL condition: one of the columns `user_id`, `user_name`, `user_url` is `$2`, as mutes of authors compare them.
macro_rules! is_author {
    () => {
        "EXISTS (SELECT FROM unnest(ARRAY[user_id, user_name, user_url]) AS given \
             WHERE rtrim(regexp_replace(lower(btrim(given)), '^/?(@|!|u/|r/|c/)?', ''), '/') \
                 = rtrim(regexp_replace(lower(btrim($2)), '^/?(@|!|u/|r/|c/)?', ''), '/'))"
    };
}

/// Returns the authors on `platform` whose id, name or profile address is `author`, with their stored posts. There
/// can be several, because names need not be unique.
pub async fn find(
    conn: &mut AsyncPgConnection,
    platform: &str,
    author: &str,
) -> QueryResult<Vec<Author>> {
    #[derive(QueryableByName)]
    struct Period {
        #[diesel(sql_type = Nullable<Timestamptz>)]
        oldest: Option<DateTime<Utc>>,
        #[diesel(sql_type = Nullable<Timestamptz>)]
        newest: Option<DateTime<Utc>>,
    }
    let mut authors = BTreeMap::new();
    let period: Period =
        sql_query("SELECT min(receive_time) AS oldest, max(receive_time) AS newest FROM posts")
            .get_result(conn)
            .await?;
    let (mut from, newest) = (period.oldest, period.newest);
    while let Some(start) = from.filter(|start| newest.is_some_and(|newest| *start <= newest)) {
        let end = start + TimeDelta::days(1);
        let rows: Vec<Row> = sql_query(concat!(
            "SELECT user_id, user_name, user_url, receive_time AS time, id, feed FROM posts \
             WHERE receive_time >= $3 AND receive_time < $4 AND split_part(feed, ':', 1) = $1 \
                 AND erase_time IS NULL AND ",
            is_author!()
        ))
        .bind::<Text, _>(platform)
        .bind::<Text, _>(author)
        .bind::<Timestamptz, _>(start)
        .bind::<Timestamptz, _>(end)
        .load(conn)
        .await?;
        for row in rows {
            let key = (row.time, row.id);
            entry(&mut authors, row).posts.push(key);
        }
        from = Some(end);
    }
    let rows: Vec<Row> = sql_query(concat!(
        "SELECT * FROM ( \
             SELECT post -> 'user' ->> 'id' AS user_id, post -> 'user' ->> 'name' AS user_name, \
                 post -> 'user' ->> 'url' AS user_url, time, post_key AS id, feed \
             FROM (SELECT post_key, feed, time, post FROM recent_posts \
                   UNION SELECT post_key, feed, time, post FROM refused_posts) AS kept \
             WHERE split_part(feed, ':', 1) = $1) AS recent \
         WHERE ",
        is_author!()
    ))
    .bind::<Text, _>(platform)
    .bind::<Text, _>(author)
    .load(conn)
    .await?;
    for row in rows {
        let key = (row.id, row.feed.clone());
        entry(&mut authors, row).recent.push(key);
    }
    Ok(authors.into_values().collect())
}

fn entry(authors: &mut BTreeMap<[String; 3], Author>, row: Row) -> &mut Author {
    let key = [
        row.user_id.clone(),
        row.user_name.clone(),
        row.user_url.clone(),
    ];
    authors.entry(key).or_insert_with(|| Author {
        user: User {
            id: row.user_id,
            name: row.user_name,
            url: row.user_url,
        },
        posts: Vec::new(),
        recent: Vec::new(),
    })
}

/// Returns the number of Scans of these posts. Served by `scans_post_receive_time_idx`.
pub async fn count_scans(conn: &mut AsyncPgConnection, authors: &[Author]) -> QueryResult<i64> {
    #[derive(QueryableByName)]
    struct Number {
        #[diesel(sql_type = BigInt)]
        number: i64,
    }
    let mut number = 0;
    for some in authors
        .iter()
        .flat_map(|author| author.posts.chunks(AT_ONCE))
    {
        let (times, ids): (Vec<_>, Vec<_>) = some.iter().copied().unzip();
        let row: Number = sql_query(
            "SELECT count(*) AS number FROM scans WHERE post_receive_time = ANY ($1) AND post_id = ANY ($2)",
        )
        .bind::<Array<Timestamptz>, _>(times)
        .bind::<Array<SqlUuid>, _>(ids)
        .get_result(conn)
        .await?;
        number += row.number;
    }
    Ok(number)
}

/// Blanks the posts that [`find`] found, and removes the recent ones. Returns the numbers of rows that it changed.
pub async fn erase(conn: &mut AsyncPgConnection, authors: &[Author]) -> QueryResult<Counts> {
    let mut done = Counts::default();
    for author in authors {
        for some in author.recent.chunks(AT_ONCE) {
            let (keys, feeds): (Vec<Uuid>, Vec<String>) = some.iter().cloned().unzip();
            done.recent_posts += some.len();
            // Locked in the usual orders.
            for statement in [
                "DELETE FROM recent_posts WHERE (post_key, feed) IN ( \
                     SELECT post_key, feed FROM recent_posts \
                     WHERE (post_key, feed) IN (SELECT * FROM unnest($1, $2)) \
                     ORDER BY post_key, feed FOR UPDATE)",
                "DELETE FROM refused_posts WHERE ctid = ANY (ARRAY ( \
                     SELECT ctid FROM refused_posts \
                     WHERE (post_key, feed) IN (SELECT * FROM unnest($1, $2)) \
                     ORDER BY namespace_id, manager_id, feed, post_key FOR UPDATE))",
            ] {
                sql_query(statement)
                    .bind::<Array<SqlUuid>, _>(&keys)
                    .bind::<Array<Text>, _>(&feeds)
                    .execute(conn)
                    .await?;
            }
        }
        for some in author.posts.chunks(AT_ONCE) {
            let (times, ids) = some.iter().copied().unzip();
            done.posts += blank(conn, ids, times).await?;
        }
    }
    Ok(done)
}
