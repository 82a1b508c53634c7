//! The engine of background work: one loop for all kinds of work that replicas share by leases.
//!
//! A kind of work implements [`Work`]: how due items are claimed, and what is done with one. [`run`] does the rest. It
//! claims due items when the kind is woken, when the next item is due, when an item ends, and at least every
//! [`Settings::sweep`]. It starts items within the capacity, which accounts share, and ends them at shutdown. A failed
//! item is retried after a growing pause. An item that panics three times, or that was in hand when three processes
//! died, is set aside with a reason ([`Setback`]).

mod hand;
mod metrics;

use std::{sync::Arc, time::Duration};

use runtime::Periodic;
use store::{
    AsyncPgConnection,
    fair::Turns,
    work::{Claim, Claimed, Leased, Setback, table},
};
use tokio::{sync::OwnedSemaphorePermit, task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span};

use crate::Backbone;
use hand::Hand;
use metrics::Metrics;

/// Wait before the next claim if other replicas were faster.
const CONTENDED: Duration = Duration::from_millis(5);
/// Wait after a failed claim.
const RETRY: Duration = Duration::from_secs(1);
/// A claim that takes longer is followed by a pause of twice its duration, so that a backlog does not keep the database
/// busy.
const SLOW_LOOK: Duration = Duration::from_millis(50);

/// Pace and capacity of one kind of work in a replica.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Value of the label `kind` in metrics and logs, for example `compile`.
    pub kind: &'static str,
    /// Longest time between two claims.
    pub sweep: Duration,
    /// Maximum number of items in hand. One account can use half of them.
    pub capacity: usize,
    /// Maximum number of further items that were slow last time.
    pub slow: usize,
    /// Maximum number of all items, including those that have become slow.
    pub open: usize,
    /// Items that take longer count as slow, and give up their place.
    pub slow_after: Duration,
}

impl Settings {
    /// A kind with one class of items.
    pub const fn new(kind: &'static str, sweep: Duration, capacity: usize) -> Self {
        Self {
            kind,
            sweep,
            capacity,
            slow: 0,
            open: capacity,
            slow_after: Duration::MAX,
        }
    }
}

/// A kind of background work.
pub trait Work: Send + Sync + 'static {
    type Item: Send + Sync + 'static;

    fn settings(&self) -> Settings;

    /// Leases items that are due.
    fn claim(
        &self,
        conn: &mut AsyncPgConnection,
        claim: &mut Claim<'_>,
    ) -> impl Future<Output = Result<Claimed<Self::Item>, store::Error>> + Send;

    /// Works on an item, and ends its lease unless the kind uses [`table`]. After an error the item stays leased, and
    /// is tried again.
    fn run(
        &self,
        leased: &Leased<Self::Item>,
    ) -> impl Future<Output = Result<(), store::Error>> + Send;

    /// Ends the lease of an item that must not be tried again soon, and stores the reason where its owner sees it. The
    /// default only changes [`table`], which is enough for items without an owner, for those that are claimed once, and
    /// for those whose owner is shown the reason from there.
    fn set_aside(
        &self,
        conn: &mut AsyncPgConnection,
        backbone: &Backbone,
        leased: &Leased<Self::Item>,
        setback: &Setback,
    ) -> impl Future<Output = Result<(), store::Error>> + Send {
        let (kind, replica) = (self.settings().kind, backbone.replica);
        async move {
            let (reason, wait) = (&setback.reason, setback.retry_in);
            Ok(table::set_aside(conn, kind, &leased.key, replica, reason, wait).await?)
        }
    }

    /// True if the leases of this kind are in [`table`].
    fn uses_table(&self) -> bool {
        true
    }

    /// Returns when there may be new work.
    fn woken(&self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    /// Span of the work on an item.
    fn span(&self, _item: &Self::Item) -> Span {
        Span::current()
    }

    /// Name of an item in logs.
    fn name(&self, leased: &Leased<Self::Item>) -> String {
        leased.key.clone()
    }
}

/// Counts items as set aside, for a kind with a separate loop.
pub fn count_set_aside(kind: &str, items: usize) {
    Metrics::of(kind).set_aside(items);
}

/// Works until `shutdown`, then ends the items in hand.
pub fn run<W: Work>(
    work: Arc<W>,
    backbone: &Backbone,
    shutdown: &CancellationToken,
) -> impl Future<Output = ()> + use<W> {
    let driver = Driver {
        settings: work.settings(),
        metrics: Metrics::of(work.settings().kind),
        work,
        backbone: backbone.clone(),
    };
    let shutdown = shutdown.clone();
    async move { driver.run(shutdown).await }
}

struct Driver<W> {
    work: Arc<W>,
    backbone: Backbone,
    settings: Settings,
    metrics: Metrics,
}

type Ended = Result<(tokio::task::Id, Result<(), store::Error>), tokio::task::JoinError>;

impl<W: Work> Driver<W> {
    async fn run(&self, shutdown: CancellationToken) {
        let mut tasks = JoinSet::new();
        let mut hand = Hand::default();
        let mut turns = Turns::default();
        let mut rounds = Periodic::new(&shutdown);
        let task = format!("look for work of kind {}", self.settings.kind);
        while !shutdown.is_cancelled() {
            // All ended items are removed first, because a claim costs the same for one free place or many.
            while let Some(ended) = tasks.try_join_next_with_id() {
                self.end(ended, &mut hand).await;
            }
            // A database that does not answer must not delay the shutdown. If an interrupted claim has leased items,
            // these leases end with the replica.
            hand.clear();
            let mut permit = { self.backbone.suspects.clone() }.try_acquire_owned().ok();
            let may_suspect = permit.is_some();
            let claim = self.claim(&mut hand, &mut turns, may_suspect);
            let looked = shutdown.run_until_cancelled(claim);
            let Some(claimed) = looked.await else { break };
            let (wait, took) = match rounds.log_once(&task, claimed) {
                Some((claimed, took)) => {
                    for leased in claimed.items {
                        self.start(leased, &mut tasks, &mut hand, &mut permit);
                    }
                    let due = claimed.next_due.unwrap_or(self.settings.sweep);
                    let due = if claimed.is_contended { CONTENDED } else { due };
                    (due.clamp(CONTENDED, self.settings.sweep), took)
                }
                None => (RETRY, Duration::ZERO),
            };
            // Other kinds may need the permit while this one waits.
            drop(permit);
            if took > SLOW_LOOK {
                let rest = shutdown.run_until_cancelled(tokio::time::sleep(took * 2));
                if rest.await.is_none() {
                    break;
                }
            }
            tokio::select! {
                () = shutdown.cancelled() => break,
                Some(ended) = tasks.join_next_with_id() => self.end(ended, &mut hand).await,
                () = self.work.woken() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
        while let Some(ended) = tasks.join_next_with_id().await {
            self.end(ended, &mut hand).await;
        }
    }

    /// Claims items. Also returns how long the database took, without the wait for a connection.
    async fn claim(
        &self,
        hand: &mut Hand<W::Item>,
        turns: &mut Turns,
        may_suspect: bool,
    ) -> Result<(Claimed<W::Item>, Duration), store::Error> {
        let mut room = hand.room(&self.settings);
        if !may_suspect {
            room.take_suspect();
        }
        if room.is_full() || self.backbone.is_suspended() {
            return Ok((Claimed::default(), Duration::ZERO));
        }
        let mut conn = self.backbone.pool.get().await?;
        let begun = Instant::now();
        let mut claim = Claim {
            replica: self.backbone.replica,
            take_over: self.backbone.may_take_over(),
            known: &hand.known(),
            room: &mut room,
            turns,
        };
        let claimed = self.work.claim(&mut conn, &mut claim).await?;
        Ok((claimed, begun.elapsed()))
    }

    fn start(
        &self,
        leased: Leased<W::Item>,
        tasks: &mut JoinSet<Result<(), store::Error>>,
        hand: &mut Hand<W::Item>,
        permit: &mut Option<OwnedSemaphorePermit>,
    ) {
        let (work, backbone) = (Arc::clone(&self.work), self.backbone.clone());
        let (leased, settings) = (Arc::new(leased), self.settings);
        let (own, metrics) = (Arc::clone(&leased), self.metrics.clone());
        let span = self.work.span(&leased.item);
        let task = tasks.spawn(
            async move {
                let _in_hand = metrics.start();
                if let Some(setback) = Setback::after_crashes(own.crashes) {
                    return set_aside(&*work, &backbone, &metrics, &own, &setback).await;
                }
                work.run(&own).await?;
                if work.uses_table() {
                    let mut conn = backbone.pool.get().await?;
                    table::release(&mut conn, settings.kind, &[&own.key], backbone.replica).await?;
                }
                metrics.done();
                Ok(())
            }
            .instrument(span),
        );
        hand.take(task.id(), leased, permit);
    }

    /// Removes an item that has ended, or postpones it.
    async fn end(&self, ended: Ended, hand: &mut Hand<W::Item>) {
        let (id, error) = match ended {
            Ok((id, Ok(()))) => return hand.done(id),
            Ok((id, Err(error))) => (id, error),
            Err(panic) => {
                let Some(leased) = hand.of(panic.id()) else {
                    return;
                };
                self.metrics.panicked();
                let (kind, name) = (self.settings.kind, self.work.name(&leased));
                tracing::error!(kind, name, "work panicked: {panic}");
                // Kinds that use the table count panics there.
                if !self.work.uses_table() && hand.postpone_panicked(panic.id()) {
                    return;
                }
                match self.after_panic(&leased).await {
                    Ok(()) => return hand.done(panic.id()),
                    Err(error) => (panic.id(), error),
                }
            }
        };
        self.metrics.failed();
        if let Some((leased, wait)) = hand.postpone(id) {
            let (kind, name) = (self.settings.kind, self.work.name(&leased));
            let error = anyhow::Error::from(error);
            tracing::warn!(kind, name, retry_in = ?wait, "work failed: {error:#}");
        }
    }
}

impl<W: Work> Driver<W> {
    /// Counts a panic like a crash, where the kind can count it. Otherwise the item is set aside.
    async fn after_panic(&self, leased: &Leased<W::Item>) -> Result<(), store::Error> {
        if self.work.uses_table() {
            let mut conn = self.backbone.pool.get().await?;
            let (kind, replica) = (self.settings.kind, self.backbone.replica);
            return Ok(table::count_crash(&mut conn, kind, &leased.key, replica, RETRY).await?);
        }
        let (work, setback) = (&*self.work, Setback::after_panic());
        set_aside(work, &self.backbone, &self.metrics, leased, &setback).await
    }
}

async fn set_aside<W: Work>(
    work: &W,
    backbone: &Backbone,
    metrics: &Metrics,
    leased: &Leased<W::Item>,
    setback: &Setback,
) -> Result<(), store::Error> {
    let mut conn = backbone.pool.get().await?;
    work.set_aside(&mut conn, backbone, leased, setback).await?;
    metrics.set_aside(1);
    let (kind, name) = (work.settings().kind, work.name(leased));
    let Setback { reason, retry_in } = setback;
    tracing::error!(kind, name, reason, ?retry_in, "work is set aside");
    Ok(())
}
