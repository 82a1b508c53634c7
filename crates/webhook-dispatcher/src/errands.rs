//! Requests of people in addition to new Scans: tests of Connections, and replays.
//!
//! Both lie in the database, where any replica takes them up; neither is ever sent straight from here.
//! A look costs one short query each, five times a second; more often while a replay is worked off, at its pace.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::{Dispatcher, connection_test, replay};

const LOOK: Duration = Duration::from_millis(200);
/// Looks from one purge of old tests to the next: about half a minute.
const PURGE: u32 = 150;

pub(crate) async fn run(dispatcher: &Arc<Dispatcher>, shutdown: CancellationToken) {
    let mut failing = false;
    let mut looks: u32 = 0;
    let mut pause = LOOK;
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        pause = LOOK;
        looks = looks.wrapping_add(1);
        let purge = looks.is_multiple_of(PURGE);
        match look(dispatcher, purge, &shutdown).await {
            Ok(replaying) => {
                failing = false;
                if replaying {
                    pause = replay::PAUSE;
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(
                        "cannot look for tests and replays: {:#}",
                        anyhow::Error::from(error)
                    );
                }
            }
        }
    }
}

/// Returns true if a replay goes on.
async fn look(
    dispatcher: &Arc<Dispatcher>,
    purge: bool,
    shutdown: &CancellationToken,
) -> Result<bool, store::Error> {
    connection_test::take(dispatcher).await?;
    if purge {
        connection_test::purge(dispatcher).await?;
    }
    replay::work(dispatcher, shutdown).await
}
