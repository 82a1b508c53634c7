//! Analyzes tables that grow fast, such as the partitions of a new week, for PostgreSQL's planner.

use std::{sync::Arc, time::Duration};

use runtime::Periodic;
use store::{deliveries, planner_statistics};
use tokio_util::sync::CancellationToken;

use crate::Dispatcher;

const INTERVAL: Duration = Duration::from_secs(5);
/// Maximum number of tables at a time: one that is locked is returned again.
const MOST: usize = 8;

pub(crate) async fn run(dispatcher: &Arc<Dispatcher>, shutdown: CancellationToken) {
    let mut rounds = Periodic::new(&shutdown);
    while rounds.every(INTERVAL).await {
        let round = async {
            let mut conn = dispatcher.backbone.pool.get().await?;
            if !deliveries::is_sweeper(&mut conn, dispatcher.backbone.replica).await? {
                return Ok(());
            }
            for _ in 0..MOST {
                let Some(table) = planner_statistics::analyze_grown(&mut conn).await? else {
                    break;
                };
                tracing::debug!(table, "analyzed a table that has grown");
            }
            Ok::<_, store::Error>(())
        };
        let Some(round) = shutdown.run_until_cancelled(round).await else {
            return;
        };
        rounds.log_once("analyze tables that have grown", round);
    }
}
