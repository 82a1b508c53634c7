//! Tasks next to a service's work. Each runs until it is stopped, and logs once when a dependency goes away and
//! once when it is back.

use std::{sync::Arc, time::Duration};

use anyhow::ensure;
use bus::Bus;
use runtime::{Check, Context, Periodic};
use store::{
    Pool,
    migrations::{self, Schema},
    pooling,
};
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    clock::Clock,
    patience::{PATIENCE, late, with_timeout},
};

const DATABASE_INTERVAL: Duration = Duration::from_secs(1);
const PARTITIONS_INTERVAL: Duration = Duration::from_secs(3_600);
const PARTITIONS_RETRY: Duration = Duration::from_secs(60);
/// Replaces [`PARTITIONS_RETRY`] while nothing can be stored because a partition is missing.
const PARTITIONS_RETRY_AT_ONCE: Duration = Duration::from_secs(5);
const BUS_INTERVAL: Duration = Duration::from_secs(2);

/// Checks that the database answers and has the right schema, and creates its partitions ahead of time.
pub(crate) async fn watch_database(
    pool: &Pool,
    suits: &watch::Sender<bool>,
    clock: &Clock,
    context: &Context,
    stop: &CancellationToken,
) {
    let (database, schema) = (
        context.health.check("database"),
        context.health.check("schema"),
    );
    let partitions = context.health.check("partitions");
    let clock_check = context.health.check("clock");
    let mut last_problem = None;
    let mut keeps_sessions = false;
    let mut partitions_due = Instant::now();
    let mut last_made = partitions_due;
    let mut clock_due = partitions_due;
    let mut rounds = Periodic::new(stop);
    while rounds.every(DATABASE_INTERVAL).await {
        let looked = check_schema(pool, &mut keeps_sessions).await;
        let (looked, lacks_partition) = match looked {
            Ok((schema, lacks_partition)) => (Ok(schema), lacks_partition),
            Err(error) => (Err(error), false),
        };
        if lacks_partition {
            partitions_due = partitions_due.min(last_made + PARTITIONS_RETRY_AT_ONCE);
        }
        if matches!(looked, Ok(Schema::Suits)) && Instant::now() >= partitions_due {
            partitions_due = Instant::now() + make_partitions(pool, &partitions).await;
            last_made = Instant::now();
        }
        if looked.is_ok() && Instant::now() >= clock_due {
            clock_due = clock.compare(pool, &clock_check).await;
        }
        let problem = match looked {
            Ok(Schema::Suits) => {
                database.ok();
                schema.ok();
                suits.send_if_modified(|suits| !std::mem::replace(suits, true));
                None
            }
            Ok(found) => {
                let detail = found.to_string();
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

/// Returns the schema, and true if a partition is missing. Fails behind a pooler that shares sessions, because Earshot
/// cannot work there; that is checked until it has passed once.
async fn check_schema(pool: &Pool, keeps_sessions: &mut bool) -> anyhow::Result<(Schema, bool)> {
    if !*keeps_sessions {
        let check = timeout(PATIENCE, pooling::pool_keeps_sessions(pool)).await;
        let kept = check.map_err(|_elapsed| late())??;
        ensure!(kept, pooling::SHARES_SESSIONS);
        *keeps_sessions = true;
    }
    let looked = with_timeout(pool, async |conn| {
        let schema = migrations::schema(conn).await?;
        let lacks_partition = schema == Schema::Suits && migrations::lacks_partition(conn).await?;
        Ok((schema, lacks_partition))
    });
    looked.await
}

/// Creates the partitions of coming weeks, and returns the wait until the next run. They are not needed yet, so a
/// failure does not stop a service.
async fn make_partitions(pool: &Pool, check: &Check) -> Duration {
    match with_timeout(pool, async |conn| migrations::ensure_partitions(conn).await).await {
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
    let mut rounds = Periodic::new(stop);
    while rounds.every(BUS_INTERVAL).await {
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
    }
}
