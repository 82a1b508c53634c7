//! The trait that every platform's adapter implements, and what a poll answers.

use std::time::Duration;

use async_trait::async_trait;
use domain::{Post, Timestamp};

use crate::{Cursor, FetchError};

/// One kind of platform. Holds its address and how to fetch; everything else is in the cursor.
#[async_trait]
pub trait Adapter: Send + Sync {
    /// The word for it in the configuration.
    fn kind(&self) -> &'static str;

    /// Whether `what`, the second part of a feed's name, is well-formed for this platform.
    fn accepts(&self, what: &str) -> bool;

    /// How often to poll where nothing else is said.
    fn default_interval(&self) -> Duration;

    /// Polls once: reads pages newest first back to the cursor, so that a burst is not missed. A reading that
    /// a limit or a failed page ends early is no error: its cursor has the position at which the next poll
    /// continues.
    ///
    /// # Errors
    /// [`PollError`] when not one page was read; the stored cursor stays good.
    async fn poll(
        &self,
        what: &str,
        cursor: Option<&Cursor>,
        limits: &PollLimits,
    ) -> Result<Polled, PollError>;

    /// Communities that a search for `words` finds, best first; none where there is no search.
    ///
    /// # Errors
    /// [`PollError`]; whoever looks for communities can do without this platform's.
    async fn communities(&self, words: &str, limit: usize) -> Result<Vec<Community>, PollError> {
        let _ = (words, limit);
        Ok(Vec::new())
    }

    /// Whether `what` is the stream of a whole network: so much that its posts are not kept.
    fn is_whole_network(&self, what: &str) -> bool {
        let _ = what;
        false
    }

    /// How many posts one [`Adapter::recheck`] may name; 0 where posts cannot be asked for by their ids.
    fn recheck_batch(&self) -> usize {
        0
    }

    /// Which of these posts, by [`Post::id`], are gone at their source: deleted or removed.
    ///
    /// # Errors
    /// [`PollError`]; then nothing is known of any of them.
    async fn recheck(&self, post_ids: &[String]) -> Result<Vec<String>, PollError> {
        let _ = post_ids;
        Ok(Vec::new())
    }
}

/// Refuses the answers of a re-check by which none of many posts is left: so many do not vanish at once, so they tell
/// of the platform's state.
///
/// # Errors
/// [`PollError::Malformed`] for such answers.
pub(crate) fn refuse_if_all_gone(asked: usize, gone: usize) -> Result<(), PollError> {
    const MANY: usize = 10;
    if asked >= MANY && gone == asked {
        return Err(PollError::Malformed(format!("knows none of {asked} posts")));
    }
    Ok(())
}

/// A place on a platform that can be listened to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Community {
    /// The second part of its feed's name.
    pub what: String,
    pub name: String,
    /// As the platform describes it, in plain text; may be empty.
    pub about: String,
    pub url: String,
    pub members: Option<u64>,
}

/// What bounds one poll.
#[derive(Debug, Clone)]
pub struct PollLimits {
    /// The most posts to give. The next poll gives the others.
    pub max_posts: usize,
    /// The most pages to read. The next poll reads the others.
    pub max_pages: usize,
    /// No page is asked for later than this after the poll's beginning.
    pub max_time: Duration,
    /// On a feed's first poll, posts older than this are taken as known.
    pub since: Option<Timestamp>,
}

impl Default for PollLimits {
    fn default() -> Self {
        Self {
            max_posts: 2_000,
            max_pages: 400,
            max_time: Duration::from_secs(100),
            since: None,
        }
    }
}

/// The answer of one poll.
#[derive(Debug, Clone, PartialEq)]
pub struct Polled {
    /// Oldest first, and new ones only: none that the cursor had seen.
    pub posts: Vec<Post>,
    /// Posts, by [`Post::id`], that the platform says are deleted.
    pub deleted: Vec<String>,
    /// To be stored in the transaction that stores the posts. Equal to the old one when nothing
    /// changed, but for a floor that rises with the hours.
    pub cursor: Cursor,
    /// Posts may have been missed.
    pub gap: Option<Gap>,
    /// There is more to read: this poll left new posts to the next one, which may follow at once, or after
    /// `next_hint`.
    pub more: bool,
    /// The platform said that nothing changed, without sending anything.
    pub not_modified: bool,
    /// The platform asks not to be polled again sooner.
    pub next_hint: Option<Duration>,
}

/// A stretch of time from which posts may be missing, because a limit ended the reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
    pub reason: &'static str,
}

/// Why a poll gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum PollError {
    /// The platform asks to slow down.
    #[error("throttled by the platform")]
    Throttled { retry_after: Option<Duration> },
    /// The operator's own bound on requests or spending is reached.
    #[error("the budget is spent")]
    BudgetSpent { retry_after: Duration },
    /// The feed does not exist there (any more); asking again soon is of no use.
    #[error("no such feed: {0}")]
    NotFound(String),
    /// The platform wants credentials, or does not like the ones that it got.
    #[error("refused by the platform with status {status}")]
    Unauthorized { status: u16 },
    /// As [`PollError::Unauthorized`], where it is known what the operator can do about it.
    #[error("refused by the platform with status {status}: {advice}")]
    Refused { status: u16, advice: &'static str },
    /// The address may not be fetched, whoever asks.
    #[error("address not allowed: {0}")]
    Forbidden(String),
    /// No answer at all.
    #[error("no answer from the platform")]
    Unavailable(#[source] FetchError),
    /// An answer that is the platform's own failure.
    #[error("the platform answered with status {status}")]
    Status {
        status: u16,
        retry_after: Option<Duration>,
    },
    /// An answer that cannot be read.
    #[error("unreadable answer: {0}")]
    Malformed(String),
}

impl PollError {
    /// The shortest wait that the platform named.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Throttled { retry_after } | Self::Status { retry_after, .. } => *retry_after,
            Self::BudgetSpent { retry_after } => Some(*retry_after),
            _ => None,
        }
    }

    /// Whether polling again cannot help until somebody changes something.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        matches!(
            self,
            Self::NotFound(_)
                | Self::Unauthorized { .. }
                | Self::Refused { .. }
                | Self::Forbidden(_)
        )
    }
}

impl From<FetchError> for PollError {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::BudgetSpent { retry_after } => Self::BudgetSpent { retry_after },
            FetchError::Forbidden(address) => Self::Forbidden(address),
            FetchError::TooLarge { limit_bytes } => {
                Self::Malformed(format!("more than {limit_bytes} bytes"))
            }
            other => Self::Unavailable(other),
        }
    }
}
