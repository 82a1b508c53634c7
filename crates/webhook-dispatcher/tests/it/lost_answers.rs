//! A database that commits, but whose answer is lost in transit.

use std::time::Duration;

use test_support::{Answer, Commits, eventually};
use tokio::sync::watch;

use crate::support::{World, after_warming};

#[tokio::test]
async fn result_that_is_recorded_twice_counts_once_in_the_breaker() {
    const FAILURES: i64 = 4;
    let mut world = World::new().await;
    world.config.dispatcher.retry_schedule = vec![Duration::from_secs(600); 3];
    let commits = Commits::start(world.database.url()).await;
    world.config.database.url = commits.url().into();
    let (release, held) = watch::channel(false);
    let late = Answer::once(&held, Answer::Status(500));
    let receiver = after_warming(late).await;
    let connection = world.connection(&receiver).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    let warm = world.warm(manager).await;
    for number in 0..FAILURES {
        let title = format!("kettle {number}");
        world.publish_scan(manager, &title).await;
    }
    let open = warm + usize::try_from(FAILURES).unwrap();
    eventually("the requests are open", async || receiver.count() == open).await;
    commits.lose(true);
    release.send(true).expect("the receiver waits");
    eventually("something is written", async || {
        world.in_state("RETRYING").await > 0
    })
    .await;
    // The result is written again, because the writer does not know that it was committed. Some of the lost commits
    // are of other work.
    let lost = commits.lost();
    eventually("it is tried again", async || commits.lost() >= lost + 12).await;
    commits.lose(false);
    world.until("RETRYING", FAILURES).await;
    // Ends only when everything is written and confirmed.
    replica.stop().await;
    let told = "failure_streak || ' ' || recent_outcomes || ' ' || (open_until IS NULL)";
    let lanes = world.database.texts(told, "connection_lanes").await;
    assert_eq!(lanes, ["4 15 true"], "five failures would have opened it");
    assert_eq!(
        world.database.count("delivery_attempts").await,
        8 + FAILURES
    );
}
