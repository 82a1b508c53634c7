//! Stores each post once for all polls, or, for a feed that a customer named, once for that feed.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
};

use diesel::{
    prelude::*,
    sql_types::{Array, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{FeedName, Id, Post, PostType, Timestamp};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::{QueryResult, prepared::query, schema::post_keys, words};

/// A connection keeps a buffer for the largest statement that it ever sent.
const POSTS_PER_STATEMENT: usize = 250;

pub(in crate::scans) fn post_key(post: &Post) -> Uuid {
    key_of(&post.id)
}

/// Key of a post, computed from its id.
pub(crate) fn key_of(post_id: &str) -> Uuid {
    key_within("", post_id)
}

/// Key of a post's row in `posts`. Feeds of platforms that the operator configured share rows. A feed that a
/// customer named may claim any id, so its rows are separate.
pub(in crate::scans) fn row_key(feed: &FeedName, post: &Post) -> Uuid {
    match feed.address() {
        Some(_) => key_within(&format!("{feed}\0"), &post.id),
        None => key_of(&post.id),
    }
}

fn key_within(scope: &str, post_id: &str) -> Uuid {
    let mut hash = Sha256::new();
    hash.update(scope);
    // No stored text contains the NUL that ends a scope.
    hash.update(words::text(post_id).as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    Uuid::from_bytes(bytes)
}

/// Returns the rows of these posts, and creates the missing ones.
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
    let made: Vec<Made> = query!(
        "scans/insert_post_keys",
        Array<SqlUuid>: keys,
        Array<SqlUuid>: ids,
    )
    .load(conn)
    .await?;
    let rows: Vec<(&Uuid, &Uuid, &Post)> = made
        .iter()
        .filter_map(|Made { post_key, id }| Some((id, post_key, *given.get(post_key)?)))
        .collect();
    for some in rows.chunks(POSTS_PER_STATEMENT) {
        insert_posts(conn, feed, some, now).await?;
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

async fn insert_posts(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    rows: &[(&Uuid, &Uuid, &Post)],
    now: Timestamp,
) -> QueryResult<()> {
    let texts = |text: fn(&Post) -> &str| -> Vec<Cow<'_, str>> {
        let texts = rows.iter().map(|(.., post)| text(post));
        texts.map(words::text).collect()
    };
    let optional = |text: fn(&Post) -> Option<&str>| -> Vec<Option<Cow<'_, str>>> {
        let texts = rows.iter().map(|(.., post)| text(post));
        texts.map(|text| text.map(words::text)).collect()
    };
    query!(
        "scans/insert_posts",
        Timestamptz: now.to_chrono(),
        Text: feed.as_str(),
        Array<SqlUuid>: rows.iter().map(|(id, ..)| **id).collect::<Vec<_>>(),
        Array<SqlUuid>: rows.iter().map(|(_, key, _)| **key).collect::<Vec<_>>(),
        Array<Text>: rows.iter().map(|(.., post)| word(post.post_type)).collect::<Vec<_>>(),
        Array<Timestamptz>: rows.iter().map(|(.., post)| post.time.to_chrono()).collect::<Vec<_>>(),
        Array<Text>: texts(|post| &post.id),
        Array<Nullable<Text>>: optional(|post| post.title.as_deref()),
        Array<Nullable<Text>>: optional(|post| post.text.as_deref()),
        Array<Text>: texts(|post| &post.url),
        Array<Nullable<Text>>: optional(|post| Some(&*post.subforum.as_ref()?.id)),
        Array<Nullable<Text>>: optional(|post| Some(&*post.subforum.as_ref()?.name)),
        Array<Nullable<Text>>: optional(|post| Some(&*post.subforum.as_ref()?.url)),
        Array<Text>: texts(|post| &post.user.id),
        Array<Text>: texts(|post| &post.user.name),
        Array<Text>: texts(|post| &post.user.url),
    )
    .execute(conn)
    .await?;
    Ok(())
}

fn word(post_type: PostType) -> &'static str {
    match post_type {
        PostType::ForumLink => "FORUM_LINK",
        PostType::ForumComment => "FORUM_COMMENT",
        PostType::MicroblogTweet => "MICROBLOG_TWEET",
        PostType::NetworkPost => "NETWORK_POST",
    }
}
