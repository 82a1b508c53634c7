//! Alerts about scanning fire by their causes. Rows are dated back where a rule waits for days.

use std::time::Duration;

use domain::Timestamp;
use platform_simulator::{BLUESKY, Fault, FaultKind, NewPost};
use runtime::config::PostReader;
use store::roles::Service;
use test_support::{Alert, eventually};

use crate::{
    quarantine::refuse_poison,
    support::{HACKER_NEWS, LEMMY, World, post},
};

/// Makes the database refuse changes of a table.
async fn refuse(world: &World, change: &str) {
    for statement in [
        "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         RAISE 'nothing at all'; END $$"
            .to_owned(),
        format!("CREATE TRIGGER refuse BEFORE {change} EXECUTE FUNCTION refuse()"),
    ] {
        world.database.run(&statement).await;
    }
}

async fn run_each(world: &World, statements: &[&str]) {
    for statement in statements {
        world.database.run(statement).await;
    }
}

#[tokio::test]
async fn alerts_fire_for_work_that_never_ends() {
    let mut world = World::new().await;
    for platform in &mut world.config.platforms {
        platform.access.erase_deleted = Some(platform.name == "lemmy");
    }
    refuse(&world, "DELETE ON purges FOR EACH ROW").await;
    refuse(&world, "DELETE ON look_backs FOR EACH ROW").await;
    let manager = world.manager("kettle", &[LEMMY]).await;
    let replica = world.ready_scanner().await;
    world.publish("lemmy", "A kettle");
    world.until_scanned(manager, 1).await;
    let fan_out = Alert::watch("EarshotFanOutStuck", &replica).await;
    let deletions = Alert::watch("EarshotDeletionsStuck", &replica).await;
    let backfills = Alert::watch("EarshotBackfillsStuck", &replica).await;
    let rechecks = Alert::watch("EarshotRecheckStuck", &replica).await;
    let events = Alert::watch("EarshotDeliveriesNotMade", &replica).await;
    run_each(
        &world,
        &[
            "UPDATE scans SET create_time = create_time - interval '1 hour'",
            "INSERT INTO purges (namespace_id, create_time) VALUES (gen_random_uuid(), now() - interval '3 days')",
            "INSERT INTO look_backs (feed, notify, since, create_time) \
             VALUES ('lemmy:c/stuck', false, now(), now() - interval '3 days')",
            "INSERT INTO service_events (namespace_id, event_type, name, details, create_time) \
             VALUES (gen_random_uuid(), 'COVERAGE_GAP', 'a', '{}', now() - interval '1 hour')",
            "CREATE FUNCTION stay() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             NEW.begin_time = now() - interval '3 days'; RETURN NEW; END $$",
            "CREATE TRIGGER stay BEFORE INSERT OR UPDATE ON rechecks FOR EACH ROW EXECUTE FUNCTION stay()",
            "UPDATE rechecks SET next_time = now()",
        ],
    )
    .await;
    for alert in [fan_out, deletions, backfills, rechecks, events] {
        alert.fires().await;
    }
    replica.stop().await;
}

#[tokio::test]
async fn alert_fires_when_polls_start_late() {
    let world = World::new().await;
    world.manager("kettle", &[LEMMY]).await;
    let replica = world.ready_scanner().await;
    let alert = Alert::watch("EarshotPollsLate", &replica).await;
    run_each(
        &world,
        &[
            "CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             NEW.next_poll_time = now() - interval '1 minute'; RETURN NEW; END $$",
            "CREATE TRIGGER late BEFORE UPDATE ON feeds FOR EACH ROW EXECUTE FUNCTION late()",
        ],
    )
    .await;
    alert.repeats().fires().await;
    replica.stop().await;
}

#[tokio::test]
async fn alert_fires_when_no_feed_can_be_leased() {
    let world = World::new().await;
    let replica = world.ready_scanner().await;
    let alert = Alert::watch("EarshotPollsStopped", &replica).await;
    refuse(
        &world,
        "UPDATE ON feeds FOR EACH ROW WHEN (NEW.leased_by IS NOT NULL)",
    )
    .await;
    world.manager("kettle", &[LEMMY]).await;
    alert.fires().await;
    replica.stop().await;
}

#[tokio::test]
async fn alert_fires_when_polls_cannot_be_stored() {
    let world = World::new().await;
    world.manager("kettle", &[LEMMY]).await;
    let replica = world.ready_scanner().await;
    let alert = Alert::watch("EarshotPollsNotStored", &replica).await;
    refuse(&world, "INSERT ON posts FOR EACH ROW").await;
    world.publish("lemmy", "A kettle");
    alert.repeats().fires().await;
    replica.stop().await;
}

/// The log reads as if a Manager of the feed changed between any two looks.
#[tokio::test]
async fn alert_fires_when_plans_change_faster_than_polls_are_stored() {
    let world = World::new().await;
    let manager = world.manager("kettle", &[LEMMY]).await;
    let grant = format!(
        "GRANT SELECT ON plan_changes TO {}",
        Service::Scanner.role()
    );
    run_each(
        &world,
        &[
            "ALTER TABLE plan_changes RENAME TO logged",
            "CREATE VIEW plan_changes AS \
             SELECT version, namespace_id, manager_id, change_time, gen_random_uuid() AS nonce FROM logged",
            &grant,
        ],
    )
    .await;
    let replica = world.ready_scanner().await;
    let alert = Alert::watch("EarshotPollsNotStored", &replica).await;
    world.publish("lemmy", "A kettle");
    alert.repeats().fires().await;
    eventually("the feed shows why", async || {
        world.feed(LEMMY, "last_error").await
            == "cannot store a poll: plans or quotas change faster than a poll can be stored"
    })
    .await;
    run_each(
        &world,
        &[
            "DROP VIEW plan_changes",
            "ALTER TABLE logged RENAME TO plan_changes",
        ],
    )
    .await;
    world.until_scanned(manager, 1).await;
    replica.stop().await;
}

async fn answer_all_requests_with(status: u64) {
    let world = World::new().await;
    world.manager("kettle", &[LEMMY]).await;
    let replica = world.ready_scanner().await;
    let failing = Alert::watch("EarshotFeedsFailing", &replica).await;
    let errors = Fault::new("lemmy", FaultKind::Status, status);
    world.platforms.fail(errors.times(1_000));
    failing.fires().await;
    replica.stop().await;
}

#[tokio::test]
async fn alerts_fire_when_a_platform_fails() {
    answer_all_requests_with(500).await;
}

#[tokio::test]
async fn alert_fires_when_a_platform_accepts_no_credentials() {
    answer_all_requests_with(401).await;
}

#[tokio::test]
async fn alert_fires_when_a_platform_throttles() {
    let world = World::new().await;
    world.manager("kettle", &[LEMMY]).await;
    let replica = world.ready_scanner().await;
    let alert = Alert::watch("EarshotPlatformThrottled", &replica).await;
    let throttling = Fault::new("lemmy", FaultKind::RetryAfter, 1);
    world.platforms.fail(throttling.times(1_000));
    alert.repeats().fires().await;
    replica.stop().await;
}

#[tokio::test]
async fn alert_fires_when_a_busy_platform_falls_silent() {
    let world = World::new().await;
    let manager = world.manager("kettle", &[LEMMY]).await;
    let replica = world.ready_scanner().await;
    let mut alert = Alert::watch("EarshotPlatformSilent", &replica).await;
    world.publish("lemmy", "A kettle");
    world.until_scanned(manager, 1).await;
    alert.record_usual().await;
    alert.fires().await;
    replica.stop().await;
}

#[tokio::test]
async fn alert_fires_for_feeds_of_an_unconfigured_platform() {
    let world = World::new().await;
    let replica = world.ready_scanner().await;
    let alert = Alert::watch("EarshotPlatformNotConfigured", &replica).await;
    world.manager("kettle", &["renamed:newest"]).await;
    alert.fires().await;
    replica.stop().await;
}

#[tokio::test]
async fn alert_fires_when_the_budget_of_a_platform_is_spent() {
    let mut world = World::new().await;
    for platform in &mut world.config.platforms {
        platform.access.requests_per_minute = Some(4);
    }
    let replica = world.ready_scanner().await;
    let alert = Alert::watch("EarshotBudgetSpent", &replica).await;
    world.manager("kettle", &[LEMMY]).await;
    alert.fires().await;
    replica.stop().await;
}

#[tokio::test]
async fn alert_fires_when_a_stream_is_an_hour_behind() {
    let mut world = World::new().await;
    world.add_stream();
    let hour = Duration::from_hours(1);
    world.platforms.set_now(Timestamp::now().minus(hour));
    let replica = world.ready_scanner().await;
    let alert = Alert::watch("EarshotStreamBehind", &replica).await;
    world.manager("kettle", &["bluesky:jetstream"]).await;
    world.until_asked("/bluesky/subscribe").await;
    world.platforms.publish(vec![NewPost {
        platform: BLUESKY.to_owned(),
        title: "A kettle".to_owned(),
        ..NewPost::default()
    }]);
    alert.fires().await;
    replica.stop().await;
}

/// The feed shows few entries, and more come between two polls.
#[tokio::test]
async fn alert_fires_for_a_gap() {
    let world = World::new().await;
    let manager = world.manager("kettle", &["blog:newest"]).await;
    let replica = world.ready_scanner().await;
    world.publish("feed:blog", "A kettle");
    world.until_scanned(manager, 1).await;
    let alert = Alert::watch("EarshotFeedGap", &replica).await;
    replica.stop().await;
    let posts = (0..40).map(|n| post("feed:blog", &format!("Kettle {n}")));
    world.platforms.publish(posts.collect());
    world.platforms.keep_newest(10);
    let replica = world.ready_scanner().await;
    alert.fires().await;
    replica.stop().await;
}

#[tokio::test]
async fn alert_fires_when_the_database_refuses_a_post() {
    let world = World::new().await;
    refuse_poison(&world, true).await;
    let manager = world.manager("kettle", &[LEMMY]).await;
    let replica = world.ready_scanner().await;
    let alert = Alert::watch("EarshotPostsQuarantined", &replica).await;
    world.publish("lemmy", "A kettle full of poison");
    world.publish("lemmy", "A kettle");
    world.until_scanned(manager, 1).await;
    alert.fires().await;
    replica.stop().await;
}

#[tokio::test]
async fn alert_fires_when_refused_matches_exceed_their_space() {
    let mut world = World::new().await;
    world.config.quotas.scans_per_day = 1;
    let manager = world.manager("kettle", &[LEMMY]).await;
    let replica = world.ready_scanner().await;
    let alert = Alert::watch("EarshotRefusedMatchesDropped", &replica).await;
    // As if each post took the space of an account.
    run_each(
        &world,
        &[
            "CREATE FUNCTION swell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             NEW.bytes = 250000000; RETURN NEW; END $$",
            "CREATE TRIGGER swell BEFORE INSERT ON refused_posts FOR EACH ROW EXECUTE FUNCTION swell()",
        ],
    )
    .await;
    world.publish("lemmy", "A kettle");
    world.until_scanned(manager, 1).await;
    let flood = async {
        loop {
            let posts = (0..20).map(|n| NewPost {
                text: Some("kettle ".repeat(2_000)),
                ..post("lemmy", &format!("Kettle {n}"))
            });
            world.platforms.publish(posts.collect());
            world.until_asked("/lemmy").await;
        }
    };
    // What is too much is dropped with a probability that grows with the size of what is refused.
    tokio::select! {
        () = alert.fires() => {}
        () = flood => {}
    }
    replica.stop().await;
}

#[tokio::test]
async fn alert_fires_when_the_database_is_read_only() {
    let world = World::new().await;
    world.manager("kettle", &[LEMMY]).await;
    let replica = world.ready_scanner().await;
    let alert = Alert::watch("EarshotDatabaseRefuses", &replica).await;
    let read_only = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', \
                     current_database()); END $$";
    world.database.run(read_only).await;
    world.database.disconnect_all().await;
    alert.repeats().fires().await;
    replica.stop().await;
}

#[tokio::test]
async fn alert_fires_for_a_reader_without_files() {
    let mut world = World::new().await;
    let replica = world.ready_scanner().await;
    let alert = Alert::watch("EarshotReaderUnusable", &replica).await;
    replica.stop().await;
    let empty = tempfile::tempdir().unwrap();
    world.config.scanner.reader = Some(PostReader {
        folder: empty.path().to_str().unwrap().to_owned(),
        max_wait: Duration::from_secs(1),
        max_per_manager_per_day: 1,
    });
    let replica = world.ready_scanner().await;
    alert.fires().await;
    replica.stop().await;
}

/// For example those of a later release.
#[tokio::test]
async fn alert_fires_for_instructions_that_cannot_be_read() {
    let world = World::new().await;
    let manager = world.manager("kettle", &[HACKER_NEWS]).await;
    let replica = world.ready_scanner().await;
    let alert = Alert::watch("EarshotIndexStale", &replica).await;
    world
        .database
        .run("UPDATE managers SET instructions = '{\"later\": true}'")
        .await;
    world.change(manager).await;
    alert.fires().await;
    replica.stop().await;
}
