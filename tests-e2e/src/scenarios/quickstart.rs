//! Runs the quickstart of README line by line like a new user: in an empty folder, with no settings. Then runs the
//! commands of the guide to the REST API against the same demo.
//!
//! The lines are copied from README. Only `git clone` and `cargo` are replaced: the clone is this working copy, and the
//! programs that `cargo xtask up` builds are already built. Ports are free ones.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::harness::{eventually, free_address, process::Process, programs};

const START: Duration = Duration::from_secs(120);
/// Limit for all commands of the guide.
const WALK: Duration = Duration::from_secs(600);
const MAX_COMMANDS: usize = 6;
const RECEIVER_PORT: &str = "4000";

pub(crate) async fn run() {
    for program in ["python3", "curl"] {
        if Command::new(program).arg("--version").output().is_err() {
            eprintln!("SKIPPED: the quickstart of README was not run: {program} is missing");
            return;
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let section = readme.split("\n## Quickstart\n").nth(1).unwrap();
    let blocks = blocks(section.split("\n## ").next().unwrap());
    let commands: usize = blocks.iter().map(|block| block.lines().count()).sum();
    assert!(blocks.len() == 2 && commands <= MAX_COMMANDS, "{blocks:#?}");

    let folder = tempfile::tempdir().unwrap();
    let world = World::make(folder.path(), root);
    let mut first = world.shell("first", &blocks[0], folder.path());
    first.line("earshot ready ", START).await;
    let mut second = world.shell("second", &blocks[1], &folder.path().join("earshot"));
    // The line that the receiver prints for the post of the last command.
    let said = blocks[1].lines().last().unwrap().split('"').nth(1).unwrap();
    let words: String = said.chars().take(30).collect();
    eventually("the receiver prints the post", START, async || {
        let output = second.output();
        let mut lines = output.lines();
        let is_there = lines.any(|line| line.starts_with("scan ") && line.contains(&words));
        is_there.then_some(())
    })
    .await;
    println!("{commands} commands from the first to the webhook");
    let guide = fs::read_to_string(root.join("docs/guides/rest-api.md")).unwrap();
    walk(&world, &guide, &folder.path().join("earshot")).await;
    second.ask_all_to_end();
    first.ask_all_to_end();
    second.wait_for_end(START);
    first.wait_for_end(START);
}

/// Runs the commands of the guide to the REST API. Every request must succeed.
async fn walk(world: &World, guide: &str, at: &Path) {
    let mut lines = blocks(guide).concat();
    let changes = [
        ("127.0.0.1:8080", world.api.as_str()),
        ("curl ", "curl --fail-with-body "),
        // Does not depend on the machine's speed.
        (
            "\nsleep 2\n",
            "\nuntil api $API/$MANAGER/scans | grep /scans/; do sleep 0.1; done\n",
        ),
    ];
    for (from, to) in changes {
        assert!(lines.contains(from), "no `{from}`:\n{lines}");
        lines = lines.replace(from, to);
    }
    let names = "walked $NS, $CONNECTION, $MANAGER, $SCAN";
    let script = format!("set -e\n{lines}\necho \"{names}\"");
    let mut shell = world.shell("walk", &script, at);
    let names = shell.line("walked ", WALK).await;
    for part in ["/connections/", "/managers/", "/scans/"] {
        assert!(names.contains(part), "{names}");
    }
    assert!(shell.wait_for_end(START).success());
}

/// Returns the blocks of shell commands.
fn blocks(text: &str) -> Vec<String> {
    let blocks = text.split("```sh\n").skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap().to_owned())
        .collect()
}

struct World {
    home: PathBuf,
    players: PathBuf,
    api: String,
    ops: String,
    receiver_port: String,
}

impl World {
    fn make(folder: &Path, root: &Path) -> Self {
        let (home, players) = (folder.join("home"), folder.join("players"));
        fs::create_dir_all(&home).unwrap();
        fs::create_dir_all(&players).unwrap();
        let programs = programs::path("earshot");
        let programs = programs.parent().unwrap();
        let copy = folder.join("copy");
        fs::create_dir_all(copy.join("target")).unwrap();
        symlink(root.join("docs"), copy.join("docs")).unwrap();
        symlink(programs, copy.join("target/debug")).unwrap();
        let play = |name: &str, lines: String| {
            let path = players.join(name);
            fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        };
        play("git", format!("exec cp -a '{}' earshot", copy.display()));
        play("cargo", "exec target/debug/earshot dev --demo".to_owned());
        let receiver = free_address();
        Self {
            home,
            players,
            api: free_address(),
            ops: free_address(),
            receiver_port: receiver.rsplit(':').next().unwrap().to_owned(),
        }
    }

    /// Starts a terminal that runs these lines.
    fn shell(&self, name: &str, lines: &str, at: &Path) -> Process {
        let lines = lines.replace(RECEIVER_PORT, &self.receiver_port);
        // The shell ends after its children.
        let script = format!("trap : TERM\n{lines}\nwait\nwait\n");
        let mut command = Command::new("bash");
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.players.display());
        command
            .env_clear()
            .env("PATH", self.with_python(&path))
            .env("HOME", &self.home)
            .env("PORT", &self.receiver_port)
            .env("EARSHOT_GATEWAY__LISTEN", &self.api)
            .env("EARSHOT_OPS__LISTEN", &self.ops)
            .args(["-c", &script])
            .current_dir(at);
        Process::spawn(name, &mut command, self.home.parent().unwrap())
    }

    /// Reads the setting of the test run.
    #[expect(
        clippy::disallowed_methods,
        reason = "tests are configured by environment variables, like Cargo's own"
    )]
    fn with_python(&self, path: &str) -> String {
        format!("{path}:{}", std::env::var("PATH").unwrap_or_default())
    }
}
