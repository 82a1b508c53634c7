//! The targets on stable Rust, without an engine: with their corpora, recorded responses of platforms, and
//! mutations of both.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    fs, panic,
    path::{Path, PathBuf},
    sync::{
        Once,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use fuzz::{TARGETS, Target};
use proptest::{
    prelude::*,
    sample::Index,
    test_runner::{Config, TestRunner},
};

/// Number of mutated inputs for each target.
const CHANGES: u32 = 150;

fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The seeds of a target: its corpus, and for an adapter the recordings of its platform.
fn seeds(target: &Target) -> Vec<(String, Vec<u8>)> {
    let recorded = match target.name {
        "feed" => "feeds",
        name => name,
    };
    let recorded = folder("../platforms/tests/fixtures").join(recorded);
    let mut seeds = Vec::new();
    for folder in [folder("corpus").join(target.name), recorded] {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let path = entry.unwrap().path();
            seeds.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
    seeds.sort();
    seeds
}

/// The runtime catches panics of its threads, and so would hide them.
fn panics_of_the_runtime() -> usize {
    static WATCH: Once = Once::new();
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    WATCH.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if thread::current()
                .name()
                .is_some_and(|name| name.starts_with("tokio"))
            {
                PANICS.fetch_add(1, Ordering::Relaxed);
            }
            print(panic);
        }));
    });
    PANICS.load(Ordering::Relaxed)
}

fn run(target: &Target, what: &str, data: &[u8]) {
    let panics = panics_of_the_runtime();
    (target.run)(data);
    let panics = panics_of_the_runtime() - panics;
    assert_eq!(panics, 0, "{}: {what}: a thread panicked", target.name);
}

#[test]
fn every_kind_of_platform_has_a_target() {
    for kind in platforms::registry::KINDS {
        let name = kind.name;
        assert!(fuzz::find(name).is_some(), "{name} has no target");
    }
}

#[test]
fn every_target_survives_its_corpus() {
    for target in TARGETS {
        let seeds = seeds(target);
        assert!(
            seeds.len() >= 2,
            "{} has {} seeds",
            target.name,
            seeds.len()
        );
        for (what, data) in seeds {
            run(target, &what, &data);
        }
    }
    for entry in fs::read_dir(folder("corpus")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            fuzz::find(&name).is_some(),
            "no target has the corpus {name}"
        );
    }
}

#[test]
fn every_target_survives_unexpected_input() {
    let deep = |open: &str, close: &str| {
        format!("{}{}", open.repeat(100_000), close.repeat(100_000)).into_bytes()
    };
    let inputs: Vec<Vec<u8>> = vec![
        Vec::new(),
        vec![0],
        vec![0xff; 1_000],
        b"\xef\xbb\xbf{}".to_vec(),
        deep("[", "]"),
        deep(r#"{"a":"#, "}"),
        deep("(", ")"),
        deep("<a>", "</a>"),
        deep("<div><p>", ""),
        deep("> ", ""),
        deep("*", ""),
        "a AND ".repeat(20_000).into_bytes(),
        "\u{202e}\u{0}\u{1b}[2J".repeat(1_000).into_bytes(),
        vec![b' '; 1 << 20],
        vec![0x1e; 10_000],
        b"#429 retry-after: 18446744073709551616\n".to_vec(),
    ];
    for target in TARGETS {
        for (number, data) in inputs.iter().enumerate() {
            run(target, &format!("input {number}"), data);
        }
    }
}

#[test]
fn every_target_survives_mutated_seeds() {
    for target in TARGETS {
        let seeds: Vec<Vec<u8>> = seeds(target).into_iter().map(|(_, data)| data).collect();
        let mut runner = TestRunner::new(Config {
            cases: CHANGES,
            failure_persistence: None,
            ..Config::default()
        });
        let change = (
            any::<Index>(),
            prop::collection::vec((any::<Index>(), any::<u8>()), 0..8),
            prop::option::of((any::<Index>(), any::<Index>())),
            prop::option::of((any::<Index>(), ".{0,12}")),
        );
        runner
            .run(&change, |(seed, flips, cut, insert)| {
                let mut data = seed.get(&seeds).clone();
                data.truncate(20_000);
                for (at, byte) in flips {
                    if !data.is_empty() {
                        let at = at.index(data.len());
                        data[at] = byte;
                    }
                }
                if let Some((from, to)) = cut {
                    let (from, to) = (from.index(data.len() + 1), to.index(data.len() + 1));
                    data.drain(from.min(to)..from.max(to));
                }
                if let Some((at, text)) = insert {
                    let at = at.index(data.len() + 1);
                    data.splice(at..at, text.into_bytes());
                }
                run(
                    target,
                    &format!("{:?}", String::from_utf8_lossy(&data)),
                    &data,
                );
                Ok(())
            })
            .unwrap_or_else(|error| panic!("{}: {error}", target.name));
    }
}
