//! One frame of the stream.

use std::panic::{AssertUnwindSafe, catch_unwind};

use domain::{Post, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use crate::text;

use super::{
    position::{Key, key},
    post,
};

pub(super) const COLLECTION: &str = "app.bsky.feed.post";
const MAX_DID_BYTES: usize = 256;
const MAX_RKEY_BYTES: usize = 512;

/// Content of a frame, and its time in microseconds where it matters.
#[derive(Debug)]
pub(super) enum Event {
    Created {
        time: i64,
        key: Key,
        /// `None` if the post is not to be delivered.
        post: Option<Box<Post>>,
    },
    Deleted {
        time: i64,
        uri: String,
    },
    /// An account was deleted, suspended, or taken down.
    Inactive {
        time: i64,
        did: String,
    },
    Renamed {
        time: i64,
        did: String,
        handle: String,
    },
    /// Edits, and records that are not posts.
    Other {
        time: i64,
    },
    /// A frame that cannot be read. The key identifies it.
    Unreadable {
        key: Key,
        reason: String,
    },
}

#[derive(Deserialize)]
struct Frame {
    did: String,
    time_us: i64,
    kind: String,
    commit: Option<Commit>,
    account: Option<Account>,
    identity: Option<Identity>,
}

#[derive(Deserialize)]
struct Commit {
    operation: String,
    collection: String,
    rkey: String,
    record: Option<Value>,
}

#[derive(Deserialize)]
struct Account {
    active: bool,
}

#[derive(Deserialize)]
struct Identity {
    handle: Option<String>,
}

impl Event {
    pub(super) fn read(text: &str, now: Timestamp) -> Self {
        let frame = match text::repair::read_json::<Frame>(text.as_bytes()) {
            Ok(frame) => frame,
            Err(error) => return Self::unreadable(text, &error.to_string()),
        };
        // A time in the future would move the cursor past events that are still to come.
        let time = frame.time_us.min(now.micros());
        if time <= 0 || !is_did(&frame.did) {
            return Self::unreadable(text, "no account or no time");
        }
        let did = frame.did;
        match frame.kind.as_str() {
            "commit" => match frame.commit {
                // The text of one post must not stop the stream.
                Some(commit) => catch_unwind(AssertUnwindSafe(|| commit.event(&did, time)))
                    .unwrap_or(Err("an internal error"))
                    .unwrap_or_else(|reason| Self::unreadable(text, reason)),
                None => Self::unreadable(text, "a commit without content"),
            },
            "account" if frame.account.is_some_and(|account| !account.active) => {
                Self::Inactive { time, did }
            }
            "identity" => match frame.identity.and_then(|identity| identity.handle) {
                Some(handle) => Self::Renamed { time, did, handle },
                None => Self::Other { time },
            },
            _ => Self::Other { time },
        }
    }

    pub(super) fn unreadable(text: &str, reason: &str) -> Self {
        Self::Unreadable {
            key: key(text),
            reason: text::line(reason),
        }
    }

    pub(super) fn time(&self) -> Option<i64> {
        match self {
            Self::Created { time, .. }
            | Self::Deleted { time, .. }
            | Self::Inactive { time, .. }
            | Self::Renamed { time, .. }
            | Self::Other { time } => Some(*time),
            Self::Unreadable { .. } => None,
        }
    }
}

impl Commit {
    fn event(self, did: &str, time: i64) -> Result<Event, &'static str> {
        if self.collection != COLLECTION {
            return Ok(Event::Other { time });
        }
        if !is_rkey(&self.rkey) {
            return Err("no such record key");
        }
        let uri = format!("at://{did}/{COLLECTION}/{}", self.rkey);
        Ok(match (self.operation.as_str(), self.record) {
            ("create", Some(record)) if record["text"].is_string() => Event::Created {
                time,
                key: key(&uri),
                post: post::read(uri, did, &self.rkey, &record, time).map(Box::new),
            },
            ("create", Some(_)) => return Err("a post without a text"),
            ("create", None) => return Err("a post without a record"),
            ("delete", _) => Event::Deleted { time, uri },
            _ => Event::Other { time },
        })
    }
}

pub(super) fn is_did(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || b"._:%-".contains(&b);
    text.len() <= MAX_DID_BYTES
        && text.bytes().all(inner)
        && text.strip_prefix("did:").is_some_and(|rest| rest.len() > 2)
}

fn is_rkey(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || b"._:~-".contains(&b);
    (1..=MAX_RKEY_BYTES).contains(&text.len()) && text.bytes().all(inner)
}
