//! Posts whose text was edited at its source, as re-checks find them.
//!
//! A stored post keeps its text, because Scans refer to places in it. Only a digest of the present text is stored, so that
//! each edit is reported once.

use diesel::sql_types::{Array, BigInt, Bytea, Text, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::Post;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::MAX_EVENTS;
use crate::{QueryResult, prepared::query, scans::key_of, words};

/// Characters whose changes are no edits. Otherwise a release that converts markup to text in another way would report
/// most stored posts.
const LEFT_OUT: &str = " \t\n!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

/// Records which of these posts, as they are now, have another text than before. Stores a service event for each of
/// their Scans whose Namespace receives it, at most for the newest 100 of a Namespace. A post without a text says nothing,
/// because an answer may lack it. Unknown and blanked posts are ignored, and so are those of feeds that customers named,
/// which have other keys. One statement, by primary keys; `scans_post_receive_time_idx` serves edited posts.
pub async fn record(conn: &mut AsyncPgConnection, current: &[Post]) -> QueryResult<()> {
    let texts = current.iter().filter_map(|post| {
        let text = post.text.as_deref()?;
        Some((key_of(&post.id), digest(text)))
    });
    let (keys, digests): (Vec<Uuid>, Vec<Vec<u8>>) = texts.unzip();
    if keys.is_empty() {
        return Ok(());
    }
    query!(
        "erasure/record_edits",
        Array<SqlUuid>: keys,
        Array<Bytea>: digests,
        Text: LEFT_OUT,
        BigInt: MAX_EVENTS,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Digest of a text as it would be stored.
fn digest(text: &str) -> Vec<u8> {
    let stored = words::text(text);
    let said: String = stored.chars().filter(|c| !LEFT_OUT.contains(*c)).collect();
    Sha256::digest(said).to_vec()
}
