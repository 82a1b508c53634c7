//! The position in a stream, small enough to be stored twice a second.
//!
//! A stream's times are only roughly in order. After a break, reading resumes [`REWIND`] before the newest time,
//! and the posts of the last [`KEEP`] count as known. In the cursor a key is six bytes: some 3 kB at 60 posts a
//! second. Two posts of one window share a key once in 10^11 posts.
//!
//! Each host stamps an event when it sends it, so the times of two hosts differ by the difference of their delays.
//! What a slow host has not sent yet, a faster one stamped before the newest time. So a reading resumes
//! [`REWIND_ON_OTHER_HOST`] before it on another host than that of the position. The position has the new host once
//! the stream has reached the newest time: until then, a reading that breaks again must rewind as far again.
//!
//! Posts that are forgotten because of [`KEEP`] or [`MAX_KEYS`] may be returned twice after a break; the unique keys
//! of the store then prevent duplicates.

use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use base64::{Engine, prelude::BASE64_STANDARD_NO_PAD as BASE64};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// How far before the newest time a stream is resumed.
const REWIND: Duration = Duration::from_secs(3);
/// The same on another host. Hosts are behind each other by seconds, and under load by up to a minute. If the
/// earlier host was further behind, some of what it had not sent is never read.
const REWIND_ON_OTHER_HOST: Duration = Duration::from_secs(60);
/// How long a post stays known: the rewind, plus the difference of another host's clock.
const KEEP: Duration = Duration::from_secs(6);
const MAX_KEYS: usize = 8_000;
const KEY_BYTES: usize = 6;

/// A post's key in the set of known posts.
pub(super) type Key = [u8; KEY_BYTES];

/// The stored form.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    /// The newest time read, in microseconds.
    pub(super) at: i64,
    /// True if there was an event at that time; false if it is only the start of the reading.
    pub(super) met: bool,
    /// The keys of the posts, concatenated, for each second in ascending order.
    seen: Vec<(i64, String)>,
    /// The host that stamped `at`; `None` if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    /// How far that host is behind the network, in microseconds; `None` if it is not known yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lag: Option<i64>,
    /// The first connection that was opened after `lag` was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reopened: Option<Reopened>,
    /// Another number after each reading of events. The other fields may stay the same: an event can be older than
    /// `at`, and all are while our clock is behind.
    #[serde(default)]
    nonce: u32,
}

/// Connections to a host whose lag is not known yet, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reopened {
    /// The position when the first one was opened.
    pub(super) at: i64,
    /// How far before the position a stream began: the shortest distance of all streams since then.
    pub(super) rewind: i64,
}

/// The form in memory.
#[derive(Debug, Default)]
pub(super) struct Recent {
    pub(super) at: i64,
    pub(super) met: bool,
    seconds: BTreeMap<i64, Vec<Key>>,
    known: HashSet<Key>,
    host: Option<String>,
    pub(super) lag: Option<i64>,
    pub(super) reopened: Option<Reopened>,
    nonce: u32,
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
            host: position.host.clone(),
            lag: position.lag,
            reopened: position.reopened,
            nonce: position.nonce,
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

    /// Start of the stream on `host`, in microseconds.
    pub(super) fn resume_at(&self, host: &str) -> i64 {
        let rewind = if !self.met {
            Duration::ZERO
        } else if self.host.as_deref() == Some(host) {
            REWIND
        } else {
            REWIND_ON_OTHER_HOST
        };
        let rewind = i64::try_from(rewind.as_micros()).unwrap_or_default();
        self.at.saturating_sub(rewind)
    }

    /// Records the time of an event on `host`. The first one counts as it is, because hosts have different clocks.
    pub(super) fn advance(&mut self, time: i64, host: &str) {
        let has_caught_up = !self.met || time >= self.at;
        if has_caught_up && self.host.as_deref() != Some(host) {
            self.host = Some(host.to_owned());
        }
        self.at = if self.met { self.at.max(time) } else { time };
        self.met = true;
    }

    /// Records that events were read.
    pub(super) fn renew(&mut self) {
        self.nonce = rand::random();
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
            host: self.host.clone(),
            lag: self.lag,
            reopened: self.reopened,
            nonce: self.nonce,
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
    fn seen_posts_are_known_for_a_while_and_after_a_restart() {
        let mut recent = Recent::beginning(START);
        for n in 0..100 {
            recent.advance(START + n * SECOND / 10, "a");
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
    fn position_of_a_busy_stream_is_bounded() {
        let mut recent = Recent::beginning(START);
        for n in 0..20_000_i64 {
            recent.advance(START + n, "a");
            recent.meet(key(&n.to_string()), START + n);
        }
        let size = serde_json::to_string(&recent.position()).unwrap().len();
        assert!(size < 70_000, "{size}");
        let mut again = Recent::from(&recent.position());
        assert!(!again.meet(key("19999"), START));
        assert!(again.meet(key("11999"), START));
    }

    #[test]
    fn other_host_is_rewound_further_until_it_catches_up() {
        let mut recent = Recent::beginning(START);
        assert_eq!(recent.resume_at("a"), START);
        recent.advance(START, "a");
        let mut recent = Recent::from(&recent.position());
        assert_eq!(recent.resume_at("a"), START - 3 * SECOND);
        assert_eq!(recent.resume_at("b"), START - 60 * SECOND);
        recent.advance(START - SECOND, "b");
        assert_eq!(recent.resume_at("b"), START - 60 * SECOND);
        recent.advance(START, "b");
        assert_eq!(recent.resume_at("b"), START - 3 * SECOND);
        assert_eq!(recent.resume_at("a"), START - 60 * SECOND);
    }

    #[test]
    fn position_without_a_host_is_read() {
        let json = format!(r#"{{"at":{START},"met":true,"seen":[]}}"#);
        let position: Position = serde_json::from_str(&json).unwrap();
        assert_eq!(Recent::from(&position).resume_at("a"), START - 60 * SECOND);
    }

    #[test]
    fn damaged_position_counts_as_empty() {
        let json = format!(r#"{{"at":{START},"met":true,"seen":[[1783175888,"%%%"],[0,"AAAA"]]}}"#);
        let position: Position = serde_json::from_str(&json).unwrap();
        assert!(Recent::from(&position).meet(key("a"), START));
    }
}
