//! The reader needs vectors of what customers sell. They take about 100 ms of work for each Manager, and some 40 kB.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use domain::{Focus, Instructions, ManagerName, scan::ReaderOutcome};
use reader::{Customer, ReadError, Reader};
use runtime::background;
use store::{Pool, plans};

/// Memory of a generation. There are two, so a scanner keeps about a thousand Managers with seven offers, or 400 with twenty long ones.
const GENERATION_BYTES: usize = 20 << 20;

/// Customers that were read. Those that no post concerned for longest are dropped first.
#[derive(Default)]
pub(super) struct Customers(Mutex<Cache>);

#[derive(Default)]
struct Cache {
    newer: HashMap<ManagerName, Arc<Customer>>,
    newer_bytes: usize,
    older: HashMap<ManagerName, Arc<Customer>>,
    /// Managers whose customer is being read. A change of the plan meanwhile removes them, so that what was read of the plan
    /// before is not kept.
    pending: HashMap<ManagerName, u64>,
    last_number: u64,
}

pub(super) enum Found {
    Known(Arc<Customer>),
    /// To be read, from these instructions.
    Missing(Box<Missing>),
    Failed(ReaderOutcome),
}

pub(super) struct Missing {
    number: u64,
    focus: Focus,
    instructions: Instructions,
}

impl Customers {
    /// Forgets a Manager whose plan changed.
    pub(super) fn forget(&self, manager: &ManagerName) {
        let mut cache = self.lock();
        cache.pending.remove(manager);
        if let Some(customer) = cache.newer.remove(manager) {
            cache.newer_bytes = cache.newer_bytes.saturating_sub(customer.bytes());
        }
        cache.older.remove(manager);
    }

    /// Finds the customers of Managers. Reads the instructions of those that are not known.
    pub(super) async fn of(
        &self,
        pool: &Pool,
        mut managers: Vec<ManagerName>,
    ) -> Vec<(ManagerName, Found)> {
        managers.sort_unstable();
        managers.dedup();
        let mut found = Vec::with_capacity(managers.len());
        let mut missing = Vec::new();
        {
            let mut cache = self.lock();
            for manager in managers {
                match cache.get(&manager) {
                    Some(known) => found.push((manager, Found::Known(known))),
                    None => missing.push((manager, cache.begin(manager))),
                }
            }
        }
        if missing.is_empty() {
            return found;
        }
        let names: Vec<_> = missing.iter().map(|(manager, _)| *manager).collect();
        let read = async {
            let mut conn = pool.get().await?;
            Ok::<_, store::Error>(plans::instructions_of(&mut conn, &names).await?)
        };
        let mut instructions = read.await.unwrap_or_else(|error| {
            let error = anyhow::Error::from(error);
            tracing::debug!("posts are judged without the reader: {error:#}");
            HashMap::new()
        });
        found.extend(missing.into_iter().map(|(manager, number)| {
            // Without instructions or focus the Manager is gone or changed; its matches will be decided again.
            let usable = instructions.remove(&manager);
            let usable =
                usable.and_then(|(_, instructions)| Some((instructions.focus?, instructions)));
            let found = match usable {
                Some((focus, instructions)) => Found::Missing(Box::new(Missing {
                    number,
                    focus,
                    instructions,
                })),
                None => Found::Failed(ReaderOutcome::Unavailable),
            };
            (manager, found)
        }));
        found
    }

    /// Reads a customer and keeps it.
    pub(super) async fn read(
        &self,
        reader: &Arc<Reader>,
        manager: ManagerName,
        missing: Missing,
    ) -> Result<Arc<Customer>, ReaderOutcome> {
        let Missing {
            number,
            focus,
            instructions,
        } = missing;
        let reader = Arc::clone(reader);
        let read = background::spawn(move || reader.customer_of(focus, &instructions)).await;
        match read {
            Ok(Ok(customer)) => {
                let customer = Arc::new(customer);
                self.lock().end(manager, number, &customer);
                Ok(customer)
            }
            Ok(Err(ReadError::NoOffers)) => Err(ReaderOutcome::NoOffers),
            Ok(Err(error)) => {
                tracing::warn!(manager.name = %manager, "the reader cannot read what the customer sells: {error}");
                Err(ReaderOutcome::Unavailable)
            }
            Err(_panic) => {
                tracing::warn!(manager.name = %manager, "the reader cannot read what the customer sells: an internal error");
                Err(ReaderOutcome::Unavailable)
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Cache> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cache {
    fn get(&mut self, manager: &ManagerName) -> Option<Arc<Customer>> {
        if let Some(known) = self.newer.get(manager) {
            return Some(Arc::clone(known));
        }
        let customer = self.older.remove(manager)?;
        self.keep(*manager, &customer);
        Some(customer)
    }

    fn begin(&mut self, manager: ManagerName) -> u64 {
        self.last_number += 1;
        self.pending.insert(manager, self.last_number);
        self.last_number
    }

    fn end(&mut self, manager: ManagerName, number: u64, customer: &Arc<Customer>) {
        if self.pending.get(&manager) == Some(&number) {
            self.pending.remove(&manager);
            self.keep(manager, customer);
        }
    }

    fn keep(&mut self, manager: ManagerName, customer: &Arc<Customer>) {
        let bytes = customer.bytes();
        if self.newer_bytes + bytes > GENERATION_BYTES {
            self.older = std::mem::take(&mut self.newer);
            self.newer_bytes = 0;
        }
        self.newer_bytes += bytes;
        self.newer.insert(manager, Arc::clone(customer));
    }
}
