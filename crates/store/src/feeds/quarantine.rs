//! Posts that are skipped, because they cannot be read or stored.

use std::time::Duration;

use diesel::sql_types::{Array, BigInt, Double, Nullable, Text};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::FeedName;

use crate::{QueryResult, prepared::query, words};

/// Maximum number of posts of one feed that are listed.
const LISTED: usize = 100;
/// How long they are listed.
const LISTED_FOR: Duration = Duration::from_hours(30 * 24);
const MAX_CHARS: usize = 500;

/// A post that was skipped, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantined {
    pub kind: QuarantineKind,
    pub post_id: Option<String>,
    pub reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuarantineKind {
    /// The adapter cannot read the item of the platform's answer.
    Unreadable,
    /// The database refuses a value of the post.
    Refused,
    /// The item can be read, and is no post: empty, or dated far back when it appeared.
    Unfit,
}

impl QuarantineKind {
    /// Word in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unreadable => "UNREADABLE",
            Self::Refused => "REFUSED",
            Self::Unfit => "UNFIT",
        }
    }
}

impl Quarantined {
    /// Reason for customers, without the database's message.
    fn public_reason(&self) -> String {
        match self.kind {
            QuarantineKind::Unreadable => format!("cannot be read: {}", self.reason),
            QuarantineKind::Refused => "cannot be stored".to_owned(),
            QuarantineKind::Unfit => self.reason.clone(),
        }
    }
}

/// Records posts of `feed` that are skipped. Call in the transaction that moves the feed's cursor past them, so
/// that each is counted once.
pub async fn quarantine(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    posts: &[Quarantined],
) -> QueryResult<()> {
    let Some(last) = posts.last() else {
        return Ok(());
    };
    let listed = &posts[posts.len().saturating_sub(LISTED)..];
    let kinds: Vec<&str> = listed.iter().map(|one| one.kind.as_str()).collect();
    let ids: Vec<Option<String>> = listed
        .iter()
        .map(|one| one.post_id.as_deref().map(shortened))
        .collect();
    let reasons: Vec<String> = listed.iter().map(|one| shortened(&one.reason)).collect();
    // Served by quarantined_posts_feed_idx: at most LISTED entries are read.
    query!(
        "feeds/quarantine",
        Text: feed.as_str(),
        Array<Text>: kinds,
        Array<Nullable<Text>>: ids,
        Array<Text>: reasons,
        BigInt: i64::try_from(LISTED).unwrap_or(i64::MAX),
        BigInt: i64::try_from(posts.len()).unwrap_or(i64::MAX),
        Text: shortened(&last.public_reason()),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Removes old records. The count of each feed stays.
pub async fn purge_quarantine(conn: &mut AsyncPgConnection) -> QueryResult<usize> {
    query!("feeds/purge_quarantine", Double: LISTED_FOR.as_secs_f64())
        .execute(conn)
        .await
}

fn shortened(text: &str) -> String {
    words::text(text).chars().take(MAX_CHARS).collect()
}
