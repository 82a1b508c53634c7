//! The services reach PostgreSQL through PgBouncer in session mode, which is killed, and whose server is killed.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use tokio::task::block_in_place;

use super::{
    books,
    fleet::{Fleet, Remote},
    load::{Load, World},
};
use crate::harness::{eventually, free_address, process::Process};

/// Posts per tenth of a second.
const POSTS: u64 = 2;
const LENGTH: Duration = Duration::from_secs(2);
const ABSENCE: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(120);
/// Sessions of everyone but this question itself.
const SESSIONS: &str = "SELECT count(*) FROM pg_stat_activity \
    WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";

pub(super) async fn run(fleet: &Fleet) {
    let Some(program) = program() else {
        println!("SKIPPED: PgBouncer is not installed (Debian package `pgbouncer`)");
        return fleet.terminate();
    };
    let address = free_address();
    let mut pooler = start(fleet, &program, &address);
    let port = address.rsplit(':').next().unwrap().parse().unwrap();
    fleet.redirect(Remote::Database, port).await;
    let world = World::new(fleet).await;
    let mut load = Load::new(fleet, &world);
    load.keep_publishing(POSTS, lasting(LENGTH)).await;

    println!("PgBouncer is killed");
    pooler.kill();
    eventually("no session goes around it", PATIENCE, async || {
        (fleet.query(SESSIONS) == "0").then_some(())
    })
    .await;
    drop(pooler);
    load.keep_publishing(POSTS, lasting(ABSENCE)).await;
    let mut pooler = start(fleet, &program, &address);
    load.keep_publishing(POSTS, lasting(LENGTH)).await;

    println!("PostgreSQL is killed behind it");
    block_in_place(|| fleet.postgres().kill());
    load.keep_publishing(POSTS, lasting(ABSENCE)).await;
    block_in_place(|| fleet.postgres().restart()).unwrap();
    load.keep_publishing(POSTS, lasting(LENGTH)).await;

    println!("PgBouncer restarts in order");
    let status = block_in_place(|| pooler.terminate(PATIENCE));
    println!("it ended: {status}");
    drop(pooler);
    let _pooler = start(fleet, &program, &address);
    load.keep_publishing(POSTS, lasting(LENGTH)).await;
    books::check(fleet, &world, load.done(), Instant::now()).await;
    fleet.terminate();
}

fn lasting(length: Duration) -> impl Fn() -> bool {
    let until = Instant::now() + length;
    move || Instant::now() < until
}

/// Starts PgBouncer at `address`.
fn start(fleet: &Fleet, program: &Path, address: &str) -> Process {
    let url = url::Url::parse(&fleet.postgres().url()).unwrap();
    let (user, password) = (url.username(), url.password().unwrap());
    let (server, database) = (url.port().unwrap(), url.path().trim_start_matches('/'));
    let (host, port) = address.rsplit_once(':').unwrap();
    let config = format!(
        "[databases]\n{database} = host=127.0.0.1 port={server} user={user} password={password}\n\
         [pgbouncer]\nlisten_addr = {host}\nlisten_port = {port}\nunix_socket_dir =\n\
         auth_type = any\npool_mode = session\nmax_client_conn = 400\ndefault_pool_size = 180\n\
         server_login_retry = 1\n"
    );
    let path = fleet.path("pgbouncer.ini");
    std::fs::write(&path, config).unwrap();
    let mut command = Command::new(program);
    // It does not run as root.
    if nix::unistd::Uid::effective().is_root() {
        command.args(["--user", "nobody"]);
    }
    command.arg(&path);
    Process::spawn("pgbouncer", &mut command, path.parent().unwrap())
}

/// Finds PgBouncer, which Debian does not put on the PATH of ordinary users.
fn program() -> Option<PathBuf> {
    let places = [
        "/usr/sbin/pgbouncer",
        "/usr/bin/pgbouncer",
        "/usr/local/bin/pgbouncer",
    ];
    places
        .map(PathBuf::from)
        .into_iter()
        .find(|path| path.is_file())
}
