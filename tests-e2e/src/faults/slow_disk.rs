//! PostgreSQL's disk becomes slow, and then hangs for longer than leases live.
//!
//! A small library in C delays the server's calls to write and to sync. It is compiled by `cc`; without a compiler the
//! test says that it skips this.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use http::Method;
use private_servers::postgres::Options;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};
use tokio_postgres::NoTls;

use super::{
    fleet::{Fleet, Servers},
    load::{Load, World},
};
use crate::harness::{WAITING, eventually};

const LIBRARY: &str = include_str!("slow_disk.c");
/// Posts per tenth of a second.
const POSTS: u64 = 2;
const RECOVERY: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(50);
/// Longer than the disk ever hangs.
const FOREVER: Duration = Duration::from_secs(3_600);

#[derive(Debug, Clone, Copy)]
enum State {
    Slow,
    Hung,
}

impl State {
    /// Delay of each sync.
    fn sync(self) -> Duration {
        match self {
            Self::Slow => Duration::from_millis(150),
            Self::Hung => FOREVER,
        }
    }

    /// Delay of each write.
    fn write(self) -> Duration {
        match self {
            Self::Slow => Duration::from_millis(2),
            Self::Hung => FOREVER,
        }
    }

    fn length(self) -> Duration {
        match self {
            Self::Slow => Duration::from_secs(3),
            // Leases end four seconds after their replica's last heartbeat.
            Self::Hung => Duration::from_secs(5),
        }
    }
}

pub(super) fn servers() -> Servers {
    Servers {
        has_slow_disk: true,
        has_few_replicas: true,
        ..Options::durable().into()
    }
}

/// A disk whose speed a test sets.
pub(super) struct SlowDisk {
    /// Holds the library and the control file, where the server's account can read them.
    directory: TempDir,
}

impl SlowDisk {
    /// Compiles the library; `None` without a compiler.
    pub(super) fn new() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let disk = Self { directory };
        let source = disk.directory.path().join("slow_disk.c");
        fs::write(&source, LIBRARY).unwrap();
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o"])
            .args([&disk.library(), &source])
            .arg("-ldl")
            .output()
            .ok()?;
        let said = String::from_utf8_lossy(&compiled.stderr);
        assert!(compiled.status.success(), "{said}");
        Some(disk)
    }

    /// Makes the server use this disk.
    pub(super) fn apply(&self, options: &mut Options) {
        for (name, path) in [
            ("LD_PRELOAD", self.library()),
            ("SLOW_DISK", self.control()),
        ] {
            let path = path.to_str().unwrap().to_owned();
            options.environment.push((name.to_owned(), path));
        }
    }

    fn set(&self, state: State) {
        let delays = [state.sync(), state.write()].map(|delay| delay.as_millis());
        let new = self.control().with_extension("new");
        fs::write(&new, format!("{} {}\n", delays[0], delays[1])).unwrap();
        // A rename is atomic, so the server never reads half a file.
        fs::rename(&new, self.control()).unwrap();
    }

    fn mend(&self) {
        fs::remove_file(self.control()).unwrap();
    }

    fn library(&self) -> PathBuf {
        self.directory.path().join("slow_disk.so")
    }

    fn control(&self) -> PathBuf {
        self.directory.path().join("delays")
    }
}

/// Slows the disk, and then hangs it.
pub(super) async fn run(fleet: &Fleet, world: &World, load: &mut Load<'_>) {
    let Some(disk) = &fleet.slow_disk else {
        return println!("SKIPPED: a slow disk needs a C compiler, `cc`");
    };
    for state in [State::Slow, State::Hung] {
        println!("{state:?} for {:?}", state.length());
        disk.set(state);
        let begin = Instant::now();
        let write = tokio::spawn(write(fleet.postgres().url(), state, begin));
        let until = begin + state.length();
        // A hung commit also holds up the request that waits for it.
        let least = usize::from(matches!(state, State::Slow));
        let (answers, ()) = tokio::join!(
            ask(fleet, world, until, least),
            load.keep_publishing(POSTS, || Instant::now() < until),
        );
        disk.mend();
        let took = write.await.unwrap();
        println!("{state:?}: a commit took {took:.1?}; {answers} lists were read meanwhile");
        // Otherwise the server does not use the library.
        let expected = state.sync().min(state.length());
        assert!(took >= expected, "a commit took {took:?}");
        assert!(answers >= least, "no answer");
        eventually("the backlog is processed", RECOVERY, async || {
            (fleet.query(WAITING) == "0").then_some(())
        })
        .await;
    }
}

/// Commits, and returns the time from `begin` on.
async fn write(url: String, state: State, begin: Instant) -> Duration {
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let table = format!("CREATE TABLE while_{state:?} ()");
    client.batch_execute(&table).await.unwrap();
    begin.elapsed()
}

/// Reads lists, and on a busy machine goes on until at least so many were answered. Returns how many were answered.
async fn ask(fleet: &Fleet, world: &World, until: Instant, least: usize) -> usize {
    let list = format!("/v1/{}/connections", world.namespace);
    let (apis, mut answers) = (fleet.apis(), 0);
    for api in apis.iter().cycle() {
        let until = if answers < least {
            until + RECOVERY
        } else {
            until
        };
        let left = until.saturating_duration_since(Instant::now());
        let request = api.try_request(Method::GET, &list, &[], None);
        let Ok(answer) = timeout(left, request).await else {
            break;
        };
        if let Some(answer) = answer {
            assert!([200, 503].contains(&answer.status), "{}", answer.status);
            answers += usize::from(answer.status == 200);
        }
        sleep(PAUSE).await;
    }
    answers
}
