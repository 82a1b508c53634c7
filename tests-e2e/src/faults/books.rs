//! Invariant checks after all faults: every post, Scan and delivery is where it belongs.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use client::{Client, Query};
use serde_json::Value;

use super::{
    fleet::Fleet,
    load::{Done, Watching, World},
    recovery,
};
use crate::harness::{LOSS, NOT_POLLED, WAITING, eventually, eventually_or_lost};

/// Many times the memory of an idle replica: more is a leak.
const MOST_MEMORY: u64 = 400 << 20;
const MOST_FILES: usize = 200;
/// Sessions of PostgreSQL: eight replicas with pools of ten, and their readers of migrations and broadcasts.
const MOST_SESSIONS: u64 = 120;

const SCANS: &str = "SELECT count(*) FROM scans";
const LEFT: [(&str, &str); 2] = [
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

/// Data that the database had, and lost.
#[derive(Default)]
pub(super) struct Lost {
    /// Names of Scans.
    pub(super) scans: BTreeSet<String>,
    /// Deliveries that it did not have as finished any more, as `connection scan`.
    pub(super) unfinished: BTreeSet<String>,
}

/// Checks that no database lost anything.
pub(super) async fn check(fleet: &Fleet, world: &World, done: &Done, mended: Instant) {
    check_with(fleet, world, done, mended, None).await;
}

/// Checks that all is as if nothing had been `lost`, except for requests that were made before.
pub(super) async fn check_after_loss(fleet: &Fleet, world: &World, done: &Done, lost: &Lost) {
    check_with(fleet, world, done, Instant::now(), Some(lost)).await;
}

async fn check_with(
    fleet: &Fleet,
    world: &World,
    done: &Done,
    mended: Instant,
    lost: Option<&Lost>,
) {
    let (api, client) = (fleet.apis().remove(0), fleet.client());
    // Scans by post, for each Manager.
    let mut scans: Vec<BTreeMap<String, Value>> = Vec::new();
    for watching in &world.managers {
        scans.push(all_scanned(fleet, &client, world, watching, done).await);
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
        let received = wait_for(fleet, &what, async || {
            // Reading all requests takes longer than counting them.
            if receiver.count() < due.len() {
                return None;
            }
            let received = receiver.counts();
            let all = due.iter().all(|scan| received.contains_key(scan));
            all.then_some(received)
        });
        let received = received.await;
        let is_lost = |scan: &&String| lost.is_some_and(|lost| lost.scans.contains(*scan));
        let (gone, known): (Vec<_>, Vec<_>) = received.keys().partition(is_lost);
        let strange: Vec<_> = known.iter().filter(|scan| !due.contains(**scan)).collect();
        assert!(strange.is_empty(), "{LOSS}unexpected Scans: {strange:?}");
        let log = recorded(fleet, &client, connection, &due).await;
        // A retry of a failed attempt is expected.
        let attempts: BTreeMap<&str, usize> = log
            .iter()
            .map(|one| (text(one, "scan"), one["attemptCount"].as_u64().unwrap()))
            .map(|(scan, count)| (scan, usize::try_from(count).unwrap()))
            .collect();
        let mut again = 0;
        for (scan, requests) in received.iter().filter(|(scan, _)| due.contains(*scan)) {
            let more = requests.saturating_sub(attempts[scan.as_str()]);
            let explained =
                lost.is_none_or(|lost| lost.unfinished.contains(&format!("{connection} {scan}")));
            assert!(
                more == 0 || explained,
                "{LOSS}{scan} came {more} times more often"
            );
            again += more;
        }
        let requests: usize = received.values().sum();
        println!(
            "{connection}: {requests} requests of {} deliveries, {again} of them never recorded",
            due.len(),
        );
        if lost.is_some() {
            println!(
                "{} requests were of Scans that the database lost",
                gone.len()
            );
        }
    }
    let recovered = mended.elapsed();
    println!("all invariants hold {recovered:.1?} after everything was repaired");
    for (nickname, created) in &done.created {
        api.applied(created, recovery()).await;
        let all = listed(&client, &format!("{}/managers", world.namespace)).await;
        let same = all
            .iter()
            .filter(|one| one["nickname"] == nickname.as_str());
        assert_eq!(same.count(), 1, "{LOSS}Managers that are called {nickname}");
    }
    nothing_is_left(fleet).await;
    // Further polls of every feed find nothing that is not there yet.
    for _ in 0..2 {
        let now = fleet.query("SELECT clock_timestamp()");
        eventually("every feed is polled again", recovery(), async || {
            (fleet.query(&format!("{NOT_POLLED}'{now}'")) == "0").then_some(())
        })
        .await;
    }
    nothing_is_left(fleet).await;
    for (watching, before) in world.managers.iter().zip(&scans) {
        let after = by_post(&client, watching).await.len();
        assert_eq!(after, before.len(), "{LOSS}further polls found more");
    }
    polled(world, &scans, lost).await;
    nothing_is_leaked(fleet);
}

/// Checks that clients that poll by `createTime` saw each Scan once and in order.
async fn polled(world: &World, scans: &[BTreeMap<String, Value>], lost: Option<&Lost>) {
    let seen = world.pollers.as_ref().unwrap().finish().await;
    let (mut count, mut of_lost) = (0, 0);
    for (seen, scans) in seen.iter().zip(scans) {
        let mut expected: Vec<_> = scans.values().collect();
        expected.sort_by_key(|scan| text(scan, "createTime"));
        let expected: Vec<_> = expected.iter().map(|scan| text(scan, "name")).collect();
        let (gone, kept): (Vec<_>, Vec<_>) = seen
            .iter()
            .map(String::as_str)
            .partition(|scan| lost.is_some_and(|lost| lost.scans.contains(*scan)));
        assert_eq!(
            kept, expected,
            "{LOSS}what a client saw that polls by createTime"
        );
        count += kept.len();
        of_lost += gone.len();
    }
    println!("clients that poll by createTime saw {count} Scans once each and in order");
    if lost.is_some() {
        println!("they also saw {of_lost} Scans that the database lost");
    }
}

/// Waits for an answer. A wait in vain after which no work is left counts as a loss.
async fn wait_for<T>(fleet: &Fleet, what: &str, ask: impl AsyncFnMut() -> Option<T>) -> T {
    eventually_or_lost(what, recovery(), |sql| fleet.query(sql), ask).await
}

/// Waits until a Manager has a Scan of each post that it must match; it may have no other, and no duplicate.
async fn all_scanned(
    fleet: &Fleet,
    client: &Client,
    world: &World,
    watching: &Watching,
    done: &Done,
) -> BTreeMap<String, Value> {
    let posts = matching(watching, done);
    let managers = world.managers.iter();
    let of_all: usize = managers.map(|one| matching(one, done).len()).sum();
    let what = format!(
        "{} posts of {:?} are Scans",
        posts.len(),
        watching.platforms
    );
    let mut told = Instant::now();
    let scans = wait_for(fleet, &what, async || {
        let is_slow = told.elapsed() > recovery() / 4;
        // A list of all Scans takes the services that are waited for much longer than this count.
        if !is_slow && fleet.query(SCANS).parse::<usize>().unwrap() < of_all {
            return None;
        }
        let scans = by_post(client, watching).await;
        let missing: Vec<_> = posts
            .iter()
            .filter(|post| !scans.contains_key(**post))
            .collect();
        if is_slow {
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
    assert!(
        strange.is_empty(),
        "{LOSS}Scans of unknown posts: {strange:?}"
    );
    scans
}

/// Returns the posts that a Manager must match.
fn matching<'a>(watching: &Watching, done: &'a Done) -> BTreeSet<&'a str> {
    let posts = done.posts.iter().filter(|(_, post)| {
        watching.word == post.word && watching.platforms.contains(&post.platform)
    });
    posts.map(|(id, _)| id.as_str()).collect()
}

/// Waits until each post is delivered and recorded.
pub(super) async fn settle(fleet: &Fleet, world: &World, done: &Done) {
    let client = fleet.client();
    for watching in &world.managers {
        all_scanned(fleet, &client, world, watching, done).await;
    }
    eventually("all deliveries are recorded", recovery(), async || {
        (fleet.query(WAITING) == "0").then_some(())
    })
    .await;
}

async fn by_post(client: &Client, watching: &Watching) -> BTreeMap<String, Value> {
    let mut posts = BTreeMap::new();
    let manager = text(&watching.manager, "name");
    for scan in listed(client, &format!("{manager}/scans")).await {
        let post = text(&scan["post"], "id").to_owned();
        let other = posts.insert(post, scan);
        assert!(other.is_none(), "{LOSS}two Scans of one post: {other:?}");
    }
    posts
}

/// Waits until the log has one delivery of each Scan, and all of them have succeeded.
async fn recorded(
    fleet: &Fleet,
    client: &Client,
    connection: &str,
    due: &BTreeSet<String>,
) -> Vec<Value> {
    let what = format!("{} deliveries are logged as succeeded", due.len());
    let log = wait_for(fleet, &what, async || {
        if fleet.query(WAITING) != "0" {
            return None;
        }
        let log = listed(client, &format!("{connection}/deliveries")).await;
        let all = log.len() >= due.len() && log.iter().all(|one| one["state"] == "SUCCEEDED");
        all.then_some(log)
    })
    .await;
    let of: BTreeSet<&str> = log.iter().map(|one| text(one, "scan")).collect();
    assert_eq!(of.len(), log.len(), "{LOSS}one delivery of each Scan");
    let other: Vec<_> = of.iter().filter(|scan| !due.contains(**scan)).collect();
    assert!(
        other.is_empty(),
        "{LOSS}deliveries of other Scans: {other:?}"
    );
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
    let sessions = fleet.query(sessions);
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
        eventually(&nothing, recovery(), async || {
            let count = fleet.query(sql);
            (count == "0").then_some(())
        })
        .await;
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap()
}
