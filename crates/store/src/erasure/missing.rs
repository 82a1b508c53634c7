//! Posts that one re-check did not find. A second one, at least an hour later, decides: for a while, a platform may
//! answer 404 for posts that exist.

use diesel::{
    QueryableByName,
    sql_types::{Array, BigInt, Text},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};

use crate::{QueryResult, prepared::query};

#[derive(QueryableByName)]
struct Missing {
    #[diesel(sql_type = Text)]
    post_id: String,
}

/// Returns up to `limit` posts of `platform` whose second check is due, oldest first. Served by
/// `missing_posts_due_idx`.
pub async fn due(
    conn: &mut AsyncPgConnection,
    platform: &str,
    limit: usize,
) -> QueryResult<Vec<String>> {
    let found: Vec<Missing> = query!(
        "erasure/due",
        Text: platform,
        BigInt: i64::try_from(limit).unwrap_or(i64::MAX),
    )
    .load(conn)
    .await?;
    Ok(found.into_iter().map(|missing| missing.post_id).collect())
}

/// Records the result of a check, and returns those of `gone` that were not found an hour ago either. By primary key.
pub async fn record(
    conn: &mut AsyncPgConnection,
    platform: &str,
    found: &[String],
    gone: &[String],
) -> QueryResult<Vec<String>> {
    query!(
        "erasure/forget_found",
        Text: platform,
        Array<Text>: found,
    )
    .execute(conn)
    .await?;
    let decided: Vec<Missing> = query!(
        "erasure/decide",
        Text: platform,
        Array<Text>: gone,
    )
    .load(conn)
    .await?;
    let decided: Vec<String> = decided.into_iter().map(|missing| missing.post_id).collect();
    query!(
        "erasure/insert_missing",
        Text: platform,
        Array<Text>: gone,
        Array<Text>: &decided,
    )
    .execute(conn)
    .await?;
    Ok(decided)
}

/// Postpones the second check of these posts, after an implausible answer or a refusal of the database. By primary key.
pub async fn put_off(
    conn: &mut AsyncPgConnection,
    platform: &str,
    post_ids: &[String],
) -> QueryResult<()> {
    query!(
        "erasure/put_off",
        Text: platform,
        Array<Text>: post_ids,
    )
    .execute(conn)
    .await?;
    Ok(())
}
