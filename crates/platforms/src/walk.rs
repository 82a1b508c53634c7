//! Reads a list page by page, from the newest post back to the known ones.
//!
//! An adapter describes its list as a [`Listing`]: how a page is requested, which page comes next, and how an item is
//! read. [`walk`] does the rest for all of them, in the order that [`Reading`] and [`Pages`] need.

use std::error::Error;

use async_trait::async_trait;
use domain::Timestamp;
use serde_json::Value;

use crate::{
    PollError, PollLimits, Polled,
    cursor::to_seconds,
    paging::Pages,
    reading::{Made, Met, Reading},
};

/// Maximum length of a position that is stored. In place of a longer one, the next poll begins at the newest page.
const MAX_POSITION_BYTES: usize = 2_048;

/// A list of posts, roughly newest first.
#[async_trait]
pub(crate) trait Listing: Send + Sync {
    /// The position of a page. Polls that continue get it as text.
    type At: ToString + Send + Sync;

    /// A page with fewer items is the last one, unless one of them is new.
    const PER_PAGE: usize = 0;

    /// Returns the position that an earlier poll stored, or that of the newest page.
    fn start(&self, stored: Option<&str>) -> Self::At;

    /// Returns the start of the period to read, if the polls that continue this one must keep it. They get it from
    /// [`Reading::kept_window_start`].
    fn window_start(&self) -> Option<Timestamp> {
        None
    }

    /// Returns the page before, if posts move from page to page while others arrive; `None` for the newest page. A poll
    /// that continues goes back until a page has a known post.
    fn before(&self, at: &Self::At) -> Option<Self::At> {
        let _ = at;
        None
    }

    /// Returns another position for the same page, to try when the platform does not know a stored one any more.
    fn fallback(&self, at: &Self::At) -> Option<Self::At> {
        let _ = at;
        None
    }

    /// Returns the reason for a gap, if the list ended before the reading did.
    fn gap(&self, pages: &Pages) -> Option<&'static str> {
        let _ = pages;
        None
    }

    async fn page(&mut self, at: &Self::At) -> Result<Page<Self::At>, PollError>;

    fn read(&self, value: &Value) -> Read<'_>;
}

/// The items of a page, and what comes after it.
pub(crate) type Page<At> = (Vec<Value>, Next<At>);

pub(crate) enum Next<At> {
    Page(At),
    /// This page, but not in this poll.
    Later(At),
    End,
    /// The same page again.
    Stalled,
    /// A page that must not be requested, although the list goes on.
    Nowhere(PollError),
}

/// An item that was read: `None` if the list is not of such items. The error is the reason why it cannot be read.
pub(crate) type Read<'a> = Result<Option<Item<'a>>, Box<dyn Error>>;

pub(crate) struct Item<'a> {
    pub(crate) native_id: String,
    /// Its time in the list.
    pub(crate) time: Option<Timestamp>,
    /// True if it is at the top regardless of its time.
    pub(crate) is_pinned: bool,
    /// The [`domain::Post::id`] of a deleted or removed item.
    pub(crate) gone: Option<String>,
    /// Builds the post.
    pub(crate) make: Box<dyn FnOnce(Timestamp) -> Made + 'a>,
}

impl<'a> Item<'a> {
    pub(crate) fn new(
        native_id: String,
        time: Option<Timestamp>,
        make: impl FnOnce(Timestamp) -> Made + 'a,
    ) -> Self {
        Self {
            native_id,
            time,
            is_pinned: false,
            gone: None,
            make: Box::new(make),
        }
    }
}

/// Polls a list.
///
/// # Errors
/// [`PollError`], if nothing could be read.
pub(crate) async fn walk<L: Listing>(
    list: &mut L,
    mut reading: Reading,
    limits: &PollLimits,
) -> Result<Polled, PollError> {
    let mut pages = Pages::new(&reading, limits);
    let mut at = list.start(pages.position());
    // True once no post can have moved past the position where the reading began.
    let mut is_sure = false;
    while pages.go_on(&reading) {
        let (items, next) = match list.page(&at).await {
            Ok(page) => page,
            Err(error) => {
                if let Some(same) = list.fallback(&at).filter(|_| pages.is_refused(&error)) {
                    at = same;
                } else if pages.fail(error)? {
                    at = list.start(None);
                } else {
                    break;
                }
                continue;
            }
        };
        for value in &items {
            match list.read(value) {
                Ok(Some(item)) => take(item, &mut reading, &mut pages),
                Ok(None) => {}
                Err(reason) => reading.set_aside(value, &reason),
            }
        }
        let before = list.before(&at);
        is_sure |= pages.overlaps() || before.is_none();
        let is_end = pages.turn();
        if let Some(before) = before.filter(|_| !is_sure) {
            at = before;
            continue;
        }
        if is_end || (items.len() < L::PER_PAGE && !pages.found_new()) {
            return Ok(pages.finish(reading, None));
        }
        match next {
            Next::Page(next) => at = next,
            Next::Later(next) => {
                at = next;
                break;
            }
            Next::End => {
                reading.gap = list.gap(&pages).and_then(|reason| pages.gap(reason));
                return Ok(pages.finish(reading, None));
            }
            Next::Stalled => {
                reading.stalled = true;
                return Ok(pages.finish(reading, None));
            }
            Next::Nowhere(error) => {
                pages.lead_nowhere(error)?;
                break;
            }
        }
    }
    if let Some(start) = list.window_start() {
        pages.set_after(to_seconds(start).to_string());
    }
    let mut left = at.to_string();
    if left.len() > MAX_POSITION_BYTES {
        left.clear();
    }
    Ok(pages.finish(reading, Some(left)))
}

fn take(item: Item<'_>, reading: &mut Reading, pages: &mut Pages) {
    let known_before = reading.knew(&item.native_id);
    let met = match item.gone {
        // It may be restored, so it is not remembered.
        Some(_) if !known_before => Met::Known,
        gone => {
            reading.deleted.extend(gone);
            reading.offer(&item.native_id, item.time, item.make)
        }
    };
    // A pinned item says nothing about the position of its page.
    if !item.is_pinned {
        pages.met(met, known_before, item.time);
    }
}
