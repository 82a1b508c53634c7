//! Posts that the simulated X has charged for.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The amounts sold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct XBill {
    /// Posts in responses; each post counts once a day, as X bills them.
    pub posts: usize,
    /// Posts in responses, counted each time.
    pub served: usize,
    pub users: usize,
    /// Maximum number of posts in one request.
    pub most_asked: u64,
}

#[derive(Default)]
pub(super) struct Till(Mutex<Sold>);

#[derive(Default)]
pub(super) struct Sold {
    pub(super) posts: BTreeSet<(String, i64)>,
    pub(super) bill: XBill,
}

impl Till {
    pub(super) fn bill(&self) -> XBill {
        let sold = self.sold();
        XBill {
            posts: sold.posts.len(),
            ..sold.bill.clone()
        }
    }

    pub(super) fn sold(&self) -> MutexGuard<'_, Sold> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
