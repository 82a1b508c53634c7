//! Places for work that reads large bodies.
//!
//! A body takes memory until its work is done: while it is read, and while it is parsed, matched and stored. So work that
//! reads more than [`SMALL_BYTES`] of a body takes a place before it reads on, and keeps the place until it ends. The
//! number of places bounds the memory, however slowly the servers send. Outside of [`in_turn`] there is no such bound.
//!
//! While work waits for a place, its time limits stand still ([`Deadline`]): its server is not to blame.

use std::{
    any::Any,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::future::{BoxFuture, FutureExt as _};
use tokio::{
    sync::OnceCell,
    time::{Instant, error::Elapsed},
};

/// Bodies of this size need no place: most pages and feeds.
pub const SMALL_BYTES: usize = 256 * 1_024;
/// Shortest time between two looks at the deadline of work that waits.
const LOOK: Duration = Duration::from_millis(50);

type Place = Box<dyn Any + Send + Sync>;

tokio::task_local! {
    static TURN: Arc<Turn>;
}

/// A piece of work, and its place if it has one.
struct Turn {
    gate: Arc<Gate>,
    place: OnceCell<Place>,
}

struct Gate {
    take: Box<dyn Fn() -> BoxFuture<'static, Place> + Send + Sync>,
    waits: Mutex<Waits>,
}

/// Time without any wait for a place.
#[derive(Default)]
struct Waits {
    count: u32,
    since: Option<Instant>,
    total: Duration,
}

/// Runs a piece of work, which takes one place by `take` for all its large bodies.
pub fn in_turn<W, T>(
    take: impl Fn() -> T + Send + Sync + 'static,
    work: W,
) -> impl Future<Output = W::Output>
where
    W: Future,
    T: Future<Output: Send + Sync + 'static> + Send + 'static,
{
    let take = move || take().map(|place| Box::new(place) as Place).boxed();
    let gate = Arc::new(Gate {
        take: Box::new(take),
        waits: Mutex::default(),
    });
    within(gate, work)
}

/// Runs a part of the work in [`in_turn`] that takes and returns another place.
pub async fn separately<W: Future>(work: W) -> W::Output {
    match TURN.try_with(|turn| Arc::clone(&turn.gate)) {
        Ok(gate) => within(gate, work).await,
        Err(_) => work.await,
    }
}

fn within<W: Future>(gate: Arc<Gate>, work: W) -> impl Future<Output = W::Output> {
    let place = OnceCell::new();
    // Boxed, because the work of a poll is a large future.
    TURN.scope(Arc::new(Turn { gate, place }), Box::pin(work))
}

/// Runs a part of the work that others with a place may wait for: it takes none.
pub fn without_place<W: Future>(work: W) -> impl Future<Output = W::Output> {
    in_turn(|| std::future::ready(()), work)
}

/// Waits for the place of the current work, unless it has one or needs none. For bodies that [`Client`](crate::Client)
/// does not read, and for results that take as much memory.
pub async fn take_place() {
    let Ok(turn) = TURN.try_with(Arc::clone) else {
        return;
    };
    if !turn.place.initialized() {
        let _waiting = Waiting::begin(&turn.gate);
        // Reads of the same work must not wait for each other's places.
        turn.place.get_or_init(|| (turn.gate.take)()).await;
    }
}

/// Returns how long the current work has waited for its place.
#[must_use]
pub fn waited() -> Duration {
    let waited = TURN.try_with(|turn| turn.gate.waits().waited());
    waited.unwrap_or_default()
}

/// Returns a share in the current work's place. The place is not given back while a share exists: what works for it on
/// another thread goes on if the current work is cut.
#[must_use]
pub fn share_place() -> impl Send + 'static {
    TURN.try_with(Arc::clone).ok()
}

/// The current work waits while this exists.
struct Waiting<'a>(&'a Gate);

impl<'a> Waiting<'a> {
    fn begin(gate: &'a Gate) -> Self {
        let mut waits = gate.waits();
        waits.count += 1;
        waits.since.get_or_insert_with(Instant::now);
        drop(waits);
        Self(gate)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut waits = self.0.waits();
        waits.count -= 1;
        if waits.count == 0 {
            let waited = waits.since.take().map(|since| since.elapsed());
            waits.total += waited.unwrap_or_default();
        }
    }
}

impl Gate {
    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waits {
    fn waited(&self) -> Duration {
        let current = self.since.map(|since| since.elapsed());
        self.total + current.unwrap_or_default()
    }
}

/// A time limit that stands still while the work waits for a place.
pub struct Deadline {
    gate: Option<Arc<Gate>>,
    /// End if the work does not wait any longer, and what it had waited by the beginning.
    end: Instant,
    before: Duration,
}

impl Deadline {
    /// Sets a limit that begins now, for the current work.
    pub fn after(limit: Duration) -> Self {
        let gate = TURN.try_with(|turn| Arc::clone(&turn.gate)).ok();
        let before = gate.as_ref().map(|gate| gate.waits().waited());
        Self {
            gate,
            end: Instant::now() + limit,
            before: before.unwrap_or_default(),
        }
    }

    /// # Errors
    /// If the time is over first.
    pub async fn cut<W: Future>(&self, work: W) -> Result<W::Output, Elapsed> {
        let mut work = pin!(work);
        loop {
            let (end, is_waiting) = self.end();
            let look = if is_waiting { LOOK } else { Duration::ZERO };
            let cut = tokio::time::timeout_at(end.max(Instant::now() + look), &mut work).await;
            if cut.is_ok() || self.end().0 <= Instant::now() {
                return cut;
            }
        }
    }

    fn end(&self) -> (Instant, bool) {
        let Some(gate) = &self.gate else {
            return (self.end, false);
        };
        let waits = gate.waits();
        let waited = waits.waited().saturating_sub(self.before);
        (self.end + waited, waits.count > 0)
    }
}

/// Same as [`tokio::time::timeout`], but does not count the time that the work waits for a place.
///
/// # Errors
/// If the time is over first.
pub async fn timeout<W: Future>(limit: Duration, work: W) -> Result<W::Output, Elapsed> {
    Deadline::after(limit).cut(work).await
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn work_has_one_place_until_it_ends() {
        let places = Arc::new(Semaphore::new(2));
        let take = {
            let places = Arc::clone(&places);
            move || Arc::clone(&places).acquire_owned()
        };
        let work = async {
            let held = Arc::clone(&places).acquire_many_owned(2).await;
            let mut both = pin!(futures::future::join(take_place(), take_place()));
            assert!(futures::poll!(&mut both).is_pending());
            drop(held);
            both.await;
            assert_eq!(places.available_permits(), 1);
            separately(async {
                take_place().await;
                assert_eq!(places.available_permits(), 0);
            })
            .await;
            assert_eq!(places.available_permits(), 1);
        };
        in_turn(take, work).await;
        assert_eq!(places.available_permits(), 2);
        take_place().await;
    }

    #[tokio::test]
    async fn work_that_others_wait_for_takes_no_place() {
        let places = Arc::new(Semaphore::new(0));
        let take = move || Arc::clone(&places).acquire_owned();
        let work = in_turn(take, without_place(take_place()));
        assert!(work.now_or_never().is_some());
    }

    #[tokio::test]
    async fn place_outlives_its_work_while_it_is_shared() {
        let places = Arc::new(Semaphore::new(1));
        let take = {
            let places = Arc::clone(&places);
            move || Arc::clone(&places).acquire_owned()
        };
        let work = async {
            take_place().await;
            share_place()
        };
        let share = in_turn(take, work).await;
        assert_eq!(places.available_permits(), 0);
        drop(share);
        assert_eq!(places.available_permits(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn waits_for_a_place_do_not_count_as_time_of_the_work() {
        const LIMIT: Duration = Duration::from_secs(8);
        let takes = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&takes);
        let take = move || {
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(LIMIT * 10)
        };
        let work = |after_wait| async move {
            tokio::time::sleep(LIMIT / 2).await;
            take_place().await;
            tokio::time::sleep(after_wait).await;
        };
        let quick = timeout(LIMIT, work(LIMIT / 4));
        assert!(in_turn(take.clone(), quick).await.is_ok());
        let slow = timeout(LIMIT, work(LIMIT));
        assert!(in_turn(take, slow).await.is_err());
        assert_eq!(takes.load(Ordering::SeqCst), 2);
        assert!(timeout(LIMIT, std::future::pending::<()>()).await.is_err());
    }
}
