//! The dispatcher: delivers each Scan to each Connection of its Manager, and service events to those that receive them.
//!
//! [`fan_out`] creates the deliveries of Scans, and those that may be sent now are sent directly from memory;
//! [`service_events`] creates those of service events.
//! The others wait in the database, where [`claim`] finds them when they are due. [`send`] makes one attempt,
//! [`schedule`] decides the delivery's next state, and [`record`] writes results, many at a time. [`lanes`] limit
//! open requests, per Connection and in total. [`mail`] sends what is e-mail, and [`digest`] makes one
//! delivery of many Scans for it. [`trial_delivery`] and [`replay`] run
//! what people request in addition. [`retention`] drops old data.
//!
//! Delivery is at least once. A delivery is leased in the database while its request is open. If a dispatcher dies,
//! its leases are freed, and its open requests are repeated with the same Scan name, which receivers use to
//! deduplicate.

mod answers;
mod breaker;
mod claim;
mod digest;
mod fan_out;
mod format;
mod in_hand;
mod lanes;
mod mail;
mod metrics;
mod planner_statistics;
mod rate;
mod record;
mod refused;
mod replay;
mod request;
mod retention;
mod schedule;
mod send;
mod service_events;
mod trial_delivery;

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use backbone::{Backbone, work};
use runtime::{Config, Context};

use digest::Digests;
use mail::{Confirmations, Mailer};
use replay::Replays;
use trial_delivery::TrialDeliveries;

const DRAIN_LOOK: Duration = Duration::from_millis(20);

/// State that all parts share.
struct Dispatcher {
    config: Arc<Config>,
    backbone: Backbone,
    sealer: store::seal::Sealer,
    client: outbound::Client,
    /// `None` without a server for e-mail.
    mailer: Option<Mailer>,
    lanes: Arc<lanes::Lanes>,
    recorder: record::Recorder,
    signals: claim::Signals,
    answers: answers::Answers,
}

/// Delivers until the context's shutdown, then completes the open requests.
///
/// # Errors
/// If a setting cannot be used.
pub async fn run(config: Arc<Config>, context: Context, backbone: Backbone) -> anyhow::Result<()> {
    let policy = config.outbound.address_policy();
    let egress = config.outbound.egress()?;
    let client = outbound::Client::leaving_by(&egress, policy, outbound::USER_AGENT)?
        .with_max_stall(config.dispatcher.timeout);
    Box::pin(run_with(config, context, backbone, client)).await
}

/// Same as [`run`], with a client that has its own name resolution and trusted certificates.
///
/// # Errors
/// If a setting cannot be used.
pub async fn run_with(
    config: Arc<Config>,
    context: Context,
    backbone: Backbone,
    client: outbound::Client,
) -> anyhow::Result<()> {
    metrics::begin();
    let (recorder, recording) = record::new();
    let dispatcher = Arc::new(Dispatcher {
        sealer: backbone::sealer(&config)?,
        client,
        mailer: config
            .dispatcher
            .smtp
            .as_ref()
            .map(|smtp| {
                let grace_period = config.ops.grace_period;
                let connections = config.database.max_connections;
                Mailer::new(smtp, &context.shutdown, grace_period, connections)
            })
            .transpose()?,
        lanes: lanes::Lanes::new(
            config.dispatcher.max_in_flight,
            config.dispatcher.lane_limit,
        ),
        config,
        backbone,
        recorder,
        signals: claim::Signals::default(),
        answers: answers::Answers::default(),
    });
    let mut recording = recording.start(dispatcher.backbone.clone(), Arc::downgrade(&dispatcher));
    if !dispatcher.backbone.ready(&context.shutdown).await {
        return Ok(());
    }

    let check = context.health.check("consumer.scan-created");
    let (consumer, mut fanning_out) = fan_out::FanOut::start(&dispatcher);
    let tests = Arc::new(TrialDeliveries(Arc::clone(&dispatcher)));
    let replays = Arc::new(Replays::new(&dispatcher, &context.shutdown));
    let digests = Arc::new(Digests(Arc::clone(&dispatcher)));
    let confirmations = Arc::new(Confirmations(Arc::clone(&dispatcher)));
    let working = async {
        tokio::join!(
            bus::consume(
                Arc::clone(&dispatcher.backbone.bus),
                Arc::new(consumer),
                Some(check),
                context.shutdown.clone()
            ),
            claim::run(&dispatcher, context.shutdown.clone()),
            fan_out::sweep(&dispatcher, context.shutdown.clone()),
            service_events::run(&dispatcher, context.shutdown.clone()),
            work::run(tests, &dispatcher.backbone, &context.shutdown),
            work::run(replays, &dispatcher.backbone, &context.shutdown),
            work::run(digests, &dispatcher.backbone, &context.shutdown),
            work::run(confirmations, &dispatcher.backbone, &context.shutdown),
            retention::run(&dispatcher, context.shutdown.clone()),
            planner_statistics::run(&dispatcher, context.shutdown.clone()),
            backbone::follow_keys(
                Arc::clone(&dispatcher.config),
                dispatcher.sealer.clone(),
                backbone::KEYS_LOOK,
                context.shutdown.clone()
            ),
        );
    };
    tokio::select! {
        () = working => {}
        // Without the recorder no delivery would ever be known as sent.
        ended = &mut recording => {
            ended.context("the recorder panicked")?;
            anyhow::bail!("the recorder ended before its time");
        }
    }
    // Their deliveries must be there before the lanes are drained.
    while fanning_out.join_next().await.is_some() {}
    drain(&dispatcher).await;
    drop(dispatcher);
    // Ends when the last sender is dropped and everything is written.
    recording.await?;
    Ok(())
}

/// Returns unsent deliveries, and waits for open requests.
async fn drain(dispatcher: &Dispatcher) {
    loop {
        let idle = dispatcher.lanes.is_idle();
        let queued = dispatcher.lanes.empty();
        if !queued.is_empty()
            && let Err(error) = send::hand_back(dispatcher, queued).await
        {
            let error = anyhow::Error::from(error);
            tracing::warn!("deliveries are free only after this replica's end: {error:#}");
        }
        // Without their hints, deliveries of the last Scans would wait for the sweep of another replica.
        if idle && let Err(error) = claim::write_last_hints(dispatcher).await {
            let error = anyhow::Error::from(error);
            tracing::warn!("cannot write which Connections have deliveries: {error:#}");
        }
        if idle {
            return;
        }
        // A place may have been returned between the check and the wait.
        let freed = dispatcher.lanes.freed();
        let _ = tokio::time::timeout(DRAIN_LOOK, freed).await;
    }
}
