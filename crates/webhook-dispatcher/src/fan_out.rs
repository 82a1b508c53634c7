//! From an event to deliveries.

use std::{sync::Arc, time::Duration};

use bus::{Consumer, Outcome};
use domain::{ConnectionName, ScanName};
use events::ScanCreated;
use store::{
    AsyncConnection,
    deliveries::{self, Task},
    scans,
};
use tokio_util::sync::CancellationToken;

use crate::{Dispatcher, lanes::Permit, metrics, send};

const SWEEP: Duration = Duration::from_secs(1);
/// How long an event may be on its way before the sweep does its work.
const OVERDUE: Duration = Duration::from_secs(3);
const SWEEP_LIMIT: i64 = 200;

pub(crate) struct FanOut {
    dispatcher: Arc<Dispatcher>,
}

impl FanOut {
    pub(crate) fn new(dispatcher: Arc<Dispatcher>) -> Self {
        Self { dispatcher }
    }
}

impl Consumer for FanOut {
    const QUEUE: &'static str = bus::topology::SCAN_CREATED;
    type Event = ScanCreated;

    #[tracing::instrument(skip_all, fields(scan.name = %event.name))]
    async fn consume(&self, event: ScanCreated) -> Outcome {
        match fan_out(&self.dispatcher, event.name).await {
            Ok(()) => Outcome::Done,
            // Ours: a database that is away.
            Err(error) => Outcome::Retry(error.into()),
        }
    }
}

/// One transaction of three statements; what may go now is sent after its commit.
async fn fan_out(dispatcher: &Arc<Dispatcher>, scan: ScanName) -> Result<(), store::Error> {
    let fanned_out = insert(dispatcher, scan, |connection| {
        dispatcher.lanes.admit(connection)
    });
    let tasks = match fanned_out.await {
        // One Connection of this Scan cannot be read, for want of a key perhaps. It waits in the database,
        // so that neither the Scan's other Connections nor anybody's event waits for it.
        Err(store::Error::Sealed(_) | store::Error::Json(_)) => {
            insert(dispatcher, scan, |_| None).await?
        }
        other => other?,
    };
    send::start(dispatcher, tasks);
    Ok(())
}

async fn insert(
    dispatcher: &Dispatcher,
    scan: ScanName,
    admit: impl FnMut(ConnectionName) -> Option<Permit> + Send,
) -> Result<Vec<(Task, Permit)>, store::Error> {
    let (sealer, replica) = (&dispatcher.sealer, dispatcher.backbone.replica);
    let mut conn = dispatcher.backbone.pool.get().await?;
    conn.transaction(async |conn| deliveries::fan_out(conn, sealer, scan, replica, admit).await)
        .await
}

/// Finds Scans whose events never came.
pub(crate) async fn sweep(dispatcher: &Arc<Dispatcher>, shutdown: CancellationToken) {
    let mut failing = false;
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(SWEEP) => {}
        }
        match sweep_once(dispatcher).await {
            Ok(()) => failing = false,
            Err(error) => {
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(
                        "cannot look for lost events: {:#}",
                        anyhow::Error::from(error)
                    );
                }
            }
        }
    }
}

async fn sweep_once(dispatcher: &Arc<Dispatcher>) -> Result<(), store::Error> {
    let overdue = {
        let mut conn = dispatcher.backbone.pool.get().await?;
        scans::not_fanned_out(&mut conn, OVERDUE, SWEEP_LIMIT).await?
    };
    for scan in overdue {
        tracing::info!(scan.name = %scan, "its event is late: delivering without");
        metrics::RECOVERED.with_label_values(&["scan"]).inc();
        fan_out(dispatcher, scan).await?;
    }
    Ok(())
}
