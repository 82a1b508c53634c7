//! Alerts about processes fire by their causes.

use std::{process::Command, time::Duration};

use runtime::{Config, Health, environment, telemetry};
use test_support::{Alert, Replica, TestDatabase, eventually};

use crate::support::{backbone, start};

async fn ready(database: &TestDatabase) -> Replica {
    let replica = start("scanner", backbone(database));
    eventually("it is ready", async || replica.health.report().is_ready()).await;
    replica
}

#[tokio::test]
async fn alerts_fire_while_the_schema_is_too_old() {
    let database = TestDatabase::create().await;
    let replica = ready(&database).await;
    let not_ready = Alert::watch("EarshotNotReady", &replica).await;
    let mismatch = Alert::watch("EarshotSchemaMismatch", &replica).await;
    database
        .run("DELETE FROM __diesel_schema_migrations WHERE version > '20261128001030'")
        .await;
    not_ready.fires().await;
    mismatch.fires().await;
    replica.stop().await;
}

#[tokio::test]
async fn alert_fires_when_partitions_cannot_be_created() {
    let database = TestDatabase::create().await;
    let replica = ready(&database).await;
    let alert = Alert::watch("EarshotPartitionsNotCreated", &replica).await;
    // The service looks at once when this week's is missing.
    for statement in [
        "CREATE OR REPLACE FUNCTION ensure_partitions(parent text, from_time timestamptz, weeks integer) RETURNS void \
         LANGUAGE plpgsql AS $$ BEGIN RAISE 'nothing at all'; END $$",
        "DO $$ BEGIN EXECUTE 'DROP TABLE scans' || \
         to_char(date_trunc('week', now() AT TIME ZONE 'UTC'), '\"_\"YYYYMMDD'); END $$",
    ] {
        database.run(statement).await;
    }
    alert.fires().await;
    replica.stop().await;
}

#[tokio::test]
async fn alert_fires_when_the_clocks_differ() {
    let database = TestDatabase::create().await;
    let replica = ready(&database).await;
    let alert = Alert::watch("EarshotClockSkew", &replica).await;
    database.skew_clock("2 hours").await;
    database.disconnect_all().await;
    alert.fires().await;
    replica.stop().await;
}

#[tokio::test]
async fn alert_fires_when_the_pool_is_too_small() {
    let database = TestDatabase::create().await;
    let replica = ready(&database).await;
    let alert = Alert::watch("EarshotDbPoolExhausted", &replica).await;
    let pool = &replica.backbone.pool;
    let size = test_support::config(&database, store::roles::Service::Scanner)
        .database
        .max_connections;
    let mut held = Vec::new();
    for _ in 0..size {
        held.push(pool.get().await.unwrap());
    }
    let (waited, ()) = tokio::join!(pool.get(), async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        held.clear();
    });
    drop(waited.unwrap());
    alert.repeats().fires().await;
    replica.stop().await;
}

/// The environment alone says where the collector is, so the test runs itself again.
#[tokio::test]
async fn alert_fires_while_the_collector_is_away() {
    const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
    const NOWHERE: &str = "http://127.0.0.1:1";
    let mut variables = environment::variables().into_iter();
    if !variables.any(|(name, value)| name == ENDPOINT && value == NOWHERE) {
        let mut again = Command::new(std::env::current_exe().unwrap());
        let own = "alerts::alert_fires_while_the_collector_is_away";
        again.args([own, "--exact", "--nocapture"]);
        again
            .env(ENDPOINT, NOWHERE)
            .env("OTEL_TRACES_SAMPLER", "always_on");
        assert!(again.status().unwrap().success());
        return;
    }
    let log = Config::dev().log;
    let telemetry = telemetry::init("scanner", &log, telemetry::Output::Stderr);
    let alert = Alert::of_service("EarshotTelemetryDropped", "scanner", &Health::new()).await;
    drop(tracing::info_span!("work"));
    alert.repeats().fires().await;
    telemetry.shutdown();
}
