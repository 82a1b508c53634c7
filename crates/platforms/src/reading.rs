//! One poll's reading: what it met, what of it is new, and the cursor that comes of it.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
};

use domain::{Post, Timestamp};

use crate::{
    Cursor, Gap, PollLimits, Polled,
    cursor::{KEEP_UNMET, MAX_SEEN, Seen, Unread, from_seconds, key, to_seconds},
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

/// A new post, not yet in the cursor.
struct New {
    time: Timestamp,
    /// How many this poll had met before.
    rank: usize,
    seen: Seen,
    /// None when it is not one to deliver.
    post: Option<Post>,
}

pub(crate) struct Reading {
    pub(crate) cursor: Cursor,
    pub(crate) now: Timestamp,
    first: bool,
    limits: PollLimits,
    known: HashMap<String, Option<i64>>,
    met: HashSet<String>,
    /// The met ones that the cursor has to know.
    order: Vec<Seen>,
    new: Vec<New>,
    /// The time of the oldest new post that was left to the next poll.
    left: Option<Timestamp>,
    /// This poll did not read the lists, or not to their ends, so what it did not meet may yet be met.
    pub(crate) partial: bool,
    /// Posts, by [`Post::id`], that the platform says are deleted.
    pub(crate) deleted: Vec<String>,
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
            new: Vec::new(),
            left: None,
            partial: false,
            deleted: Vec::new(),
            gap: None,
            cursor,
        }
    }

    /// Whether there are more new posts than one poll may give.
    pub(crate) fn is_overfull(&self) -> bool {
        let given = self.new.iter().filter(|new| new.post.is_some()).count();
        self.left.is_some() || given > self.limits.max_posts.max(1)
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
        let (met, seen) = self.meet(native_id, time);
        self.order.extend(seen);
        met
    }

    /// What the cursor has to know of the post; nothing when this poll has met it before.
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

    /// Whether a post of that time is older than what can be new.
    pub(crate) fn is_old(&self, time: Option<Timestamp>) -> bool {
        // One ahead of ours is not: it may be our clock that is wrong, and behind the floor itself.
        let Some(time) = self.sane(time) else {
            return false;
        };
        // In seconds, for some platforms tell no more of their times.
        let floor = self.cursor.floor.map(to_seconds);
        floor.is_some_and(|floor| to_seconds(time) < floor)
    }

    /// Takes a post met at `time`. `make` gives the post, if it is one to deliver.
    pub(crate) fn offer(
        &mut self,
        native_id: &str,
        time: Option<Timestamp>,
        make: impl FnOnce(Timestamp) -> Option<Post>,
    ) -> Met {
        let old = self.is_old(time);
        self.take(native_id, time, old, make)
    }

    /// As [`Reading::offer`], for a post that was waited for: the floor may have risen above it meanwhile.
    pub(crate) fn offer_awaited(
        &mut self,
        native_id: &str,
        time: Option<Timestamp>,
        make: impl FnOnce(Timestamp) -> Option<Post>,
    ) -> Met {
        self.take(native_id, time, false, make)
    }

    fn take(
        &mut self,
        native_id: &str,
        time: Option<Timestamp>,
        old: bool,
        make: impl FnOnce(Timestamp) -> Option<Post>,
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
        self.new.push(New {
            time,
            rank: self.met.len(),
            seen,
            post: make(time),
        });
        if self.new.len() >= self.limits.max_posts.saturating_mul(2).max(MAX_SEEN) {
            self.leave_the_newest();
        }
        Met::New
    }

    /// Keeps the oldest of the new posts, as many as one poll may give. The cursor does not learn of
    /// the others, so the next poll meets them as new.
    fn leave_the_newest(&mut self) {
        // Newest first is how platforms list those of one time too.
        self.new.sort_by_key(|new| (new.time, Reverse(new.rank)));
        let mut room = self.limits.max_posts.max(1);
        let fitting = self.new.iter().position(|new| {
            let fits = new.post.is_none() || room > 0;
            room = room.saturating_sub(usize::from(new.post.is_some()));
            !fits
        });
        if let Some(fitting) = fitting {
            // The oldest left now is older than any left before.
            self.left = self.new.get(fitting).map(|new| new.time);
            self.new.truncate(fitting);
        }
    }

    /// The poll's answer. Sorts, bounds, and carries over what the cursor must still know.
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
        // What is forgotten is the oldest, for only below it can everything count as known.
        seen.sort_by_key(|seen| seen.1);
        self.order.sort_by_key(|seen| seen.1);
        let room = MAX_SEEN.saturating_sub(self.order.len());
        // Forgetting raises the floor, which must stay below what was left.
        let room = if self.left.is_some() || self.partial {
            room
        } else {
            room.min(KEEP_UNMET)
        };
        let unmet = seen.len().saturating_sub(room);
        let met = self.order.len().saturating_sub(MAX_SEEN);
        for Seen(_, time) in seen.drain(..unmet).chain(self.order.drain(..met)) {
            // The whole second is known: times are kept in seconds.
            let above = time.and_then(just_after);
            let above = above.map(|above| self.left.map_or(above, |left| above.min(left)));
            self.cursor.floor = self.cursor.floor.max(above);
        }
        seen.append(&mut self.order);
        self.cursor.seen = seen;
        self.polled(posts)
    }

    /// What the cursor must know while a part of the list is unread: the posts below that part, which tell its
    /// end, those just above it, and the newest.
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
        // It would hide what is still to be read, so it rises afterwards.
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
            cursor: self.cursor,
            gap: self.gap,
            more: self.left.is_some(),
            not_modified: false,
            next_hint: None,
        }
    }
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
    fn a_clock_that_is_behind_takes_nothing_new_for_old() {
        let ahead = |seconds| Timestamp::now().plus(std::time::Duration::from_secs(seconds));
        let mut cursor = Cursor::new();
        cursor.floor = Some(ahead(20));
        let mut reading = Reading::new(Some(&cursor), &PollLimits::default());
        assert_eq!(reading.offer("new", Some(ahead(30)), |_| None), Met::New);
        assert_eq!(reading.offer("undated", None, |_| None), Met::New);
        let before = Timestamp::now().minus(std::time::Duration::from_secs(60));
        assert_eq!(reading.offer("old", Some(before), |_| None), Met::Old);
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
    fn a_burst_is_given_whole_over_several_polls_oldest_first() {
        let (mut cursor, _) = read(None, 0..100);
        let mut given = Vec::new();
        for poll in 0..6 {
            let mut reading = Reading::new(Some(&cursor), &PollLimits::default());
            for id in (50..10_100).rev() {
                reading.offer(&id.to_string(), at(id), |time| Some(post(time)));
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
