//! The queue of Managers that wait for compilation, claimed from the database and fair to all accounts.
//!
//! AUTOMATIC and MANUAL Managers have separate capacity: what needs no page never waits for one that does. Both kinds
//! are shared between accounts ([`store::fair`]): even if one account submits many Managers, half of the capacity is
//! left for the others.
//!
//! An event wakes the queue of the process that receives it. If a process dies with a claim, or a Manager's event is
//! lost, the next poll of any process finds the Manager.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use domain::manager::Mode;
use store::{
    fair::{Places, Turns},
    managers::{self, Claim, Claimed},
};
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::service::ManagerCompiler;

/// AUTOMATIC Managers compiled concurrently. One account can use half of the capacity. Compiling is CPU-bound, so more
/// concurrency only makes each slower.
const AUTOMATIC: usize = 8;
/// MANUAL Managers compiled concurrently.
const MANUAL: usize = 16;
/// Longest time between two polls.
const LOOK: Duration = Duration::from_secs(2);
/// Delay before the next poll if other processes were faster.
const MIN_WAIT: Duration = Duration::from_millis(5);
/// Retry delay when the database does not answer.
const RETRY: Duration = Duration::from_secs(1);
/// Delay before a Manager is retried that could not be compiled because of an internal error.
const SET_ASIDE: Duration = Duration::from_secs(60);

/// Claims in progress, and claims to leave alone for a while.
#[derive(Default)]
struct InHand {
    open: HashMap<Id, Claim>,
    set_aside: Vec<(Claim, Instant)>,
    turns: Turns,
}

type Compiled = Result<(Id, Result<(), store::Error>), JoinError>;

impl ManagerCompiler {
    /// Compiles Managers of one mode until `shutdown`, then finishes the compilations in progress.
    pub(crate) async fn work_off(self: &Arc<Self>, mode: Mode, shutdown: &CancellationToken) {
        let mut tasks = JoinSet::new();
        let mut in_hand = InHand::default();
        let mut failing = false;
        while !shutdown.is_cancelled() {
            let wait = match self.claim(mode, &mut in_hand).await {
                Ok(claimed) => {
                    failing = false;
                    for claim in claimed.claims {
                        let (own, span) = (Arc::clone(self), self.arrivals.span(&claim));
                        let compile = async move { own.compile(&claim).await };
                        let task = tasks.spawn(compile.instrument(span));
                        in_hand.open.insert(task.id(), claim);
                    }
                    if claimed.is_contended { MIN_WAIT } else { LOOK }
                }
                Err(error) => {
                    if !std::mem::replace(&mut failing, true) {
                        let error = anyhow::Error::from(error);
                        tracing::warn!("cannot look for Managers to compile: {error:#}");
                    }
                    RETRY
                }
            };
            tokio::select! {
                () = shutdown.cancelled() => break,
                Some(compiled) = tasks.join_next_with_id() => {
                    in_hand.end(compiled);
                    while let Some(compiled) = tasks.try_join_next_with_id() {
                        in_hand.end(compiled);
                    }
                }
                () = self.arrivals.of(mode).notified() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
        while let Some(compiled) = tasks.join_next_with_id().await {
            in_hand.end(compiled);
        }
    }

    async fn claim(&self, mode: Mode, in_hand: &mut InHand) -> Result<Claimed, store::Error> {
        let mut places = Places::new(match mode {
            Mode::Automatic => AUTOMATIC,
            Mode::Manual => MANUAL,
        });
        for claim in in_hand.open.values() {
            places.take(claim.account);
        }
        if places.free() == 0 {
            return Ok(Claimed::default());
        }
        let known = in_hand.known(Instant::now());
        let (replica, take_over) = (self.backbone.replica, self.backbone.may_take_over());
        let turns = &mut in_hand.turns;
        let mut conn = self.backbone.pool.get().await?;
        let claimed = managers::claim(
            &mut conn,
            mode,
            replica,
            &known,
            take_over,
            &mut places,
            turns,
        );
        Ok(claimed.await?)
    }
}

impl InHand {
    /// Returns claims that must not be claimed now.
    fn known(&mut self, now: Instant) -> Vec<Claim> {
        self.set_aside.retain(|(_, until)| *until > now);
        let set_aside = self.set_aside.iter().map(|(claim, _)| *claim);
        self.open.values().copied().chain(set_aside).collect()
    }

    /// Removes a compilation. If it failed because of an internal error, it is retried: soon if the cause may have
    /// passed, otherwise so late that it does not delay others.
    fn end(&mut self, compiled: Compiled) {
        let (id, error, wait) = match compiled {
            Ok((id, Ok(()))) => {
                self.open.remove(&id);
                return;
            }
            Ok((id, Err(error @ store::Error::Json(_)))) => {
                (id, anyhow::Error::from(error), SET_ASIDE)
            }
            Ok((id, Err(error))) => (id, anyhow::Error::from(error), LOOK),
            Err(panic) => (panic.id(), anyhow::Error::from(panic), SET_ASIDE),
        };
        let Some(claim) = self.open.remove(&id) else {
            return;
        };
        let name = claim.manager;
        if wait == SET_ASIDE {
            tracing::error!(manager.name = %name, "cannot be compiled: {error:#}");
        } else {
            tracing::warn!(manager.name = %name, "cannot be compiled now: {error:#}");
        }
        self.set_aside.push((claim, Instant::now() + wait));
    }
}
