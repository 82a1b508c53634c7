//! The dispatcher: brings each Scan to each Connection attached to its Manager.
//!
//! [`fan_out`] turns a ScanCreated into deliveries, and those that may go now go straight from memory.
//! What has to wait waits in the database, where [`claim`] finds it when it is due. [`send`] makes one
//! attempt, [`schedule`] decides what becomes of it, and [`record`] writes it down, many at a time.
//! [`lanes`] bound what is open, per Connection and in all.
//!
//! Delivery is at least once. A delivery is leased in the database while its request is open; when a
//! dispatcher dies its leases are freed, and the requests that it had open are repeated under the same
//! Scan name, by which receivers deduplicate.

mod claim;
mod fan_out;
mod lanes;
mod metrics;
mod record;
mod request;
mod schedule;
mod send;

use std::sync::Arc;

use anyhow::Context as _;
use backbone::Backbone;
use bus::ConsumeOptions;
use domain::address::AddressPolicy;
use runtime::{Config, Context};

/// What the parts share.
struct Dispatcher {
    config: Arc<Config>,
    backbone: Backbone,
    sealer: store::seal::Sealer,
    client: outbound::Client,
    lanes: Arc<lanes::Lanes>,
    recorder: record::Recorder,
}

/// Delivers until the context's shutdown, then finishes the requests that are open.
///
/// # Errors
/// When a setting cannot be used.
pub async fn run(config: Arc<Config>, context: Context, backbone: Backbone) -> anyhow::Result<()> {
    let policy = AddressPolicy {
        allow_cidrs: config.outbound.allow_cidrs.clone(),
        allow_http: config.outbound.allow_http,
    };
    let (recorder, mut recording) = record::start(backbone.clone());
    let dispatcher = Arc::new(Dispatcher {
        sealer: backbone::sealer(&config)?,
        client: outbound::Client::new(policy, outbound::USER_AGENT),
        lanes: lanes::Lanes::new(
            config.dispatcher.max_in_flight,
            config.dispatcher.lane_limit,
        ),
        config,
        backbone,
        recorder,
    });
    if !dispatcher.backbone.ready(&context.shutdown).await {
        return Ok(());
    }

    let options = ConsumeOptions {
        concurrency: dispatcher.config.bus.prefetch,
        ..ConsumeOptions::default()
    };
    let consumer = Arc::new(fan_out::FanOut::new(Arc::clone(&dispatcher)));
    let work = async {
        tokio::join!(
            bus::consume(
                Arc::clone(&dispatcher.backbone.bus),
                consumer,
                options,
                context.shutdown.clone()
            ),
            claim::run(&dispatcher, context.shutdown.clone()),
            fan_out::sweep(&dispatcher, context.shutdown.clone()),
        );
    };
    tokio::select! {
        () = work => {}
        // Without it nothing that is sent would ever be known as sent.
        ended = &mut recording => {
            ended.context("the recorder panicked")?;
            anyhow::bail!("the recorder ended before its time");
        }
    }
    dispatcher.lanes.drained().await;
    drop(dispatcher);
    // Ends when the last sender is gone and everything is written.
    recording.await?;
    Ok(())
}
