//! The events of Bluesky's stream, in memory.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use domain::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{
    ids::{COLLECTION, did, rkey},
    post::Stored,
};

const LOOK_BACK: Duration = Duration::from_hours(36);
/// Maximum number of events in memory, regardless of their age.
const MAX_EVENTS: usize = 300_000;
/// Number of events sent to one connection at a time.
const AT_ONCE: usize = 256;

pub(super) struct Log {
    state: Mutex<State>,
    /// Version number that changes with each event, to wake connections.
    pub(super) changed: watch::Sender<u64>,
    /// Number of open connections, and the maximum so far.
    pub(super) open: AtomicUsize,
    pub(super) most_open: AtomicUsize,
}

struct State {
    events: VecDeque<Entry>,
    next: u64,
    look_back: Duration,
    /// Connections with an earlier number are closed.
    generation: u64,
    /// Number of events that each connection may send before it is closed.
    close_after: Option<u64>,
}

struct Entry {
    number: u64,
    time: i64,
    text: Arc<str>,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                events: VecDeque::new(),
                next: 0,
                look_back: LOOK_BACK,
                generation: 0,
                close_after: None,
            }),
            changed: watch::Sender::new(0),
            open: AtomicUsize::new(0),
            most_open: AtomicUsize::new(0),
        }
    }
}

impl Log {
    pub(super) fn created(&self, post: &Stored, now: Timestamp) {
        self.commit(post, now, "create");
        if post.id.is_multiple_of(5) {
            self.identity(&post.new.author, now);
        }
    }

    pub(super) fn edited(&self, post: &Stored, now: Timestamp) {
        self.commit(post, now, "update");
    }

    pub(super) fn deleted(&self, post: &Stored, now: Timestamp) {
        self.commit(post, now, "delete");
    }

    fn commit(&self, post: &Stored, now: Timestamp, operation: &str) {
        let did = did(&post.new.author);
        let mut commit = json!({
            "rev": rkey(post.id), "operation": operation, "collection": COLLECTION, "rkey": rkey(post.id),
        });
        if operation != "delete" {
            commit["record"] = record(post);
            commit["cid"] = json!("bafyreicl7rzkxdrm4zz2ehbx52kuk3mvfow6p3gzfys72r5grvskxoswy4");
        }
        self.append(
            now,
            |time| json!({"did": did, "time_us": time, "kind": "commit", "commit": commit}),
        );
    }

    fn identity(&self, author: &str, now: Timestamp) {
        let did = did(author);
        let identity =
            json!({"did": did, "handle": handle(author), "seq": 1, "time": now.to_string()});
        self.append(
            now,
            |time| json!({"did": did, "time_us": time, "kind": "identity", "identity": identity}),
        );
    }

    /// Deactivates an account, or activates it again.
    pub(super) fn account(&self, author: &str, active: bool, now: Timestamp) {
        let did = did(author);
        let account = json!({"did": did, "active": active, "status": "deleted", "seq": 1, "time": now.to_string()});
        self.append(
            now,
            |time| json!({"did": did, "time_us": time, "kind": "account", "account": account}),
        );
    }

    fn append(&self, now: Timestamp, event: impl FnOnce(i64) -> Value) {
        {
            let mut state = self.state();
            let number = state.next;
            state.next += 1;
            // Up to four milliseconds out of order.
            let early = i64::try_from(number * 7_919 % 4_000).unwrap_or_default();
            let time = now.micros() - early;
            let text = event(time).to_string().into();
            state.events.push_back(Entry { number, time, text });
            if state.events.len() > MAX_EVENTS {
                state.events.pop_front();
            }
        }
        self.changed.send_modify(|count| *count += 1);
    }

    /// Closes all connections, and each later one after so many events.
    pub(super) fn cut(&self, close_after: Option<u64>) {
        {
            let mut state = self.state();
            state.generation += 1;
            state.close_after = close_after;
        }
        self.changed.send_modify(|count| *count += 1);
    }

    /// The newest time of an event.
    pub(super) fn newest(&self) -> Option<Timestamp> {
        let newest = self.state().events.iter().map(|event| event.time).max();
        newest.and_then(Timestamp::from_micros)
    }

    /// Maximum number of connections open at the same time.
    pub(super) fn most_open(&self) -> usize {
        self.most_open.load(Ordering::SeqCst)
    }

    pub(super) fn set_look_back(&self, look_back: Duration) {
        self.state().look_back = look_back;
    }

    pub(super) fn clear(&self) {
        self.state().events.clear();
        self.cut(None);
    }

    /// The number of the first event for a reading that starts at `cursor`, and the connection's generation.
    pub(super) fn join(&self, cursor: Option<i64>, now: Timestamp) -> (u64, u64) {
        let state = self.state();
        let earliest = now.minus(state.look_back).micros();
        let from = cursor.map(|cursor| cursor.max(earliest));
        let first = from.and_then(|from| state.events.iter().find(|event| event.time >= from));
        (
            first.map_or(state.next, |event| event.number),
            state.generation,
        )
    }

    /// Events from `number` on that are not older than `from`; `None` if the connection must be closed.
    pub(super) fn events(
        &self,
        number: u64,
        generation: u64,
        sent: u64,
    ) -> Option<Vec<(u64, Arc<str>)>> {
        let state = self.state();
        if state.generation != generation || state.close_after.is_some_and(|most| sent >= most) {
            return None;
        }
        let room = state.close_after.map_or(AT_ONCE, |most| {
            usize::try_from(most - sent).unwrap_or(AT_ONCE)
        });
        let oldest = state
            .events
            .front()
            .map_or(state.next, |event| event.number);
        let skip = usize::try_from(number.saturating_sub(oldest)).unwrap_or(usize::MAX);
        let events = state.events.iter().skip(skip).take(room.min(AT_ONCE));
        Some(
            events
                .map(|event| (event.number, Arc::clone(&event.text)))
                .collect(),
        )
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn handle(author: &str) -> String {
    format!("{author}.bsky.social")
}

pub(super) fn record(post: &Stored) -> Value {
    let new = &post.new;
    let text = new.text.as_deref().unwrap_or(&new.title);
    let mut record = json!({
        "$type": COLLECTION, "createdAt": post.time.to_string(), "langs": ["en"], "text": text,
    });
    if let Some(url) = &new.url {
        record["embed"] = json!({"$type": "app.bsky.embed.external", "external": {
            "uri": url, "title": new.title, "description": "",
        }});
    }
    record
}
