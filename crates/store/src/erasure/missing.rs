//! Posts that one re-check did not find. A second one, at least an hour later, decides: for a while, a platform may
//! answer 404 for posts that exist.

use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, BigInt, Text},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};

use crate::QueryResult;

/// Condition that a second look decides.
const IS_DUE: &str = "first_time <= clock_timestamp() - interval '1 hour'";

#[derive(QueryableByName)]
struct Missing {
    #[diesel(sql_type = Text)]
    post_id: String,
}

/// Returns up to `limit` posts of `platform` whose second look is due, oldest first. Served by
/// `missing_posts_due_idx`.
pub async fn due(
    conn: &mut AsyncPgConnection,
    platform: &str,
    limit: usize,
) -> QueryResult<Vec<String>> {
    let found: Vec<Missing> = sql_query(format!(
        "SELECT post_id FROM missing_posts WHERE platform = $1 AND {IS_DUE} ORDER BY first_time, post_id LIMIT $2"
    ))
    .bind::<Text, _>(platform)
    .bind::<BigInt, _>(i64::try_from(limit).unwrap_or(i64::MAX))
    .load(conn)
    .await?;
    Ok(found.into_iter().map(|missing| missing.post_id).collect())
}

/// Notes the result of a look, and returns those of `gone` that were not found an hour ago either. By primary key.
pub async fn note(
    conn: &mut AsyncPgConnection,
    platform: &str,
    found: &[String],
    gone: &[String],
) -> QueryResult<Vec<String>> {
    sql_query("DELETE FROM missing_posts WHERE platform = $1 AND post_id = ANY ($2)")
        .bind::<Text, _>(platform)
        .bind::<Array<Text>, _>(found)
        .execute(conn)
        .await?;
    let decided: Vec<Missing> = sql_query(format!(
        "DELETE FROM missing_posts WHERE platform = $1 AND post_id = ANY ($2) AND {IS_DUE} RETURNING post_id"
    ))
    .bind::<Text, _>(platform)
    .bind::<Array<Text>, _>(gone)
    .load(conn)
    .await?;
    let decided: Vec<String> = decided.into_iter().map(|missing| missing.post_id).collect();
    sql_query(
        "INSERT INTO missing_posts (platform, post_id) \
         SELECT $1, post_id FROM unnest($2) AS gone (post_id) WHERE post_id <> ALL ($3) ON CONFLICT DO NOTHING",
    )
    .bind::<Text, _>(platform)
    .bind::<Array<Text>, _>(gone)
    .bind::<Array<Text>, _>(&decided)
    .execute(conn)
    .await?;
    Ok(decided)
}

/// Puts the second look at these posts off, after an implausible answer. By primary key.
pub async fn put_off(
    conn: &mut AsyncPgConnection,
    platform: &str,
    post_ids: &[String],
) -> QueryResult<()> {
    sql_query(
        "UPDATE missing_posts SET first_time = clock_timestamp() WHERE platform = $1 AND post_id = ANY ($2)",
    )
    .bind::<Text, _>(platform)
    .bind::<Array<Text>, _>(post_ids)
    .execute(conn)
    .await?;
    Ok(())
}
