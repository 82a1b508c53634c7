//! The deliveries that this process holds.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use domain::Id;

/// All marked deliveries.
#[derive(Clone, Default)]
pub(crate) struct Hand(Arc<Mutex<HashSet<Id>>>);

/// Marks a delivery as held by this process: from its lease until its result is written, or until an attempt ends
/// without one. Marked deliveries are never freed, so nothing may stay marked for ever.
pub(crate) struct InHand {
    delivery: Id,
    all: Hand,
}

impl Hand {
    pub(crate) fn take(&self, delivery: Id) -> InHand {
        self.lock().insert(delivery);
        InHand {
            delivery,
            all: self.clone(),
        }
    }

    pub(crate) fn deliveries(&self) -> Vec<Id> {
        self.lock().iter().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Id>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.all.lock().remove(&self.delivery);
    }
}

#[cfg(test)]
mod tests {
    use domain::Id;

    use super::Hand;

    #[tokio::test]
    async fn deliveries_are_released_after_a_panic() {
        let hand = Hand::default();
        let delivery = Id::generate();
        let in_hand = hand.take(delivery);
        assert_eq!(hand.deliveries(), [delivery]);
        let attempt = tokio::spawn(async move {
            let _in_hand = in_hand;
            panic!("an attempt panics");
        });
        assert!(attempt.await.is_err());
        assert!(hand.deliveries().is_empty());
    }
}
