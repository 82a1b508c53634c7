//! Requests of people in addition to new Scans: tests of Connections, and replays.
//!
//! Both are stored in the database, where any replica takes them. Tests are sent at once; replays only reopen
//! deliveries. A check costs one short query each, five times a second, and more often while a replay runs, at its
//! pace.

use std::{sync::Arc, time::Duration};

use runtime::Periodic;
use store::fair::Round;
use tokio_util::sync::CancellationToken;

use crate::{Dispatcher, connection_test, replay};

const LOOK: Duration = Duration::from_millis(200);
/// Number of checks between two purges of old tests: about half a minute.
const PURGE: u32 = 150;

pub(crate) async fn run(dispatcher: &Arc<Dispatcher>, shutdown: CancellationToken) {
    let mut rounds = Periodic::new(&shutdown);
    let mut round = Round::default();
    let mut looks: u32 = 0;
    let mut pause = LOOK;
    while rounds.after(pause).await {
        looks = looks.wrapping_add(1);
        let purge = looks.is_multiple_of(PURGE);
        let replaying = rounds.note(
            "look for tests and replays",
            look(dispatcher, purge, &mut round, &shutdown).await,
        );
        pause = if replaying == Some(true) {
            replay::PAUSE
        } else {
            LOOK
        };
    }
}

/// Returns true if a replay is in progress.
async fn look(
    dispatcher: &Arc<Dispatcher>,
    purge: bool,
    round: &mut Round,
    shutdown: &CancellationToken,
) -> Result<bool, store::Error> {
    connection_test::take(dispatcher).await?;
    if purge {
        connection_test::purge(dispatcher).await?;
    }
    replay::work(dispatcher, round, shutdown).await
}
