//! The first half of an upgrade, under load: the schema becomes a later version while the old services still run. Then
//! they are replaced one after the other by programs with an older schema version than the database, as after a
//! rollback.
//!
//! Before its services run, a later version may only add to the schema: each table gets columns, one of them not null,
//! and there is a new table.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{runtime::Handle, task::spawn_blocking, time::sleep};

use super::{
    books,
    fleet::Fleet,
    load::{Load, World},
};
use crate::harness::eventually;

/// Posts per tenth of a second.
const POSTS: u64 = 2;
const PATIENCE: Duration = Duration::from_secs(120);
/// Deliveries before each step.
const DELIVERIES: u64 = 10;
const DELIVERED: &str = "SELECT count(*) FROM deliveries WHERE state = 'SUCCEEDED'";

const TABLES: &str = "SELECT c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace \
    WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p') AND NOT c.relispartition \
      AND c.relname <> '__diesel_schema_migrations' ORDER BY 1";
const LATER: &str = "CREATE TABLE later_things (id uuid PRIMARY KEY); \
    INSERT INTO __diesel_schema_migrations (version) VALUES ('29991231000000')";

pub(super) async fn run(fleet: &Arc<Fleet>) {
    let world = World::new(fleet).await;
    let mut load = Load::new(fleet, &world);
    let own = Arc::clone(fleet);
    let runtime = Handle::current();
    // On a separate thread, because it waits for processes.
    let upgrade = spawn_blocking(move || runtime.block_on(upgrade(&own)));
    let goes_on = || !upgrade.is_finished();
    let (answers, ()) = tokio::join!(
        ask(fleet, &world, &goes_on),
        load.keep_pace(POSTS, &goes_on)
    );
    upgrade.await.unwrap();
    println!("{answers} API responses meanwhile, none of them an error");
    books::check(fleet, &world, load.done(), Instant::now()).await;
    fleet.terminate();
}

async fn upgrade(fleet: &Fleet) {
    work(fleet).await;
    let tables = fleet.query(TABLES);
    assert!(tables.lines().count() > 20, "{tables}");
    for table in tables.lines() {
        fleet.query(&format!(
            "ALTER TABLE {table} ADD COLUMN later_text text, ADD COLUMN later_number bigint NOT NULL DEFAULT 0"
        ));
    }
    fleet.query(LATER);
    println!("the schema has a later version");
    work(fleet).await;
    for replica in fleet.replicas() {
        replica.terminate();
        fleet.start_replica(replica);
        replica.ready().await;
    }
}

/// Waits until posts have been delivered.
async fn work(fleet: &Fleet) {
    let delivered = || -> u64 { fleet.query(DELIVERED).parse().unwrap() };
    let before = delivered();
    eventually("posts are delivered", PATIENCE, async || {
        (delivered() >= before + DELIVERIES).then_some(())
    })
    .await;
}

/// Sends requests as through a load balancer, which tries the other gateway if one is away. Returns their number.
async fn ask(fleet: &Fleet, world: &World, goes_on: impl Fn() -> bool) -> u32 {
    let apis = fleet.apis();
    let list = format!("/v1/{}/connections", world.namespace);
    let mut answers = 0;
    while goes_on() {
        sleep(Duration::from_millis(100)).await;
        let mut statuses = Vec::new();
        for api in &apis {
            let answer = api.try_request(http::Method::GET, &list, &[], None).await;
            statuses.push(answer.map(|answer| answer.status));
        }
        assert!(statuses.contains(&Some(200)), "{statuses:?}");
        answers += 1;
    }
    answers
}
