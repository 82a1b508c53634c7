//! Runs replays, more slowly than new deliveries: in small batches with pauses, and not while the Connection has
//! enough to do.
//!
//! A batch only reopens deliveries; they are claimed and sent like all others, in the lane of their Connection. So
//! a replay takes no extra capacity, and each batch stores its progress in the database: if a replica dies, any
//! other continues.
//!
//! While Scans arrive, new deliveries must not wait behind the fifty requests of a batch, so batches are smaller
//! then.

use std::{
    sync::{self, Arc, MutexGuard, PoisonError},
    time::Duration,
};

use backbone::{
    Backbone,
    work::{Settings, Work},
};
use domain::ReplayName;
use store::{
    AsyncConnection, AsyncPgConnection,
    fair::Round,
    replays::{self, Advanced, Pace},
    work::{Claim, Claimed, Leased, Setback},
};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{Dispatcher, metrics};

/// At most 500 deliveries a second for the replays of an account, over all replicas.
const PACE: Pace = Pace {
    batch: 50,
    backlog: 24,
    pause: PAUSE,
    count_timeout: Duration::from_secs(5),
};
/// Pace while Scans arrive: at most 100 a second. Each replica only counts its own Scans.
const YIELDING: Pace = Pace { batch: 10, ..PACE };
/// Time after the last Scan until none is expected.
const LULL: Duration = Duration::from_secs(1);
/// Interval between two batches of an account.
const PAUSE: Duration = Duration::from_millis(100);
/// Interval of checks for new replays.
const LOOK: Duration = Duration::from_millis(200);

/// Work on all replays. A turn is one transaction that locks its replay, so it needs no lease.
pub(crate) struct Replays {
    dispatcher: Arc<Dispatcher>,
    round: Mutex<Round>,
    /// The replay that has its turn, or whose turn panicked or failed.
    current: sync::Mutex<Option<ReplayName>>,
    shutdown: CancellationToken,
}

impl Replays {
    pub(crate) fn new(dispatcher: &Arc<Dispatcher>, shutdown: &CancellationToken) -> Self {
        Self {
            dispatcher: Arc::clone(dispatcher),
            round: Mutex::default(),
            current: sync::Mutex::default(),
            shutdown: shutdown.clone(),
        }
    }

    fn current(&self) -> MutexGuard<'_, Option<ReplayName>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, replay: ReplayName) {
        *self.current() = Some(replay);
        #[cfg(test)]
        tests::stumble(replay);
    }
}

impl Work for Replays {
    type Item = ();

    fn settings(&self) -> Settings {
        Settings::new("replay", LOOK, 1)
    }

    async fn claim(
        &self,
        conn: &mut AsyncPgConnection,
        claim: &mut Claim<'_>,
    ) -> Result<Claimed<()>, store::Error> {
        let next_due = replays::next_due(conn).await?;
        let rests = !claim.known.is_empty();
        let is_due = next_due == Some(Duration::ZERO) && !rests;
        Ok(Claimed {
            items: is_due
                .then(|| Leased::unleased("replays", ()))
                .into_iter()
                .collect(),
            next_due: next_due.filter(|_| !rests),
            ..Claimed::default()
        })
    }

    /// Gives due replays their turns, which accounts take one after the other.
    async fn run(&self, _leased: &Leased<()>) -> Result<(), store::Error> {
        let dispatcher = &self.dispatcher;
        let mut round = self.round.lock().await;
        let round = &mut *round;
        let mut conn = dispatcher.backbone.pool.get().await?;
        let quiet = dispatcher
            .signals
            .since_scan()
            .is_none_or(|since| since > LULL);
        let pace = if quiet { PACE } else { YIELDING };
        while !self.shutdown.is_cancelled() {
            let turn = conn
                .transaction(async |conn| {
                    replays::advance(conn, pace, round, |replay| self.begin(replay)).await
                })
                .await?;
            *self.current() = None;
            let Some((replay, advanced)) = turn else {
                break;
            };
            match advanced {
                Advanced::Reopened(count) => {
                    metrics::REPLAYED.inc_by(count.try_into().unwrap_or(0));
                }
                Advanced::Done => {
                    tracing::info!(replay.name = %replay, "a replay has reopened all its deliveries");
                }
                Advanced::Counted => {}
                Advanced::Waiting => continue,
            }
            // The reopened deliveries are claimed now, at the pace of the replay: the next check comes only once a
            // second.
            dispatcher
                .signals
                .add_connections([replay.connection_name()]);
        }
        Ok(())
    }

    /// Postpones the replay that panicked, so that the others go on. Its owner sees no progress: a Replay has no field for
    /// the reason, which is logged.
    async fn set_aside(
        &self,
        conn: &mut AsyncPgConnection,
        _backbone: &Backbone,
        _leased: &Leased<()>,
        setback: &Setback,
    ) -> Result<(), store::Error> {
        let replay = *self.current();
        if let Some(replay) = replay {
            replays::postpone(conn, replay, setback.retry_in).await?;
        }
        Ok(())
    }

    fn uses_table(&self) -> bool {
        false
    }

    fn name(&self, leased: &Leased<()>) -> String {
        let replay = *self.current();
        replay.map_or_else(|| leased.key.clone(), |replay| replay.to_string())
    }
}

#[cfg(test)]
mod tests {
    use domain::{Timestamp, replay::CreateReplay};
    use test_support::{Fixture, Replica, TestDatabase, eventually};

    use super::*;

    static PANICKING: sync::Mutex<Option<ReplayName>> = sync::Mutex::new(None);

    /// Panics for the replay of a test: no real one is known that panics.
    pub(super) fn stumble(replay: ReplayName) {
        let panicking = *PANICKING.lock().unwrap();
        assert_ne!(panicking, Some(replay), "as asked");
    }

    #[tokio::test]
    async fn replay_that_panics_three_times_is_set_aside_and_the_others_go_on() {
        let database = TestDatabase::create().await;
        let mut conn = database.connect().await;
        let fixture = Fixture::create(&mut conn).await;
        let draft = CreateReplay {
            start_time: Timestamp::now().minus(Duration::from_secs(60)),
            end_time: None,
            states: None,
        };
        let mut names = Vec::new();
        for _ in 0..2 {
            let url = "https://a.example/";
            let connection = fixture.connection(&mut conn, url).await;
            let replay = conn
                .transaction(async |conn| replays::insert(conn, connection, &draft).await)
                .await
                .unwrap();
            names.push(replay.unwrap().name);
        }
        *PANICKING.lock().unwrap() = Some(names[0]);
        let config = test_support::config(&database, store::roles::Service::Dispatcher);
        let bus = Arc::new(bus::InProcess::new()) as Arc<dyn bus::Bus>;
        let replica = Replica::of("webhook-dispatcher", &config, &bus, crate::run);
        let [panicking, other] = [0, 1].map(|at: usize| names[at].replay.to_uuid());
        let aside = format!(
            "replays WHERE id = '{panicking}' AND state = 'RUNNING' \
             AND next_batch_time > now() + interval '1 minute'"
        );
        eventually("it is set aside", async || {
            database.count(&aside).await == 1
        })
        .await;
        let done = format!("replays WHERE id = '{other}' AND state = 'DONE'");
        eventually("the other is done", async || {
            database.count(&done).await == 1
        })
        .await;
        replica.stop().await;
    }
}
