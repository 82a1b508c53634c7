//! Namespaces whose account's quota refused a match a moment ago. Their next matches are refused without an
//! explanation.
//!
//! This needs no query, because a poll learns of a used-up quota when it stores. All Namespaces are forgotten together
//! after [`MEMORY`], so at most one block of matches of such an account is explained in that time. A match that is
//! refused although the account has Scans again is kept, and a backfill makes its Scan.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use domain::Id;
use tokio::time::Instant;

const MEMORY: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(crate) struct UsedUp(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Time of the oldest entry.
    time: Option<Instant>,
    namespaces: Arc<HashSet<Id>>,
}

impl UsedUp {
    pub(crate) fn namespaces(&self) -> Arc<HashSet<Id>> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.time.is_some_and(|time| time.elapsed() >= MEMORY) {
            *state = State::default();
        }
        Arc::clone(&state.namespaces)
    }

    pub(crate) fn add(&self, namespaces: impl Iterator<Item = Id>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for namespace in namespaces {
            if !state.namespaces.contains(&namespace) {
                state.time.get_or_insert_with(Instant::now);
                Arc::make_mut(&mut state.namespaces).insert(namespace);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Id, MEMORY, UsedUp};

    #[tokio::test(start_paused = true)]
    async fn what_was_refused_is_remembered_for_a_while() {
        let (used_up, namespace) = (UsedUp::default(), Id::generate());
        used_up.add([namespace].into_iter());
        let noted = used_up.namespaces();
        tokio::time::advance(MEMORY / 2).await;
        used_up.add([Id::generate()].into_iter());
        assert_eq!(noted.len(), 1);
        assert_eq!(used_up.namespaces().len(), 2);
        tokio::time::advance(MEMORY / 2).await;
        assert!(used_up.namespaces().is_empty());
        used_up.add([namespace].into_iter());
        assert!(used_up.namespaces().contains(&namespace));
    }
}
