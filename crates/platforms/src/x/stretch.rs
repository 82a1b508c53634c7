//! The range of ids that a poll requests, and up to when everything has been searched.

use std::time::Duration;

use domain::Timestamp;

use super::tweet::{id_at, number, time_of};
use crate::{Cursor, Gap, PollLimits, reading::Reading};

const OVERLAP: Duration = Duration::from_mins(2);
/// How far back the search reaches, minus a minute for the request.
const REACH: Duration = Duration::from_secs(7 * 24 * 3_600 - 60);
/// Precision of the record of a complete reading.
const SEARCHED_EVERY: Duration = Duration::from_hours(1);
/// A search may not start later than this before now.
const EDGE: Duration = Duration::from_secs(30);

/// The range of ids that a poll reads.
pub(super) struct Stretch {
    pub(super) after: Option<u64>,
    pub(super) before: Option<u64>,
    /// The limit of the platform's reach, if it is later than `after`.
    pub(super) start: Option<Timestamp>,
}

impl Stretch {
    /// The range to read: first the part that an earlier poll left, else the newest posts.
    pub(super) fn of(cursor: Option<&Cursor>, limits: &PollLimits, reading: &mut Reading) -> Self {
        let reach = reading.now.minus(REACH);
        let latest = reading.now.minus(EDGE);
        let unread = cursor.and_then(|cursor| cursor.unread.as_ref());
        let anchor = cursor
            .and_then(|cursor| cursor.anchor.as_deref())
            .and_then(number);
        let (after, before) = match unread {
            Some(unread) => (
                unread.after.as_deref().and_then(number),
                number(&unread.before),
            ),
            // If ids contain no times, there is no overlap.
            None => {
                let from = |id| time_of(id).map_or(id, |time| id_at(time.minus(OVERLAP)));
                (anchor.map(from), None)
            }
        };
        let since = match after {
            Some(after) => time_of(after),
            // Nothing has matched so far: everything there now came later.
            None => cursor.map_or(limits.since, |_| reading.floor().or(Some(reach))),
        };
        let start = since.filter(|since| after.is_none() || *since < reach);
        // An old id only means that nothing has matched since.
        let left = time_of(after.unwrap_or_default()).max(reading.cursor.searched);
        if let Some(left) = left.filter(|left| *left < reach) {
            reading.gap = Some(Gap {
                from: Some(left),
                to: Some(reach),
                reason: "the search reaches back seven days",
            });
        }
        Self {
            after,
            before,
            start: start.map(|start| start.max(reach).min(latest)),
        }
    }
}

/// Records that everything until now was read; by the hour, so that a poll without new posts changes nothing.
pub(super) fn record_search(reading: &mut Reading) {
    let before = reading.cursor.searched;
    if before.is_none_or(|before| reading.now.since(before) >= SEARCHED_EVERY) {
        reading.cursor.searched = Some(reading.now);
    }
}
