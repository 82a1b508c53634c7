//! PostgreSQL loses its last commits: it is killed before it has written them, or a standby that lags behind is promoted.
//!
//! What the services have done since then stays done: requests were sent, cursors and plans are in memory. Every post must
//! be found again, and only requests of that time may come twice. The lost commits include a change of a Manager's words
//! that all scanners know, and replicas that registered. After that another Manager is changed, and its change gets the
//! number of the lost one.

use std::{collections::BTreeSet, time::Duration};

use http::Method;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use private_servers::{Postgres, postgres::Options};
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::{
    books::{self, Lost},
    fleet::{Fleet, Remote},
    load::{Load, World},
};
use crate::harness::{
    WAITING, eventually,
    proxy::{Flow, Proxy},
};

/// Word of the Manager whose change is lost, before and after the change.
const BEFORE: &str = "fernbrook";
const AFTER: &str = "glasswort";
/// Word of the Manager that is changed after the loss, before and after the change.
const OTHER_BEFORE: &str = "hollowreed";
const OTHER_AFTER: &str = "ironmoss";
const POSTS: u64 = 40;
const SCANNER: &str = "scanner";
const PATIENCE: Duration = Duration::from_secs(120);

const SCANS: &str = "SELECT namespace_id, manager_id, id FROM scans";
const VERSION: &str = "SELECT version FROM plan_version";
/// Deliveries that may be sent again: not finished, or of a Scan whose deliveries are not made yet.
const UNFINISHED: &str = "SELECT namespace_id, connection_id, manager_id, scan_id FROM deliveries \
    WHERE state <> 'SUCCEEDED' \
    UNION ALL SELECT scans.namespace_id, connections.id, manager_id, scans.id FROM scans, connections WHERE NOT fanned_out";
const WAL_WRITER: &str = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'";

/// How commits are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    /// `synchronous_commit=off`, and `kill -9` of all of PostgreSQL while its WAL writer hangs.
    Crash,
    /// Failover to an asynchronous standby that does not receive the last transactions.
    Failover,
}

/// Preparation of a loss.
enum Cause {
    WalWriter(Pid),
    Standby(Box<Postgres>, Proxy),
}

impl Loss {
    pub(super) fn options(self) -> Options {
        let settings: &[&str] = match self {
            // Nothing but the WAL writer may write the log.
            Self::Crash => &[
                "synchronous_commit=off",
                "wal_buffers=64MB",
                "autovacuum=off",
                "checkpoint_timeout=1h",
                "max_wal_size=4GB",
                "bgwriter_lru_maxpages=0",
            ],
            Self::Failover => &["wal_level=replica", "max_wal_senders=4"],
        };
        Options {
            settings: settings.iter().map(|text| (*text).to_owned()).collect(),
            ..Options::throwaway()
        }
    }
}

pub(super) async fn run(fleet: &Fleet, loss: Loss) {
    let mut world = World::new(fleet).await;
    let api = fleet.apis().remove(0);
    world.watch(&api, BEFORE, BEFORE).await;
    world.watch(&api, OTHER_BEFORE, OTHER_AFTER).await;
    let mut load = Load::new(fleet, &world);
    load.publish(POSTS).await;
    books::settle(fleet, &world, load.done()).await;

    let cause = loss.prepare(fleet).await;
    // All of this will be lost. The replicas that start now register in vain.
    for replica in fleet.replicas().iter().skip(1).step_by(2) {
        replica.kill();
        fleet.start_replica(replica);
        replica.ready().await;
    }
    load.publish(POSTS).await;
    books::settle(fleet, &world, load.done()).await;
    let [.., changed, other] = &world.managers[..] else {
        unreachable!("two Managers were added");
    };
    change(fleet, &changed.manager, AFTER).await;
    load.publish_about(AFTER, POSTS / 2).await;
    eventually("the scanners know the change", PATIENCE, async || {
        let scans = api.scans(&changed.manager, 100).await;
        (!scans.is_empty()).then_some(())
    })
    .await;
    // These match nothing now, and must be found once the change is lost.
    load.publish_about(BEFORE, POSTS / 2).await;
    let goes_on = loss == Loss::Failover;
    if !goes_on {
        // A crash leaves nothing of what was lost, so it must be known before.
        eventually("all deliveries are recorded", PATIENCE, async || {
            (fleet.query(WAITING) == "0").then_some(())
        })
        .await;
    }
    let version = || fleet.query(VERSION).parse::<i64>().unwrap();
    let version_before = version();
    let scans_before = scans(&fleet.postgres());
    load.publish(if goes_on { POSTS } else { 0 }).await;

    let (old, after) = cause.lose(fleet).await;
    // A dead primary still has all of it.
    let scans_before = old.map_or(scans_before, |old| scans(&old));
    let version_after = version();
    assert!(after.scans.len() < scans_before.len(), "Scans are lost");
    assert!(version_after < version_before, "a change is lost");
    let words = fleet.query("SELECT instructions->'require' FROM managers");
    assert!(words.contains(BEFORE) && !words.contains(AFTER), "{words}");
    let lost = Lost {
        scans: scans_before.difference(&after.scans).cloned().collect(),
        unfinished: after.unfinished,
    };
    println!(
        "{} of {} Scans are lost, and the plans fell from version {version_before} to {version_after}",
        lost.scans.len(),
        scans_before.len(),
    );

    // The number is used again before a scanner can see that the version fell.
    reconnect(fleet, |program| program != SCANNER).await;
    change(fleet, &other.manager, OTHER_AFTER).await;
    assert_eq!(version(), version_before);
    reconnect(fleet, |program| program == SCANNER).await;
    fleet.mend().await;
    for word in [BEFORE, AFTER, OTHER_AFTER] {
        load.publish_about(word, POSTS / 2).await;
    }
    load.publish(POSTS).await;
    books::check_after_loss(fleet, &world, load.done(), &lost).await;
    fleet.terminate();
}

impl Loss {
    /// Starts to lose commits.
    async fn prepare(self, fleet: &Fleet) -> Cause {
        match self {
            Self::Crash => {
                fleet.query("CHECKPOINT");
                let writer = fleet.query(WAL_WRITER).parse().unwrap();
                let writer = Pid::from_raw(writer);
                kill(writer, Signal::SIGSTOP).unwrap();
                Cause::WalWriter(writer)
            }
            Self::Failover => {
                let port = fleet.postgres().port();
                let way = Proxy::start(&format!("127.0.0.1:{port}")).await;
                let near = way.address().rsplit(':').next().unwrap().parse().unwrap();
                let home = fleet.path("standby");
                let standby =
                    block_in_place(|| fleet.postgres().start_standby(&home, near)).unwrap();
                let last = fleet.query("SELECT pg_current_wal_lsn()");
                let is_here = format!("SELECT pg_last_wal_replay_lsn() >= '{last}'");
                eventually("the standby follows", PATIENCE, async || {
                    let is_here = block_in_place(|| standby.query(&is_here)).unwrap();
                    (is_here == "t").then_some(())
                })
                .await;
                way.set(Flow::Held);
                Cause::Standby(Box::new(standby), way)
            }
        }
    }
}

/// Contents of a database.
struct Contents {
    scans: BTreeSet<String>,
    unfinished: BTreeSet<String>,
}

impl Cause {
    /// Loses the commits, and cuts all replicas off. Returns the dead primary, started again for itself, if there is one; and what the database
    /// has that the services find.
    async fn lose(self, fleet: &Fleet) -> (Option<Postgres>, Contents) {
        for way in fleet.ways(Remote::Database) {
            way.cut();
        }
        let (old, contents) = block_in_place(|| {
            let mut postgres = fleet.postgres();
            postgres.kill();
            let old = match self {
                Self::WalWriter(writer) => {
                    kill(writer, Signal::SIGKILL).unwrap();
                    postgres.restart().unwrap();
                    None
                }
                Self::Standby(standby, way) => {
                    way.cut();
                    standby.promote().unwrap();
                    let mut old = std::mem::replace(&mut *postgres, *standby);
                    old.restart().unwrap();
                    Some(old)
                }
            };
            let contents = Contents {
                scans: scans(&postgres),
                unfinished: unfinished(&postgres),
            };
            (old, contents)
        });
        let port = fleet.postgres().port();
        fleet.redirect(Remote::Database, port).await;
        (old, contents)
    }
}

/// Lets replicas reach the database again.
async fn reconnect(fleet: &Fleet, which: impl Fn(&str) -> bool) {
    let replicas = fleet.replicas().iter();
    for replica in replicas.filter(|replica| which(replica.program)) {
        replica.way(Remote::Database).mend().await;
    }
}

/// Changes the word of a Manager, and waits until the change is in use.
async fn change(fleet: &Fleet, manager: &Value, word: &str) {
    let api = fleet.apis().remove(0);
    let body = json!({"instructions": {"require": [[word]]}}).to_string();
    let path = format!("/v1/{}", manager["name"].as_str().unwrap());
    let headers = [("content-type", "application/merge-patch+json")];
    let answer = api.request(Method::PATCH, &path, &headers, Some(body));
    let answer = answer.await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    api.applied(manager, PATIENCE).await;
}

/// Returns the names of all Scans.
fn scans(postgres: &Postgres) -> BTreeSet<String> {
    let listed = block_in_place(|| postgres.query(SCANS)).unwrap();
    let rows = listed.lines().map(|row| {
        let [namespace, manager, scan] = ids(row);
        format!("namespaces/{namespace}/managers/{manager}/scans/{scan}")
    });
    rows.collect()
}

/// Returns the deliveries that are not finished, or that do not exist yet, as [`Lost::unfinished`].
fn unfinished(postgres: &Postgres) -> BTreeSet<String> {
    let listed = block_in_place(|| postgres.query(UNFINISHED)).unwrap();
    let rows = listed.lines().map(|row| {
        let [namespace, connection, manager, scan] = ids(row);
        format!(
            "namespaces/{namespace}/connections/{connection} \
             namespaces/{namespace}/managers/{manager}/scans/{scan}"
        )
    });
    rows.collect()
}

/// Returns the ids of a row of UUIDs in the form of resource names.
fn ids<const COUNT: usize>(row: &str) -> [String; COUNT] {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let id = |uuid: &str| {
        let number = u128::from_str_radix(&uuid.replace('-', ""), 16).unwrap();
        let digits = (0..26).rev().map(|place| number >> (5 * place) & 31);
        let digits = digits.map(|digit| DIGITS[usize::try_from(digit).unwrap()]);
        digits.map(char::from).collect::<String>()
    };
    let all: Vec<String> = row.split('|').map(id).collect();
    all.try_into().unwrap()
}
