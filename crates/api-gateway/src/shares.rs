//! Limits how much of a resource, such as database connections, each account may hold.
//!
//! An account may hold at most half of the connections, so that it does not keep the others waiting.

use std::{
    ops::{Deref, DerefMut},
    time::Duration,
};

use domain::Id;
use store::AsyncPgConnection;
use tokio::{sync::OwnedSemaphorePermit, time::timeout};

use crate::ApiError;

/// How long a request waits for other requests of its account: as long as for any connection.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Permits for each account, which requests wait for.
pub(crate) struct Shares(backbone::shares::Shares);

impl Shares {
    pub(crate) fn of(connections: usize) -> Self {
        Self(backbone::shares::Shares::of(connections))
    }

    /// Creates shares of the same size for each account, also for other things than connections.
    pub(crate) fn each(share: usize) -> Self {
        Self(backbone::shares::Shares::each(share))
    }

    /// Waits for a permit of `account` to hold one connection.
    pub(crate) async fn take(&self, account: Id) -> Result<OwnedSemaphorePermit, ApiError> {
        self.take_many(account, 1).await
    }

    /// Waits for `count` permits of `account`, at most its share, for any time.
    pub(crate) async fn wait_for(&self, account: Id, count: u32) -> Option<OwnedSemaphorePermit> {
        self.0.take(account, count).await
    }

    /// Waits for `count` permits of `account` at once.
    pub(crate) async fn take_many(
        &self,
        account: Id,
        count: u32,
    ) -> Result<OwnedSemaphorePermit, ApiError> {
        let taken = timeout(PATIENCE, self.wait_for(account, count)).await;
        taken.ok().flatten().ok_or(ApiError::TooManyAtOnce)
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

    use super::Shares;
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
}
