//! Limits how much of a resource, such as connections to the database, each account may hold.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use domain::Id;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Idle accounts are forgotten when so many are known.
const SWEEP_AT: usize = 1_024;

/// Permits for each account.
pub struct Shares {
    /// Maximum number of permits of one account.
    share: usize,
    accounts: Mutex<HashMap<Id, Arc<Semaphore>>>,
}

impl Shares {
    /// Gives each account half of `connections`, so that none keeps the others waiting.
    pub fn of(connections: usize) -> Self {
        Self::each((connections / 2).max(1))
    }

    /// Gives each account `share` permits.
    pub fn each(share: usize) -> Self {
        Self {
            share,
            accounts: Mutex::default(),
        }
    }

    /// Waits for `count` permits of `account` at once. The permits last until they are dropped. Returns `None` if an
    /// account cannot have that many.
    pub async fn take(&self, account: Id, count: u32) -> Option<OwnedSemaphorePermit> {
        if usize::try_from(count).ok()? > self.share {
            return None;
        }
        // The semaphore is never closed.
        self.semaphore(account).acquire_many_owned(count).await.ok()
    }

    fn semaphore(&self, account: Id) -> Arc<Semaphore> {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        if accounts.len() >= SWEEP_AT {
            // If the map is the only owner, no one holds or awaits a permit.
            accounts.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        }
        let semaphore = accounts
            .entry(account)
            .or_insert_with(|| Arc::new(Semaphore::new(self.share)));
        Arc::clone(semaphore)
    }
}

#[cfg(test)]
mod tests {
    use std::{future::Future as _, pin::pin, task::Poll};

    use super::*;

    fn account(number: u128) -> Id {
        Id::from_uuid(uuid::Uuid::from_u128(number))
    }

    #[tokio::test]
    async fn account_waits_for_its_own_permits_alone() {
        let shares = Shares::of(4);
        assert!(shares.take(account(1), 3).await.is_none(), "it has two");
        let both = shares.take(account(1), 2).await.unwrap();
        assert!(shares.take(account(2), 1).await.is_some());
        let mut third = pin!(shares.take(account(1), 1));
        let is_ready = std::future::poll_fn(|cx| Poll::Ready(third.as_mut().poll(cx).is_ready()));
        assert!(!is_ready.await);
        drop(both);
        assert!(third.await.is_some());
    }

    #[tokio::test]
    async fn account_that_holds_a_permit_is_not_forgotten() {
        let shares = Shares::each(1);
        let _held = shares.take(account(0), 1).await;
        for number in 1..2 * SWEEP_AT {
            drop(shares.take(account(number as u128), 1).await);
        }
        assert_eq!(shares.semaphore(account(0)).available_permits(), 0);
        assert!(shares.accounts.lock().unwrap().len() <= SWEEP_AT + 1);
    }
}
