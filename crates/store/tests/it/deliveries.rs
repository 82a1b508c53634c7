//! The path from Scans to finished deliveries.

mod claims;
mod fan_out;
mod results;
mod service_events;

use std::collections::BTreeSet;
use std::time::Duration;

use domain::{ConnectionName, DeliveryName, ManagerName, ScanName, Timestamp};
use store::deliveries::{Attempt, AttemptResult, Task, Verdict, Want};
use store::seal::Sealer;
use store::{AsyncConnection, AsyncPgConnection, deliveries, lanes, replicas};
use test_support::{instructions, post};
use uuid::Uuid;

use crate::support::{Start, number, record, start};

struct Sending {
    at: Start,
    connections: Vec<ConnectionName>,
    manager: ManagerName,
    replica: Uuid,
}

/// A Manager with `count` Connections, and a living replica.
async fn sending(count: usize) -> Sending {
    let mut at = start().await;
    let mut connections = Vec::new();
    for n in 0..count {
        let url = format!("https://receiver.example/{n}");
        connections.push(at.fixture.connection(&mut at.conn, &url).await);
    }
    let manager = at
        .fixture
        .manager(&mut at.conn, &instructions("a"), &connections)
        .await;
    let replica = living(&mut at.conn).await;
    Sending {
        at,
        connections,
        manager,
        replica,
    }
}

async fn living(conn: &mut AsyncPgConnection) -> Uuid {
    let replica = Uuid::new_v4();
    replicas::beat(conn, replica, "webhook-dispatcher")
        .await
        .unwrap();
    replica
}

impl Sending {
    async fn scan(&mut self, id: &str) -> ScanName {
        record(&mut self.at.conn, self.manager, &[post(id, "t")]).await[0]
    }

    /// Leaves the deliveries of one Scan waiting.
    async fn waiting(&mut self, id: &str) -> ScanName {
        let scan = self.scan(id).await;
        let sent = self.fan_out(scan, &[]).await;
        assert!(sent.is_empty());
        scan
    }

    /// Leaves the deliveries of all these waiting.
    async fn fan_out_all(&mut self, scans: &[ScanName]) {
        let (conn, sealer) = (&mut self.at.conn, &self.at.fixture.sealer);
        for scans in scans.chunks(200) {
            let sent =
                deliveries::fan_out(conn, sealer, scans, self.replica, |_, _, _| None::<()>).await;
            assert!(sent.unwrap().tasks.is_empty());
        }
    }

    async fn fan_out(&mut self, scan: ScanName, admitted: &[ConnectionName]) -> Vec<Task> {
        let sealer = self.at.fixture.sealer.clone();
        let admit = |name, _, _| admitted.contains(&name).then_some(());
        let scans = [scan];
        let sent = deliveries::fan_out(&mut self.at.conn, &sealer, &scans, self.replica, admit);
        let sent = sent.await.unwrap().tasks.into_iter();
        sent.map(|(task, ())| task).collect()
    }

    /// Up to `count` of each Connection.
    async fn claim(&mut self, replica: Uuid, count: u32) -> Vec<Task> {
        let (conn, sealer) = (&mut self.at.conn, &self.at.fixture.sealer);
        claim(conn, sealer, replica, &self.connections, count).await
    }

    /// Time until each Connection is to be checked, after a check.
    async fn settled(&mut self) -> Vec<Option<Duration>> {
        let names = self.connections.clone();
        let settled = self
            .at
            .conn
            .transaction(async |conn| lanes::settle(conn, &names).await)
            .await
            .unwrap();
        let next = |name: &ConnectionName| settled.iter().find(|one| one.connection == *name);
        names.iter().map(|name| next(name).unwrap().next).collect()
    }

    /// Connections that are due now.
    async fn due(&mut self) -> BTreeSet<ConnectionName> {
        let due = lanes::due(&mut self.at.conn, &[], 100).await.unwrap();
        due.into_iter().map(|due| due.connection).collect()
    }

    /// `state attempts next?`, as stored in the row.
    async fn row(&mut self, delivery: DeliveryName) -> String {
        let sql = |condition: &str| {
            let id = delivery.delivery.to_uuid();
            format!("SELECT count(*) AS number FROM deliveries WHERE id = '{id}' AND {condition}")
        };
        let conn = &mut self.at.conn;
        let mut row = String::new();
        for state in domain::DeliveryState::ALL {
            if number(conn, &sql(&format!("state = '{}'", state.as_str()))).await == 1 {
                row.push_str(state.as_str());
            }
        }
        let id = delivery.delivery.to_uuid();
        let attempts =
            format!("SELECT attempt_count::bigint AS number FROM deliveries WHERE id = '{id}'");
        row.push_str(&format!(" {}", number(conn, &attempts).await));
        if number(conn, &sql("next_attempt_time IS NOT NULL")).await == 1 {
            row.push_str(" due");
        }
        row
    }
}

/// Number of rows of a table's partitions that this session has read and the server has not yet counted: within a
/// transaction it only grows.
async fn rows_read(conn: &mut AsyncPgConnection, table: &str) -> i64 {
    let sql = format!(
        "SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::bigint AS number \
         FROM pg_stat_xact_user_tables WHERE relname LIKE '{table}_%'"
    );
    number(conn, &sql).await
}

async fn claim(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    replica: Uuid,
    connections: &[ConnectionName],
    count: u32,
) -> Vec<Task> {
    let want = |connection: &ConnectionName| Want {
        connection: *connection,
        count,
    };
    let wants: Vec<Want> = connections.iter().map(want).collect();
    let claimed = deliveries::claim(conn, sealer, replica, &wants)
        .await
        .unwrap();
    claimed.into_iter().map(Result::unwrap).collect()
}

fn each(results: &[AttemptResult]) -> Vec<&AttemptResult> {
    results.iter().collect()
}

fn result(task: &Task, verdict: Verdict) -> AttemptResult {
    AttemptResult {
        delivery: task.delivery,
        attempt: Attempt {
            number: task.attempt_count + 1,
            time: Timestamp::now(),
            status_code: Some(503),
            error: Some("a stranger's \0 words".to_owned()),
            latency: Duration::from_millis(12),
            dns: None,
            connect: Some(Duration::from_millis(3)),
            tls: None,
            first_byte: None,
            address: Some("192.0.2.1".to_owned()),
            response_body: Some("\0binary\0".to_owned()),
        },
        verdict,
    }
}
