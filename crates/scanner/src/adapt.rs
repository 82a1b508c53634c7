//! Poll interval of a feed, derived from how much it brings.
//!
//! An interval that the operator sets for a platform is kept exactly. Otherwise a feed is polled about four times
//! in the time of one new post, between the platform's usual interval and eight times that. So quiet feeds cost
//! little. Busy feeds are polled often enough that at most half a page waits, down to `scanner.poll_interval_min`.

use std::time::Duration;

use domain::{Post, Timestamp};

/// Time after which two fifths of the old estimate are left.
const MEMORY: Duration = Duration::from_hours(24);
/// Half of a usual page: pages have 25 posts and more, most of them 50 or 100.
const HALF_PAGE: f64 = 25.0;
/// Minimum number of posts in one poll that counts as a burst.
const BURST: usize = 5;
const STRETCH: u32 = 8;
const DAY_SECONDS: f64 = 86_400.0;

/// Returns the new estimate of a feed's posts per day, after a poll that read `posts`, oldest first. The last
/// successful poll was `unread` ago, if there was one.
pub(crate) fn posts_per_day(
    known: Option<f64>,
    unread: Option<Duration>,
    posts: &[Post],
    now: Timestamp,
) -> f64 {
    let count = count(posts.len());
    let Some((known, unread)) = known.zip(unread) else {
        // The posts of a first poll were made over some time, and how much there was before is unknown.
        let oldest = posts.iter().map(|post| post.time).min();
        let span = oldest.map_or(MEMORY, |oldest| now.since(oldest));
        let span = span.clamp(Duration::from_hours(1), Duration::from_hours(24 * 7));
        return count * DAY_SECONDS / span.as_secs_f64();
    };
    let since = unread.as_secs_f64().max(0.001);
    let forgotten = 1.0 - (-since / MEMORY.as_secs_f64()).exp();
    known * (1.0 - forgotten) + count * DAY_SECONDS / since * forgotten
}

/// Returns the wait until the next poll, if the operator sets none. `usual` is the platform's usual interval. This
/// poll read `posts` new posts from the period `unread`.
pub(crate) fn interval(
    usual: Duration,
    least: Duration,
    posts_per_day: f64,
    posts: usize,
    unread: Option<Duration>,
) -> Duration {
    let post_every = DAY_SECONDS / posts_per_day.max(1e-3);
    let quiet = Duration::from_secs_f64(post_every / 4.0);
    let mut wait = quiet.clamp(usual, usual * STRETCH);
    wait = wait.min(Duration::from_secs_f64(post_every * HALF_PAGE));
    if let Some(unread) = unread.filter(|_| posts >= BURST) {
        wait = wait.min(unread.mul_f64(HALF_PAGE / count(posts)));
    }
    wait.max(least)
}

#[expect(clippy::cast_precision_loss, reason = "a poll has some thousand posts")]
fn count(posts: usize) -> f64 {
    posts as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);
    const LEAST: Duration = Duration::from_secs(5);

    fn posts(ages: impl IntoIterator<Item = Duration>, now: Timestamp) -> Vec<Post> {
        let post = |age| Post {
            post_type: domain::PostType::ForumLink,
            time: now.minus(age),
            id: String::new(),
            url: String::new(),
            title: None,
            text: None,
            subforum: None,
            user: domain::User {
                id: String::new(),
                name: String::new(),
                url: String::new(),
            },
        };
        ages.into_iter().map(post).collect()
    }

    #[test]
    fn quiet_feeds_are_polled_less_and_busy_ones_more() {
        for (per_day, expected) in [
            (0.0, MINUTE * 8),
            (1.0, MINUTE * 8),
            (100.0, Duration::from_secs(216)),
            (1_000.0, MINUTE),
            (36_000.0, MINUTE),
            (72_000.0, Duration::from_secs(30)),
            (10_000_000.0, LEAST),
        ] {
            let found = interval(MINUTE, LEAST, per_day, 0, Some(MINUTE));
            assert_eq!(found, expected, "{per_day} a day");
        }
    }

    #[test]
    fn a_burst_is_followed_at_once() {
        let found = interval(MINUTE, LEAST, 24.0, 100, Some(MINUTE * 8));
        assert_eq!(found, MINUTE * 2);
        assert_eq!(interval(MINUTE, LEAST, 24.0, 4, Some(LEAST)), MINUTE * 8);
        assert_eq!(interval(MINUTE, LEAST, 24.0, 500, Some(MINUTE)), LEAST);
    }

    #[test]
    fn estimate_converges_to_the_rate_and_forgets() {
        let now = Timestamp::now();
        // One post every ten minutes, starting with the last day.
        let first = posts((0..144).map(|n| MINUTE * 10 * n), now);
        let mut known = posts_per_day(None, None, &first, now);
        assert!((143.0..=146.0).contains(&known), "{known}");
        for poll in 0..2_000 {
            let read = posts((poll % 10 == 0).then_some(MINUTE), now);
            known = posts_per_day(Some(known), Some(MINUTE), &read, now);
        }
        assert!((142.0..=146.0).contains(&known), "{known}");
        for _ in 0..(4 * 24 * 60) {
            known = posts_per_day(Some(known), Some(MINUTE), &[], now);
        }
        assert!(known < 3.0, "{known}");
        assert!(posts_per_day(None, None, &[], now).abs() < 1e-9);
    }
}
