//! State of one poll's reading: the posts met, which of them are new, and the resulting cursor.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use domain::{Post, Timestamp};
use serde_json::Value;

use crate::{
    Cursor, Gap, PollLimits, Polled, Skipped,
    cursor::{HIDDEN, KEEP_UNMET, MAX_SEEN, Seen, Unread, from_seconds, key, to_seconds},
    text,
};

/// The longest id of an item that cannot be read.
const MAX_ID_BYTES: usize = 200;

/// Notice for a feed whose next page was the same page.
const STALLED: &str =
    "The platform's pages do not advance. Posts that came between two readings may be missing.";

/// A floor further in the future was set by a clock that was wrong.
const MAX_SKEW: Duration = Duration::from_hours(1);

/// A poll that has new texts of so many bytes reads no further page.
const MAX_TEXT_BYTES: usize = 4 << 20;

/// An earlier time is the zero value of some program and counts as missing.
const EARLIEST_MICROS: i64 = 631_152_000_000_000; // 1990

/// Result of meeting a post.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Met {
    /// Met by an earlier poll, or already by this one.
    Known,
    /// Too old to count as new.
    Old,
    New,
}

/// A post made of an item: `None` if the item is not to be delivered, for example because it has no text. The error is
/// the reason why no post can be made, such as a missing field that each item has.
pub(crate) type Made = Result<Option<Post>, &'static str>;

/// A new post, not yet in the cursor.
struct New {
    time: Timestamp,
    /// Number of posts that this poll had met before.
    rank: usize,
    seen: Seen,
    /// `None` if it is not to be delivered.
    post: Option<Post>,
}

pub(crate) struct Reading {
    pub(crate) cursor: Cursor,
    pub(crate) now: Timestamp,
    first: bool,
    limits: PollLimits,
    known: HashMap<String, Option<i64>>,
    met: HashSet<String>,
    /// The posts met that the cursor must store.
    order: Vec<Seen>,
    new: Vec<New>,
    /// Bytes of the texts of all posts that were new.
    text_bytes: usize,
    /// The time of the oldest new post that was left to the next poll.
    left: Option<Timestamp>,
    /// This poll did not read the lists, or not to their ends, so it may have missed known posts that still
    /// exist.
    pub(crate) partial: bool,
    /// Posts, by [`Post::id`], that the platform reports as deleted.
    pub(crate) deleted: Vec<String>,
    pub(crate) gap: Option<Gap>,
    skipped: Vec<Skipped>,
    /// True if the next page was the same page.
    pub(crate) stalled: bool,
}

impl Reading {
    pub(crate) fn new(cursor: Option<&Cursor>, limits: &PollLimits) -> Self {
        let first = cursor.is_none();
        let mut cursor = cursor.cloned().unwrap_or_else(Cursor::new);
        let now = Timestamp::now();
        let is_future = |floor| floor > now.plus(MAX_SKEW);
        if first || cursor.floor.is_some_and(is_future) {
            cursor.floor = limits.since;
        }
        let known = cursor.seen.iter().map(|seen| (seen.0.clone(), seen.1));
        Self {
            now,
            first,
            limits: limits.clone(),
            known: known.collect(),
            met: HashSet::new(),
            order: Vec::new(),
            new: Vec::new(),
            text_bytes: 0,
            left: None,
            partial: false,
            deleted: Vec::new(),
            gap: None,
            skipped: Vec::new(),
            stalled: false,
            cursor,
        }
    }

    /// Returns true if there are more new posts than one poll may return.
    pub(crate) fn is_overfull(&self) -> bool {
        let given = self.new.iter().filter(|new| new.post.is_some()).count();
        self.left.is_some() || given > self.limits.max_posts.max(1)
    }

    /// Returns true if the new posts take so much memory that the next poll must read the rest.
    pub(crate) fn is_large(&self) -> bool {
        self.text_bytes >= MAX_TEXT_BYTES
    }

    /// Returns true if the feed has never been polled.
    pub(crate) fn is_first(&self) -> bool {
        self.first
    }

    /// Older posts are never new.
    pub(crate) fn floor(&self) -> Option<Timestamp> {
        self.cursor.floor
    }

    /// Start of the period to read: the whole backfill on the first poll, later the overlap.
    pub(crate) fn window_start(&self) -> Option<Timestamp> {
        if self.first {
            self.limits.since
        } else {
            self.cursor.window_start()
        }
    }

    /// Like [`Reading::window_start`], but the start that an earlier poll kept for the polls that continue it.
    pub(crate) fn kept_window_start(&self) -> Option<Timestamp> {
        let unread = self.cursor.unread.as_ref();
        let kept = unread.and_then(|unread| unread.after.as_deref()?.parse().ok());
        kept.and_then(from_seconds).or(self.window_start())
    }

    /// Returns true if an earlier poll, or this one, has met the post.
    pub(crate) fn knows(&self, native_id: &str) -> bool {
        let key = key(native_id);
        self.known.contains_key(&key) || self.met.contains(&key)
    }

    /// Returns true if an earlier poll has met the post.
    pub(crate) fn knew(&self, native_id: &str) -> bool {
        self.known.contains_key(&key(native_id))
    }

    /// Returns the time, in seconds, that a post had when an earlier poll met it first.
    pub(crate) fn first_time(&self, native_id: &str) -> Option<i64> {
        self.known.get(&key(native_id)).copied().flatten()
    }

    /// Corrects an impossible time: a time in the future, or before all platforms, becomes the time of receipt.
    pub(crate) fn sane(&self, time: Option<Timestamp>) -> Option<Timestamp> {
        time.filter(|time| *time <= self.now && time.micros() >= EARLIEST_MICROS)
    }

    /// Records a post without offering it.
    pub(crate) fn record(&mut self, native_id: &str, time: Option<Timestamp>) -> Met {
        let (met, seen) = self.meet(native_id, time);
        self.order.extend(seen);
        met
    }

    /// Records a post that exists and is not visible, so that not every poll asks for it. If it becomes visible, it is
    /// new.
    pub(crate) fn record_hidden(&mut self, native_id: &str) {
        self.record(&format!("{HIDDEN}{native_id}"), None);
    }

    /// Returns true after [`Reading::record_hidden`] of the same post.
    pub(crate) fn is_hidden(&self, native_id: &str) -> bool {
        self.knows(&format!("{HIDDEN}{native_id}"))
    }

    /// Returns the post's entry for the cursor; `None` if this poll has met it before.
    fn meet(&mut self, native_id: &str, time: Option<Timestamp>) -> (Met, Option<Seen>) {
        let key = key(native_id);
        if !self.met.insert(key.clone()) {
            return (Met::Known, None);
        }
        let known = self.known.get(&key).copied();
        let seconds = known.flatten().or(time.map(to_seconds));
        let met = if known.is_some() {
            Met::Known
        } else {
            Met::New
        };
        (met, Some(Seen(key, seconds)))
    }

    /// Returns true if a post of that time is too old to be new.
    pub(crate) fn is_old(&self, time: Option<Timestamp>) -> bool {
        // A time in the future is not old: our clock may be wrong, and even behind the floor.
        let Some(time) = self.sane(time) else {
            return false;
        };
        // In seconds, because some platforms have no finer times.
        let floor = self.cursor.floor.map(to_seconds);
        floor.is_some_and(|floor| to_seconds(time) < floor)
    }

    /// Offers a post met at `time`. `make` builds it if it is new. If it cannot, the item is set aside.
    pub(crate) fn offer(
        &mut self,
        native_id: &str,
        time: Option<Timestamp>,
        make: impl FnOnce(Timestamp) -> Made,
    ) -> Met {
        let old = self.is_old(time);
        self.take(native_id, time, old, make)
    }

    /// Like [`Reading::offer`], for a pending post: the floor may have risen above it meanwhile.
    pub(crate) fn offer_awaited(
        &mut self,
        native_id: &str,
        time: Option<Timestamp>,
        make: impl FnOnce(Timestamp) -> Made,
    ) -> Met {
        self.take(native_id, time, false, make)
    }

    fn take(
        &mut self,
        native_id: &str,
        time: Option<Timestamp>,
        old: bool,
        make: impl FnOnce(Timestamp) -> Made,
    ) -> Met {
        let received = self.now;
        let time = time.map(|time| self.sane(Some(time)).unwrap_or(received));
        let (met, seen) = self.meet(native_id, time);
        let Some(seen) = seen else {
            return met;
        };
        let time = time.unwrap_or(received);
        if met == Met::Known || old {
            self.order.push(seen);
            return if met == Met::Known { met } else { Met::Old };
        }
        // The text of one item must not stop the others.
        let made = catch_unwind(AssertUnwindSafe(|| make(time)));
        let post = match made.unwrap_or(Err("an internal error")) {
            Ok(post) => post,
            Err(reason) => return self.skip(native_id, time, reason),
        };
        let texts = post.iter().flat_map(|post| [&post.title, &post.text]);
        self.text_bytes += texts.flatten().map(String::len).sum::<usize>();
        self.new.push(New {
            time,
            rank: self.met.len(),
            seen,
            post,
        });
        if self.new.len() >= self.limits.max_posts.saturating_mul(2).max(MAX_SEEN) {
            self.leave_the_newest();
        }
        Met::New
    }

    /// Keeps the oldest of the new posts, up to the limit of one poll. The cursor does not store the others, so
    /// the next poll meets them as new.
    fn leave_the_newest(&mut self) {
        // Posts of the same time are also listed newest first.
        self.new.sort_by_key(|new| (new.time, Reverse(new.rank)));
        let mut room = self.limits.max_posts.max(1);
        let fitting = self.new.iter().position(|new| {
            let fits = new.post.is_none() || room > 0;
            room = room.saturating_sub(usize::from(new.post.is_some()));
            !fits
        });
        if let Some(fitting) = fitting {
            // The oldest post left now is older than any left before.
            self.left = self.new.get(fitting).map(|new| new.time);
            self.new.truncate(fitting);
        }
    }

    /// Sets aside a new item that cannot become a post, like [`Reading::set_aside`]. Adapters that read items one by
    /// one do not ask for it in each poll.
    fn skip(&mut self, native_id: &str, time: Timestamp, reason: &str) -> Met {
        self.record_hidden(native_id);
        let met = self.record(&format!("unreadable {native_id}"), Some(time));
        if met == Met::New {
            tracing::debug!(id = native_id, reason, "an item cannot be read");
            self.skipped.push(Skipped {
                id: Some(native_id.to_owned()),
                reason: reason.to_owned(),
                is_readable: false,
            });
        }
        met
    }

    /// Sets aside an item that cannot be read, so that it does not stop the others. The cursor remembers it
    /// under a separate key: if the item becomes readable, it is new.
    pub(crate) fn set_aside(&mut self, item: &Value, reason: &dyn fmt::Display) {
        let id = native_id(item);
        if id.as_deref().is_some_and(|id| self.knows(id)) {
            return;
        }
        let shown = id.clone().unwrap_or_else(|| item.to_string());
        if self.record(&format!("unreadable {shown}"), None) != Met::New {
            return;
        }
        let reason = text::line(&reason.to_string());
        tracing::debug!(id, reason, "an item cannot be read");
        self.skipped.push(Skipped {
            id,
            reason,
            is_readable: false,
        });
    }

    /// Builds the result of the poll. Sorts and bounds the posts, and carries over what the cursor still needs.
    pub(crate) fn finish(mut self) -> Polled {
        self.leave_the_newest();
        let mut posts = Vec::new();
        for New {
            time, seen, post, ..
        } in std::mem::take(&mut self.new)
        {
            self.cursor.high_water = self.cursor.high_water.max(Some(time));
            self.order.push(seen);
            posts.extend(post);
        }
        let mut seen = std::mem::take(&mut self.cursor.seen);
        seen.retain(|seen| !self.met.contains(&seen.0));
        if let Some(unread) = self.cursor.unread.clone() {
            seen.append(&mut self.order);
            self.cursor.seen = self.around(seen, unread);
            return self.polled(posts);
        }
        // The oldest entries are dropped, because only below them can everything count as known.
        seen.sort_by_key(|seen| seen.1);
        self.order.sort_by_key(|seen| seen.1);
        let room = MAX_SEEN.saturating_sub(self.order.len());
        // Dropping entries raises the floor, which must stay below the posts that were left.
        let room = if self.left.is_some() || self.partial {
            room
        } else {
            room.min(KEEP_UNMET)
        };
        let unmet = seen.len().saturating_sub(room);
        let met = self.order.len().saturating_sub(MAX_SEEN);
        for Seen(_, time) in seen.drain(..unmet).chain(self.order.drain(..met)) {
            // The whole second counts as known, because times are stored in seconds.
            let above = time.and_then(just_after);
            let above = above.map(|above| self.left.map_or(above, |left| above.min(left)));
            self.cursor.floor = self.cursor.floor.max(above);
        }
        seen.append(&mut self.order);
        self.cursor.seen = seen;
        self.polled(posts)
    }

    /// The entries that the cursor needs while a part of the list is unread: those below that part, which mark
    /// its end, those just above it, and the newest.
    fn around(&mut self, mut seen: Vec<Seen>, mut unread: Unread) -> Vec<Seen> {
        seen.sort_by_key(|seen| seen.1);
        let known_until = unread.high_water.map(to_seconds);
        let above = seen.split_off(seen.partition_point(|seen| seen.1 <= known_until));
        let mut below = seen;
        let forgotten = below.len().saturating_sub(MAX_SEEN);
        let floor = below.drain(..forgotten).filter_map(|seen| seen.1).max();
        self.cursor.floor = self.cursor.floor.max(floor.and_then(just_after));
        let forgotten = above.len().saturating_sub(MAX_SEEN);
        let begin = above.len().min(MAX_SEEN / 2);
        let middle = begin..begin + forgotten;
        // A higher floor would hide what is still to be read, so it rises afterwards.
        let floor = above[middle.clone()].iter().filter_map(|seen| seen.1).max();
        unread.floor = unread.floor.max(floor.and_then(just_after));
        self.cursor.unread = Some(unread);
        let above = above.into_iter().enumerate();
        below.extend(above.filter_map(|(at, seen)| (!middle.contains(&at)).then_some(seen)));
        below
    }

    fn polled(self, posts: Vec<Post>) -> Polled {
        Polled {
            posts,
            deleted: self.deleted,
            skipped: self.skipped,
            cursor: self.cursor,
            gap: self.gap,
            notice: self.stalled.then_some(STALLED),
            more: self.left.is_some(),
            not_modified: false,
            next_hint: None,
            throttled: None,
        }
    }
}

/// The id of an item that cannot be read, for any platform.
fn native_id(item: &Value) -> Option<String> {
    let places = [
        "/comment/id",
        "/post/id",
        "/data/name",
        "/objectID",
        "/short_id",
        "/id",
    ];
    let found = places.iter().find_map(|place| item.pointer(place))?;
    let id = match found {
        Value::String(id) => id.clone(),
        Value::Number(id) => id.to_string(),
        _ => return None,
    };
    (1..=MAX_ID_BYTES).contains(&id.len()).then_some(id)
}

/// The end of that second.
fn just_after(seconds: i64) -> Option<Timestamp> {
    from_seconds(seconds.saturating_add(1))
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
            .map(|id| reading.offer(&id.to_string(), at(id), |_| Ok(None)))
            .collect();
        (reading.finish().cursor, met)
    }

    #[test]
    fn seen_set_is_bounded_and_forgotten_posts_count_as_old() {
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
    fn slow_clock_does_not_hide_new_posts() {
        let ahead = |seconds| Timestamp::now().plus(std::time::Duration::from_secs(seconds));
        let mut cursor = Cursor::new();
        cursor.floor = Some(ahead(20));
        let mut reading = Reading::new(Some(&cursor), &PollLimits::default());
        assert_eq!(
            reading.offer("new", Some(ahead(30)), |_| Ok(None)),
            Met::New
        );
        assert_eq!(reading.offer("undated", None, |_| Ok(None)), Met::New);
        let before = Timestamp::now().minus(std::time::Duration::from_secs(60));
        assert_eq!(reading.offer("old", Some(before), |_| Ok(None)), Met::Old);
    }

    #[test]
    fn future_floor_of_a_wrong_clock_is_dropped() {
        let hours = |hours| Duration::from_hours(hours);
        let now = Timestamp::now();
        let mut cursor = Cursor::new();
        cursor.floor = Some(now.plus(hours(72)));
        let limits = PollLimits {
            since: Some(now.minus(hours(24))),
            ..PollLimits::default()
        };
        let mut reading = Reading::new(Some(&cursor), &limits);
        let time = |ago| Some(now.minus(hours(ago)));
        assert_eq!(reading.offer("new", time(1), |_| Ok(None)), Met::New);
        assert_eq!(reading.offer("old", time(25), |_| Ok(None)), Met::Old);
        let floor = reading.finish().cursor.floor;
        assert!(floor < Some(now), "{floor:?}");
    }

    fn post(time: Timestamp) -> Post {
        Post {
            post_type: domain::PostType::ForumLink,
            time,
            id: time.to_string(),
            url: String::new(),
            title: None,
            text: None,
            subforum: None,
            user: domain::User {
                id: String::new(),
                name: String::new(),
                url: String::new(),
            },
        }
    }

    #[test]
    fn burst_is_returned_completely_over_several_polls_oldest_first() {
        let (mut cursor, _) = read(None, 0..100);
        let mut given = Vec::new();
        for poll in 0..6 {
            let mut reading = Reading::new(Some(&cursor), &PollLimits::default());
            for id in (50..10_100).rev() {
                reading.offer(&id.to_string(), at(id), |time| Ok(Some(post(time))));
            }
            let polled = reading.finish();
            assert_eq!(polled.gap, None);
            assert_eq!(polled.more, poll < 4, "{poll}");
            given.extend(polled.posts.iter().map(|post| Some(post.time)));
            cursor = polled.cursor;
            assert_eq!(cursor.high_water(), given.last().copied().flatten());
        }
        assert!(given.into_iter().eq((100..10_100).map(at)));
    }

    #[test]
    fn impossible_times_become_the_time_of_receipt() {
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
                Ok(None)
            });
            assert_eq!(given, Some(now));
        }
        assert_eq!(reading.finish().cursor.high_water, Some(now));
    }

    #[test]
    fn item_whose_reading_panics_is_set_aside_once_and_new_when_it_is_readable() {
        let limits = PollLimits::default();
        let mut cursor = Cursor::new();
        for (poll, is_readable) in [false, false, true].into_iter().enumerate() {
            let mut reading = Reading::new(Some(&cursor), &limits);
            for id in 1..4 {
                reading.offer(&id.to_string(), at(id), |time| {
                    assert!(id != 2 || is_readable, "as asked");
                    Ok(Some(post(time)))
                });
            }
            let polled = reading.finish();
            assert_eq!(polled.posts.len(), [2, 0, 1][poll], "{poll}");
            let skipped = polled.skipped.iter();
            let skipped: Vec<_> = skipped
                .map(|one| (one.id.as_deref(), &*one.reason))
                .collect();
            let expected = (Some("2"), "an internal error");
            assert_eq!(skipped, [expected; 1][usize::from(poll > 0)..], "{poll}");
            cursor = polled.cursor;
        }
    }
}
