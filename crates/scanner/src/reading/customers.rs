//! Vectors of what customers sell, for the reader. They take about 100 ms of work for each Manager, and some 40 kB.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use domain::{
    Focus, ManagerName,
    instructions::{Sells, WatchedName},
    scan::ReaderOutcome,
};
use reader::Customer;

use crate::generations::Generations;

/// Memory of a generation. There are two, so a scanner keeps about a thousand Managers with seven offers, or 400 with twenty
/// long ones.
const GENERATION_BYTES: usize = 20 << 20;
/// Memory of an entry without its vectors.
const ENTRY_BYTES: usize = 100;

/// The vectors of what a customer sells, or the reason why posts are not compared with it.
pub(super) type Sold = Result<Arc<Customer>, ReaderOutcome>;

/// Cache of customers that were read. The least recently used are dropped first.
pub(super) struct Customers(Mutex<Generations<ManagerName, (u64, Sold)>>);

impl Customers {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Generations::new(GENERATION_BYTES)))
    }

    /// Returns what the customer of a Manager sells, if it was read from instructions with this [`hash_of_seller`].
    pub(super) fn get(&self, manager: &ManagerName, hash: u64) -> Option<Sold> {
        let (known, sold) = self.lock().get(manager)?;
        (known == hash).then_some(sold)
    }

    pub(super) fn keep(&self, manager: ManagerName, hash: u64, sold: Sold) -> Sold {
        let bytes = sold.as_ref().map_or(0, |customer| customer.bytes());
        self.lock()
            .put(manager, (hash, sold.clone()), ENTRY_BYTES + bytes);
        sold
    }

    /// Removes Managers that no longer exist.
    pub(super) fn retain(&self, exists: impl Fn(&ManagerName) -> bool) {
        self.lock().retain(exists);
    }

    fn lock(&self) -> MutexGuard<'_, Generations<ManagerName, (u64, Sold)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a hash of what a Manager's instructions say about its customer: with another one, the customer is read again.
pub(crate) fn hash_of_seller(
    hasher: &RandomState,
    focus: Option<Focus>,
    sells: Option<&Sells>,
    names: &[WatchedName],
) -> u64 {
    let text = serde_json::to_string(&(focus, sells, names));
    hasher.hash_one(text.unwrap_or_default())
}
