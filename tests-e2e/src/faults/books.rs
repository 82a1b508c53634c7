//! Invariant checks after all faults: every post, Scan and delivery is where it belongs.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use client::{Client, Query};
use serde_json::Value;
use tokio::{task::block_in_place, time::sleep};

use super::{
    RECOVERY,
    fleet::Fleet,
    load::{Done, Watching, World},
    servers::{QUEUES, depths},
};
use crate::harness::eventually;

/// Many times the memory of an idle replica: more is a leak.
const MOST_MEMORY: u64 = 400 << 20;
const MOST_FILES: usize = 200;
/// Sessions of PostgreSQL: eight replicas with pools of ten, and their readers of migrations and broadcasts.
const MOST_SESSIONS: u64 = 120;
/// How long the checks wait for arrivals that must not happen.
const CALM: Duration = Duration::from_secs(2);

const LEFT: [(&str, &str); 3] = [
    ("events in the outbox", "SELECT count(*) FROM outbox"),
    (
        "leased deliveries",
        "SELECT count(*) FROM deliveries WHERE leased_by IS NOT NULL OR state = 'IN_FLIGHT'",
    ),
    (
        "feeds that a dead replica leases",
        "SELECT count(*) FROM feeds WHERE leased_by IS NOT NULL AND leased_by NOT IN \
         (SELECT id FROM replicas WHERE heartbeat_time > now() - interval '5 seconds')",
    ),
];

pub(super) async fn check(fleet: &Fleet, world: &World, done: &Done, mended: Instant) {
    let (api, client) = (fleet.apis().remove(0), fleet.client());
    // Scans by post, for each Manager.
    let mut scans: Vec<BTreeMap<String, Value>> = Vec::new();
    for watching in &world.managers {
        scans.push(all_scanned(&client, watching, done).await);
    }
    for (place, (connection, receiver)) in world.connections.iter().enumerate() {
        let due: BTreeSet<String> = world
            .managers
            .iter()
            .zip(&scans)
            .filter(|(watching, _)| watching.connections.contains(&place))
            .flat_map(|(_, scans)| scans.values())
            .map(|scan| text(scan, "name").to_owned())
            .collect();
        let what = format!("{} Scans are received and recorded", due.len());
        let received = eventually(&what, RECOVERY, async || {
            let received = receiver.counts();
            let all = due.iter().all(|scan| received.contains_key(scan));
            all.then_some(received)
        });
        let received = received.await;
        let strange: Vec<_> = received
            .keys()
            .filter(|scan| !due.contains(*scan))
            .collect();
        assert!(strange.is_empty(), "unexpected Scans: {strange:?}");
        let requests: usize = received.values().sum();
        let log = recorded(&client, connection, &due).await;
        // A retry of a failed attempt is expected.
        let attempts: u64 = log
            .iter()
            .map(|one| one["attemptCount"].as_u64().unwrap())
            .sum();
        let again = u64::try_from(requests).unwrap().saturating_sub(attempts);
        println!(
            "{}: {requests} requests of {} deliveries, {again} of them never recorded",
            connection,
            due.len()
        );
    }
    let recovered = mended.elapsed();
    println!("all invariants hold {recovered:.1?} after everything was repaired");
    for (nickname, created) in &done.created {
        api.applied(created, RECOVERY).await;
        let all = listed(&client, &format!("{}/managers", world.namespace)).await;
        let same = all
            .iter()
            .filter(|one| one["nickname"] == nickname.as_str());
        assert_eq!(same.count(), 1, "Managers that are called {nickname}");
    }
    nothing_is_left(fleet).await;
    // No late duplicate arrives, and no further post.
    sleep(CALM).await;
    for (watching, before) in world.managers.iter().zip(&scans) {
        assert_eq!(by_post(&client, watching).await.len(), before.len());
    }
    nothing_is_leaked(fleet);
}

/// Waits until a Manager has a Scan of each post that it must match; it may have no other, and no duplicate.
async fn all_scanned(client: &Client, watching: &Watching, done: &Done) -> BTreeMap<String, Value> {
    let posts: BTreeSet<&str> = done
        .posts
        .iter()
        .filter(|(_, source)| *source == watching.source)
        .map(|(id, _)| id.as_str())
        .collect();
    let what = format!("{} posts of {} are Scans", posts.len(), watching.source);
    let mut told = Instant::now();
    let scans = eventually(&what, RECOVERY, async || {
        let scans = by_post(client, watching).await;
        let missing: Vec<_> = posts
            .iter()
            .filter(|post| !scans.contains_key(**post))
            .collect();
        if told.elapsed() > RECOVERY / 4 {
            told = Instant::now();
            eprintln!("{} posts have no Scan yet: {missing:?}", missing.len());
        }
        missing.is_empty().then_some(scans)
    })
    .await;
    let strange: Vec<_> = scans
        .keys()
        .filter(|post| !posts.contains(post.as_str()))
        .collect();
    assert!(strange.is_empty(), "Scans of unknown posts: {strange:?}");
    scans
}

async fn by_post(client: &Client, watching: &Watching) -> BTreeMap<String, Value> {
    let mut posts = BTreeMap::new();
    let manager = text(&watching.manager, "name");
    for scan in listed(client, &format!("{manager}/scans")).await {
        let post = text(&scan["post"], "id").to_owned();
        let other = posts.insert(post, scan);
        assert!(other.is_none(), "two Scans of one post: {other:?}");
    }
    posts
}

/// Waits until the log has one delivery of each Scan, and all of them have succeeded.
async fn recorded(client: &Client, connection: &str, due: &BTreeSet<String>) -> Vec<Value> {
    let what = format!("{} deliveries are logged as succeeded", due.len());
    let log = eventually(&what, RECOVERY, async || {
        let log = listed(client, &format!("{connection}/deliveries")).await;
        let all = log.len() >= due.len() && log.iter().all(|one| one["state"] == "SUCCEEDED");
        all.then_some(log)
    })
    .await;
    let of: BTreeSet<&str> = log.iter().map(|one| text(one, "scan")).collect();
    assert_eq!(of.len(), log.len(), "one delivery of each Scan");
    assert!(of.iter().all(|scan| due.contains(*scan)));
    log
}

/// Checks the resources of idle processes.
fn nothing_is_leaked(fleet: &Fleet) {
    let (mut memory, mut files) = (0, 0);
    for replica in fleet.replicas() {
        let (bytes, count) = replica.holds();
        assert!(bytes < MOST_MEMORY, "{}: {bytes} bytes", replica.program);
        assert!(count < MOST_FILES, "{}: {count} files", replica.program);
        (memory, files) = (memory.max(bytes), files.max(count));
    }
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'";
    let sessions = block_in_place(|| fleet.postgres().query(sessions)).unwrap();
    println!(
        "{} MB and {files} files of one replica at most; {sessions} sessions",
        memory >> 20
    );
    let sessions: u64 = sessions.parse().expect("a count");
    assert!(
        sessions < MOST_SESSIONS,
        "{sessions} sessions of PostgreSQL"
    );
}

/// Returns all items of a list.
async fn listed(client: &Client, collection: &str) -> Vec<Value> {
    let pages = client.pages(collection, Query::default());
    pages.all().await.unwrap()
}

async fn nothing_is_left(fleet: &Fleet) {
    for (what, sql) in LEFT {
        let nothing = format!("no {what}");
        eventually(&nothing, RECOVERY, async || {
            let count = block_in_place(|| fleet.postgres().query(sql)).unwrap();
            (count == "0").then_some(())
        })
        .await;
    }
    // Malformed messages are set aside, where an operator finds them; they do not count as work.
    eventually("no messages in the queues of work", RECOVERY, async || {
        let depths = depths(fleet);
        let left = depths
            .iter()
            .filter(|(name, count)| QUEUES.contains(&name.as_str()) && *count > 0);
        (left.count() == 0).then_some(())
    })
    .await;
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap()
}
