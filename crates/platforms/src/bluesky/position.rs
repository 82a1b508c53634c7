//! The position in a stream, small enough to be stored twice a second.
//!
//! A stream's times are only roughly in order, and those of two hosts differ. After a break, reading resumes
//! [`REWIND`] before the newest time, and the posts of the last [`KEEP`] count as known. In the cursor a key is
//! six bytes: some 3 kB at 60 posts a second. Two posts of one window share a key once in 10^11 posts. Posts
//! that are forgotten because of [`MAX_KEYS`] may be returned twice after a break; the unique keys of the store
//! then prevent duplicates.

use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use base64::{Engine, prelude::BASE64_STANDARD_NO_PAD as BASE64};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// How far before the newest time a stream is resumed.
pub(super) const REWIND: Duration = Duration::from_secs(3);
/// How long a post stays known: the rewind, plus the difference of another host's clock.
const KEEP: Duration = Duration::from_secs(6);
const MAX_KEYS: usize = 8_000;
const KEY_BYTES: usize = 6;

/// A post's key in the set of known posts.
pub(super) type Key = [u8; KEY_BYTES];

/// The stored form.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    /// The newest time read, in microseconds.
    pub(super) at: i64,
    /// True if there was an event at that time; false if it is only the start of the reading.
    pub(super) met: bool,
    /// The keys of the posts, concatenated, for each second in ascending order.
    seen: Vec<(i64, String)>,
}

/// The form in memory.
#[derive(Debug, Default)]
pub(super) struct Recent {
    pub(super) at: i64,
    pub(super) met: bool,
    seconds: BTreeMap<i64, Vec<Key>>,
    known: HashSet<Key>,
}

pub(super) fn key(uri: &str) -> Key {
    let hash = Sha256::digest(uri.as_bytes());
    let mut key = Key::default();
    key.copy_from_slice(&hash[..KEY_BYTES]);
    key
}

impl From<&Position> for Recent {
    /// A key that cannot be read counts as unknown.
    fn from(position: &Position) -> Self {
        let mut recent = Self {
            at: position.at,
            met: position.met,
            ..Self::default()
        };
        for (second, keys) in &position.seen {
            let bytes = BASE64.decode(keys).unwrap_or_default();
            let (keys, _) = bytes.as_chunks::<KEY_BYTES>();
            recent.known.extend(keys);
            recent.seconds.entry(*second).or_default().extend(keys);
        }
        recent.forget();
        recent
    }
}

impl Recent {
    /// A reading that starts at `at`.
    pub(super) fn beginning(at: i64) -> Self {
        Self {
            at,
            ..Self::default()
        }
    }

    /// Records the time of an event. The first one counts as it is, because hosts have different clocks.
    pub(super) fn advance(&mut self, time: i64) {
        self.at = if self.met { self.at.max(time) } else { time };
        self.met = true;
    }

    /// Records a post. Returns true if it is new.
    pub(super) fn meet(&mut self, key: Key, time: i64) -> bool {
        let new = self.known.insert(key);
        if new {
            let second = time.div_euclid(1_000_000);
            self.seconds.entry(second).or_default().push(key);
        }
        new
    }

    pub(super) fn position(&mut self) -> Position {
        self.forget();
        let coded =
            |(second, keys): (&i64, &Vec<Key>)| (*second, BASE64.encode(keys.as_flattened()));
        Position {
            at: self.at,
            met: self.met,
            seen: self.seconds.iter().map(coded).collect(),
        }
    }

    fn forget(&mut self) {
        let keep = i64::try_from(KEEP.as_secs()).unwrap_or_default();
        let oldest = self.at.div_euclid(1_000_000).saturating_sub(keep);
        while let Some(mut first) = self.seconds.first_entry() {
            let excess = self.known.len().saturating_sub(MAX_KEYS);
            let forgotten = if *first.key() < oldest {
                first.remove()
            } else if excess > 0 {
                let keys = first.get_mut();
                let end = excess.min(keys.len());
                keys.drain(..end).collect()
            } else {
                break;
            };
            for key in &forgotten {
                self.known.remove(key);
            }
            self.seconds.retain(|_, keys| !keys.is_empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;
    const START: i64 = 1_783_175_888_085_434;

    #[test]
    fn what_was_met_is_known_for_a_while_and_after_its_json() {
        let mut recent = Recent::beginning(START);
        for n in 0..100 {
            recent.advance(START + n * SECOND / 10);
            assert!(recent.meet(key(&n.to_string()), START + n * SECOND / 10));
        }
        let json = serde_json::to_string(&recent.position()).unwrap();
        let read: Position = serde_json::from_str(&json).unwrap();
        assert_eq!(read, recent.position());
        let mut again = Recent::from(&read);
        assert_eq!((again.at, again.met), (START + 99 * SECOND / 10, true));
        for n in 0..100 {
            let new = again.meet(key(&n.to_string()), START + n * SECOND / 10);
            // The last six whole seconds, and the part of the second before them.
            assert!(!new || n < 40, "{n}");
            assert!(new || n >= 30, "{n}");
        }
    }

    #[test]
    fn a_busy_stream_s_position_is_bounded() {
        let mut recent = Recent::beginning(START);
        for n in 0..20_000_i64 {
            recent.advance(START + n);
            recent.meet(key(&n.to_string()), START + n);
        }
        let size = serde_json::to_string(&recent.position()).unwrap().len();
        assert!(size < 70_000, "{size}");
        let mut again = Recent::from(&recent.position());
        assert!(!again.meet(key("19999"), START));
        assert!(again.meet(key("11999"), START));
    }

    #[test]
    fn a_damaged_position_knows_nothing() {
        let json = format!(r#"{{"at":{START},"met":true,"seen":[[1783175888,"%%%"],[0,"AAAA"]]}}"#);
        let position: Position = serde_json::from_str(&json).unwrap();
        assert!(Recent::from(&position).meet(key("a"), START));
    }
}
