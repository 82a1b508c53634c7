//! A service waits for its dependencies, reports which are missing, and continues when they are back.

use test_support::{TestDatabase, eventually};

use crate::support::{SOON, backbone, check, start};

#[tokio::test]
async fn a_service_waits_for_its_schema() {
    let database = TestDatabase::create().await;
    store::migrations::revert_all(database.url()).await.unwrap();
    database.run("DROP TABLE __diesel_schema_migrations").await;

    let replica = start("scanner", backbone(&database));
    eventually("the missing schema is named", SOON, async || {
        let (ok, detail) = check(&replica, "schema");
        !ok && detail.contains("no schema") && detail.contains("run `earshot migrate`")
    })
    .await;
    assert!(check(&replica, "database").0, "the database itself answers");
    assert!(!check(&replica, "working").0);
    assert!(!replica.health.report().is_ready());

    store::migrations::migrate(database.url()).await.unwrap();
    eventually("work begins once there is a schema", SOON, async || {
        check(&replica, "working").0
    })
    .await;
    assert!(check(&replica, "schema").0);
    assert!(replica.health.report().is_ready());
    replica.stop().await;
}

#[tokio::test]
async fn a_schema_of_an_older_version_is_named() {
    let database = TestDatabase::create().await;
    database
        .run("DELETE FROM __diesel_schema_migrations WHERE version > '20261121000003'")
        .await;
    let replica = start("scanner", backbone(&database));
    eventually("the old schema is named", SOON, async || {
        let (_, detail) = check(&replica, "schema");
        detail.contains("20261121000003") && detail.contains("run `earshot migrate`")
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
    eventually("the database is reported missing", SOON, async || {
        !check(&replica, "database").1.is_empty()
    })
    .await;
    assert!(!check(&replica, "working").0);
    replica.stop().await;
}

#[tokio::test]
async fn a_database_that_goes_away_is_missed_until_it_is_back() {
    let database = TestDatabase::create().await;
    let replica = start("scanner", backbone(&database));
    eventually("it is ready", SOON, async || {
        replica.health.report().is_ready()
    })
    .await;

    // Connections end, and new ones are refused.
    database.go_away().await;
    eventually("its loss shows", SOON, async || {
        !check(&replica, "database").0
    })
    .await;
    assert!(!replica.health.report().is_ready());

    database.come_back().await;
    eventually("it is well again", SOON, async || {
        replica.health.report().is_ready()
    })
    .await;
    replica.stop().await;
}

#[tokio::test]
async fn a_database_that_does_not_answer_is_missed() {
    let database = TestDatabase::create().await;
    let replica = start("scanner", backbone(&database));
    eventually("it is ready", SOON, async || {
        replica.health.report().is_ready()
    })
    .await;

    let lock = "LOCK TABLE __diesel_schema_migrations, replicas IN ACCESS EXCLUSIVE MODE";
    let locked = database.begin(&[lock]).await;
    eventually("its silence shows", SOON, async || {
        check(&replica, "database").1.contains("no answer")
    })
    .await;
    drop(locked);
    eventually("it is well again", SOON, async || {
        replica.health.report().is_ready()
    })
    .await;
    replica.stop().await;
}
