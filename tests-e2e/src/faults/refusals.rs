//! PostgreSQL runs and refuses work: others hold every connection, each statement is cancelled, the disk is full, the
//! server is read-only, open connections are never answered.

use std::time::{Duration, Instant};

use http::Method;
use private_servers::postgres::Options;
use serde_json::json;
use tokio::{
    task::{JoinSet, block_in_place},
    time::sleep,
};
use tokio_postgres::{Client, NoTls};

use super::{
    books,
    disk::Disk,
    fleet::{Fleet, Remote, Servers},
    load::{Load, World},
    servers::CUT_SESSIONS,
};
use crate::harness::{WAITING, eventually, proxy::Flow};

const SECONDS: u64 = 5;
/// Posts per tenth of a second.
const POSTS: u64 = 2;
/// More than the database takes at the start, and little enough to fill quickly.
const DISK_MEGABYTES: u32 = 384;
/// Number of tasks that take connections.
const GREEDY: usize = 8;
const PATIENCE: Duration = Duration::from_secs(120);
const RECOVERY: Duration = Duration::from_secs(120);

/// Name of the test's own sessions.
const NAME: &str = "everyone_else";
const CUT_OTHERS: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
    WHERE backend_type = 'client backend' AND application_name <> 'everyone_else'";
/// Has the same effect as a statement_timeout that no statement meets, and the same code.
const CANCEL_OTHERS: &str = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity \
    WHERE backend_type = 'client backend' AND application_name <> 'everyone_else' AND state = 'active'";
/// Some megabytes.
const WRITE: &str =
    "CREATE TABLE too_much AS SELECT repeat(n::text, 100) FROM generate_series(1, 20000) AS n";

#[derive(Debug, Clone, Copy)]
enum Refusal {
    NoConnectionIsFree,
    StatementsAreCancelled,
    DiskIsFull,
    ServerIsReadOnly,
    OpenConnectionsAreSilent,
}

pub(super) fn servers() -> Servers {
    let settings = ["max_wal_size=64MB", "min_wal_size=32MB"];
    Servers {
        disk_megabytes: Some(DISK_MEGABYTES),
        has_few_replicas: true,
        ..Options {
            settings: settings.map(str::to_owned).to_vec(),
            ..Options::throwaway()
        }
        .into()
    }
}

pub(super) async fn run(fleet: &Fleet) {
    let world = World::new(fleet).await;
    let mut load = Load::new(fleet, &world);
    load.publish(POSTS).await;
    let length = super::number("EARSHOT_FAULTS_REFUSAL_SECONDS").unwrap_or(SECONDS);
    for refusal in [
        Refusal::NoConnectionIsFree,
        Refusal::StatementsAreCancelled,
        Refusal::DiskIsFull,
        Refusal::ServerIsReadOnly,
        Refusal::OpenConnectionsAreSilent,
    ] {
        println!("{refusal:?} for {length} s");
        let until = Instant::now() + Duration::from_secs(length);
        let (refused, ()) = tokio::join!(
            refusal.last(fleet, &world, until),
            load.keep_publishing(POSTS, || Instant::now() < until),
        );
        println!("{refusal:?}: {refused} refusals");
        come_back(fleet).await;
        // Everything works again before the next one.
        eventually("the backlog is processed", RECOVERY, async || {
            (fleet.query(WAITING) == "0").then_some(())
        })
        .await;
    }
    books::check(fleet, &world, load.done(), Instant::now()).await;
    fleet.terminate();
}

impl Refusal {
    /// Goes on until `until`. Returns how often work was refused.
    async fn last(self, fleet: &Fleet, world: &World, until: Instant) -> usize {
        match self {
            Self::NoConnectionIsFree => hold_all_connections(fleet, world, until).await,
            Self::StatementsAreCancelled => cancel_statements(fleet, until).await,
            Self::DiskIsFull => match &fleet.disk {
                Some(disk) => fill(fleet, disk, until).await,
                None => {
                    println!("SKIPPED: a full disk needs a separate file system, and so root");
                    0
                }
            },
            Self::ServerIsReadOnly => refuse_writes(fleet, world, until).await,
            Self::OpenConnectionsAreSilent => leave_connections(fleet).await,
        }
    }
}

/// Returns how often the API answered that it has no database.
async fn hold_all_connections(fleet: &Fleet, world: &World, until: Instant) -> usize {
    let url = format!("{}?application_name={NAME}", fleet.postgres().url());
    let list = format!("/v1/{}/connections", world.namespace);
    let own = session(&url).await.unwrap();
    // Dropped at the end, with all connections.
    let mut others = JoinSet::new();
    for _ in 0..GREEDY {
        others.spawn(take_connections(url.clone()));
    }
    let (apis, mut refused) = (fleet.apis(), 0);
    // The first answers may come from what gateways remember, or from connections that are still open.
    while Instant::now() < until || refused == 0 {
        own.batch_execute(CUT_OTHERS).await.unwrap();
        for api in &apis {
            if let Some(answer) = api.try_request(Method::GET, &list, &[], None).await {
                assert!([200, 503].contains(&answer.status), "{}", answer.status);
                refused += usize::from(answer.status == 503);
            }
        }
    }
    refused
}

/// Takes every connection that becomes free.
async fn take_connections(url: String) {
    let mut held = Vec::new();
    loop {
        match session(&url).await {
            Some(session) => held.push(session),
            None => sleep(Duration::from_millis(2)).await,
        }
    }
}

async fn session(url: &str) -> Option<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.ok()?;
    tokio::spawn(connection);
    Some(client)
}

/// Returns the number of cancelled statements.
async fn cancel_statements(fleet: &Fleet, until: Instant) -> usize {
    let url = format!("{}?application_name={NAME}", fleet.postgres().url());
    let session = session(&url).await.unwrap();
    let mut cancelled = 0;
    while Instant::now() < until || cancelled == 0 {
        let rows = session.query(CANCEL_OTHERS, &[]).await.unwrap();
        cancelled += rows.len();
        sleep(Duration::from_millis(2)).await;
    }
    cancelled
}

/// Returns 1, after PostgreSQL could not write.
async fn fill(fleet: &Fleet, disk: &Disk, until: Instant) -> usize {
    disk.fill();
    let error = block_in_place(|| fleet.postgres().query(WRITE)).unwrap_err();
    println!(
        "{}",
        format!("{error:#}").lines().next().unwrap_or_default()
    );
    sleep(until.saturating_duration_since(Instant::now())).await;
    disk.free();
    1
}

/// Makes the server read-only. Returns how often the API refused a change for it.
async fn refuse_writes(fleet: &Fleet, world: &World, until: Instant) -> usize {
    set(fleet, "SET default_transaction_read_only = on");
    let path = format!("/v1/{}", world.namespace);
    let headers = [("content-type", "application/merge-patch+json")];
    let (apis, mut changes, mut refused) = (fleet.apis(), 0, 0);
    // The setting reaches sessions a moment later.
    while Instant::now() < until || refused == 0 {
        for api in &apis {
            changes += 1;
            let body = json!({"nickname": format!("faults {changes}")}).to_string();
            let changed = api.try_request(Method::PATCH, &path, &headers, Some(body));
            if let Some(answer) = changed.await {
                assert!([200, 503].contains(&answer.status), "{}", answer.status);
                refused += usize::from(answer.status == 503);
            }
        }
        sleep(Duration::from_millis(2)).await;
    }
    set(fleet, "RESET default_transaction_read_only");
    refused
}

/// Changes a setting of the server, in all its sessions.
fn set(fleet: &Fleet, change: &str) {
    fleet.query(&format!("ALTER SYSTEM {change}"));
    fleet.query("SELECT pg_reload_conf()");
}

/// Leaves all connections open and never answers them again, like a load balancer whose server is gone. New ones work.
/// Returns their number.
async fn leave_connections(fleet: &Fleet) -> usize {
    let flow = Flow::HeldBefore(Instant::now());
    for way in fleet.ways(Remote::Database) {
        way.set(flow);
    }
    // A server that is gone holds no locks.
    let sessions = fleet.query(CUT_SESSIONS);
    for replica in fleet.replicas() {
        replica.check_alive().await;
        replica.ready().await;
    }
    sessions.parse().unwrap()
}

/// Waits until PostgreSQL answers. Without space for its log it ends, and a supervisor starts it again.
async fn come_back(fleet: &Fleet) {
    eventually("PostgreSQL answers", PATIENCE, async || {
        block_in_place(|| {
            let mut postgres = fleet.postgres();
            if !postgres.is_running() {
                println!("PostgreSQL ended, and is started again");
                postgres.restart().unwrap();
            }
            postgres.query("SELECT 1").ok()
        })
    })
    .await;
}
