//! Share of something that each account may hold, such as database connections.
//!
//! Of the connections it is at most half, so that no account keeps the others waiting.

use std::{
    collections::HashMap,
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use domain::Id;
use store::AsyncPgConnection;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::ApiError;

/// How long a request waits for other requests of its account: as long as for any connection.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// Idle accounts are forgotten when so many are known.
const SWEEP_AT: usize = 1_024;

pub(crate) struct Shares {
    /// Maximum number of permits of one account.
    share: usize,
    accounts: Mutex<HashMap<Id, Arc<Semaphore>>>,
}

impl Shares {
    pub(crate) fn of(connections: usize) -> Self {
        Self::each((connections / 2).max(1))
    }

    /// Creates shares of the same size for each account, also for other things than connections.
    pub(crate) fn each(share: usize) -> Self {
        Self {
            share,
            accounts: Mutex::default(),
        }
    }

    /// Waits for a permit of `account` to hold one connection.
    pub(crate) async fn take(&self, account: Id) -> Result<OwnedSemaphorePermit, ApiError> {
        self.take_many(account, 1).await
    }

    /// Waits for `count` permits of `account` at once.
    pub(crate) async fn take_many(
        &self,
        account: Id,
        count: u32,
    ) -> Result<OwnedSemaphorePermit, ApiError> {
        let semaphore = self.semaphore(account);
        match timeout(PATIENCE, semaphore.acquire_many_owned(count)).await {
            Ok(permit) => permit.map_err(|error| ApiError::Internal(error.into())),
            Err(_) => Err(ApiError::TooManyAtOnce),
        }
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

/// A connection that counts against its account's shares until it is dropped.
pub(crate) struct Held<C> {
    pub(crate) conn: C,
    pub(crate) _permits: (OwnedSemaphorePermit, Option<OwnedSemaphorePermit>),
}

impl<C: Deref<Target = AsyncPgConnection>> Deref for Held<C> {
    type Target = AsyncPgConnection;

    fn deref(&self) -> &AsyncPgConnection {
        &self.conn
    }
}

impl<C: DerefMut<Target = AsyncPgConnection>> DerefMut for Held<C> {
    fn deref_mut(&mut self) -> &mut AsyncPgConnection {
        &mut self.conn
    }
}

#[cfg(test)]
mod tests {
    use domain::Id;

    use super::{SWEEP_AT, Shares};
    use crate::ApiError;

    #[tokio::test(start_paused = true)]
    async fn an_account_holds_half_of_the_connections_at_most() {
        let shares = Shares::of(4);
        let (one, other) = (Id::generate(), Id::generate());
        let held = [
            shares.take(one).await.unwrap(),
            shares.take(one).await.unwrap(),
        ];
        assert!(matches!(
            shares.take(one).await,
            Err(ApiError::TooManyAtOnce)
        ));
        let _others = shares.take(other).await.unwrap();
        drop(held);
        assert!(shares.take(one).await.is_ok());
    }

    #[tokio::test]
    async fn an_account_that_holds_a_connection_is_not_forgotten() {
        let shares = Shares::of(1);
        let one = Id::generate();
        let _held = shares.take(one).await.unwrap();
        for _ in 0..2 * SWEEP_AT {
            drop(shares.take(Id::generate()).await);
        }
        assert_eq!(shares.semaphore(one).available_permits(), 0);
        assert!(shares.accounts.lock().unwrap().len() <= SWEEP_AT + 1);
    }
}
