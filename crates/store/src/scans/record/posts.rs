//! Each post once, whichever polls bring it.

use std::collections::{BTreeMap, HashMap};

use diesel::{
    prelude::*,
    sql_query,
    sql_types::{Array, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{FeedName, Id, Post, PostType, Timestamp};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::{
    QueryResult,
    schema::{post_keys, posts},
    words,
};

/// PostgreSQL takes 65535 parameters a statement, and a post has sixteen.
const POSTS_PER_STATEMENT: usize = 1_000;

pub(in crate::scans) fn post_key(post: &Post) -> Uuid {
    key_of(&post.id)
}

/// What makes a post the same post, by its id.
pub(crate) fn key_of(post_id: &str) -> Uuid {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&Sha256::digest(words::text(post_id).as_bytes())[..16]);
    Uuid::from_bytes(bytes)
}

/// The rows of these posts, made where there were none.
pub(super) async fn store_posts(
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
