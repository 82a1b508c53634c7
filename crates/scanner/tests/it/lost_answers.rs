//! A database that commits, but whose answer is lost in transit.

use std::collections::BTreeSet;

use store::roles::Service;
use test_support::Commits;

use crate::support::{HACKER_NEWS, LEMMY, World};

#[tokio::test(flavor = "multi_thread")]
async fn poll_whose_commit_is_not_answered_makes_each_scan_once() {
    let mut world = World::new().await;
    let commits = Commits::start(&world.database.url_of(Service::Scanner)).await;
    world.config.database.url = commits.url().into();
    let manager = world.manager("kettle", &[LEMMY, HACKER_NEWS]).await;
    let replica = world.ready_scanner().await;
    world.until_asked("/lemmy").await;
    for round in 0..4 {
        commits.lose(true);
        for number in 0..5 {
            world.publish("lemmy", &format!("Kettle {number} of round {round}, old"));
            world.publish(
                "hackernews",
                &format!("Kettle {number} of round {round}, new"),
            );
        }
        // The answers to the commits that made these Scans are lost.
        world.until_scanned(manager, 10 * (round + 1)).await;
        assert!(commits.lost() > 0);
        // The posts are read again from the last position that the scanner knows.
        world.until_asked("/lemmy").await;
        world.until_asked("/hackernews").await;
        commits.lose(false);
    }
    world.publish("lemmy", "The last kettle, old");
    world.publish("hackernews", "The last kettle, new");
    world.until(manager, "The last kettle, old").await;
    world.until(manager, "The last kettle, new").await;
    replica.stop().await;
    let scanned = world.scanned(manager).await;
    let distinct: BTreeSet<_> = scanned.iter().collect();
    assert_eq!((scanned.len(), distinct.len()), (42, 42));
    for rows in ["posts", "scan_keys"] {
        assert_eq!(world.database.count(rows).await, 42, "{rows}");
    }
}
