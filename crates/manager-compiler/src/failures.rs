//! Compilations that fail for ever must end.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

/// Failures in a row after which a compilation that the database may refuse is not tried again. They take three minutes:
/// during an upgrade, a newer compiler can start meanwhile, and read what this one cannot.
const MAX_FAILURES: u32 = 8;
/// The same for violations of a constraint. Another transaction may cause one.
const MAX_VIOLATIONS: u32 = 3;
/// Limit of the compilations whose failures are counted.
const MAX_COUNTED: usize = 10_000;

/// Failures in a row of the compilations that are tried again, by their keys.
#[derive(Default)]
pub(crate) struct Failures(Mutex<HashMap<String, u32>>);

impl Failures {
    /// Counts a failure. Returns true if it must be the last one.
    pub(crate) fn is_last(&self, key: &str, error: &store::Error) -> bool {
        if !error.may_blame_values() {
            return false;
        }
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() >= MAX_COUNTED {
            counts.clear();
        }
        let count = counts.entry(key.to_owned()).or_default();
        *count += 1;
        let most = if error.is_refusal() {
            MAX_VIOLATIONS
        } else {
            MAX_FAILURES
        };
        *count >= most
    }

    pub(crate) fn forget(&self, key: &str) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreadable_submission_is_given_up_after_some_tries_and_a_lost_connection_never() {
        let failures = Failures::default();
        let lost = store::Error::Pool("lost".into());
        let json = serde_json::from_str::<()>("x").unwrap_err();
        let unreadable = store::Error::Json(json);
        for _ in 1..MAX_FAILURES {
            assert!(!failures.is_last("a", &unreadable));
            assert!(!failures.is_last("a", &lost));
        }
        assert!(!failures.is_last("b", &unreadable));
        assert!(failures.is_last("a", &unreadable));
        failures.forget("a");
        assert!(!failures.is_last("a", &unreadable));
    }
}
