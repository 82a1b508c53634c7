//! Tests of Connections, requested as the gateway does.

use std::time::Duration;

use domain::{ConnectionName, Timestamp, replay::CreateReplay, trial_delivery::TestResult};
use serde_json::Value;
use store::{
    AsyncConnection, replays,
    trial_deliveries::{self, Progress},
};
use test_support::{Answer, eventually};

use crate::support::{World, always};

impl World {
    async fn test(&self, connection: ConnectionName) -> TestResult {
        let mut conn = self.database.connect().await;
        let id = trial_deliveries::request(&mut conn, connection).await;
        let id = id
            .unwrap()
            .expect("fewer tests wait than an account may have");
        let mut found = None;
        eventually("the test is answered", async || {
            let mut conn = self.database.connect().await;
            match trial_deliveries::progress(&mut conn, id).await.unwrap() {
                Progress::Answered(result) => found = Some(result),
                Progress::Waiting | Progress::Taken => {}
                Progress::Gone => panic!("the row is gone"),
            }
            found.is_some()
        })
        .await;
        found.unwrap()
    }
}

#[tokio::test]
async fn test_sends_a_sample_and_reports_the_response() {
    let world = World::new().await;
    let receiver = always(Answer::Status(204)).await;
    let connection = world.connection(&receiver).await;
    let replica = world.ready_dispatcher().await;
    // Disabled Connections are tested too.
    for state in ["ACTIVE", "DISABLED"] {
        world
            .database
            .run(&format!("UPDATE connections SET state = '{state}'"))
            .await;
        let result = world.test(connection).await;
        assert!(result.ok && result.sent, "{result:?}");
        assert_eq!((result.status_code, result.error), (Some(204), None));
    }
    let requests = receiver.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].header("x-secret"), Some("hush"));
    let body: Value = serde_json::from_slice(&requests[0].body).unwrap();
    assert_eq!(
        (&body["type"], &body["post"]["type"]),
        (&"SCAN".into(), &"FORUM_LINK".into())
    );
    let name = body["name"].as_str().unwrap();
    assert!(name.parse::<domain::ScanName>().is_ok(), "{name}");
    assert_eq!(
        world.database.count("deliveries").await,
        0,
        "it is in no log"
    );
    replica.stop().await;
}

#[tokio::test]
async fn test_reports_the_failure() {
    let mut world = World::new().await;
    // Only the silent endpoint takes this long, also on a busy machine.
    world.config.dispatcher.timeout = Duration::from_secs(5);
    let replica = world.ready_dispatcher().await;
    let broken = always(Answer::Status(503)).await;
    let silent = always(Answer::Hang).await;
    let urls = [
        (
            broken.url("/hook"),
            true,
            Some(503),
            "answered 503, not 2xx",
        ),
        (silent.url("/hook"), true, None, "timeout: "),
        (
            "http://127.0.0.1:2/".to_owned(),
            true,
            None,
            "connect_refused: ",
        ),
        (
            "http://10.0.0.1/".to_owned(),
            false,
            None,
            "forbidden_address: ",
        ),
    ];
    for (url, sent, status, error) in urls {
        let connection = {
            let mut conn = world.database.connect().await;
            world.fixture.connection(&mut conn, &url).await
        };
        let result = world.test(connection).await;
        assert_eq!(
            (result.ok, result.sent, result.status_code),
            (false, sent, status),
            "{url}"
        );
        let told = result.error.unwrap();
        assert!(told.starts_with(error), "{told}");
    }
    world
        .database
        .run("UPDATE connections SET headers_sealed = 'nonsense'")
        .await;
    let connection = world.connection(&broken).await;
    world
        .database
        .run("UPDATE connections SET headers_sealed = 'nonsense'")
        .await;
    let result = world.test(connection).await;
    assert!(!result.sent && result.error.unwrap().contains("decrypted"));
    replica.stop().await;
}

#[tokio::test]
async fn each_test_runs_on_one_replica() {
    let world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let connection = world.connection(&receiver).await;
    let replicas = [
        world.ready_dispatcher().await,
        world.ready_dispatcher().await,
    ];
    for _ in 0..5 {
        assert!(world.test(connection).await.ok);
    }
    world.beats(1).await;
    assert_eq!(receiver.count(), 5);
    for replica in replicas {
        replica.stop().await;
    }
}

/// It may be what ended the dispatcher, and no one could tell whether its request arrived.
#[tokio::test]
async fn test_that_a_dispatcher_died_with_is_not_run_again_and_delays_no_other() {
    let world = World::new().await;
    let silent = always(Answer::Hang).await;
    let connection = world.connection(&silent).await;
    let replica = world.ready_dispatcher().await;
    let mut conn = world.database.connect().await;
    let asked = trial_deliveries::request(&mut conn, connection).await;
    let id = asked.unwrap().unwrap();
    eventually("it is sent", async || silent.count() == 1).await;
    replica.kill();

    let replica = world.ready_dispatcher().await;
    // Longer than any lease of the dead one would last.
    eventually("it may take over", async || {
        replica.backbone.may_take_over()
    })
    .await;
    let receiver = always(Answer::Status(204)).await;
    let other = world.connection(&receiver).await;
    assert!(world.test(other).await.ok);
    assert_eq!(silent.count(), 1);
    // Its row is removed after a minute.
    let progress = trial_deliveries::progress(&mut conn, id).await.unwrap();
    assert!(matches!(progress, Progress::Taken | Progress::Gone));
    replica.stop().await;
}

#[tokio::test]
async fn abandoned_test_is_not_run_and_is_purged() {
    let world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let connection = world.connection(&receiver).await;
    let mut conn = world.database.connect().await;
    let id = trial_deliveries::request(&mut conn, connection)
        .await
        .unwrap()
        .unwrap();
    world
        .database
        .run("UPDATE connection_tests SET create_time = now() - interval '20 seconds'")
        .await;
    let replica = world.ready_dispatcher().await;
    let well = always(Answer::Status(200)).await;
    let later = world.connection(&well).await;
    assert!(world.test(later).await.ok);
    assert_eq!(receiver.count(), 0);
    assert_eq!(
        trial_deliveries::progress(&mut conn, id).await.unwrap(),
        Progress::Waiting
    );
    assert!(trial_deliveries::withdraw(&mut conn, id).await.unwrap());
    assert_eq!(
        trial_deliveries::progress(&mut conn, id).await.unwrap(),
        Progress::Gone
    );
    trial_deliveries::request(&mut conn, connection)
        .await
        .unwrap()
        .unwrap();
    world
        .database
        .run("UPDATE connection_tests SET create_time = now() - interval '2 minutes'")
        .await;
    // Both that were never run, or run and answered, are old now.
    assert_eq!(trial_deliveries::purge(&mut conn).await.unwrap(), 2);
    replica.stop().await;
}

#[tokio::test]
async fn account_runs_few_tests_at_a_time_and_delays_no_other() {
    let mut world = World::new().await;
    // The shutdown waits for open requests.
    world.config.dispatcher.timeout = Duration::from_secs(4);
    let silent = always(Answer::Hang).await;
    let connection = world.connection(&silent).await;
    let mut conn = world.database.connect().await;
    for _ in 0..trial_deliveries::MAX_PER_ACCOUNT {
        let id = trial_deliveries::request(&mut conn, connection)
            .await
            .unwrap();
        assert!(id.is_some());
    }
    let one_more = trial_deliveries::request(&mut conn, connection)
        .await
        .unwrap();
    assert_eq!(one_more, None);

    let replica = world.ready_dispatcher().await;
    let other = world.fixture.beside(&mut conn, "other").await;
    let receiver = always(Answer::Status(204)).await;
    let connection = other.connection(&mut conn, &receiver.url("/hook")).await;
    let result = world.test(connection).await;
    assert!(result.ok, "{result:?}");
    replica.stop().await;
}

#[tokio::test]
async fn test_waits_for_one_count_of_a_replay_at_most() {
    let world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let draft = CreateReplay {
        start_time: Timestamp::now().minus(Duration::from_secs(3_600)),
        end_time: None,
        states: None,
    };
    let connection = world.connection(&receiver).await;
    for _ in 0..4 {
        let connection = world.connection(&receiver).await;
        let mut conn = world.database.connect().await;
        conn.transaction(async |conn| replays::insert(conn, connection, &draft).await)
            .await
            .unwrap()
            .unwrap();
    }
    world
        .database
        .run("UPDATE replays SET counted = false, next_batch_time = 'infinity'")
        .await;
    // Notes how many replays are counted when a test is requested, and when it is taken.
    for statement in [
        "CREATE TABLE log (counted bigint)",
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN \
         INSERT INTO log SELECT count(*) FROM replays WHERE counted; RETURN NULL; END $$",
        "CREATE TRIGGER note AFTER INSERT OR UPDATE OF taken_by ON connection_tests \
         FOR EACH ROW EXECUTE FUNCTION note()",
    ] {
        world.database.run(statement).await;
    }
    let replica = world.ready_dispatcher().await;
    // Each count takes as long as it may, five seconds.
    let counting = world
        .database
        .begin(&["LOCK TABLE deliveries IN ACCESS EXCLUSIVE MODE"])
        .await;
    world
        .database
        .run("UPDATE replays SET next_batch_time = now()")
        .await;
    let waiting =
        "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    eventually("a count has begun", async || {
        world.database.count(waiting).await > 0
    })
    .await;
    assert!(world.test(connection).await.ok);
    let waited = world
        .database
        .texts("max(counted) - min(counted)", "log")
        .await;
    assert!(["0", "1"].contains(&&*waited[0]), "{waited:?} counts");
    drop(counting);
    replica.stop().await;
}
