//! Permits for work that needs much of a process's resources, such as memory.

use std::sync::Arc;

use domain::Id;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::shares::Shares;

/// A number of permits. One account may hold a third of them.
pub struct Places {
    all: Arc<Semaphore>,
    accounts: Shares,
}

/// A permit, until it is dropped.
pub struct Place {
    _of_account: Option<OwnedSemaphorePermit>,
    _of_all: Option<OwnedSemaphorePermit>,
}

impl Places {
    pub fn new(places: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(places)),
            accounts: Shares::each((places / 3).max(1)),
        }
    }

    /// Waits for a permit. Requests of one account first wait for the account's share, so that they do not fill the
    /// common queue.
    pub async fn take(self: Arc<Self>, account: Id) -> Place {
        let of_account = self.accounts.take(account, 1).await;
        // The semaphore is never closed.
        let of_all = Arc::clone(&self.all).acquire_owned().await.ok();
        Place {
            _of_account: of_account,
            _of_all: of_all,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::{FutureExt as _, poll};

    use super::*;

    fn account(number: u128) -> Id {
        Id::from_uuid(uuid::Uuid::from_u128(number))
    }

    #[tokio::test]
    async fn account_leaves_two_thirds_of_the_places_to_others() {
        let places = Arc::new(Places::new(6));
        let take = |number| Arc::clone(&places).take(account(number));
        let first = take(1).await;
        let _second = take(1).await;
        let mut third = pin!(take(1));
        assert!(poll!(&mut third).is_pending());
        let others: Vec<Place> = futures::future::join_all([take(2), take(2), take(3), take(3)])
            .now_or_never()
            .unwrap();
        drop(first);
        let _third = third.now_or_never().unwrap();
        let mut more = pin!(take(4));
        assert!(poll!(&mut more).is_pending());
        drop(others);
        assert!(poll!(&mut more).is_ready());
    }
}
