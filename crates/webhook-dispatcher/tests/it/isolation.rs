//! One customer's broken server slows no other's.

use std::time::Duration;

use store::seal::Sealer;
use test_support::{Answer, eventually};

use crate::support::{SOON, World, after_warming, always};

#[tokio::test]
async fn a_hung_endpoint_holds_its_lane_and_no_more() {
    let mut world = World::new().await;
    world.config.dispatcher.lane_limit = 3;
    world.config.dispatcher.timeout = Duration::from_millis(1_500);
    let (hung, well) = (
        after_warming(Answer::Hang).await,
        always(Answer::Status(200)).await,
    );
    let hung_manager = world.manager_for(&hung).await;
    let well_manager = world.manager_for(&well).await;
    let replica = world.ready_dispatcher().await;
    let warm = world.warm(hung_manager).await;
    for number in 0..12 {
        world
            .scan_and_tell(hung_manager, &format!("hung {number}"))
            .await;
    }
    eventually("its lane is full", SOON, async || hung.count() >= warm + 3).await;
    for number in 0..12 {
        world
            .scan_and_tell(well_manager, &format!("well {number}"))
            .await;
        let took = eventually("it goes at once", SOON, async || well.count() == number + 1).await;
        assert!(took < Duration::from_millis(700), "{took:?}");
    }
    // Five in a row open its breaker; until then its lane has narrowed to one.
    let open = "connection_lanes WHERE open_until > now()";
    eventually("its breaker opens", SOON, async || {
        world.database.count(open).await == 1
    })
    .await;
    assert_eq!(hung.most_open(), 3);
    eventually("the others wait in the database", SOON, async || {
        world.in_state("IN_FLIGHT").await == 0
    })
    .await;
    let asked = hung.count();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(hung.count(), asked, "nothing is sent past an open breaker");
    drop(replica);
}

#[tokio::test]
async fn a_connection_that_cannot_be_opened_holds_up_nobody() {
    let mut world = World::new().await;
    // Fewer hands than there are events that cannot be handled at once.
    world.config.bus.prefetch = 2;
    let (locked, open) = (
        always(Answer::Status(200)).await,
        always(Answer::Status(200)).await,
    );
    let open_connection = world.connection(&open).await;
    let known = world.fixture.sealer.clone();
    world.fixture.sealer = Sealer::new([("lost".to_owned(), [9; 32])]).unwrap();
    let locked_connection = world.connection(&locked).await;
    world.fixture.sealer = known;

    let replica = world.ready_dispatcher().await;
    let locked_manager = world.manager(&[locked_connection]).await;
    let both = world.manager(&[locked_connection, open_connection]).await;
    for number in 0..5 {
        world
            .scan_and_tell(locked_manager, &format!("locked {number}"))
            .await;
    }
    world.scan_and_tell(both, "both").await;
    world.until("SUCCEEDED", 1).await;
    // One that no one can send is tried after the schedule, and given up after it.
    world.until("EXHAUSTED", 6).await;
    let (errors, why) = ("attempt_count || ' ' || last_error", "state = 'EXHAUSTED'");
    let errors = world
        .database
        .texts(errors, &format!("deliveries WHERE {why}"))
        .await;
    assert_eq!(errors, ["4 undecryptable_headers"; 6]);
    assert_eq!((open.count(), locked.count()), (1, 0));
    replica.stop().await;
}
