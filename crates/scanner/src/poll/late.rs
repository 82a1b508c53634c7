//! Reads further back, now and then, for posts that became visible after the feed had passed their time: federated
//! late, approved by a moderator, vouched for, moved here, or indexed late.
//!
//! The cursor of such a reading is not stored. Its posts are late if the feed should have kept them and has not
//! ([`recent_posts::unkept`]). They are stored and kept in the transaction of the poll that found them. So a crash loses
//! none, and the next reading finds none twice.
//!
//! Such a reading also fills gaps of the last days. It goes back either as far as usual or to the start of one of the open
//! gaps, by chance, so that none keeps the others waiting. It closes the gaps that it has read whole.

use std::{collections::HashSet, time::Duration};

use domain::{Post, Timestamp};
use platforms::{PollError, PollLimits, Polled};
use rand::seq::IteratorRandom as _;
use store::{
    feeds::{self, OpenGap},
    recent_posts,
};

use super::Poll;
use crate::budget;

const EVERY: Duration = Duration::from_hours(1);
const AFTER_FAILURE: Duration = Duration::from_mins(10);
/// How far back, and one time in [`DEEP`] how far back at most: what is kept is known for three days.
const BACK: Duration = Duration::from_hours(24);
const DEEP_BACK: Duration = Duration::from_hours(70);
const DEEP: u32 = 24;
/// Younger posts are found by ordinary polls.
const YOUNG: Duration = Duration::from_mins(10);
const MAX_PAGES: usize = 30;
const MAX_TIME: Duration = Duration::from_secs(40);
const DEADLINE: Duration = Duration::from_secs(120);

/// Result of looking for late posts. Empty if this poll did not look.
#[derive(Debug, Default)]
pub(super) struct Late {
    pub(super) posts: usize,
    pub(super) next_in: Option<Duration>,
    /// The gaps that were read whole.
    pub(super) filled: Vec<OpenGap>,
}

impl Poll {
    /// Adds the late posts to `polled`, when it is time to look for them.
    pub(super) async fn add_late(&self, polled: &mut Polled) -> Late {
        let adapter = &self.watched.platform.adapter;
        if !adapter.has_late_posts() || polled.more {
            return Late::default();
        }
        let next_in = EVERY.mul_f64(rand::random_range(0.9..1.1));
        match self.feed.late_due {
            Some(true) => {}
            Some(false) => return Late::default(),
            None => {
                // All feeds begin at once after an upgrade.
                let first_in = EVERY.mul_f64(rand::random_range(0.1..1.0));
                return Late {
                    next_in: Some(first_in),
                    ..Late::default()
                };
            }
        }
        match self.late_posts(polled).await {
            Ok((late, filled)) => {
                let posts = late.len();
                polled.posts.extend(late);
                polled.posts.sort_by_key(|post| post.time);
                Late {
                    posts,
                    next_in: Some(next_in),
                    filled,
                }
            }
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

    async fn late_posts(&self, polled: &mut Polled) -> anyhow::Result<(Vec<Post>, Vec<OpenGap>)> {
        let is_deep = rand::random_ratio(1, DEEP);
        let now = Timestamp::now();
        let young = now.minus(YOUNG);
        let gaps = {
            let mut conn = self.backbone.pool.get().await?;
            feeds::open_gaps(&mut conn, &self.feed.name, now.minus(DEEP_BACK), young).await?
        };
        let back = now.minus(if is_deep { DEEP_BACK } else { BACK });
        let starts = gaps.iter().map(|gap| gap.from).chain([back]);
        let since = starts.choose(&mut rand::rng()).unwrap_or(back);
        let limits = PollLimits {
            since: Some(since),
            max_pages: MAX_PAGES,
            max_time: MAX_TIME,
            ..PollLimits::default()
        };
        let cursor = polled.cursor.reading_back_to(since);
        let adapter = &self.watched.platform.adapter;
        let read = adapter.poll(self.feed.name.what(), Some(&cursor), &limits);
        let read = budget::undertake(true, Some(&self.feed.name), read);
        let cut_off = |_| PollError::Unavailable(platforms::FetchError::Timeout);
        let found = tokio::time::timeout(DEADLINE, read).await;
        let found = match found.map_err(cut_off).flatten() {
            Ok(found) => found,
            Err(error) => {
                polled.throttled = polled.throttled.or(error.throttled());
                return Err(error.into());
            }
        };
        polled.throttled = polled.throttled.or(found.throttled);
        let given: HashSet<&str> = polled.posts.iter().map(|post| post.id.as_str()).collect();
        let is_whole = !found.more && found.gap.is_none();
        let mut filled = gaps.clone();
        filled.retain(|gap| is_whole && gap.from >= since);
        let mut posts = found.posts;
        posts.retain(|post| post.time < young && !given.contains(post.id.as_str()));
        if !posts.is_empty() {
            let mut conn = self.backbone.pool.get().await?;
            let unkept = recent_posts::unkept(&mut conn, &self.feed.name, &posts, &gaps).await?;
            posts.retain(|post| unkept.contains(&post.id));
        }
        Ok((posts, filled))
    }
}
