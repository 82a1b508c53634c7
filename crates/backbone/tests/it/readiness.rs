//! A service waits for its dependencies, reports which are missing, and continues when they are back.

use test_support::{TestDatabase, eventually};

use crate::support::{backbone, check, start};

#[tokio::test]
async fn a_service_waits_for_its_schema() {
    let database = TestDatabase::create().await;
    store::migrations::revert_all(database.url()).await.unwrap();
    database.run("DROP TABLE __diesel_schema_migrations").await;

    let replica = start("scanner", backbone(&database));
    eventually("the missing schema is named", async || {
        let (ok, detail) = check(&replica, "schema");
        !ok && detail.contains("no schema") && detail.contains("run `earshot migrate`")
    })
    .await;
    assert!(check(&replica, "database").0, "the database itself answers");
    assert!(!check(&replica, "working").0);
    assert!(!replica.health.report().is_ready());

    store::migrations::migrate(database.url()).await.unwrap();
    eventually("work begins once there is a schema", async || {
        check(&replica, "working").0
    })
    .await;
    assert!(check(&replica, "schema").0);
    eventually("it is ready", async || replica.health.report().is_ready()).await;
    replica.stop().await;
}

#[tokio::test]
async fn a_schema_of_an_older_version_is_named() {
    let database = TestDatabase::create().await;
    database
        .run("DELETE FROM __diesel_schema_migrations WHERE version > '20261128001030'")
        .await;
    let replica = start("scanner", backbone(&database));
    eventually("the old schema is named", async || {
        let (_, detail) = check(&replica, "schema");
        detail.contains("20261128001030") && detail.contains("run `earshot migrate`")
    })
    .await;
    assert!(!check(&replica, "working").0);
    replica.stop().await;
}

#[tokio::test]
async fn schema_from_before_the_baseline_is_named_with_a_fix() {
    let database = TestDatabase::create().await;
    database
        .run("UPDATE __diesel_schema_migrations SET version = '20261121' || substr(version, 9)")
        .await;
    let replica = start("scanner", backbone(&database));
    eventually("the old schema is named", async || {
        let (ok, detail) = check(&replica, "schema");
        !ok && detail.contains("20261121") && detail.contains("create a new, empty database")
    })
    .await;
    assert!(!check(&replica, "working").0);
    replica.stop().await;
}

#[tokio::test]
async fn a_shutdown_ends_the_wait() {
    let mut config = test_support::config(
        &TestDatabase::create().await,
        store::roles::Service::Scanner,
    );
    // Nothing listens there.
    config.database.url = "postgres://nobody@127.0.0.1:1/none".into();
    let replica = start("scanner", backbone::Backbone::in_process(&config).unwrap());
    eventually("the database is reported missing", async || {
        !check(&replica, "database").1.is_empty()
    })
    .await;
    assert!(!check(&replica, "working").0);
    replica.stop().await;
}

#[tokio::test]
async fn lost_database_is_reported_until_it_is_back() {
    let database = TestDatabase::create().await;
    let replica = start("scanner", backbone(&database));
    eventually("it is ready", async || replica.health.report().is_ready()).await;

    // Connections end, and new ones are refused.
    database.go_away().await;
    eventually("its loss shows", async || !check(&replica, "database").0).await;
    assert!(!replica.health.report().is_ready());

    database.come_back().await;
    eventually("it is well again", async || {
        replica.health.report().is_ready()
    })
    .await;
    replica.stop().await;
}

#[tokio::test]
async fn silent_database_is_reported() {
    let database = TestDatabase::create().await;
    let replica = start("scanner", backbone(&database));
    eventually("it is ready", async || replica.health.report().is_ready()).await;

    let lock = "LOCK TABLE __diesel_schema_migrations, replicas IN ACCESS EXCLUSIVE MODE";
    let locked = database.begin(&[lock]).await;
    eventually("its silence shows", async || {
        check(&replica, "database").1.contains("no answer")
    })
    .await;
    drop(locked);
    eventually("it is well again", async || {
        replica.health.report().is_ready()
    })
    .await;
    replica.stop().await;
}

#[tokio::test]
async fn distance_of_the_clocks_is_measured() {
    let database = TestDatabase::create().await;
    database.skew_clock("2 hours").await;
    let replica = start("scanner", backbone(&database));
    let behind = || {
        let families = prometheus::gather();
        let text = prometheus::TextEncoder::new().encode_to_string(&families);
        let text = text.unwrap();
        let mut lines = text.lines();
        let skew = lines.find_map(|line| line.strip_prefix("earshot_clock_skew_seconds "));
        skew.map_or(0.0, |skew| skew.parse::<f64>().unwrap())
    };
    // A slow machine makes it smaller, by what the statement takes.
    eventually("the difference shows", async || {
        (-7_200.5..-7_100.0).contains(&behind())
    })
    .await;
    replica.stop().await;
}

#[tokio::test]
async fn process_whose_clock_is_weeks_off_takes_no_work_until_it_is_right() {
    let database = TestDatabase::create().await;
    database.skew_clock("40 days").await;
    let backbone = backbone(&database);
    let replica = start("scanner", backbone.clone());
    eventually("the difference is named", async || {
        let (ok, detail) = check(&replica, "clock");
        !ok && detail.contains("behind the database's: it takes no work")
    })
    .await;
    assert!(backbone.is_suspended());
    assert!(!check(&replica, "working").0);
    assert!(!replica.health.report().is_ready());

    database.skew_clock("1 minute").await;
    eventually("it works", async || check(&replica, "working").0).await;
    let (ok, detail) = check(&replica, "clock");
    assert!(
        !ok && detail.contains("s behind the database's"),
        "{detail}"
    );
    eventually("it is ready", async || replica.health.report().is_ready()).await;

    // Also if the clock goes wrong later.
    database.skew_clock("-2 hours").await;
    eventually("it is suspended", async || backbone.is_suspended()).await;
    assert!(!replica.health.report().is_ready());
    database.skew_clock("0").await;
    eventually("all is well", async || {
        check(&replica, "clock").0 && !backbone.is_suspended()
    })
    .await;
    replica.stop().await;
}

#[tokio::test]
async fn missing_partitions_of_the_week_are_created_at_once() {
    let database = TestDatabase::create().await;
    let replica = start("scanner", backbone(&database));
    eventually("it is ready", async || replica.health.report().is_ready()).await;
    // As after a jump of the database's clock by more than a month.
    let this_week = "'scans_' || to_char(date_trunc('week', now() AT TIME ZONE 'UTC'), 'YYYYMMDD')";
    let drop = format!("DO $$ BEGIN EXECUTE 'DROP TABLE ' || {this_week}; END $$");
    database.run(&drop).await;
    eventually("it is made", async || {
        let exists = format!("pg_class WHERE relname = {this_week}");
        database.count(&exists).await == 1
    })
    .await;
    replica.stop().await;
}
