//! The scanner: polls feeds, matches posts, and creates Scans.
//!
//! Feeds are polled, not Managers: each feed once for all its watchers, by the replica that leased it. [`poller`]
//! leases due feeds of a platform, [`poll`] runs one poll from the platform's response to the committed Scans, and
//! [`plans`] keeps the index of all Managers' plans up to date. Posts, Scans and the feed's new cursor are stored in
//! one transaction, and events are published after it. So a scanner that dies repeats a poll and loses nothing.
//!
//! [`adapt`] sets when a feed is polled again, and [`budget`] limits the requests to a platform, over all replicas.
//! Within what the polls leave, [`backfill`] runs new Managers over past posts, and [`recheck`] finds posts that
//! were deleted at their source. [`monitor`] reports the state of the platforms.

mod adapt;
mod backfill;
mod budget;
mod deciders;
mod find;
mod generations;
mod guarded;
pub mod llm_filter;
mod metrics;
mod monitor;
mod plans;
mod poll;
mod poller;
mod reading;
mod recheck;
mod screens;
mod site_pace;
mod thresholds;
mod watched;

use std::sync::Arc;

use anyhow::Context as _;
use backbone::{Backbone, work};
use platforms::{AddressKey, Fetch, Settings};
use runtime::{Config, Context};
use store::Pool;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use backfill::{Backfill, Backfills, LookBacks};
use poll::Limits;
use watched::Watched;

pub use deciders::Deciders;
pub use plans::Plans;
pub use thresholds::uncertainty;

/// Scans until the context's shutdown, then completes the open polls. A platform that cannot be used, for example
/// without credentials, is reported, and the others are scanned.
///
/// # Errors
/// If a setting cannot be used, or a part of the scanner panicked.
pub async fn run(config: Arc<Config>, context: Context, backbone: Backbone) -> anyhow::Result<()> {
    let egress = config.outbound.egress()?;
    let guarded = guarded::Guarded::new(&egress, config.outbound.address_policy())?;
    platforms::leave_by(egress);
    let index = context.health.check("index");
    let news = context.health.check("consumer.news");
    if !backbone.ready(&context.shutdown).await {
        return Ok(());
    }

    let plans = Arc::new(Plans::new(
        backbone.pool.clone(),
        Deciders::new(&config.scanner).await,
    ));
    if !plans.load(&context.shutdown).await {
        return Ok(());
    }
    let Some(address_key) = address_key(&backbone.pool, &context.shutdown).await else {
        return Ok(());
    };
    let (platforms, unusable) = configured(&config, &backbone, &address_key, Arc::new(guarded));
    index.ok();

    let size = usize::try_from(config.database.max_connections)?;
    let limits = Arc::new(Limits::new(size));
    let (host, shutdown) = (&backbone, &context.shutdown);
    let mut pollers = JoinSet::new();
    for watched in &platforms {
        let poller = poller::Poller::new(
            watched.clone(),
            Arc::clone(&config),
            backbone.clone(),
            Arc::clone(&plans),
            Arc::clone(&limits),
            context.shutdown.clone(),
        );
        pollers.spawn(work::run(Arc::new(poller), host, shutdown));
        if watched.rechecks {
            let recheck = recheck::Recheck::new(watched.clone(), backbone.clone());
            pollers.spawn(work::run(Arc::new(recheck), host, shutdown));
        }
    }
    let rechecked = platforms.iter().filter(|watched| watched.rechecks);
    let rechecked = rechecked.map(|watched| watched.name().to_owned()).collect();
    let backfill = Arc::new(Backfill::new(
        platforms,
        Arc::clone(&config),
        backbone.clone(),
        Arc::clone(&plans),
        limits,
        context.shutdown.clone(),
    ));
    let backfills = Arc::new(Backfills(Arc::clone(&backfill)));
    pollers.spawn(work::run(backfills, host, shutdown));
    let look_backs = Arc::new(LookBacks(backfill));
    pollers.spawn(work::run(look_backs, host, shutdown));
    let monitor = monitor::Monitor::new(
        &config,
        backbone.pool.clone(),
        Arc::clone(&plans),
        unusable,
        rechecked,
    );
    pollers.spawn(monitor.run(context.clone()));
    // If no task polls a platform any more, that must be noticed.
    let polled = async {
        while let Some(ended) = pollers.join_next().await {
            ended.context("a part of the scanner panicked")?;
        }
        anyhow::Ok(())
    };
    let kept_fresh = async {
        Arc::clone(&plans)
            .keep_fresh(
                Arc::clone(&backbone.bus),
                Some(news),
                context.shutdown.clone(),
            )
            .await;
        Ok(())
    };
    tokio::try_join!(polled, kept_fresh)?;
    Ok(())
}

/// Reads the key that hashes feed addresses in ids of posts. Waits while the database is away; `None` on shutdown.
async fn address_key(pool: &Pool, shutdown: &CancellationToken) -> Option<AddressKey> {
    let read = || async {
        let mut conn = pool.get().await?;
        Ok::<_, store::Error>(store::address_key::read(&mut conn).await?)
    };
    let key = runtime::retry("read the key for addresses of feeds", shutdown, read).await;
    key.map(AddressKey::new)
}

/// Returns the configured platforms with their adapters, and those that cannot be used, with the reason.
fn configured(
    config: &Config,
    backbone: &Backbone,
    address_key: &AddressKey,
    guarded: Arc<dyn Fetch>,
) -> (Vec<Watched>, Vec<(String, String)>) {
    let (mut usable, mut unusable) = (Vec::new(), Vec::new());
    for settings in config.platforms.iter().map(Settings::from) {
        match Watched::new(&settings, &guarded, address_key, &backbone.pool) {
            Ok(watched) => usable.push(watched),
            Err(error) => {
                let reason = format!("{:#}", anyhow::Error::from(error));
                tracing::error!(
                    platform = settings.name,
                    "the platform is not watched: {reason}"
                );
                unusable.push((settings.name, reason));
            }
        }
    }
    (usable, unusable)
}
