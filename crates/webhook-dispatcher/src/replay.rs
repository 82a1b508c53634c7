//! Runs replays, more slowly than new deliveries: in small batches with pauses, and not while the Connection has
//! enough to do.
//!
//! A batch only reopens deliveries; they are claimed and sent like all others, in the lane of their Connection. So
//! a replay takes no extra capacity, and each batch stores its progress in the database: if a replica dies, any
//! other continues.
//!
//! While Scans arrive, new deliveries must not wait behind the fifty requests of a batch, so batches are smaller
//! then.

use std::{sync::Arc, time::Duration};

use backbone::work::{Settings, Work};
use store::{
    AsyncConnection, AsyncPgConnection,
    fair::Round,
    replays::{self, Advanced, Pace},
    work::{Claim, Claimed, Leased},
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

/// The turns of all replays. Each is one transaction that locks its replay, so they need no lease.
pub(crate) struct Replays {
    dispatcher: Arc<Dispatcher>,
    round: Mutex<Round>,
    shutdown: CancellationToken,
}

impl Replays {
    pub(crate) fn new(dispatcher: &Arc<Dispatcher>, shutdown: &CancellationToken) -> Self {
        Self {
            dispatcher: Arc::clone(dispatcher),
            round: Mutex::default(),
            shutdown: shutdown.clone(),
        }
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
                .transaction(async |conn| replays::advance(conn, pace, round).await)
                .await?;
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
            // At its own pace, not at the next check, which comes once a second.
            dispatcher.signals.note([replay.connection_name()]);
        }
        Ok(())
    }

    fn uses_table(&self) -> bool {
        false
    }
}
