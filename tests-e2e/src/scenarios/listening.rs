//! `earshot listen` over a laptop's day: it is killed, stopped and started, sleeps, loses its network, and its gateway
//! dies. A thousand Scans arrive meanwhile: none is missed, and none is printed twice.

use std::{collections::BTreeMap, path::Path, time::Duration};

use serde_json::Value;

use super::support::{PATIENCE, name};
use crate::{
    customer,
    harness::{
        Kind, Part, Stack, eventually, process::Process, programs, proxy::Proxy, receiver::Receiver,
    },
    posts::Post,
};

const WORD: &str = "fernwhistle";
const BATCH: usize = 50;
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
    let gateway = match stack.kind {
        Kind::Dev => Part::Dev,
        Kind::Distributed => Part::Gateway,
    };
    let mut published = 0;
    for event in DAY {
        match event {
            Event::Nothing => {}
            Event::Kill => listener.kill(),
            Event::End => assert!(listener.terminate(PATIENCE).success()),
            Event::Start => listener = start(),
            Event::Cut => network.cut(),
            Event::Mend => network.mend().await,
            Event::Sleep => listener.pause(),
            Event::Wake => listener.resume(),
            Event::KillGateway => stack.kill(gateway),
            Event::StartGateway => drop(stack.restart(gateway).await),
        }
        let posts: Vec<Value> = (published..published + BATCH)
            .map(|n| {
                let mut post = Post::about(WORD, n).json();
                post["platform"] = "hackernews".into();
                post["community"] = Value::Null;
                post
            })
            .collect();
        stack.simulator.publish(&posts).await;
        published += BATCH;
        // Some Scans are polled and printed before the next event.
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
    let expected = eventually("all posts are Scans", LONG, async || {
        let scans = stack.api.scans(&manager, 100).await;
        (scans.len() == published).then_some(scans)
    })
    .await;
    let printed = || {
        let log = std::fs::read_to_string(folder.path().join("listen.log")).unwrap();
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        // The last line may not be complete yet.
        let lines = log
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'));
        for line in lines.filter(|line| line.starts_with('{')) {
            let scan: Value = serde_json::from_str(line).unwrap();
            *counts.entry(name(&scan).to_owned()).or_default() += 1;
        }
        counts
    };
    eventually("as many lines as Scans", LONG, async || {
        (printed().len() >= expected.len()).then_some(())
    })
    .await;
    let printed = printed();
    for scan in &expected {
        assert_eq!(printed.get(name(scan)), Some(&1), "{scan}");
    }
    assert_eq!(printed.len(), expected.len());
    println!(
        "{} Scans over a laptop's day, each printed once",
        expected.len()
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
