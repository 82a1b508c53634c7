//! Replays reopen each delivery of the window once, even if a process dies and many replicas work on it.

use std::time::Duration;

use domain::{
    ConnectionName, DeliveryState, Id, ManagerName, Replay, ReplayName, Timestamp,
    list::REPLAY_FIELDS,
    replay::{CreateReplay, ReplayState},
};
use store::{
    AsyncConnection, AsyncPgConnection, QueryError,
    fair::Round,
    replays::{self, Advanced, Pace},
};

use crate::{
    rows,
    support::{Start, list_query, run, start},
};

/// A pace without a limit on the backlog and without pauses.
const PACE: Pace = Pace {
    batch: 20,
    backlog: 1_000_000,
    pause: Duration::ZERO,
    count_timeout: Duration::from_secs(30),
};

/// Minutes of a window that still has all deliveries of the world when a busy machine creates it late.
const ALL: u64 = 360;

struct World {
    at: Start,
    connection: ConnectionName,
}

/// 300 deliveries, one per minute: 200 succeeded and 100 exhausted.
async fn world() -> World {
    let mut at = start().await;
    let connection = at
        .fixture
        .connection(&mut at.conn, "https://a.example/")
        .await;
    let manager = ManagerName {
        namespace: at.fixture.namespace,
        manager: Id::generate(),
    };
    let state = "CASE WHEN n % 3 = 0 THEN 'EXHAUSTED' ELSE 'SUCCEEDED' END";
    rows::deliveries(
        &mut at.conn,
        connection,
        manager,
        300,
        "now()",
        "1 minute",
        state,
    )
    .await;
    World { at, connection }
}

impl World {
    async fn replay(&mut self, minutes: u64, states: Option<Vec<DeliveryState>>) -> Option<Replay> {
        let draft = CreateReplay {
            start_time: Timestamp::now().minus(Duration::from_secs(minutes * 60 + 30)),
            end_time: None,
            states,
        };
        let connection = self.connection;
        self.at
            .conn
            .transaction(async |conn| replays::insert(conn, connection, &draft).await)
            .await
            .unwrap()
    }

    async fn advance(&mut self) -> Option<Advanced> {
        advance(&mut self.at.conn, PACE).await
    }

    async fn until_done(&mut self, replay: ReplayName) -> Replay {
        while self.advance().await.is_some() {}
        let replay = replays::get(&mut self.at.conn, replay)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(replay.state, ReplayState::Done);
        replay
    }

    async fn reopened(&self) -> i64 {
        self.at
            .database
            .count("deliveries WHERE state = 'PENDING' AND schedule_base = 1")
            .await
    }
}

async fn advance(conn: &mut AsyncPgConnection, pace: Pace) -> Option<Advanced> {
    let turn = conn.transaction(async |conn| {
        replays::advance(conn, pace, &mut Round::default(), |_| ()).await
    });
    turn.await.unwrap().map(|(_, advanced)| advanced)
}

#[tokio::test]
async fn every_delivery_of_the_window_is_reopened_once() {
    let mut world = world().await;
    let replay = world.replay(90, None).await.unwrap();
    assert_eq!(
        (replay.total, replay.done, replay.state),
        (90, 0, ReplayState::Running)
    );
    let done = world.until_done(replay.name).await;
    assert_eq!((done.total, done.done), (90, 90));
    assert_eq!(world.reopened().await, 90);
    let due = "deliveries WHERE state = 'PENDING' AND next_attempt_time <= now() AND NOT urgent \
        AND create_time > now() - interval '91 minutes'";
    assert_eq!(world.at.database.count(due).await, 90);
    assert_eq!(
        world.at.database.count("deliveries").await,
        300,
        "no row is added"
    );
}

#[tokio::test]
async fn deliveries_of_other_states_are_not_reopened() {
    let mut world = world().await;
    let replay = world
        .replay(90, Some(vec![DeliveryState::Exhausted]))
        .await
        .unwrap();
    assert_eq!(replay.total, 30);
    let done = world.until_done(replay.name).await;
    assert_eq!(
        (done.total, done.done, world.reopened().await),
        (30, 30, 30)
    );
    assert_eq!(done.states, Some(vec![DeliveryState::Exhausted]));
}

#[tokio::test]
async fn a_replay_that_cannot_go_on_keeps_no_other_waiting() {
    let mut world = world().await;
    let stuck = world.replay(90, None).await.unwrap();
    let url = "https://b.example/";
    let healthy = world.at.fixture.connection(&mut world.at.conn, url).await;
    let manager = ManagerName {
        namespace: world.at.fixture.namespace,
        manager: Id::generate(),
    };
    let conn = &mut world.at.conn;
    rows::deliveries(
        conn,
        healthy,
        manager,
        60,
        "now()",
        "1 minute",
        "'SUCCEEDED'",
    )
    .await;
    run(
        conn,
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$",
    )
    .await;
    run(
        conn,
        format!(
            "CREATE TRIGGER refuse BEFORE UPDATE ON deliveries FOR EACH ROW \
             WHEN (NEW.connection_id = '{}') EXECUTE FUNCTION refuse()",
            world.connection.connection.to_uuid()
        ),
    )
    .await;
    let broken = std::mem::replace(&mut world.connection, healthy);
    let other = world.replay(30, None).await.unwrap();

    let done = world.until_done(other.name).await;

    assert_eq!(done.done, 30);
    world.connection = broken;
    let stuck = replays::get(&mut world.at.conn, stuck.name).await.unwrap();
    assert_eq!(stuck.unwrap().state, ReplayState::Running, "it comes again");
}

#[tokio::test]
async fn a_rolled_back_batch_is_repeated() {
    let mut world = world().await;
    let replay = world.replay(200, None).await.unwrap();
    world.advance().await;
    // The process dies before its commit.
    for _ in 0..3 {
        let lost: Result<(), store::Error> = world
            .at
            .conn
            .transaction(async |conn| {
                replays::advance(conn, PACE, &mut Round::default(), |_| ()).await?;
                Err(store::QueryError::RollbackTransaction.into())
            })
            .await;
        lost.unwrap_err();
    }
    assert_eq!(world.reopened().await, 20);
    let found = replays::get(&mut world.at.conn, replay.name)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(found.done, 20);
    world.until_done(replay.name).await;
    assert_eq!(world.reopened().await, 200);
    assert_eq!(
        world
            .at
            .database
            .count("deliveries WHERE schedule_base > 1")
            .await,
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_workers_reopen_each_delivery_once() {
    let mut world = world().await;
    let replay = world.replay(ALL, None).await.unwrap();
    // A reopened delivery counts as retried at once, so that a second reopening would show.
    run(
        &mut world.at.conn,
        "CREATE FUNCTION tried() RETURNS trigger LANGUAGE plpgsql AS $$ \
         BEGIN NEW.attempt_count := NEW.attempt_count + 1; RETURN NEW; END $$",
    )
    .await;
    run(
        &mut world.at.conn,
        "CREATE TRIGGER tried BEFORE UPDATE ON deliveries FOR EACH ROW EXECUTE FUNCTION tried()",
    )
    .await;
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let pool = world.at.database.pool();
            tokio::spawn(async move {
                let mut conn = pool.get().await.unwrap();
                for _ in 0..60 {
                    if advance(&mut conn, PACE).await.is_none() {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    world.until_done(replay.name).await;
    assert_eq!(
        world
            .at
            .database
            .count("deliveries WHERE attempt_count = 2")
            .await,
        300
    );
}

#[tokio::test]
async fn a_cancelled_replay_stops() {
    let mut world = world().await;
    let replay = world.replay(300, None).await.unwrap();
    world.advance().await;
    assert!(
        replays::cancel(&mut world.at.conn, replay.name)
            .await
            .unwrap()
    );
    assert_eq!(world.advance().await, None);
    assert!(
        replays::cancel(&mut world.at.conn, replay.name)
            .await
            .unwrap(),
        "again"
    );
    let found = replays::get(&mut world.at.conn, replay.name)
        .await
        .unwrap()
        .unwrap();
    assert_eq!((found.state, found.done), (ReplayState::Cancelled, 20));
    assert_eq!(world.reopened().await, 20);
    let unknown = ReplayName {
        replay: Id::generate(),
        ..replay.name
    };
    assert!(!replays::cancel(&mut world.at.conn, unknown).await.unwrap());
}

#[tokio::test]
async fn a_replay_waits_while_its_connection_is_busy_or_disabled() {
    let mut world = world().await;
    world.replay(300, None).await.unwrap();
    let pace = Pace {
        backlog: 30,
        ..PACE
    };
    let mut reopened = 0;
    loop {
        match advance(&mut world.at.conn, pace).await {
            Some(Advanced::Reopened(count)) => reopened += count,
            other => {
                assert_eq!(other, Some(Advanced::Waiting));
                break;
            }
        }
    }
    assert_eq!(reopened, 40, "two batches are more than 30");
    assert_eq!(
        advance(&mut world.at.conn, pace).await,
        None,
        "it comes again later"
    );

    let soon = "UPDATE replays SET next_batch_time = now()";
    run(&mut world.at.conn, soon).await;
    run(
        &mut world.at.conn,
        "UPDATE connections SET state = 'DISABLED'",
    )
    .await;
    assert_eq!(world.advance().await, Some(Advanced::Waiting));
    run(
        &mut world.at.conn,
        "UPDATE connections SET state = 'ACTIVE'",
    )
    .await;
    run(&mut world.at.conn, soon).await;
    assert_eq!(world.advance().await, Some(Advanced::Reopened(20)));
}

#[tokio::test]
async fn a_large_window_is_counted_by_the_job() {
    let mut world = world().await;
    let manager = ManagerName {
        namespace: world.at.fixture.namespace,
        manager: Id::generate(),
    };
    let (connection, step) = (world.connection, "10 milliseconds");
    rows::deliveries(
        &mut world.at.conn,
        connection,
        manager,
        21_000,
        "now()",
        step,
        "'SUCCEEDED'",
    )
    .await;
    let replay = world.replay(ALL, None).await.unwrap();
    assert!((20_000..21_300).contains(&replay.total), "{}", replay.total);
    let hurried = Pace {
        count_timeout: Duration::from_millis(1),
        ..PACE
    };
    // A count that is cut off is not repeated, and the replay continues.
    let mut other = world.at.database.connect().await;
    other
        .test_transaction::<_, QueryError, _>(async |conn| {
            assert_eq!(advance(conn, hurried).await, Some(Advanced::Counted));
            let found = replays::get(conn, replay.name).await.unwrap().unwrap();
            assert_eq!(found.total, replay.total);
            let next = advance(conn, hurried).await;
            assert!(matches!(next, Some(Advanced::Reopened(_))), "{next:?}");
            Ok(())
        })
        .await;
    assert_eq!(world.advance().await, Some(Advanced::Counted));
    let found = replays::get(&mut world.at.conn, replay.name)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(found.total, 21_300);
}

#[tokio::test]
async fn the_number_of_running_replays_is_bounded() {
    let mut world = world().await;
    for _ in 0..replays::MAX_RUNNING {
        assert!(world.replay(5, None).await.is_some());
    }
    assert!(world.replay(5, None).await.is_none());
    let list = list_query(
        REPLAY_FIELDS,
        100,
        None,
        "state = RUNNING AND total = 5",
        "",
    );
    let page = replays::list(&mut world.at.conn, world.connection, &list)
        .await
        .unwrap();
    assert_eq!(page.items.len(), 10);
    replays::cancel(&mut world.at.conn, page.items[0].name)
        .await
        .unwrap();
    assert!(world.replay(5, None).await.is_some());
}

#[tokio::test]
async fn replays_of_one_account_share_its_pace() {
    let mut world = world().await;
    let first = world.connection;
    let second = world
        .at
        .fixture
        .connection(&mut world.at.conn, "https://b.example/")
        .await;
    let other = world.at.fixture.beside(&mut world.at.conn, "other").await;
    let others = other
        .connection(&mut world.at.conn, "https://c.example/")
        .await;
    for connection in [second, others] {
        let manager = ManagerName {
            namespace: connection.namespace,
            manager: Id::generate(),
        };
        let state = "'SUCCEEDED'";
        rows::deliveries(
            &mut world.at.conn,
            connection,
            manager,
            100,
            "now()",
            "1 minute",
            state,
        )
        .await;
    }
    for connection in [first, first, second, others] {
        world.connection = connection;
        world.replay(90, None).await.unwrap();
    }
    let hourly = Pace {
        pause: Duration::from_secs(3_600),
        ..PACE
    };
    for _ in 0..4 {
        let advanced = advance(&mut world.at.conn, hourly).await;
        assert_eq!(advanced, Some(Advanced::Reopened(20)));
    }
    assert_eq!(advance(&mut world.at.conn, hourly).await, None);
    for (connection, hours) in [(first, 3), (second, 3), (others, 1)] {
        let connection = connection.connection.to_uuid();
        let others = format!(
            "replays WHERE connection_id = '{connection}' AND next_batch_time NOT BETWEEN \
             now() + interval '{hours} hours' - interval '10 minutes' AND now() + interval '{hours} hours'"
        );
        assert_eq!(world.at.database.count(&others).await, 0);
    }
}

#[tokio::test]
async fn deliveries_without_a_scan_are_skipped() {
    let mut world = world().await;
    run(
        &mut world.at.conn,
        "DELETE FROM scans WHERE create_time > now() - interval '50 minutes'",
    )
    .await;
    let replay = world.replay(90, None).await.unwrap();
    let done = world.until_done(replay.name).await;
    assert_eq!(done.done, 90);
    let reopened = world.reopened().await;
    assert!((40..=42).contains(&reopened), "{reopened}");
}

/// A dispatcher looks again at once while a replay is due.
#[tokio::test]
async fn no_replay_is_due_where_none_runs() {
    let mut world = world().await;
    assert_eq!(replays::next_due(&mut world.at.conn).await.unwrap(), None);
    world.replay(ALL, None).await.unwrap();
    let conn = &mut world.at.conn;
    assert_eq!(replays::next_due(conn).await.unwrap(), Some(Duration::ZERO));
    let later = "UPDATE replays SET next_batch_time = clock_timestamp() + interval '1 hour'";
    run(conn, later).await;
    let next = replays::next_due(conn).await.unwrap().unwrap();
    assert!(next > Duration::from_mins(30), "{next:?}");
    run(conn, "UPDATE replays SET state = 'DONE'").await;
    assert_eq!(replays::next_due(conn).await.unwrap(), None);
}
