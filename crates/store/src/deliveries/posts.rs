//! Reads posts that several deliveries share.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use chrono::{DateTime, Utc};
use diesel::{
    QueryableByName,
    sql_types::{Array, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::Post;
use uuid::Uuid;

use crate::{QueryResult, prepared::query, scans::PostRow};

#[derive(QueryableByName)]
#[diesel(check_for_backend(diesel::pg::Pg))]
struct KeyedPost {
    #[diesel(sql_type = SqlUuid)]
    key: Uuid,
    #[diesel(embed)]
    post: PostRow,
}

/// Returns these posts by id, each read once. Leaves out those that were deleted at their source or cannot be read.
pub(super) async fn load(
    conn: &mut AsyncPgConnection,
    keys: BTreeSet<(Uuid, DateTime<Utc>)>,
) -> QueryResult<HashMap<Uuid, Arc<Post>>> {
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    let (ids, times): (Vec<Uuid>, Vec<DateTime<Utc>>) = keys.into_iter().unzip();
    let rows: Vec<KeyedPost> = query!(
        "deliveries/load_posts",
        Array<SqlUuid>: ids,
        Array<Timestamptz>: times,
    )
    .load(conn)
    .await?;
    let posts = rows.into_iter().filter_map(|row| {
        let post = row.post.into_post().ok()?;
        Some((row.key, Arc::new(post)))
    });
    Ok(posts.collect())
}
