//! One customer's broken server does not slow down others.

use domain::Post;
use store::{replays, seal::Sealer};
use test_support::{Answer, Replica, TestServer, eventually};
use tokio::sync::watch;

use crate::support::{World, always};

#[tokio::test]
async fn large_posts_of_one_account_leave_memory_for_others() {
    const NOTICES: usize = 10;
    const WARM: usize = 8 * NOTICES;
    const SCANS: usize = 40;
    const TEXT_BYTES: usize = 160_000;
    // Three quarters of what a replica holds.
    const MOST: usize = 48 * 1024 * 1024 / TEXT_BYTES;
    let mut world = World::new().await;
    let (release, held) = watch::channel(false);
    let answer = Answer::once(&held, Answer::Status(200));
    let hung = TestServer::start(move |number, _| match number {
        0..WARM => Answer::Status(200),
        _ => answer.clone(),
    });
    let (hung, well) = (hung.await, always(Answer::Status(200)).await);
    let mut connections = Vec::new();
    for _ in 0..NOTICES {
        connections.push(world.connection(&hung).await);
    }
    let manager = world.manager(&connections).await;
    let replica = world.ready_dispatcher().await;
    for number in 1..=8 {
        world.publish_scan(manager, &format!("warm {number}")).await;
        let sent = i64::try_from(number * NOTICES).unwrap();
        world.until("SUCCEEDED", sent).await;
    }
    let large = |name: &str| Post {
        text: Some("\u{1f4e1}".repeat(TEXT_BYTES / 4)),
        ..test_support::post(&format!("hackernews:{name}"), name)
    };
    let posts: Vec<_> = (0..SCANS)
        .map(|number| large(&format!("large {number}")))
        .collect();
    for scan in world.record(manager, &posts).await {
        world.publish_created(scan).await;
    }
    eventually("all are fanned out", async || {
        world.database.count("scans WHERE NOT fanned_out").await == 0
    })
    .await;
    // By then the dispatcher has claimed all that it may.
    world.beats(2).await;
    let in_flight = usize::try_from(world.in_state("IN_FLIGHT").await).unwrap();
    assert!(
        (NOTICES..=MOST).contains(&in_flight),
        "{in_flight} are held"
    );

    let mut conn = world.database.connect().await;
    world.fixture = world.fixture.beside(&mut conn, "other").await;
    let other = world.manager_for(&well).await;
    for scan in world.record(other, &[large("other")]).await {
        world.publish_created(scan).await;
    }
    eventually("another account's is sent", async || well.count() == 1).await;
    release.send(true).expect("the receiver waits");
    let all = WARM + SCANS * NOTICES + 1;
    world.until("SUCCEEDED", i64::try_from(all).unwrap()).await;
    assert_eq!(hung.count() + well.count(), all, "each once");
    replica.stop().await;
}

/// Requests the retries of several Scans to each of these Connections, which hang, and delivers a Scan of another
/// account to `well` meanwhile.
async fn deliver_beside_requested_retries(
    connections: usize,
    scans: usize,
) -> (World, Replica, [TestServer; 2]) {
    let mut world = World::new().await;
    world.config.dispatcher.max_in_flight = 8;
    let (hung, well) = (
        always(Answer::Hang).await,
        always(Answer::Status(200)).await,
    );
    let mut notices = Vec::new();
    for _ in 0..connections {
        notices.push(world.connection(&hung).await);
    }
    let manager = world.manager(&notices).await;
    world
        .database
        .run("UPDATE connections SET state = 'DISABLED'")
        .await;
    let replica = world.ready_dispatcher().await;
    world.scans(manager, scans).await;
    let all = i64::try_from(connections * scans).unwrap();
    world.until("PENDING", all).await;
    for sql in [
        "UPDATE deliveries SET urgent = true",
        "UPDATE connections SET state = 'ACTIVE'",
    ] {
        world.database.run(sql).await;
    }
    eventually("some are open", async || hung.count() > 0).await;
    let mut conn = world.database.connect().await;
    world.fixture = world.fixture.beside(&mut conn, "other").await;
    let manager = world.manager_for(&well).await;
    world.publish_scan(manager, "well").await;
    world.until("SUCCEEDED", 1).await;
    assert_eq!(well.count(), 1);
    (world, replica, [hung, well])
}

#[tokio::test]
async fn requested_retries_of_one_connection_delay_no_other() {
    let (world, replica, _servers) = deliver_beside_requested_retries(1, 200).await;
    // Each query for due Connections would have taken more of them.
    let held = world.in_state("IN_FLIGHT").await;
    assert!(held <= 2, "{held} are held");
    drop(replica);
}

#[tokio::test]
async fn requested_retries_of_one_account_delay_no_other() {
    let (world, replica, [hung, well]) = deliver_beside_requested_retries(20, 3).await;
    let requested = "UPDATE deliveries SET urgent = true, state = 'PENDING', next_attempt_time = now() \
                     WHERE state = 'SUCCEEDED'";
    assert_eq!(world.database.run(requested).await, 1);
    eventually("it is sent again", async || well.count() == 2).await;
    // Each query for due Connections would have taken more of them.
    let held = world.in_state("IN_FLIGHT").await;
    assert!(held <= 5, "{held} are held");
    assert!(hung.most_open() <= 2, "{} are open", hung.most_open());
    drop(replica);
}

/// Number of transactions that changed rows of `table` before the first that changed one of another account than
/// the fixture's.
async fn turns_before_another(world: &World, table: &str) -> i64 {
    let account = world.fixture.account.to_uuid();
    let of_another = format!(
        "SELECT min(s.number) FROM steps AS s JOIN namespaces AS n ON n.id = s.namespace_id \
         WHERE s.changed = '{table}' AND n.account_id <> '{account}'"
    );
    let earlier = format!(
        "(SELECT DISTINCT transaction FROM steps WHERE changed = '{table}' AND number < ({of_another})) AS earlier"
    );
    world.database.count(&earlier).await
}

/// Logs changes of `table` in the table `steps`.
async fn log_steps(world: &World, table: &str) {
    for sql in [
        "CREATE TABLE steps (number bigserial, transaction xid8, changed text, namespace_id uuid)"
            .to_owned(),
        "CREATE FUNCTION log_step() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN \
             INSERT INTO steps (transaction, changed, namespace_id) \
             VALUES (pg_current_xact_id(), TG_ARGV[0], NEW.namespace_id); RETURN NEW; END $$"
            .to_owned(),
        format!(
            "CREATE TRIGGER log_step AFTER UPDATE ON {table} FOR EACH ROW \
             EXECUTE FUNCTION log_step('{table}')"
        ),
    ] {
        world.database.run(&sql).await;
    }
}

#[tokio::test]
async fn scans_of_one_account_delay_those_of_no_other() {
    const BACKLOG: usize = 1_000;
    let mut world = World::new().await;
    let manager = world.manager(&[]).await;
    world.scans(manager, BACKLOG).await;
    let attacker = world.fixture.clone();
    let mut conn = world.database.connect().await;
    world.fixture = attacker.beside(&mut conn, "other").await;
    let manager = world.manager(&[]).await;
    world.scan(manager, "well").await;
    world.fixture = attacker;
    eventually("all are overdue", async || {
        let young = "scans WHERE create_time > now() - interval '3.1 seconds'";
        world.database.count(young).await == 0
    })
    .await;
    log_steps(&world, "scans").await;
    let replica = world.ready_dispatcher().await;
    eventually("all are fanned out", async || {
        world.database.count("scans WHERE NOT fanned_out").await == 0
    })
    .await;
    let turns = turns_before_another(&world, "scans").await;
    assert_eq!(turns, 1, "one batch of the account with the backlog");
    replica.stop().await;
}

#[tokio::test]
async fn replays_of_one_account_delay_those_of_no_other() {
    let mut world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    for _ in 0..3 {
        let connection = world.connection(&receiver).await;
        for _ in 0..replays::MAX_RUNNING {
            world.replay(connection).await;
        }
    }
    let attacker = world.fixture.clone();
    let mut conn = world.database.connect().await;
    world.fixture = attacker.beside(&mut conn, "other").await;
    let connection = world.connection(&receiver).await;
    world.replay(connection).await;
    world.fixture = attacker;
    // As if each had more deliveries than are counted at once.
    world
        .database
        .run("UPDATE replays SET counted = false")
        .await;
    log_steps(&world, "replays").await;
    let replica = world.ready_dispatcher().await;
    eventually("all are done", async || {
        world.database.count("replays WHERE state <> 'DONE'").await == 0
    })
    .await;
    let turns = turns_before_another(&world, "replays").await;
    assert_eq!(turns, 1, "one turn of the account with many");
    replica.stop().await;
}

/// A transaction evaluates the filters of few Scans of an account; none of the others is lost.
#[tokio::test]
async fn scans_with_filters_are_all_fanned_out() {
    const COUNT: usize = 100;
    let world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let manager = world.manager_for(&receiver).await;
    world
        .database
        .run("UPDATE manager_notices SET filter = 'post.title : \"kettle\"'")
        .await;
    world.scans(manager, COUNT).await;
    log_steps(&world, "scans").await;
    let replica = world.ready_dispatcher().await;
    for number in 0..COUNT {
        world
            .publish_scan(manager, &format!("told kettle {number}"))
            .await;
    }
    world
        .until("SUCCEEDED", i64::try_from(2 * COUNT).unwrap())
        .await;
    assert_eq!(receiver.count(), 2 * COUNT);
    let largest = world
        .database
        .texts(
            "max(count)",
            "(SELECT count(*) FROM steps GROUP BY transaction) AS batches",
        )
        .await;
    assert_eq!(largest, ["80"]);
    replica.stop().await;
}

/// They go in small batches, and the next batch does not wait for the interval between two queries.
#[tokio::test]
async fn requested_retries_are_all_sent() {
    let world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let manager = world.manager_for(&receiver).await;
    world
        .database
        .run("UPDATE connections SET state = 'DISABLED'")
        .await;
    let replica = world.ready_dispatcher().await;
    world.scans(manager, 40).await;
    world.until("PENDING", 40).await;
    // The lane itself sends nothing: its circuit breaker is open.
    for sql in [
        "UPDATE connections SET state = 'ACTIVE'",
        "UPDATE connection_lanes SET open_until = now() + interval '1 hour', next_due_time = now() + interval '1 hour'",
        "UPDATE deliveries SET urgent = true",
    ] {
        world.database.run(sql).await;
    }
    world.until("SUCCEEDED", 40).await;
    assert_eq!(receiver.count(), 40, "each once");
    replica.stop().await;
}

#[tokio::test]
async fn unreadable_connection_delays_no_other() {
    let mut world = World::new().await;
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
            .publish_scan(locked_manager, &format!("locked {number}"))
            .await;
    }
    world.publish_scan(both, "both").await;
    world.until("SUCCEEDED", 1).await;
    // A delivery that cannot be sent is retried by the schedule, and then given up.
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
