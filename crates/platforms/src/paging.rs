//! When to stop turning the pages of a list that is newest first, roughly.
//!
//! A poll reads back over what it knows: at least [`OVERLAP_ITEMS`] posts and [`OVERLAP`], so that posts
//! that appear late, and those that slipped from one page to another while pages were turned, are found.
//! Where many posts come in that time it reads back over [`MOST_KNOWN`] of them and no more.
//!
//! Cost: one page while less than a page of posts came in that time.

use domain::Timestamp;

use crate::{
    Gap, PollLimits,
    cursor::{OVERLAP, OVERLAP_ITEMS},
    reading::{Met, Reading},
};

/// The most known posts that a poll reads back over.
pub(crate) const MOST_KNOWN: usize = 2_000;

/// How far one poll has come.
pub(crate) struct Pages {
    /// Up to when known posts are read again.
    overlap_start: Option<Timestamp>,
    from: Option<Timestamp>,
    bounded: bool,
    enough: usize,
    known: usize,
    read: usize,
    page: Page,
}

/// What stood on the page that is being read.
#[derive(Default)]
struct Page {
    posts: usize,
    new: usize,
    recent: usize,
    oldest: Option<Timestamp>,
}

impl Pages {
    pub(crate) fn new(reading: &Reading, limits: &PollLimits) -> Self {
        let high_water = reading.cursor.high_water;
        Self {
            overlap_start: high_water.map(|time| time.minus(OVERLAP)),
            from: high_water.or(reading.floor()),
            bounded: !reading.is_first() || limits.since.is_some(),
            enough: limits.max_posts,
            known: 0,
            read: 0,
            page: Page::default(),
        }
    }

    /// Counts a post. One that stands where its time does not place it, such as a pinned one, is not to be
    /// counted.
    pub(crate) fn met(&mut self, met: Met, known_before: bool, time: Option<Timestamp>) {
        let page = &mut self.page;
        page.posts += 1;
        page.new += usize::from(met == Met::New);
        page.recent += usize::from(met != Met::Old);
        page.oldest = [page.oldest, time].into_iter().flatten().min();
        self.known += usize::from(known_before);
        self.read += 1;
    }

    /// Whether the posts of the page brought the reading to its end; begins the next page.
    pub(crate) fn turn(&mut self) -> bool {
        let page = std::mem::take(&mut self.page);
        let past_the_past = page.posts > 0 && page.recent == 0;
        let behind = match (self.overlap_start, page.oldest) {
            (Some(start), Some(oldest)) => oldest < start,
            _ => false,
        };
        let overlaps = page.posts > 0
            && page.new == 0
            && self.known >= OVERLAP_ITEMS
            && (behind || self.known >= MOST_KNOWN);
        let enough = !self.bounded && self.read >= self.enough;
        past_the_past || overlaps || enough
    }

    /// How many posts have been read.
    pub(crate) fn read(&self) -> usize {
        self.read
    }

    /// Whether the reading came to where an earlier poll had been.
    pub(crate) fn reached_the_known(&self) -> bool {
        self.known > 0
    }

    /// What may have been missed when the reading could not go on; nothing where it had no end to reach.
    pub(crate) fn gap(&self, reason: &'static str) -> Option<Gap> {
        self.bounded.then_some(Gap {
            from: self.from,
            to: None,
            reason,
        })
    }
}
