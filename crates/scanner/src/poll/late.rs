//! Reads further back, now and then, for posts that became visible after the feed had passed their time: federated
//! late, approved by a moderator, vouched for, moved here, or indexed late.
//!
//! The cursor of such a reading is not stored. Its posts are late if the feed should have kept them and has not
//! ([`recent_posts::unkept`]). They are stored and kept in the transaction of the poll that found them. So a crash loses
//! none, and the next reading finds none twice.

use std::{collections::HashSet, time::Duration};

use domain::{Post, Timestamp};
use platforms::{PollError, PollLimits, Polled};
use store::recent_posts;

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

/// The number recently posts, and the time until the next look. Empty if this poll did not look.
#[derive(Debug, Default)]
pub(super) struct Late {
    pub(super) posts: usize,
    pub(super) next_in: Option<Duration>,
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
                    posts: 0,
                    next_in: Some(first_in),
                };
            }
        }
        match self.late_posts(polled).await {
            Ok(late) => {
                let posts = late.len();
                polled.posts.extend(late);
                polled.posts.sort_by_key(|post| post.time);
                Late {
                    posts,
                    next_in: Some(next_in),
                }
            }
            Err(error) => {
                let error = format!("{error:#}");
                tracing::debug!(feed.name = %self.feed.name.masked(), error, "cannot look for late posts");
                Late {
                    posts: 0,
                    next_in: Some(AFTER_FAILURE),
                }
            }
        }
    }

    async fn late_posts(&self, polled: &mut Polled) -> anyhow::Result<Vec<Post>> {
        let is_deep = rand::random_ratio(1, DEEP);
        let now = Timestamp::now();
        let since = now.minus(if is_deep { DEEP_BACK } else { BACK });
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
        let young = now.minus(YOUNG);
        let mut posts = found.posts;
        posts.retain(|post| post.time < young && !given.contains(post.id.as_str()));
        if posts.is_empty() {
            return Ok(posts);
        }
        let mut conn = self.backbone.pool.get().await?;
        let unkept = recent_posts::unkept(&mut conn, &self.feed.name, &posts).await?;
        posts.retain(|post| unkept.contains(&post.id));
        Ok(posts)
    }
}
