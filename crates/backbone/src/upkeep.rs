//! What runs beside a service's work, each until it is told to stop, each saying once when something
//! is away and once when it is back.

use std::{sync::Arc, time::Duration};

use bus::Bus;
use runtime::Context;
use store::{
    Pool,
    migrations::{self, Schema},
    replicas,
};
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

const DATABASE_INTERVAL: Duration = Duration::from_secs(1);
const PARTITIONS_INTERVAL: Duration = Duration::from_secs(3_600);
const BUS_INTERVAL: Duration = Duration::from_secs(2);

/// Renews the heartbeat every second, and takes it back at the end.
pub(crate) async fn beat(pool: &Pool, replica: Uuid, context: &Context, stop: &CancellationToken) {
    let mut failing = false;
    let mut interval = tokio::time::interval(replicas::HEARTBEAT);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            _ = interval.tick() => {}
        }
        let beaten = async {
            let mut conn = pool.get().await?;
            replicas::beat(&mut conn, replica, context.service).await?;
            Ok::<_, store::Error>(())
        };
        match beaten.await {
            Ok(()) if std::mem::replace(&mut failing, false) => {
                tracing::info!("the heartbeat is back");
            }
            Ok(()) => {}
            Err(error) => {
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(
                        "cannot renew the heartbeat, leases may be lost: {:#}",
                        anyhow::Error::from(error)
                    );
                }
            }
        }
    }
    if let Ok(mut conn) = pool.get().await
        && let Err(error) = replicas::leave(&mut conn, replica).await
    {
        tracing::warn!("leases are free only after the heartbeat's age: {error}");
    }
}

/// Looks whether the database answers and its schema suits, and keeps its partitions ahead of time.
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
            let found = migrations::schema(&mut conn).await?;
            if found == Schema::Suits && Instant::now() >= partitions_due {
                migrations::ensure_partitions(&mut conn).await?;
                partitions_due = Instant::now() + PARTITIONS_INTERVAL;
            }
            Ok::<_, store::Error>(found)
        };
        let problem = match looked.await {
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
                let detail = format!("{:#}", anyhow::Error::from(error));
                database.unavailable(detail.clone());
                Some(format!("waiting for the database: {detail}"))
            }
        };
        if problem != last_problem {
            match &problem {
                Some(problem) => tracing::warn!("{problem}"),
                None => tracing::info!("the database is there and its schema suits"),
            }
            last_problem = problem;
        }
    }
}

/// Looks whether the bus is there. The gateway works without, and is only degraded.
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
