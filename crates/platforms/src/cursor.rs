//! The position in a feed: the newest time read, and the posts seen around it.
//!
//! No single post is an anchor, because any post may be deleted. "Newest first" is only roughly true
//! everywhere, so each poll re-reads at least the last [`OVERLAP_ITEMS`] posts or [`OVERLAP`], and the seen set
//! separates the new posts from the known ones. The set is bounded: what drops out of it raises `floor`, and
//! posts at or below the floor count as known.
//!
//! The scanner stores it as JSON. A damaged cursor reads as none, so the feed starts again; the store's unique
//! keys then prevent duplicate Scans.

mod seen;

use std::{collections::BTreeMap, time::Duration};

use domain::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Minimum number of posts that each poll reads again.
pub const OVERLAP_ITEMS: usize = 50;
/// Minimum period whose posts each poll reads again.
pub const OVERLAP: Duration = Duration::from_mins(10);

/// Posts kept in the seen set in addition to those of the last poll.
pub(crate) const KEEP_UNMET: usize = 500;
/// Maximum number of posts in a seen set.
pub(crate) const MAX_SEEN: usize = 5_000;
/// Maximum number of pending posts.
pub(crate) const MAX_PENDING: usize = 500;

const VERSION: u8 = 1;
/// Native ids up to this length are stored as they are, longer ones as a hash.
const MAX_KEY_BYTES: usize = 24;
/// Begins the key of a post that was met and could not be seen, such as a dead one. It may become visible.
pub(crate) const HIDDEN: char = '?';
/// Length of such a hash.
pub(crate) const HASH_BYTES: usize = 24;

/// The position in one feed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cursor {
    version: u8,
    /// The time of the newest post read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) high_water: Option<Timestamp>,
    /// For a platform with several sources: the newest time that its search returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) searched: Option<Timestamp>,
    /// Posts older than this count as known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) floor: Option<Timestamp>,
    /// The posts that the last poll did not see come first; each part is oldest first.
    #[serde(default, with = "seen")]
    pub(crate) seen: Vec<Seen>,
    /// Posts that exist but could not be read yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) pending: Vec<Pending>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) etag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_modified: Option<String>,
    /// For reading by ids: posts up to this native id are read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) anchor: Option<String>,
    /// For reading newest first: the part that is still to be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unread: Option<Unread>,
    /// Data of a single adapter, by the names and in the formats that it chose.
    #[serde(flatten)]
    own: BTreeMap<String, serde_json::Value>,
}

/// The part of a list that an earlier poll left to the next ones. Each adapter has its own format for the two
/// ends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Unread {
    /// The older end, unless the known posts determine it.
    pub(crate) after: Option<String>,
    /// The position for continuing; empty for the newest post.
    pub(crate) before: String,
    /// The cursor's floor once this part is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) floor: Option<Timestamp>,
    /// The newest post that was known when the reading of this part began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) high_water: Option<Timestamp>,
    /// True if it belongs to the feed's first reading.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) first: bool,
    /// Posts read of this part so far.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) read: usize,
    /// How many of these were known before the reading began.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) known: usize,
    /// The oldest time of these posts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) oldest: Option<Timestamp>,
    /// Consecutive pages without a new post.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) idle: usize,
    /// Consecutive polls that could not read this position and could read others.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) failures: u32,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A post's key, and its time in seconds if known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seen(pub(crate) String, pub(crate) Option<i64>);

/// A post's native id, and the start of its waiting time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pending(pub(crate) String, pub(crate) Timestamp);

impl Cursor {
    pub(crate) fn new() -> Self {
        Self {
            version: VERSION,
            ..Self::default()
        }
    }

    /// Parses the output of [`Cursor::to_json`]; logs a warning and returns `None` if it cannot be read.
    pub fn from_json(value: &serde_json::Value) -> Option<Self> {
        let read = Self::deserialize(value).map_err(|error| error.to_string());
        let cursor = read.and_then(|cursor| match cursor.version {
            VERSION => Ok(cursor),
            other => Err(format!("unknown version {other}")),
        });
        match cursor {
            Ok(mut cursor) => {
                // Both ends of a list are kept while a part between them is unread.
                let most = if cursor.unread.is_some() {
                    MAX_SEEN * 2
                } else {
                    MAX_SEEN
                };
                let excess = cursor.seen.len().saturating_sub(most);
                cursor.seen.drain(..excess);
                cursor.pending.truncate(MAX_PENDING);
                Some(cursor)
            }
            Err(error) => {
                tracing::warn!(error, "unreadable cursor; reading the feed from the start");
                None
            }
        }
    }

    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Returns what an adapter stored as `name`; `None` if there is nothing or it cannot be read.
    pub(crate) fn own<'a, T: Deserialize<'a>>(&'a self, name: &str) -> Option<T> {
        match T::deserialize(self.own.get(name)?) {
            Ok(own) => Some(own),
            Err(error) => {
                tracing::warn!(part = name, %error, "unreadable part of a cursor; leaving it out");
                None
            }
        }
    }

    pub(crate) fn set_own(&mut self, name: &str, own: &impl Serialize) {
        let own = serde_json::to_value(own).unwrap_or_default();
        self.own.insert(name.to_owned(), own);
    }

    /// The time of the newest post read, for lag and for logs.
    pub fn high_water(&self) -> Option<Timestamp> {
        self.high_water
    }

    /// Returns true while the feed's first reading is not complete.
    pub fn is_first_reading(&self) -> bool {
        self.unread.as_ref().is_some_and(|unread| unread.first)
    }

    /// Number of posts around the position that the cursor knows.
    pub fn known(&self) -> usize {
        self.seen.len()
    }

    /// A cursor that reads everything back to `since` once more, but for posts that this one remembers. It is for one
    /// reading, and not to be stored in this one's place.
    #[must_use]
    pub fn reading_back_to(&self, since: Timestamp) -> Self {
        let mut seen = self.seen.clone();
        seen.retain(|seen| !seen.0.starts_with(HIDDEN));
        Self {
            high_water: Some(since),
            searched: Some(since),
            floor: Some(since),
            seen,
            ..Self::new()
        }
    }

    /// Start of the period whose posts must be read again.
    pub(crate) fn window_start(&self) -> Option<Timestamp> {
        let mut times: Vec<i64> = self.seen.iter().filter_map(|seen| seen.1).collect();
        times.sort_unstable_by(|a, b| b.cmp(a));
        let by_items = match times.get(OVERLAP_ITEMS - 1) {
            Some(&nth) => from_seconds(nth),
            // Fewer posts than the overlap are known: use all of them.
            None => self
                .floor
                .or_else(|| times.last().copied().and_then(from_seconds)),
        };
        let by_time = self.high_water.map(|time| time.minus(OVERLAP));
        match (by_items, by_time) {
            (Some(items), Some(time)) => Some(items.min(time)),
            (items, time) => items.or(time),
        }
    }
}

/// Key of a native id in the seen set.
pub(crate) fn key(native_id: &str) -> String {
    let plain = native_id.len() <= MAX_KEY_BYTES && native_id.bytes().all(|b| b.is_ascii_graphic());
    if plain {
        native_id.to_owned()
    } else {
        hex::encode(&Sha256::digest(native_id.as_bytes())[..HASH_BYTES / 2])
    }
}

pub(crate) fn to_seconds(time: Timestamp) -> i64 {
    time.micros().div_euclid(1_000_000)
}

pub(crate) fn from_seconds(seconds: i64) -> Option<Timestamp> {
    Timestamp::from_micros(seconds.checked_mul(1_000_000)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_round_trips_through_json() {
        let mut cursor = Cursor::new();
        cursor.high_water = from_seconds(1_700_000_000);
        cursor.seen.push(Seen("8863".into(), Some(1_700_000_000)));
        cursor
            .pending
            .push(Pending("8864".into(), Timestamp::now()));
        assert_eq!(Cursor::from_json(&cursor.to_json()), Some(cursor));
    }

    #[test]
    fn a_damaged_cursor_reads_as_none() {
        for damaged in [
            serde_json::Value::Null,
            serde_json::json!([1, 2]),
            serde_json::json!({}),
            serde_json::json!({"version": 99}),
            serde_json::json!({"version": 1, "seen": "all"}),
            serde_json::json!({"version": 1, "highWater": "yesterday"}),
        ] {
            assert_eq!(Cursor::from_json(&damaged), None, "{damaged}");
        }
        let oldest = serde_json::json!({"version": 1, "seen": [["8863", 1_700_000_000]]});
        assert!(Cursor::from_json(&oldest).is_some());
    }

    #[test]
    fn damaged_part_of_an_adapter_reads_as_none() {
        let stored = serde_json::json!({"version": 1, "seen": "", "pages": "a"});
        let cursor = Cursor::from_json(&stored).unwrap();
        assert_eq!(cursor.own::<u64>("pages"), None);
        assert_eq!(cursor.own::<String>("pages").as_deref(), Some("a"));
        assert_eq!(cursor.to_json(), stored);
    }

    #[test]
    fn long_and_odd_ids_are_hashed() {
        assert_eq!(key("8863"), "8863");
        assert_eq!(key(&"x".repeat(100)).len(), 24);
        assert_eq!(key("a\0b").len(), 24);
        assert_ne!(key("a b"), key("a  b"));
    }
}
