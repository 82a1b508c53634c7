//! The items that a replica has in hand or has postponed.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use store::work::{Leased, MAX_CRASHES, Room};
use tokio::{sync::OwnedSemaphorePermit, task::Id};

use super::Settings;

const FIRST_RETRY: Duration = Duration::from_secs(2);
const LONGEST_RETRY: Duration = Duration::from_secs(60);
/// Time after which a suspect that still runs is cleared: an item that crashes processes does so sooner. Otherwise a
/// stream, which never ends, would keep the permit.
const SUSPECT_FOR: Duration = Duration::from_secs(20);

pub(super) struct Hand<T> {
    open: HashMap<Id, Open<T>>,
    postponed: HashMap<String, Postponed>,
}

struct Open<T> {
    leased: Arc<Leased<T>>,
    since: Instant,
    /// The process's only permit for suspects.
    permit: Option<OwnedSemaphorePermit>,
}

/// A failed item. It stays leased: another replica would fail as well.
struct Postponed {
    until: Instant,
    wait: Duration,
    /// Number of panics since the item was done.
    panics: u32,
}

impl<T> Default for Hand<T> {
    fn default() -> Self {
        Self {
            open: HashMap::new(),
            postponed: HashMap::new(),
        }
    }
}

impl<T> Hand<T> {
    /// Takes an item in hand. A suspect takes `permit`.
    pub(super) fn take(
        &mut self,
        task: Id,
        leased: Arc<Leased<T>>,
        permit: &mut Option<OwnedSemaphorePermit>,
    ) {
        let since = Instant::now();
        let permit = permit.take_if(|_| leased.is_suspect);
        let open = Open {
            leased,
            since,
            permit,
        };
        self.open.insert(task, open);
    }

    /// Gives back the permit of a suspect that did not end the process.
    pub(super) fn clear(&mut self) {
        for open in self.open.values_mut() {
            open.permit.take_if(|_| open.since.elapsed() >= SUSPECT_FOR);
        }
    }

    pub(super) fn of(&self, task: Id) -> Option<Arc<Leased<T>>> {
        self.open.get(&task).map(|open| Arc::clone(&open.leased))
    }

    pub(super) fn done(&mut self, task: Id) {
        if let Some(Open { leased, .. }) = self.open.remove(&task) {
            self.postponed.remove(&leased.key);
        }
    }

    /// Postpones a failed item, for longer after each failure in a row.
    pub(super) fn postpone(&mut self, task: Id) -> Option<(Arc<Leased<T>>, Duration)> {
        let Open { leased, .. } = self.open.remove(&task)?;
        let last = self.postponed.get(&leased.key);
        let wait = last.map_or(FIRST_RETRY, |last| (last.wait * 2).min(LONGEST_RETRY));
        let next = Postponed {
            until: Instant::now() + wait,
            wait,
            panics: last.map_or(0, |last| last.panics),
        };
        self.postponed.insert(leased.key.clone(), next);
        Some((leased, wait))
    }

    /// Postpones an item that panicked like a failed one. Returns false, and leaves it in hand, if it has panicked as
    /// often as an item may crash processes.
    pub(super) fn postpone_panicked(&mut self, task: Id) -> bool {
        let Some(leased) = self.of(task) else {
            return false;
        };
        let last = self.postponed.get(&leased.key);
        let panics = last.map_or(0, |last| last.panics) + 1;
        if panics >= MAX_CRASHES {
            return false;
        }
        self.postpone(task);
        if let Some(next) = self.postponed.get_mut(&leased.key) {
            next.panics = panics;
        }
        true
    }

    /// Keys of the items that must not be claimed now.
    pub(super) fn known(&mut self) -> Vec<String> {
        let now = Instant::now();
        // An item that has not been claimed again for so long is gone.
        { &mut self.postponed }.retain(|_, one| now < one.until + LONGEST_RETRY);
        let waiting = { self.postponed.iter() }.filter(|(_, one)| now < one.until);
        let open = self.open.values().map(|open| open.leased.key.clone());
        open.chain(waiting.map(|(key, _)| key.clone())).collect()
    }

    /// Capacity that is left.
    pub(super) fn room(&self, settings: &Settings) -> Room {
        let mut room = Room::new(settings.capacity, settings.slow, settings.open);
        for Open { leased, since, .. } in self.open.values() {
            if leased.is_slow || since.elapsed() < settings.slow_after {
                room.take(leased.account, leased.is_slow);
            } else {
                room.take_overdue(leased.account);
            }
        }
        room
    }
}

#[cfg(test)]
mod tests {
    use domain::Id as AccountId;
    use tokio::{sync::Semaphore, task::JoinSet};

    use super::*;

    const SETTINGS: Settings = Settings {
        kind: "test",
        sweep: Duration::from_secs(1),
        capacity: 12,
        slow: 8,
        open: 128,
        slow_after: Duration::from_secs(5),
    };

    fn account(number: u128) -> AccountId {
        AccountId::from_uuid(uuid::Uuid::from_u128(number))
    }

    fn item(key: &str, account: AccountId, is_slow: bool) -> Leased<()> {
        Leased {
            key: key.to_owned(),
            account,
            is_slow,
            crashes: 0,
            is_suspect: false,
            item: (),
        }
    }

    async fn with(items: Vec<Leased<()>>, age: Duration) -> (Hand<()>, Vec<Id>) {
        let mut tasks = JoinSet::new();
        let (mut hand, mut ids) = (Hand::default(), Vec::new());
        for leased in items {
            let id = tasks.spawn(async {}).id();
            let since = Instant::now().checked_sub(age).unwrap();
            let leased = Arc::new(leased);
            let permit = None;
            let open = Open {
                leased,
                since,
                permit,
            };
            hand.open.insert(id, open);
            ids.push(id);
        }
        (hand, ids)
    }

    /// Returns how many more quick and slow items of `account` may be started.
    fn room_for(hand: &Hand<()>, account: AccountId) -> (usize, usize) {
        let more = |slow| {
            let mut room = hand.room(&SETTINGS);
            let mut count = 0;
            while room.admits(account, slow) {
                room.take(account, slow);
                count += 1;
            }
            count
        };
        (more(false), more(true))
    }

    #[tokio::test]
    async fn slow_items_leave_half_of_the_places_to_others() {
        let items = |count, is_slow| {
            (0..count).map(move |n| item(&format!("{is_slow}{n}"), account(1), is_slow))
        };
        let (hand, _) = with(
            items(6, false).chain(items(4, true)).collect(),
            Duration::ZERO,
        )
        .await;
        assert_eq!(room_for(&hand, account(1)), (0, 0));
        assert_eq!(room_for(&hand, account(2)), (3, 2));
        // Items that became slow give up their place.
        let (hand, _) = with(items(60, false).collect(), Duration::from_secs(10)).await;
        assert_eq!(room_for(&hand, account(1)).0, 4);
    }

    #[tokio::test]
    async fn only_a_suspect_takes_the_permit_and_gives_it_back_in_time() {
        let (mut hand, ids) = with(vec![item("a", account(1), false)], Duration::ZERO).await;
        let permits = Arc::new(Semaphore::new(1));
        for is_suspect in [false, true] {
            let mut permit = Arc::clone(&permits).try_acquire_owned().ok();
            let leased = Leased {
                crashes: 2,
                is_suspect,
                ..item("a", account(1), false)
            };
            hand.take(ids[0], Arc::new(leased), &mut permit);
            drop(permit);
            hand.clear();
            assert_eq!(permits.available_permits(), usize::from(!is_suspect));
        }
        let began = Instant::now().checked_sub(SUSPECT_FOR).unwrap();
        hand.open.get_mut(&ids[0]).unwrap().since = began;
        hand.clear();
        assert_eq!(permits.available_permits(), 1);
    }

    #[tokio::test]
    async fn failed_items_wait_longer_each_time() {
        let (mut hand, ids) = with(vec![item("a", account(1), false)], Duration::ZERO).await;
        let (leased, wait) = hand.postpone(ids[0]).unwrap();
        assert_eq!(wait, FIRST_RETRY);
        assert_eq!(hand.known(), ["a"]);
        hand.take(ids[0], leased, &mut None);
        assert_eq!(hand.postpone(ids[0]).unwrap().1, FIRST_RETRY * 2);
        let (mut other, ids) = with(vec![item("a", account(1), false)], Duration::ZERO).await;
        other.done(ids[0]);
        assert!(other.known().is_empty());
    }
}
