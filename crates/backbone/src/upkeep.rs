//! Tasks next to a service's work. Each runs until it is stopped, and logs once when a dependency goes away and
//! once when it is back.

use std::{sync::Arc, time::Duration};

use anyhow::anyhow;
use bus::Bus;
use runtime::{Check, Context};
use store::{
    Pool,
    migrations::{self, Schema},
};
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

const DATABASE_INTERVAL: Duration = Duration::from_secs(1);
const PARTITIONS_INTERVAL: Duration = Duration::from_secs(3_600);
const PARTITIONS_RETRY: Duration = Duration::from_secs(60);
const BUS_INTERVAL: Duration = Duration::from_secs(2);
/// A database that takes longer for one of these small statements counts as unavailable.
const PATIENCE: Duration = Duration::from_secs(3);

/// Runs `work` with a time limit of [`PATIENCE`], and returns an error after it.
pub(crate) async fn in_time<T>(
    asked: impl Future<Output = Result<T, store::Error>>,
) -> anyhow::Result<T> {
    tokio::time::timeout(PATIENCE, asked)
        .await
        .map_err(|_elapsed| anyhow!("no answer within {PATIENCE:?}"))?
        .map_err(anyhow::Error::from)
}

/// Checks that the database answers and has the right schema, and creates its partitions ahead of time.
pub(crate) async fn watch_database(
    pool: &Pool,
    suits: &watch::Sender<bool>,
    context: &Context,
    stop: &CancellationToken,
) {
    let (database, schema) = (
        context.health.check("database"),
        context.health.check("schema"),
    );
    let partitions = context.health.check("partitions");
    let mut last_problem = None;
    let mut partitions_due = Instant::now();
    let mut interval = tokio::time::interval(DATABASE_INTERVAL);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = interval.tick() => {}
        }
        let looked = async {
            let mut conn = pool.get().await?;
            Ok::<_, store::Error>(migrations::schema(&mut conn).await?)
        };
        let looked = in_time(looked).await;
        if matches!(looked, Ok(Schema::Suits)) && Instant::now() >= partitions_due {
            partitions_due = Instant::now() + make_partitions(pool, &partitions).await;
        }
        let problem = match looked {
            Ok(Schema::Suits) => {
                database.ok();
                schema.ok();
                suits.send_if_modified(|suits| !std::mem::replace(suits, true));
                None
            }
            Ok(Schema::TooOld { found }) => {
                let detail = match found {
                    None => "the database has no schema, run `earshot migrate`".to_owned(),
                    Some(version) => {
                        format!("the schema is that of {version}, run `earshot migrate`")
                    }
                };
                database.ok();
                schema.unavailable(detail.clone());
                Some(detail)
            }
            Err(error) => {
                let detail = format!("{error:#}");
                database.unavailable(detail.clone());
                Some(format!("waiting for the database: {detail}"))
            }
        };
        if problem != last_problem {
            match &problem {
                Some(problem) => tracing::warn!("{problem}"),
                None => tracing::info!("the database is available and has the right schema"),
            }
            last_problem = problem;
        }
    }
}

/// Returns the time of the next run. Partitions of coming weeks can wait: a failure does not stop a service.
async fn make_partitions(pool: &Pool, check: &Check) -> Duration {
    let made = async {
        let mut conn = pool.get().await?;
        Ok(migrations::ensure_partitions(&mut conn).await?)
    };
    match in_time(made).await {
        Ok(()) => {
            check.ok();
            PARTITIONS_INTERVAL
        }
        Err(error) => {
            check.degraded(format!("{error:#}"));
            tracing::warn!("cannot create the partitions of the coming weeks: {error:#}");
            PARTITIONS_RETRY
        }
    }
}

/// Checks the bus. The gateway works without it, and is only degraded.
pub(crate) async fn watch_bus(bus: &Arc<dyn Bus>, context: &Context, stop: &CancellationToken) {
    let check = context.health.check("bus");
    loop {
        match bus.check().await {
            Ok(()) => check.ok(),
            Err(error) => {
                let detail = format!("{:#}", anyhow::Error::from(error));
                if context.service == "api-gateway" {
                    check.degraded(detail)
                } else {
                    check.unavailable(detail)
                }
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(BUS_INTERVAL) => {}
        }
    }
}
