//! One poll's reading: what it met, what of it is new, and the cursor that comes of it.

use std::collections::{HashMap, HashSet};

use domain::{Post, Timestamp};

use crate::{
    Cursor, Gap, PollLimits, Polled,
    cursor::{KEEP_UNMET, MAX_SEEN, Seen, from_seconds, key, to_seconds},
};

/// Posts with a time before this have none: it is some program's zero.
const EARLIEST_MICROS: i64 = 631_152_000_000_000; // 1990

/// What became of a post that was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Met {
    /// Seen by an earlier poll, or already by this one.
    Known,
    /// Too old to count as new.
    Old,
    New,
}

pub(crate) struct Reading {
    pub(crate) cursor: Cursor,
    pub(crate) now: Timestamp,
    first: bool,
    limits: PollLimits,
    known: HashMap<String, Option<i64>>,
    met: HashSet<String>,
    order: Vec<Seen>,
    posts: Vec<Post>,
    pub(crate) gap: Option<Gap>,
}

impl Reading {
    pub(crate) fn new(cursor: Option<&Cursor>, limits: &PollLimits) -> Self {
        let first = cursor.is_none();
        let mut cursor = cursor.cloned().unwrap_or_else(Cursor::new);
        if first {
            cursor.floor = limits.since;
        }
        let known = cursor.seen.iter().map(|seen| (seen.0.clone(), seen.1));
        Self {
            now: Timestamp::now(),
            first,
            limits: limits.clone(),
            known: known.collect(),
            met: HashSet::new(),
            order: Vec::new(),
            posts: Vec::new(),
            gap: None,
            cursor,
        }
    }

    /// Whether the feed has never been polled.
    pub(crate) fn is_first(&self) -> bool {
        self.first
    }

    /// Posts older than this are never new.
    pub(crate) fn floor(&self) -> Option<Timestamp> {
        self.cursor.floor
    }

    /// From when on to read: the whole backfill at first, later the overlap.
    pub(crate) fn window_start(&self) -> Option<Timestamp> {
        if self.first {
            self.limits.since
        } else {
            self.cursor.window_start()
        }
    }

    /// Whether an earlier poll, or this one, has met the post.
    pub(crate) fn knows(&self, native_id: &str) -> bool {
        let key = key(native_id);
        self.known.contains_key(&key) || self.met.contains(&key)
    }

    /// Whether an earlier poll has met the post.
    pub(crate) fn knew(&self, native_id: &str) -> bool {
        self.known.contains_key(&key(native_id))
    }

    /// A time that can be true: one ahead of ours or before all platforms becomes the time of receipt.
    pub(crate) fn sane(&self, time: Option<Timestamp>) -> Option<Timestamp> {
        time.filter(|time| *time <= self.now && time.micros() >= EARLIEST_MICROS)
    }

    /// Takes note of a post without judging it.
    pub(crate) fn note(&mut self, native_id: &str, time: Option<Timestamp>) -> Met {
        let key = key(native_id);
        if !self.met.insert(key.clone()) {
            return Met::Known;
        }
        let known = self.known.get(&key).copied();
        let seconds = known.flatten().or(time.map(to_seconds));
        self.order.push(Seen(key, seconds));
        if known.is_some() {
            Met::Known
        } else {
            Met::New
        }
    }

    /// Takes a post met at `time`. `make` gives the post, if it is one to deliver.
    pub(crate) fn offer(
        &mut self,
        native_id: &str,
        time: Option<Timestamp>,
        make: impl FnOnce(Timestamp) -> Option<Post>,
    ) -> Met {
        let received = self.now;
        let time = time.map(|time| self.sane(Some(time)).unwrap_or(received));
        if self.note(native_id, time) == Met::Known {
            return Met::Known;
        }
        let time = time.unwrap_or(received);
        // In seconds, for some platforms tell no more of their times.
        let floor = self.cursor.floor.map(to_seconds);
        if floor.is_some_and(|floor| to_seconds(time) < floor) {
            return Met::Old;
        }
        self.cursor.high_water = self.cursor.high_water.max(Some(time));
        self.posts.extend(make(time));
        Met::New
    }

    /// The poll's answer. Sorts, bounds, and carries over what the cursor must still know.
    pub(crate) fn finish(mut self) -> Polled {
        self.posts.sort_by_key(|post| post.time);
        let excess = self.posts.len().saturating_sub(self.limits.max_posts);
        if excess > 0 {
            let lost: Vec<Post> = self.posts.drain(..excess).collect();
            self.gap = Some(Gap {
                from: lost.first().map(|post| post.time),
                to: lost.last().map(|post| post.time),
                reason: "more new posts than one poll may give",
            });
        }
        let mut seen = std::mem::take(&mut self.cursor.seen);
        seen.retain(|seen| !self.met.contains(&seen.0));
        let room = MAX_SEEN.saturating_sub(self.order.len()).min(KEEP_UNMET);
        let forgotten = seen.len().saturating_sub(room);
        for Seen(_, time) in seen.drain(..forgotten) {
            // The whole second is known: times are kept in seconds.
            let above = time.and_then(|time| from_seconds(time + 1));
            self.cursor.floor = self.cursor.floor.max(above);
        }
        seen.append(&mut self.order);
        let excess = seen.len().saturating_sub(MAX_SEEN);
        seen.drain(..excess);
        self.cursor.seen = seen;
        Polled {
            posts: self.posts,
            cursor: self.cursor,
            gap: self.gap,
            not_modified: false,
            next_hint: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Option<Timestamp> {
        from_seconds(1_700_000_000 + seconds)
    }

    fn read(cursor: Option<&Cursor>, ids: std::ops::Range<i64>) -> (Cursor, Vec<Met>) {
        let mut reading = Reading::new(cursor, &PollLimits::default());
        let met = ids
            .map(|id| reading.offer(&id.to_string(), at(id), |_| None))
            .collect();
        (reading.finish().cursor, met)
    }

    #[test]
    fn the_seen_set_is_bounded_and_what_it_forgot_is_old() {
        let (mut cursor, _) = read(None, 0..100);
        for start in (100..20_000).step_by(100) {
            (cursor, _) = read(Some(&cursor), start..start + 100);
        }
        assert_eq!(cursor.seen.len(), KEEP_UNMET + 100);
        let (_, met) = read(Some(&cursor), 0..1);
        assert_eq!(met, [Met::Old]);
        let (_, met) = read(Some(&cursor), 19_950..20_001);
        assert_eq!(met[49..], [Met::Known, Met::New]);
        let (cursor, _) = read(Some(&cursor), 30_000..40_000);
        assert_eq!(cursor.seen.len(), MAX_SEEN);
    }

    #[test]
    fn times_that_cannot_be_true_become_the_time_of_receipt() {
        let mut reading = Reading::new(None, &PollLimits::default());
        let now = reading.now;
        for time in [
            Some(now.plus(std::time::Duration::from_hours(1))),
            from_seconds(0),
            None,
        ] {
            let mut given = None;
            reading.offer(&format!("{time:?}"), time, |time| {
                given = Some(time);
                None
            });
            assert_eq!(given, Some(now));
        }
        assert_eq!(reading.finish().cursor.high_water, Some(now));
    }
}
