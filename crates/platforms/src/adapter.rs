//! The trait that every platform's adapter implements, and the result of a poll.

use std::time::Duration;

use async_trait::async_trait;
use domain::{Post, Timestamp};

use crate::{Cursor, IdAccount, PollError, error::Throttled};

/// Adapter for one kind of platform. It holds the address and fetches; all other state is in the cursor.
#[async_trait]
pub trait Adapter: Send + Sync {
    /// Default interval between polls.
    fn default_interval(&self) -> Duration {
        Duration::from_secs(60)
    }

    /// Polls once: reads pages newest first, back to the cursor, so that a burst is not missed. It is not an
    /// error if a limit or a failed page ends the reading early: the cursor then holds the position for the
    /// next poll.
    ///
    /// # Errors
    /// [`PollError`] when no page was read; the stored cursor stays valid.
    async fn poll(
        &self,
        what: &str,
        cursor: Option<&Cursor>,
        limits: &PollLimits,
    ) -> Result<Polled, PollError>;

    /// Communities that a search for `words` finds, best first. Empty if the platform has no search.
    ///
    /// # Errors
    /// [`PollError`]. Callers can continue without this platform's communities.
    async fn communities(&self, words: &str, limit: usize) -> Result<Vec<Community>, PollError> {
        let _ = (words, limit);
        Ok(Vec::new())
    }

    /// Returns true if `what` is the stream of a whole network: its posts are too many to store.
    fn is_whole_network(&self, what: &str) -> bool {
        let _ = what;
        false
    }

    /// Returns true if posts may become visible long after their time, and a second reading with
    /// [`Cursor::reading_back_to`] finds them cheaply.
    fn has_late_posts(&self) -> bool {
        false
    }

    /// Returns true if the platform numbers the items of the feed without gaps, so that each id can be accounted for.
    fn has_dense_ids(&self, what: &str) -> bool {
        let _ = what;
        false
    }

    /// Accounts for the ids of a feed that [has dense ones](Adapter::has_dense_ids). Call after each poll: notes its posts
    /// in the cursor of `polled`, and asks the platform about older ids if `ask`.
    async fn account(&self, what: &str, polled: &mut Polled, ask: bool) -> IdAccount {
        let _ = (what, polled, ask);
        IdAccount::default()
    }

    /// Maximum number of posts in one [`Adapter::recheck`]; 0 if the platform cannot look up posts by their
    /// ids.
    fn recheck_batch(&self) -> usize {
        0
    }

    /// Looks up posts by [`Post::id`].
    ///
    /// # Errors
    /// [`PollError`]. The state of all the posts is then unknown.
    async fn recheck(&self, post_ids: &[String]) -> Result<RecheckResult, PollError> {
        let _ = post_ids;
        Ok(RecheckResult::default())
    }
}

/// State of posts at their source.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecheckResult {
    /// Posts, by [`Post::id`], that were deleted or removed at their source.
    pub gone: Vec<String>,
    /// Posts as they are now, made like those of a poll. Empty if the answer has no texts.
    pub current: Vec<Post>,
}

impl From<Vec<String>> for RecheckResult {
    fn from(gone: Vec<String>) -> Self {
        Self {
            gone,
            current: Vec::new(),
        }
    }
}

/// Refuses the result of a re-check that finds all of many posts gone. So many posts do not vanish at once; it
/// is more likely that the platform has a problem.
///
/// # Errors
/// [`PollError::Malformed`] for such results.
pub(crate) fn refuse_if_all_gone(asked: usize, gone: usize) -> Result<(), PollError> {
    const MANY: usize = 10;
    if asked >= MANY && gone == asked {
        return Err(PollError::Malformed(format!("none of {asked} found")));
    }
    Ok(())
}

/// A part of a platform that can be monitored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Community {
    /// The second part of its feed's name.
    pub what: String,
    pub name: String,
    /// The platform's description in plain text; may be empty.
    pub about: String,
    pub url: String,
    pub members: Option<u64>,
}

/// Limits of one poll.
#[derive(Debug, Clone)]
pub struct PollLimits {
    /// Maximum number of posts to return. The next poll returns the rest.
    pub max_posts: usize,
    /// Maximum number of pages to read. The next poll reads the rest.
    pub max_pages: usize,
    /// Maximum time from the poll's start until the last page is requested.
    pub max_time: Duration,
    /// On a feed's first poll, older posts count as known.
    pub since: Option<Timestamp>,
    /// When the feed was first watched; `None` after its first successful poll. Even a kind that reads back less far
    /// than `since` reads what came after it.
    pub first_watch_time: Option<Timestamp>,
}

impl Default for PollLimits {
    fn default() -> Self {
        Self {
            max_posts: 2_000,
            max_pages: 400,
            max_time: Duration::from_secs(100),
            since: None,
            first_watch_time: None,
        }
    }
}

/// Result of one poll.
#[derive(Debug, Clone, PartialEq)]
pub struct Polled {
    /// New posts only, oldest first: the cursor had seen none of them.
    pub posts: Vec<Post>,
    /// Posts, by [`Post::id`], that the platform reports as deleted: not those that are only missing or hidden.
    pub deleted: Vec<String>,
    /// Position for the next poll, to be stored in the transaction that stores the posts. Equal to the old cursor if
    /// nothing changed, except for its floor, which rises every hour.
    pub cursor: Cursor,
    /// Items that became no posts. Each is given once, though the platform may list it again.
    pub skipped: Vec<Skipped>,
    /// Set if posts may have been missed.
    pub gap: Option<Gap>,
    /// Problem that those who watch the feed should know, although it was read without an error. Unchanged if
    /// `not_modified`.
    pub notice: Option<&'static str>,
    /// There is more to read: this poll left new posts to the next one, which may follow at once, or after
    /// `next_hint`.
    pub more: bool,
    /// The platform answered that nothing changed, without a body.
    pub not_modified: bool,
    /// Shortest wait before the next poll that the platform asks for.
    pub next_hint: Option<Duration>,
    /// The platform asked to slow down, and so ended the reading early.
    pub throttled: Option<Throttled>,
}

impl Polled {
    /// Returns true if there is nothing to store but the cursor.
    pub fn is_empty(&self) -> bool {
        self.posts.is_empty()
            && self.deleted.is_empty()
            && self.skipped.is_empty()
            && self.gap.is_none()
            && self.throttled.is_none()
    }
}

/// One item of an answer that became no post, while the others did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The platform's own id, where the item has one.
    pub id: Option<String>,
    pub reason: String,
    /// False if the item has a form that the adapter does not know. True if its author left it empty, or dated it far
    /// back.
    pub is_readable: bool,
}

/// A period whose posts may be missing, because a limit ended the reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
    pub reason: &'static str,
}
