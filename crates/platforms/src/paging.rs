//! When to stop reading pages of a list that is roughly newest first, and where to continue.
//!
//! A poll reads back over known posts: at least [`OVERLAP_ITEMS`] posts and [`OVERLAP`], so that it finds posts
//! that appear late, and those that moved from one page to another during the reading. If many posts come in
//! that time, it reads back over at most [`MOST_KNOWN`] of them.
//!
//! A poll that cannot read so far, because a page fails or a limit is reached, returns what it has read. Its
//! cursor has the position of the next page ([`Unread`]) and the newest post that was known before. The next
//! poll continues there, until it meets posts that were known before. Posts that arrive meanwhile are read
//! afterwards, from the top. A position that cannot be read does not block the feed: the newest pages are read
//! instead.
//!
//! [`crate::walk`] calls [`Pages`] in the right order.
//!
//! Cost: one page while less than a page of posts came in that time.

use std::time::{Duration, Instant};

use domain::Timestamp;

use crate::{
    Gap, PollError, PollLimits, Polled,
    cursor::{OVERLAP, OVERLAP_ITEMS, Unread},
    reading::{Met, Reading},
};

/// Maximum number of known posts that a poll reads back over.
pub(crate) const MOST_KNOWN: usize = 2_000;
/// After so many consecutive pages without a new post, the end counts as unreachable.
const MAX_IDLE: usize = 400;
/// After so many consecutive polls that cannot read a position while the platform answers, the position is
/// given up.
const MAX_FAILURES: u32 = 120;
/// Pause after a page that failed. It doubles with each consecutive failure, up to the maximum.
const AFTER_FAILURE: Duration = Duration::from_secs(2);
const MOST_AFTER_FAILURE: Duration = Duration::from_secs(60);

/// Pause after a reading that a failure ended early.
pub(crate) fn pause_after(failure: &PollError) -> Duration {
    failure.retry_after().unwrap_or_default().max(AFTER_FAILURE)
}

/// Progress of one poll.
pub(crate) struct Pages {
    /// Start of the period whose known posts are read again.
    overlap_start: Option<Timestamp>,
    from: Option<Timestamp>,
    /// True if the reading has an end to reach, and so can leave a part to the next poll.
    bounded: bool,
    limits: PollLimits,
    begin: Instant,
    /// Position of this poll's first page.
    start: String,
    /// The part that earlier polls left, or that this one will leave.
    part: Unread,
    resumes: bool,
    /// The position could not be read, so the newest pages are read instead.
    refreshes: bool,
    failure: Option<PollError>,
    count: usize,
    widest: usize,
    new: usize,
    page: Page,
}

/// Counts for the page that is being read.
#[derive(Default)]
struct Page {
    posts: usize,
    new: usize,
    recent: usize,
    /// Posts that any earlier poll met.
    known: usize,
    oldest: Option<Timestamp>,
}

impl Pages {
    pub(crate) fn new(reading: &Reading, limits: &PollLimits) -> Self {
        let bounded = !reading.is_first() || limits.since.is_some();
        let left = reading.cursor.unread.clone();
        let resumes = left.is_some();
        let part = left.unwrap_or_else(|| Unread {
            high_water: reading.cursor.high_water,
            first: reading.is_first(),
            ..Unread::default()
        });
        Self {
            overlap_start: part.high_water.map(|time| time.minus(OVERLAP)),
            from: part.high_water.or(reading.floor()),
            bounded,
            limits: limits.clone(),
            begin: Instant::now(),
            start: part.before.clone(),
            part,
            resumes,
            refreshes: false,
            failure: None,
            count: 0,
            widest: 0,
            new: 0,
            page: Page::default(),
        }
    }

    /// The position to start at; `None` for the newest post.
    pub(crate) fn position(&self) -> Option<&str> {
        Some(self.start.as_str()).filter(|start| !start.is_empty())
    }

    /// The older end of the part to read, as an earlier poll noted it.
    pub(crate) fn after(&self) -> Option<&str> {
        self.part.after.as_deref()
    }

    /// Records the older end for the next polls.
    pub(crate) fn set_after(&mut self, after: String) {
        self.part.after = Some(after);
    }

    /// Returns true if this poll continues a part that an earlier poll left.
    pub(crate) fn resumes(&self) -> bool {
        self.resumes
    }

    /// Returns true if this poll may read another page. Each poll may read one, and a poll that continues may
    /// read the page before its position too.
    pub(crate) fn go_on(&self, reading: &Reading) -> bool {
        let least = if self.start.is_empty() { 1 } else { 2 };
        let spent = self.count >= self.limits.max_pages
            || self.new + self.widest > self.limits.max_posts
            || reading.is_large()
            || self.begin.elapsed() >= self.limits.max_time;
        self.count < least || !spent
    }

    /// Records that a page could not be read: the poll ends with what it has. If it has nothing, returns
    /// whether to read the newest page instead.
    ///
    /// # Errors
    /// The error, when there is no alternative.
    pub(crate) fn fail(&mut self, error: PollError) -> Result<bool, PollError> {
        if self.count > 0 {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "a reading ended early"
            );
            self.failure = Some(error);
            return Ok(false);
        }
        let of_position = match &error {
            PollError::Throttled { .. }
            | PollError::BudgetSpent { .. }
            | PollError::Forbidden(_)
            | PollError::Unauthorized { .. } => false,
            PollError::Unavailable(_)
            | PollError::NotFound(_)
            | PollError::Refused { .. }
            | PollError::Status { .. }
            | PollError::Malformed(_) => true,
        };
        if self.start.is_empty() || !of_position {
            return Err(error);
        }
        self.restart(error);
        Ok(true)
    }

    /// Like [`Pages::fail`], for a page that was read and names no next page although it is not the last.
    pub(crate) fn lead_nowhere(&mut self, error: PollError) -> Result<(), PollError> {
        if self.count == 1 {
            return Err(error);
        }
        self.fail(error).map(drop)
    }

    /// Returns true if the stored position is refused: the platform answers, but does not know it any more.
    pub(crate) fn is_refused(&self, error: &PollError) -> bool {
        let refused = match error {
            PollError::Status { status, .. } => *status < 500,
            PollError::NotFound(_) => true,
            _ => false,
        };
        self.count == 0 && !self.start.is_empty() && refused
    }

    /// Restarts at the newest post, because the position cannot be used.
    pub(crate) fn restart(&mut self, error: PollError) {
        tracing::debug!(
            error = &error as &dyn std::error::Error,
            "a position could not be read"
        );
        self.part.failures += 1;
        self.failure = Some(error);
        self.refreshes = true;
        self.start.clear();
    }

    /// Counts a post. Do not count posts that are out of order, such as pinned ones.
    pub(crate) fn met(&mut self, met: Met, known_before: bool, time: Option<Timestamp>) {
        let page = &mut self.page;
        page.posts += 1;
        page.new += usize::from(met == Met::New);
        page.recent += usize::from(met != Met::Old);
        page.known += usize::from(known_before);
        page.oldest = [page.oldest, time].into_iter().flatten().min();
        self.part.oldest = [self.part.oldest, time].into_iter().flatten().min();
        // What earlier polls read of this part says nothing about its end.
        let is_below = !self.resumes
            || (self.part.high_water).is_some_and(|known| time.is_none_or(|time| time <= known));
        self.part.known += usize::from(known_before && is_below);
        self.part.read += 1;
    }

    /// Returns true if a post of the page was known before this poll. If none was, posts may have moved to
    /// earlier pages since the position was stored.
    pub(crate) fn overlaps(&self) -> bool {
        self.page.known > 0
    }

    /// Ends the page. Returns true if its posts complete the reading.
    pub(crate) fn turn(&mut self) -> bool {
        let page = std::mem::take(&mut self.page);
        self.count += 1;
        self.new += page.new;
        self.widest = self.widest.max(page.posts);
        self.part.idle = if page.new > 0 { 0 } else { self.part.idle + 1 };
        if !self.refreshes {
            self.part.failures = 0;
        }
        let past_the_past = page.posts > 0 && page.recent == 0;
        let behind = match (self.overlap_start, page.oldest) {
            (Some(start), Some(oldest)) => oldest < start,
            _ => false,
        };
        let overlaps = page.posts > 0
            && page.new == 0
            && self.part.known >= OVERLAP_ITEMS
            && (behind || (self.part.known >= MOST_KNOWN && self.is_at_the_start(page.oldest)));
        let enough = !self.bounded && self.part.read >= self.limits.max_posts;
        // The posts between here and the position are known.
        let refreshed = self.refreshes && page.posts > 0 && page.new == 0;
        past_the_past || overlaps || enough || refreshed
    }

    /// Returns true if the last page had a new post.
    pub(crate) fn found_new(&self) -> bool {
        self.part.idle == 0
    }

    /// Number of posts read of this part, including earlier polls.
    pub(crate) fn read(&self) -> usize {
        self.part.read
    }

    /// Returns true if the reading reached posts of an earlier reading.
    pub(crate) fn reached_the_known(&self) -> bool {
        self.part.known > 0
    }

    /// Returns true if the reading reached the end of the earlier one. A search for late posts knows
    /// the newest posts, so reaching known posts does not show that it read back to its start.
    pub(crate) fn reached_the_start(&self) -> bool {
        self.is_at_the_start(self.part.oldest)
    }

    fn is_at_the_start(&self, oldest: Option<Timestamp>) -> bool {
        match (self.part.high_water, oldest) {
            (Some(start), Some(oldest)) => oldest <= start,
            _ => true,
        }
    }

    /// Returns true if there are known posts below the part that is read.
    pub(crate) fn follows_the_known(&self) -> bool {
        self.part.high_water.is_some()
    }

    /// The gap that an incomplete reading may leave; `None` if the reading had no end to reach.
    pub(crate) fn gap(&self, reason: &'static str) -> Option<Gap> {
        self.bounded.then_some(Gap {
            from: self.from,
            to: None,
            reason,
        })
    }

    /// Builds the result of the poll. `left` is the position of the next page if the reading ended before the
    /// end of the list.
    pub(crate) fn finish(self, mut reading: Reading, left: Option<String>) -> Polled {
        let earlier = reading.cursor.unread.take();
        let mut left = left.filter(|_| self.bounded);
        if self.refreshes && left.is_none() {
            left = earlier.as_ref().map(|unread| unread.before.clone());
        }
        if reading.is_overfull() && (left.is_some() || self.resumes) {
            // Some of the posts were not returned, so they are read again.
            left = Some(self.start.clone());
        }
        if left.is_some() && self.part.failures >= MAX_FAILURES {
            reading.gap = self.gap("a page that cannot be read");
            left = None;
        }
        if left.is_some() && self.part.idle >= MAX_IDLE {
            reading.gap = self.gap("an endless list");
            left = None;
        }
        reading.partial |= left.is_some() || self.resumes;
        let has_left = left.is_some();
        reading.cursor.unread = left.map(|before| Unread {
            before,
            ..self.part.clone()
        });
        let mut polled = reading.finish();
        if let Some(earlier) = earlier.filter(|_| !has_left) {
            polled.cursor.floor = polled.cursor.floor.max(earlier.floor);
        }
        polled.more |= has_left;
        polled.throttled = self.failure.as_ref().and_then(PollError::throttled);
        if let Some(failure) = self.failure.filter(|_| polled.more) {
            let doubled = AFTER_FAILURE.saturating_mul(1 << self.part.failures.min(16));
            let pause = doubled.min(MOST_AFTER_FAILURE);
            polled.next_hint = Some(pause_after(&failure).max(pause));
        }
        polled
    }
}
