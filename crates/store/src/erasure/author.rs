//! Finds and erases all stored posts of one author, for an operator whom the author asks for that.
//!
//! No index leads from authors to posts, so [`find`] reads all posts: those of a day at a time, because a snapshot
//! that is held for long delays the vacuum of busy tables. Unlike a deletion that a platform reports, this also
//! concerns feeds that customers named.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use diesel::{
    QueryableByName,
    sql_types::{Array, BigInt, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::User;
use uuid::Uuid;

use super::blank;
use crate::{QueryResult, prepared::query};

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
    pub fn counts(&self) -> Counts {
        Counts {
            posts: self.posts.len(),
            recent_posts: self.recent.len(),
        }
    }
}

#[derive(QueryableByName)]
struct AuthorPost {
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
    let period: Period = query!("erasure/period_of_posts").get_result(conn).await?;
    let (mut from, newest) = (period.oldest, period.newest);
    while let Some(start) = from.filter(|start| newest.is_some_and(|newest| *start <= newest)) {
        let end = start + TimeDelta::days(1);
        let rows: Vec<AuthorPost> = query!(
            "erasure/find_posts",
            Text: platform,
            Text: author,
            Timestamptz: start,
            Timestamptz: end,
        )
        .load(conn)
        .await?;
        for row in rows {
            let key = (row.time, row.id);
            entry(&mut authors, row).posts.push(key);
        }
        from = Some(end);
    }
    let rows: Vec<AuthorPost> = query!(
        "erasure/find_recent",
        Text: platform,
        Text: author,
    )
    .load(conn)
    .await?;
    for row in rows {
        let key = (row.id, row.feed.clone());
        entry(&mut authors, row).recent.push(key);
    }
    Ok(authors.into_values().collect())
}

fn entry(authors: &mut BTreeMap<[String; 3], Author>, row: AuthorPost) -> &mut Author {
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
        let row: Number = query!(
            "erasure/count_scans",
            Array<Timestamptz>: times,
            Array<SqlUuid>: ids,
        )
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
            query!(
                "erasure/delete_recent",
                Array<SqlUuid>: &keys,
                Array<Text>: &feeds,
            )
            .execute(conn)
            .await?;
            query!(
                "erasure/delete_refused",
                Array<SqlUuid>: &keys,
                Array<Text>: &feeds,
            )
            .execute(conn)
            .await?;
        }
        for some in author.posts.chunks(AT_ONCE) {
            let (times, ids) = some.iter().copied().unzip();
            done.posts += blank(conn, ids, times).await?;
        }
    }
    Ok(done)
}
