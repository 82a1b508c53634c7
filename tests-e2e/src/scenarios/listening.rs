//! `earshot listen` over a laptop's day: it is killed, stopped and started, sleeps, loses its network, and its gateway
//! dies. Seven hundred Scans arrive meanwhile, or a thousand if `EARSHOT_LARGE_TESTS` is `1`: none is missed, and none is
//! printed twice, except for the last one before a SIGKILL, which may come before its place is saved.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::Duration,
};

use serde_json::Value;

use super::support::{PATIENCE, name};
use crate::{
    customer,
    harness::{
        LOSS, Part, Stack, eventually, process::Process, programs, proxy::Proxy, receiver::Receiver,
    },
    posts::Post,
};

const WORD: &str = "fernwhistle";
/// Posts after each event. Those that a listener missed over three events are more than one page of 100 Scans.
const BATCH: usize = 35;
const LARGE_BATCH: usize = 50;
const LONG: Duration = Duration::from_secs(120);

/// Event before each batch of posts, twenty in all.
const DAY: [Event; 20] = [
    Event::Nothing,
    Event::Kill,
    Event::Nothing,
    Event::Start,
    Event::Cut,
    Event::Nothing,
    Event::Mend,
    Event::Sleep,
    Event::Nothing,
    Event::Wake,
    Event::KillGateway,
    Event::StartGateway,
    Event::Nothing,
    Event::End,
    Event::Start,
    Event::Nothing,
    Event::Kill,
    Event::Start,
    Event::Kill,
    Event::Start,
];

#[derive(Debug, Clone, Copy)]
enum Event {
    Nothing,
    Kill,
    End,
    Start,
    Cut,
    Mend,
    Sleep,
    Wake,
    KillGateway,
    StartGateway,
}

pub(crate) async fn run(stack: &Stack) {
    let namespace = stack.api.create_namespace(WORD).await;
    let receiver = Receiver::start().await;
    let connection = stack
        .api
        .create_connection(&namespace, &receiver.url(), serde_json::json!({}))
        .await;
    let manager = customer::word_manager("FORUM", WORD, &connection);
    let manager = stack.api.create_manager(&namespace, &manager).await;
    let manager = stack.api.applied(&manager, PATIENCE).await;

    let folder = tempfile::tempdir().unwrap();
    let network = Proxy::start(stack.api_url.trim_start_matches("http://")).await;
    let start = || start(stack, &network, name(&manager), folder.path());
    let mut listener = start();
    listener.line("earshot: listening", PATIENCE).await;
    // Names of the printed Scans.
    let printed = || -> Vec<String> {
        let log = std::fs::read_to_string(folder.path().join("listen.log")).unwrap();
        // The last line may not be complete yet.
        let lines = log
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n') && line.starts_with('{'));
        lines
            .map(|line| name(&serde_json::from_str(line).unwrap()).to_owned())
            .collect()
    };
    // How many were printed at each kill.
    let mut kills = Vec::new();
    let batch = if super::are_large() {
        LARGE_BATCH
    } else {
        BATCH
    };
    let mut published = 0;
    let (mut runs, mut is_reachable) = (true, true);
    for event in DAY {
        match event {
            Event::Nothing => {}
            Event::Kill => {
                listener.kill();
                kills.push(printed().len());
            }
            Event::End => assert!(listener.terminate(PATIENCE).success()),
            Event::Start => listener = start(),
            Event::Cut => network.cut(),
            Event::Mend => network.mend().await,
            Event::Sleep => listener.pause(),
            Event::Wake => listener.resume(),
            Event::KillGateway => stack.kill(Part::Gateway),
            Event::StartGateway => drop(stack.restart(Part::Gateway).await),
        }
        let posts: Vec<Value> = (published..published + batch)
            .map(|n| {
                let mut post = Post::about(WORD, n).json();
                post["platform"] = "hackernews".into();
                post["community"] = Value::Null;
                post
            })
            .collect();
        let before = printed().len();
        let ids = stack.simulator.publish(&posts).await;
        published += batch;
        match event {
            Event::Nothing => {}
            Event::Kill | Event::End | Event::Sleep => runs = false,
            Event::Start | Event::Wake => runs = true,
            Event::Cut | Event::KillGateway => is_reachable = false,
            Event::Mend | Event::StartGateway => is_reachable = true,
        }
        // Before the next event, some Scans are polled, and printed where that is possible.
        eventually("a post is served", LONG, async || {
            let served = stack.simulator.served().await;
            ids.iter().any(|id| served.contains(id)).then_some(())
        })
        .await;
        if runs && is_reachable {
            eventually("a Scan is printed", LONG, async || {
                (printed().len() > before).then_some(())
            })
            .await;
        }
    }
    let expected = stack.eventually("all posts are Scans", LONG, async || {
        let scans = stack.api.scans(&manager, 100).await;
        (scans.len() == published).then_some(scans)
    });
    let expected = expected.await;
    eventually("as many lines as Scans", LONG, async || {
        let names: BTreeSet<String> = printed().into_iter().collect();
        (names.len() >= expected.len()).then_some(())
    })
    .await;
    let printed = printed();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (place, scan) in printed.iter().enumerate() {
        let is_again = kills.contains(&place) && place > 0 && printed[place - 1] == *scan;
        *counts.entry(scan).or_default() += usize::from(!is_again);
    }
    for scan in &expected {
        assert_eq!(counts.get(name(scan)), Some(&1), "{LOSS}lines of {scan}");
    }
    assert_eq!(counts.len(), expected.len(), "{LOSS}printed Scans");
    println!(
        "{} Scans over a laptop's day, {} of them printed again after a kill",
        expected.len(),
        printed.len() - expected.len()
    );
    assert!(listener.terminate(PATIENCE).success());
}

fn start(stack: &Stack, network: &Proxy, manager: &str, folder: &Path) -> Process {
    let mut command = programs::command("earshot");
    command
        .args([
            "listen",
            "--manager",
            manager,
            "--output",
            "jsonl",
            "--state",
        ])
        .arg(folder.join("place.json"))
        .env("EARSHOT_URL", network.url())
        .env("EARSHOT_API_KEY", &stack.owner_key);
    Process::spawn("listen", &mut command, folder)
}
