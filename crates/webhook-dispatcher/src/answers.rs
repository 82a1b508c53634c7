//! How much of an endpoint's answer is stored with its attempt.
//!
//! The endpoint decides what it answers, and there may be a million attempts a day. So only failures are stored at full
//! length, and of each Connection one in [`FULL_EVERY`] on each replica: that is enough to find the cause.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use domain::ConnectionName;

/// Bytes that are stored of all other answers.
const SHORT: usize = 256;
const FULL_EVERY: Duration = Duration::from_secs(300);
/// Maximum number of Connections whose last full answer is known. More do not fail within [`FULL_EVERY`] unless someone
/// intends it.
const MAX_KNOWN: usize = 20_000;

#[derive(Default)]
pub(crate) struct Answers {
    last_full: Mutex<HashMap<ConnectionName, Instant>>,
}

impl Answers {
    /// Returns the part of an answer's text that is stored.
    pub(crate) fn stored(
        &self,
        connection: ConnectionName,
        has_failed: bool,
        mut answer: String,
        now: Instant,
    ) -> String {
        if answer.len() > SHORT && !(has_failed && self.may_be_full(connection, now)) {
            answer.truncate(answer.floor_char_boundary(SHORT));
            answer.shrink_to_fit();
        }
        answer
    }

    fn may_be_full(&self, connection: ConnectionName, now: Instant) -> bool {
        let is_recent = |last: &Instant| now.duration_since(*last) < FULL_EVERY;
        let mut known = self
            .last_full
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if known.get(&connection).is_some_and(is_recent) {
            return false;
        }
        if known.len() >= MAX_KNOWN {
            known.retain(|_, last| is_recent(last));
        }
        if known.len() >= MAX_KNOWN {
            return false;
        }
        known.insert(connection, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use domain::Id;

    use super::*;

    #[test]
    fn one_failure_of_a_connection_in_five_minutes_is_stored_at_full_length() {
        let answers = Answers::default();
        let connection = || ConnectionName {
            namespace: Id::NIL,
            connection: Id::generate(),
        };
        let (one, two) = (connection(), connection());
        let begin = Instant::now();
        let stored = |connection, has_failed, answer: String, now| {
            answers.stored(connection, has_failed, answer, now).len()
        };
        let long = || "ä".repeat(2_000);
        assert_eq!(stored(one, false, long(), begin), SHORT);
        assert_eq!(stored(one, true, long(), begin), 4_000);
        assert_eq!(stored(one, true, long(), begin), SHORT);
        assert_eq!(stored(two, true, long(), begin), 4_000);
        let later = begin + FULL_EVERY;
        assert_eq!(stored(one, true, long(), later), 4_000);
        assert_eq!(stored(one, true, long(), later), SHORT);
        assert_eq!(stored(one, true, "a short one".to_owned(), later), 11);
        let odd = format!("{}ää", "a".repeat(SHORT - 1));
        assert_eq!(stored(one, true, odd, later), SHORT - 1);
    }
}
