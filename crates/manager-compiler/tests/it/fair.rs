//! Compilations of one account do not delay those of another.

use std::sync::atomic::{AtomicI64, Ordering};

use domain::manager::{Origin, SourceType};
use store::{AsyncConnection as _, quotas};
use test_support::{QUOTAS, eventually, instructions};

use crate::support::World;

/// Connections of the database that wait for a lock.
const WAITING: &str =
    "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

/// Waits until `is_so`, and returns the most connections that waited for locks at a time.
async fn most_waiting(world: &World, what: &str, is_so: &str) -> i64 {
    let most = AtomicI64::new(0);
    eventually(what, async || {
        most.fetch_max(world.database.count(WAITING).await, Ordering::SeqCst);
        world.database.count(is_so).await > 0
    })
    .await;
    most.into_inner()
}

#[tokio::test]
async fn applies_of_one_account_that_wait_for_the_database_leave_connections_to_others() {
    const SHARE: u32 = 2;
    const MANAGERS: usize = 6;
    let mut world = World::new().await;
    world.config.database.max_connections = 2 * SHARE;
    let source = SourceType::Forum;
    for _ in 0..MANAGERS {
        world.manual(source, instructions("kettle")).await;
    }
    let mut lock = world.database.connect().await;
    lock.begin_test_transaction().await.unwrap();
    let account = world.fixture.account;
    quotas::lock(&mut lock, account, &QUOTAS).await.unwrap();
    let compiler = world.compiler();
    let all = format!("(SELECT count(*) AS n FROM {WAITING}) AS w WHERE n >= {SHARE}");
    let before = most_waiting(&world, "its share is used up", &all).await;

    let other = world.beside("globex").await;
    let origin = Origin::Instructions(instructions("kettle"));
    let theirs = world.waiting_of(&other, source, origin).await;
    let id = theirs.manager.to_uuid();
    let applied = format!("managers WHERE id = '{id}' AND state = 'APPLIED'");
    let after = most_waiting(&world, "the other Manager is applied", &applied).await;
    assert_eq!(before.max(after), i64::from(SHARE));

    drop(lock);
    let pending = "managers WHERE state = 'PENDING_APPLY'";
    eventually("those that waited are applied", async || {
        world.database.count(pending).await == 0
    })
    .await;
    compiler.stop().await;
}
