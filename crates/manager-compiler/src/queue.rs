//! The queue of Managers that wait to be compiled: claimed from the database, fairly by account.
//!
//! AUTOMATIC Managers have places of their own, and MANUAL ones others: what needs no page never waits for one.
//! Both kinds are shared by account ([`store::fair`]), so however many Managers one account submits, half of the
//! places are left for the others.
//!
//! An event wakes the queue of the process that gets it. A claim that outlives its process, and a Manager whose event
//! was lost, are found by the next look of any process.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use domain::{ManagerName, manager::Mode};
use store::{
    fair::{Places, Turns},
    managers::{self, Claim, Claimed},
};
use tokio::{
    sync::Notify,
    task::{Id, JoinError, JoinSet},
};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span};

use crate::service::ManagerCompiler;

/// AUTOMATIC Managers at a time. Half of them are one account's: compiling is bound by the CPU, and more at a time
/// would only make each slower.
const AUTOMATIC: usize = 8;
/// MANUAL Managers at a time.
const MANUAL: usize = 16;
/// Between two looks at most.
const LOOK: Duration = Duration::from_secs(2);
/// Before another look, where others were quicker.
const MIN_WAIT: Duration = Duration::from_millis(5);
/// When the database does not answer.
const RETRY: Duration = Duration::from_secs(1);
/// Before a Manager is tried again that could not be compiled for a fault of ours.
const SET_ASIDE: Duration = Duration::from_secs(60);
/// Traces that are kept for Managers that wait.
const MAX_TRACES: usize = 1_000;

/// What events tell the queues.
#[derive(Default)]
pub(crate) struct Arrivals {
    automatic: Notify,
    manual: Notify,
    /// Of the events, so that a compilation is part of the trace of its submission.
    traces: Mutex<HashMap<ManagerName, Span>>,
}

impl Arrivals {
    /// Wakes the queues for a Manager, in the span of its event.
    pub(crate) fn announce(&self, name: ManagerName) {
        {
            let mut traces = self.traces.lock().unwrap_or_else(PoisonError::into_inner);
            if traces.len() >= MAX_TRACES {
                traces.clear();
            }
            traces.insert(name, Span::current());
        }
        self.automatic.notify_one();
        self.manual.notify_one();
    }

    fn of(&self, mode: Mode) -> &Notify {
        match mode {
            Mode::Automatic => &self.automatic,
            Mode::Manual => &self.manual,
        }
    }

    /// The span of a compilation, in that of the event where one came here.
    fn span(&self, claim: &Claim) -> Span {
        let event = {
            let mut traces = self.traces.lock().unwrap_or_else(PoisonError::into_inner);
            traces.remove(&claim.manager)
        };
        let parent = event.as_ref().and_then(Span::id);
        tracing::info_span!(parent: parent, "compile manager", manager.name = %claim.manager, generation = claim.generation)
    }
}

/// What a queue has in hand, and what it leaves alone for a while.
#[derive(Default)]
struct InHand {
    open: HashMap<Id, Claim>,
    set_aside: Vec<(Claim, Instant)>,
    turns: Turns,
}

type Compiled = Result<(Id, Result<(), store::Error>), JoinError>;

impl ManagerCompiler {
    /// Compiles Managers of one mode until `shutdown`, then finishes what it has begun.
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
    /// What is not to be claimed now.
    fn known(&mut self, now: Instant) -> Vec<Claim> {
        self.set_aside.retain(|(_, until)| *until > now);
        let set_aside = self.set_aside.iter().map(|(claim, _)| *claim);
        self.open.values().copied().chain(set_aside).collect()
    }

    /// Forgets a compilation. One that failed for a fault of ours is tried again: soon where that may have passed, and
    /// else so late that it holds up no other.
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
