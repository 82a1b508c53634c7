//! Slows one stage after the other: memory stays bounded, the API answers, and work continues afterwards. At last the
//! disk of PostgreSQL is slow, and hangs.
//!
//! `EARSHOT_FAULTS_STAGE_SECONDS` sets for how long each stage is slow.

use std::time::{Duration, Instant};

use http::Method;
use serde_json::json;
use tokio::time::{MissedTickBehavior, interval};

use super::{
    books,
    fleet::Fleet,
    load::{Load, World},
    servers::fill_disk,
    slow_disk,
};
use crate::harness::{WAITING, eventually, proxy::Flow};

const STAGES: [Stage; 3] = [Stage::Commits, Stage::Broker, Stage::Receivers];
const SECONDS: u64 = 5;
/// Posts per tenth of a second.
const POSTS: u64 = 4;
/// Deadline after the stage has recovered.
const RECOVERY: Duration = Duration::from_secs(120);
/// Allowed growth of a replica's memory: a few thousand posts, with allocators that return memory late.
const MORE_MEMORY: u64 = 48 << 20;

#[derive(Debug, Clone, Copy)]
enum Stage {
    /// Each commit takes PostgreSQL 50 ms.
    Commits,
    /// The broker's disk is full: it accepts no message.
    Broker,
    /// No receiver answers.
    Receivers,
}

pub(super) async fn run(fleet: &Fleet) {
    let world = World::new(fleet).await;
    let mut load = Load::new(fleet, &world);
    let seconds = super::number("EARSHOT_FAULTS_STAGE_SECONDS").unwrap_or(SECONDS);
    let length = Duration::from_secs(seconds);
    let warm = Instant::now() + length / 2;
    load.keep_publishing(POSTS, || Instant::now() < warm).await;
    for stage in STAGES {
        let before = memory(fleet);
        let work_before = stage.unaffected(fleet, &world);
        stage.set(fleet, &world, true);
        let until = Instant::now() + length;
        let (mut answers, ()) = tokio::join!(
            ask(fleet, &world, until),
            load.keep_publishing(POSTS, || Instant::now() < until)
        );
        let after = memory(fleet);
        // A busy machine may need longer for it.
        let work = eventually("the other stages do some work", RECOVERY, async || {
            let work = stage.unaffected(fleet, &world) - work_before;
            (work > 0).then_some(work)
        })
        .await;
        stage.set(fleet, &world, false);
        let mended = Instant::now();
        eventually("the backlog is processed", RECOVERY, async || {
            let waiting = fleet.query(WAITING);
            (waiting == "0").then_some(())
        })
        .await;
        answers.sort();
        let p99 = answers[(answers.len() * 99).div_ceil(100) - 1];
        let more = after
            .iter()
            .zip(&before)
            .map(|(after, before)| after.saturating_sub(*before));
        let more = more.max().unwrap_or_default();
        println!(
            "{stage:?}: {} answers, p99 {p99:.0?}; the other stages did {work} more; a replica took {} MB more at most; backlog processed {:.1?} later",
            answers.len(),
            more >> 20,
            mended.elapsed()
        );
        assert!(more <= MORE_MEMORY, "{stage:?}: {more} bytes");
    }
    slow_disk::run(fleet, &world, &mut load).await;
    books::check(fleet, &world, load.done(), Instant::now()).await;
    fleet.terminate();
}

impl Stage {
    /// Returns the work done so far by a stage that this one must not hold up.
    fn unaffected(self, fleet: &Fleet, world: &World) -> usize {
        match self {
            Self::Commits | Self::Broker => {
                let receivers = world.connections.iter();
                receivers.map(|(_, receiver)| receiver.count()).sum()
            }
            Self::Receivers => fleet.query("SELECT count(*) FROM scans").parse().unwrap(),
        }
    }

    fn set(self, fleet: &Fleet, world: &World, slow: bool) {
        match self {
            Self::Commits => {
                let delay = if slow { 50_000 } else { 0 };
                for sql in [
                    &*format!("ALTER SYSTEM SET commit_delay = {delay}"),
                    "ALTER SYSTEM SET commit_siblings = 0",
                    "SELECT pg_reload_conf()",
                ] {
                    fleet.query(sql);
                }
            }
            Self::Broker => fill_disk(fleet, slow),
            Self::Receivers => {
                for way in &world.ways {
                    way.set(if slow { Flow::Held } else { Flow::Free });
                }
            }
        }
    }
}

/// Returns the response times of the API; every fourth request is a change.
async fn ask(fleet: &Fleet, world: &World, until: Instant) -> Vec<Duration> {
    let apis = fleet.apis();
    let mut answers = Vec::new();
    let mut ticks = interval(Duration::from_millis(40));
    let list = format!("/v1/{}/connections", world.namespace);
    let change = format!("/v1/{}", world.connections[0].0);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while Instant::now() < until {
        ticks.tick().await;
        let api = &apis[answers.len() % apis.len()];
        let begin = Instant::now();
        let answer = if answers.len().is_multiple_of(4) {
            let nickname = format!("changed {}", answers.len());
            let body = json!({"nickname": nickname}).to_string();
            let headers = [("content-type", "application/merge-patch+json")];
            api.request(Method::PATCH, &change, &headers, Some(body))
                .await
        } else {
            api.get(&list).await
        };
        assert_eq!(
            answer.status,
            200,
            "{}",
            String::from_utf8_lossy(&answer.body)
        );
        answers.push(begin.elapsed());
    }
    answers
}

fn memory(fleet: &Fleet) -> Vec<u64> {
    let replicas = fleet.replicas().iter();
    replicas.map(|replica| replica.holds().0).collect()
}
