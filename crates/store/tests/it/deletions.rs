//! Sending and counting during a deletion: nothing more is sent, nothing comes back, nothing fails.

use std::time::Duration;

use diesel_async::AsyncPgConnection;
use domain::{ConnectionName, DeliveryName, ManagerName, Timestamp};
use store::{
    AsyncConnection,
    backfills::{self, Rest, Waiting, look_backs},
    connections,
    deliveries::{self, Attempt, AttemptResult, Task, Verdict, Want},
    fair::Round,
    managers, namespaces, replicas,
    stats::{self, Deltas},
    work::Leased,
};
use test_support::{eventually, instructions, post};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::support::{
    Look, Start, feed, new_scan, number, purge_step, record, record_past, run, start,
};

/// A Manager with one Connection, and a living replica.
struct Sending {
    at: Start,
    connection: ConnectionName,
    manager: ManagerName,
    replica: Uuid,
}

async fn sending() -> Sending {
    let mut at = start().await;
    let url = "https://receiver.example/hook";
    let connection = at.fixture.connection(&mut at.conn, url).await;
    let manager = at
        .fixture
        .manager(&mut at.conn, &instructions("a"), &[connection])
        .await;
    let replica = Uuid::new_v4();
    replicas::beat(&mut at.conn, replica, "webhook-dispatcher")
        .await
        .unwrap();
    Sending {
        at,
        connection,
        manager,
        replica,
    }
}

impl Sending {
    /// Creates the delivery of a new Scan: leased and in hand, or waiting.
    async fn fan_out(&mut self, id: &str, in_hand: bool) -> Option<DeliveryName> {
        let scan = record(&mut self.at.conn, self.manager, &[post(id, "t")]).await;
        let (sealer, replica) = (self.at.fixture.sealer.clone(), self.replica);
        let sent = self
            .at
            .conn
            .transaction(async |conn| {
                let admit = |_, _, _| in_hand.then_some(());
                deliveries::fan_out(conn, &sealer, &scan, replica, admit).await
            })
            .await
            .unwrap();
        let task = sent.tasks.into_iter().next();
        task.map(|(task, ())| task.delivery)
    }

    async fn claim(&mut self) -> Vec<Task> {
        let wants = [Want {
            connection: self.connection,
            count: 10,
        }];
        let sealer = self.at.fixture.sealer.clone();
        let claimed = deliveries::claim(&mut self.at.conn, &sealer, self.replica, &wants).await;
        claimed.unwrap().into_iter().map(Result::unwrap).collect()
    }

    async fn record(&mut self, delivery: DeliveryName, verdict: Verdict) {
        let result = AttemptResult {
            delivery,
            attempt: attempt(),
            verdict,
        };
        let replica = self.replica;
        // Repeated, as after a lost answer of the database.
        for _ in 0..2 {
            self.at
                .conn
                .transaction(async |conn| {
                    deliveries::record_results(conn, replica, &[&result]).await
                })
                .await
                .unwrap();
        }
    }

    async fn purge(&mut self) {
        while purge_step(&mut self.at.conn).await.is_some() {}
    }

    async fn fold(&mut self) {
        while stats::fold(&mut self.at.conn, 0, 100).await.unwrap() != Some(0) {}
    }

    async fn of_state(&mut self, state: &str) -> i64 {
        let sql = format!("SELECT count(*) AS number FROM deliveries WHERE state = '{state}'");
        number(&mut self.at.conn, &sql).await
    }
}

fn attempt() -> Attempt {
    Attempt {
        number: 1,
        time: Timestamp::now(),
        status_code: Some(500),
        error: None,
        latency: Duration::from_millis(5),
        dns: None,
        connect: None,
        tls: None,
        first_byte: None,
        address: None,
        response_body: None,
    }
}

async fn count(conn: &mut AsyncPgConnection, table: &str) -> i64 {
    number(conn, &format!("SELECT count(*) AS number FROM {table}")).await
}

#[tokio::test]
async fn waiting_deliveries_of_a_deleted_manager_are_not_sent_before_the_purge() {
    let mut at = sending().await;
    at.fan_out("1", false).await;
    at.fan_out("2", false).await;
    run(
        &mut at.at.conn,
        "UPDATE deliveries SET urgent = true WHERE id = (SELECT min(id::text)::uuid FROM deliveries)",
    )
    .await;
    managers::delete(&mut at.at.conn, at.manager, Timestamp::now())
        .await
        .unwrap()
        .unwrap();
    let sealer = at.at.fixture.sealer.clone();
    let urgent = deliveries::claim_urgent(
        &mut at.at.conn,
        &sealer,
        at.replica,
        10,
        &[],
        &mut Round::default(),
    )
    .await;
    assert_eq!(urgent.unwrap().len(), 0);
    assert_eq!(at.claim().await, []);
    // The purge is late, so the sweep that frees forgotten leases cancels the delivery.
    run(
        &mut at.at.conn,
        "UPDATE deliveries SET update_time = '-infinity' WHERE urgent",
    )
    .await;
    let long = Duration::from_secs(60);
    deliveries::free_orphans(&mut at.at.conn, at.replica, &[], long, true)
        .await
        .unwrap();
    assert_eq!(at.of_state("CANCELLED").await, 1);
    assert_eq!(at.of_state("IN_FLIGHT").await, 1);
    at.purge().await;
    assert_eq!(at.of_state("CANCELLED").await, 2);
}

#[tokio::test]
async fn a_result_after_the_deletion_restores_nothing() {
    for verdict in [
        Verdict::Succeeded,
        Verdict::RetryIn(Duration::ZERO),
        Verdict::Exhausted,
    ] {
        let mut at = sending().await;
        let delivery = at.fan_out("1", true).await.unwrap();
        // For a deleted Connection: a delivery in flight is cancelled together with its lease.
        let now = Timestamp::now();
        connections::delete(&mut at.at.conn, at.connection, true, now)
            .await
            .unwrap();
        at.purge().await;
        assert_eq!(at.of_state("CANCELLED").await, 1);
        at.record(delivery, verdict).await;
        assert_eq!(at.of_state("CANCELLED").await, 1);
        // The attempt was made, and the log records it.
        assert_eq!(count(&mut at.at.conn, "delivery_attempts").await, 1);
        assert_eq!(at.claim().await, []);

        // For a deleted Namespace: there is no row, and none is created.
        let mut at = sending().await;
        let delivery = at.fan_out("1", true).await.unwrap();
        let namespace = at.connection.namespace;
        at.at
            .conn
            .transaction(async |conn| namespaces::delete(conn, namespace, true, now).await)
            .await
            .unwrap();
        at.purge().await;
        let counted = count(&mut at.at.conn, "stats_deltas").await;
        at.record(delivery, verdict).await;
        assert_eq!(count(&mut at.at.conn, "deliveries").await, 0);
        assert_eq!(count(&mut at.at.conn, "stats_deltas").await, counted);
        // No list returns it; it is dropped with its week's partition.
        assert_eq!(count(&mut at.at.conn, "delivery_attempts").await, 1);
    }
}

#[tokio::test]
async fn statistics_are_deleted_with_their_subject() {
    let mut at = sending().await;
    let (now, manager, connection) = (Timestamp::now(), at.manager, at.connection);
    let counted = async |at: &mut Sending| {
        let mut deltas = Deltas::default();
        deltas.scan(manager, now, Duration::ZERO);
        deltas.failed_attempt(connection, now);
        stats::append(&mut at.at.conn, &deltas).await.unwrap();
        at.fold().await;
    };
    let of = |id: domain::Id| format!("stats WHERE subject_id = '{}'", id.to_uuid());
    counted(&mut at).await;
    assert_eq!(count(&mut at.at.conn, "stats").await, 9);

    managers::delete(&mut at.at.conn, manager, now)
        .await
        .unwrap();
    at.purge().await;
    assert_eq!(count(&mut at.at.conn, &of(manager.manager)).await, 0);
    assert_eq!(count(&mut at.at.conn, &of(connection.connection)).await, 3);
    connections::delete(&mut at.at.conn, connection, true, now)
        .await
        .unwrap();
    at.purge().await;
    assert_eq!(count(&mut at.at.conn, &of(connection.connection)).await, 0);
    // The Namespace's own sums keep its counts.
    assert_eq!(count(&mut at.at.conn, "stats").await, 3);

    let namespace = connection.namespace;
    at.at
        .conn
        .transaction(async |conn| namespaces::delete(conn, namespace, true, now).await)
        .await
        .unwrap();
    // Folded after the deletion, like deltas of another replica: the purge entry checks again.
    at.purge().await;
    counted(&mut at).await;
    assert_eq!(count(&mut at.at.conn, "stats").await, 9);
    run(&mut at.at.conn, "UPDATE purges SET next_time = '-infinity'").await;
    at.purge().await;
    assert_eq!(count(&mut at.at.conn, "stats").await, 0);
}

/// Runs a step of the Manager's backfill, and deletes the Manager in the middle of it.
async fn delete_during_a_step(is_look_back: bool) {
    let mut at = start().await;
    let instructions = instructions("a");
    let manager = at
        .fixture
        .applied_manager(&mut at.conn, &instructions, &[])
        .await;
    let waiting = Waiting {
        feed: feed(),
        notify: true,
        account: at.fixture.account,
    };
    let replica = Uuid::new_v4();
    let (asked, _) = backfills::waiting_for(&mut at.conn, &waiting, 1, u32::MAX)
        .await
        .unwrap();
    assert_eq!(asked.len(), 1);
    let now = Timestamp::now();
    let rest = Rest {
        manager,
        reach_time: now,
        look_back: is_look_back.then_some((now.minus(Duration::from_secs(60)), now)),
    };
    let leased = if is_look_back {
        backfills::matched_kept(&mut at.conn, &waiting, std::slice::from_ref(&rest))
            .await
            .unwrap();
        let leased = look_backs::lease(
            &mut at.conn,
            &["hackernews"],
            &mut Look::of(replica).claim(),
        )
        .await;
        leased.unwrap().items.into_iter().next()
    } else {
        None
    };
    let mut deleting = at.database.connect().await;
    let mut watching = at.database.connect().await;
    let posts = [post("hackernews:1", "a")];
    let matches = posts.each_ref().map(|post| new_scan(manager, post));
    let has_begun = Notify::new();
    let deletion = async {
        has_begun.notified().await;
        deleting
            .transaction(async |conn| managers::delete(conn, manager, now).await)
            .await
    };
    let conn = &mut at.conn;
    let step = async {
        run(conn, "BEGIN").await;
        if let Some(Leased {
            item: look_back, ..
        }) = &leased
        {
            assert!(look_backs::lock(conn, look_back, replica).await.unwrap());
        } else {
            let claimed = backfills::claim(conn, &waiting, &asked).await.unwrap();
            assert_eq!(claimed, [manager]);
        }
        has_begun.notify_one();
        eventually("the deletion waits", async || {
            let waits = "SELECT count(*) AS number FROM pg_stat_activity \
                         WHERE datname = current_database() AND wait_event_type = 'Lock'";
            number(&mut watching, waits).await == 1
        })
        .await;
        assert_eq!(record_past(conn, &matches, false).await.len(), 1);
        match &leased {
            Some(Leased {
                item: look_back, ..
            }) => look_backs::finish(conn, look_back.id, None).await.unwrap(),
            None => backfills::matched_kept(conn, &waiting, &[rest])
                .await
                .unwrap(),
        }
        run(conn, "COMMIT").await;
    };
    let (deleted, ()) = tokio::join!(deletion, step);
    assert!(deleted.unwrap().is_some());
    assert_eq!(count(&mut at.conn, "backfills").await, 0);
}

#[tokio::test]
async fn a_deletion_and_a_running_backfill_both_succeed() {
    delete_during_a_step(false).await;
    delete_during_a_step(true).await;
}
