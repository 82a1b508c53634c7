//! Reads further back now and then, for posts that became visible after polls had passed their time: federated late,
//! approved by a moderator, vouched for, moved here, or indexed late.
//!
//! A search goes back a day, and once a day nearly a week. One that goes back a week and does not finish within its
//! budget continues in a later poll, for up to a day: `feeds.late_reading` has its position.
//!
//! The cursor of a search never becomes the feed's. A post is late if the feed should know it and does not
//! ([`feed_post_ids`], [`recent_posts::unkept`]). Late posts and the search's position are stored in the transaction
//! of the poll that found them. So a crash loses none, and the next search finds none twice.
//!
//! A search also fills gaps of the last week. One of a day goes back either a day or to the start of a randomly chosen
//! open gap, so that no gap blocks the others. One of a week covers them all. A search closes the gaps that it has read
//! completely.

use std::{collections::HashSet, time::Duration};

use domain::{Post, Timestamp};
use outbound::large;
use platforms::{Cursor, PollError, PollLimits, Polled};
use rand::seq::IteratorRandom as _;
use serde::{Deserialize, Serialize};
use store::{
    feed_post_ids,
    feeds::{self, OpenGap},
    recent_posts,
};

use crate::{budget, poll::context::Poll};

const EVERY: Duration = Duration::from_hours(1);
const AFTER_FAILURE: Duration = Duration::from_mins(10);
/// Time until a search continues.
const CONTINUE: Duration = Duration::from_mins(10);
/// While a search of a week continues, one in this many polls searches a single day instead of continuing it.
const HOURLY: u32 = 6;
const BACK: Duration = Duration::from_hours(24);
const DEEP_EVERY: Duration = Duration::from_hours(24);
/// A little less than [`feed_post_ids::MAX_AGE`], because a search takes time.
const DEEP_BACK: Duration = Duration::from_hours(166);
/// Maximum age of posts that are left to ordinary polls.
const YOUNG: Duration = Duration::from_mins(10);
const MAX_PAGES: usize = 30;
const MAX_TIME: Duration = Duration::from_secs(40);
const DEADLINE: Duration = Duration::from_secs(120);
/// Maximum difference between the clocks of two replicas.
const MAX_SKEW: Duration = Duration::from_hours(1);

/// Result of a search for late posts. Empty if this poll did not search.
#[derive(Debug, Default)]
pub(in crate::poll) struct Late {
    pub(in crate::poll) posts: usize,
    pub(in crate::poll) next_in: Option<Duration>,
    /// The new value of `feeds.late_reading`; `None` to keep it.
    pub(in crate::poll) reading: Option<serde_json::Value>,
    /// Gaps that were read completely.
    pub(in crate::poll) filled: Vec<OpenGap>,
}

/// The last search of a week, as `feeds.late_reading` has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Deep {
    begin: Timestamp,
    since: Timestamp,
    /// Position where it continues, in the format of the platform's adapter; `None` if it is finished.
    cursor: Option<serde_json::Value>,
    /// True if a part could not be read.
    has_gap: bool,
}

impl Poll {
    /// Adds the late posts to `polled`, when it is time to look for them.
    pub(super) async fn add_late(&self, polled: &mut Polled) -> Late {
        if !self.has_late_posts() || polled.more {
            return Late::default();
        }
        match self.feed.late_due {
            Some(true) => {}
            Some(false) => return Late::default(),
            None => {
                // The first searches are spread over time, because all feeds start at once after an upgrade.
                let first_in = EVERY.mul_f64(rand::random_range(0.1..1.0));
                return Late {
                    next_in: Some(first_in),
                    ..Late::default()
                };
            }
        }
        match self.search(polled).await {
            Ok(late) => late,
            Err(error) => {
                let error = format!("{error:#}");
                tracing::debug!(feed.name = %self.feed.name.masked(), error, "cannot look for late posts");
                Late {
                    next_in: Some(AFTER_FAILURE),
                    ..Late::default()
                }
            }
        }
    }

    async fn search(&self, polled: &mut Polled) -> anyhow::Result<Late> {
        let (now, feed) = (Timestamp::now(), &self.feed.name);
        let mut conn = self.backbone.pool.get().await?;
        let state = feeds::late_state(&mut conn, feed).await?;
        let last = state.reading.as_ref().and_then(Deep::from_json);
        let last = last.filter(|deep| deep.is_recent(now));
        let unfinished = last
            .as_ref()
            .and_then(|deep| Some((deep, deep.cursor()?)))
            .filter(|_| !rand::random_ratio(1, HOURLY));
        let begin = unfinished.as_ref().map_or(now, |(deep, _)| deep.begin);
        let gaps =
            feeds::open_gaps(&mut conn, feed, now.minus(DEEP_BACK), begin.minus(YOUNG)).await?;
        drop(conn);
        let is_deep = last.is_none() || unfinished.is_some();
        let (since, cursor, had_gap) = match unfinished {
            Some((deep, cursor)) => (deep.since, cursor, deep.has_gap),
            None => {
                let since = start(now, is_deep, state.known_since(), &gaps);
                (since, polled.cursor.reading_back_to(since), false)
            }
        };
        let (found, posts) = self.read_back(polled, &cursor, since, &gaps).await?;

        let has_gap = had_gap || found.gap.is_some();
        let mut filled = gaps;
        filled.retain(|gap| !found.more && !has_gap && gap.from >= since);
        let made = is_deep.then(|| Deep {
            begin,
            since,
            cursor: found.more.then(|| found.cursor.to_json()),
            has_gap,
        });
        let goes_on = made
            .as_ref()
            .or(last.as_ref())
            .is_some_and(|deep| deep.cursor.is_some());
        let next_in = if goes_on { CONTINUE } else { EVERY };
        let late = Late {
            posts: posts.len(),
            next_in: Some(next_in.mul_f64(rand::random_range(0.9..1.1))),
            reading: made.map(serde_json::to_value).transpose()?,
            filled,
        };
        polled.posts.extend(posts);
        polled.posts.sort_by_key(|post| post.time);
        Ok(late)
    }

    /// Reads from `cursor` on, within the limits. Returns the result, and the late posts in it.
    async fn read_back(
        &self,
        polled: &mut Polled,
        cursor: &Cursor,
        since: Timestamp,
        gaps: &[OpenGap],
    ) -> anyhow::Result<(Polled, Vec<Post>)> {
        let limits = PollLimits {
            since: Some(since),
            max_pages: MAX_PAGES,
            max_time: MAX_TIME,
            ..PollLimits::default()
        };
        let feed = &self.feed.name;
        let adapter = &self.watched.platform.adapter;
        let read = adapter.poll(feed.what(), Some(cursor), &limits);
        let read = budget::undertake(true, Some(feed), read);
        let cut_off = |_| PollError::Unavailable(platforms::FetchError::Timeout);
        let found = large::timeout(DEADLINE, read).await;
        let mut found = match found.map_err(cut_off).flatten() {
            Ok(found) => found,
            Err(error) => {
                polled.throttled = polled.throttled.or(error.throttled());
                return Err(error.into());
            }
        };
        polled.throttled = polled.throttled.or(found.throttled);
        let given: HashSet<&str> = polled.posts.iter().map(|post| post.id.as_str()).collect();
        let young = Timestamp::now().minus(YOUNG);
        let mut posts = std::mem::take(&mut found.posts);
        posts.retain(|post| post.time < young && !given.contains(post.id.as_str()));
        if let Some(oldest) = posts.iter().map(|post| post.time).min() {
            let mut conn = self.backbone.pool.get().await?;
            let known = feed_post_ids::known(&mut conn, feed, oldest).await?;
            posts.retain(|post| !known.contains(&post.id, post.time));
            let unkept = recent_posts::unkept(&mut conn, feed, &posts, gaps).await?;
            posts.retain(|post| unkept.contains(&post.id));
        }
        Ok((found, posts))
    }
}

impl Deep {
    /// `None` if another release wrote it in another format.
    fn from_json(stored: &serde_json::Value) -> Option<Self> {
        Self::deserialize(stored).ok()
    }

    /// Returns true if it is too early for another search of a week.
    fn is_recent(&self, now: Timestamp) -> bool {
        // A wrong clock must not stop the searches until the time that it showed.
        let is_past = self.begin <= now.plus(MAX_SKEW);
        is_past && now.since(self.begin) < DEEP_EVERY
    }

    fn cursor(&self) -> Option<Cursor> {
        Cursor::from_json(self.cursor.as_ref()?)
    }
}

/// Returns how far a new search reads back.
fn start(
    now: Timestamp,
    is_deep: bool,
    known_since: Option<Timestamp>,
    gaps: &[OpenGap],
) -> Timestamp {
    let back = now.minus(if is_deep { DEEP_BACK } else { BACK });
    // It is not known which of the earlier posts were read.
    let back = known_since.map_or(back, |known| back.max(known.min(now.minus(YOUNG))));
    let starts = gaps.iter().map(|gap| gap.from).chain([back]);
    let start = if is_deep {
        starts.min()
    } else {
        starts.choose(&mut rand::rng())
    };
    start.unwrap_or(back)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_that_began_far_in_the_future_is_not_recent() {
        let now = Timestamp::now();
        let is_recent = |begin| {
            let deep = Deep {
                begin,
                since: begin,
                cursor: None,
                has_gap: false,
            };
            deep.is_recent(now)
        };
        assert!(is_recent(now.minus(Duration::from_hours(23))));
        assert!(is_recent(now.plus(Duration::from_mins(1))));
        assert!(!is_recent(now.minus(Duration::from_hours(25))));
        assert!(!is_recent(now.plus(Duration::from_hours(2))));
    }
}
