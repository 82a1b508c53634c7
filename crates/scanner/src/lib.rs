//! The scanner: polls feeds, matches posts, makes Scans.
//!
//! Feeds are polled, not Managers: each feed once for all that watch it, by whichever replica leased
//! it. [`poller`] leases due feeds of a platform and [`poll`] takes one from the platform's answer to
//! the committed Scans; [`plans`] keeps the index of all Managers' plans fresh. Posts, Scans, events and
//! the feed's new cursor are one transaction, so a scanner that dies repeats a poll and loses nothing.

mod guarded;
mod judge;
mod metrics;
mod plans;
mod poll;
mod poller;
mod screens;

use std::sync::Arc;

use anyhow::Context as _;
use backbone::Backbone;
use domain::address::AddressPolicy;
use platforms::{Fetch, Platforms, Settings};
use runtime::{Config, Context};
use tokio::task::JoinSet;

pub use judge::Judge;
pub use plans::Plans;

/// Scans until the context's shutdown, then finishes the polls that are open.
///
/// # Errors
/// When a configured platform cannot be used.
pub async fn run(config: Arc<Config>, context: Context, backbone: Backbone) -> anyhow::Result<()> {
    let platforms = configured(&config).context("platforms")?;
    let index = context.health.check("index");
    if !backbone.ready(&context.shutdown).await {
        return Ok(());
    }

    let plans = Arc::new(Plans::new(
        backbone.pool.clone(),
        config.scanner.judge.as_ref().map(Judge::new),
    ));
    if !plans.load(&context.shutdown).await {
        return Ok(());
    }
    index.ok();

    let pollers = platforms.iter().map(|platform| {
        poller::Poller::new(
            platform.clone(),
            Arc::clone(&config),
            backbone.clone(),
            Arc::clone(&plans),
        )
        .run(context.shutdown.clone())
    });
    let mut pollers: JoinSet<()> = pollers.collect();
    // A platform that nobody polls any more must not go unnoticed.
    let polled = async {
        while let Some(ended) = pollers.join_next().await {
            ended.context("a poller panicked")?;
        }
        anyhow::Ok(())
    };
    let kept_fresh = async {
        Arc::clone(&plans)
            .keep_fresh(Arc::clone(&backbone.bus), context.shutdown.clone())
            .await;
        Ok(())
    };
    tokio::try_join!(polled, kept_fresh)?;
    Ok(())
}

/// The platforms of the configuration, each with its adapter.
fn configured(config: &Config) -> Result<Platforms, platforms::SettingsError> {
    let settings: Vec<Settings> = config.platforms.iter().map(Settings::from).collect();
    let policy = AddressPolicy {
        allow_cidrs: config.outbound.allow_cidrs.clone(),
        allow_http: config.outbound.allow_http,
    };
    let guarded: Arc<dyn Fetch> = Arc::new(guarded::Guarded::new(policy));
    Platforms::from_settings(&settings, &guarded)
}
