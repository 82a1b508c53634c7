//! A real PostgreSQL server: started, stopped, killed, orphaned, and started again.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

#[cfg(target_os = "linux")]
use nix::sys::signal::{Signal, kill};
#[cfg(target_os = "linux")]
use nix::unistd::Pid;
use private_servers::postgres::{Installation, Options, Postgres};

fn sql(url: &str, statement: &str) -> Result<String, String> {
    let psql = Installation::find(None).unwrap().bin.join("psql");
    let output = Command::new(psql)
        .args(["-XAtq", "-d", url, "-c", statement])
        .output()
        .unwrap();
    if output.status.success() {
        Ok(String::from_utf8(output.stdout).unwrap().trim().to_owned())
    } else {
        Err(String::from_utf8(output.stderr).unwrap())
    }
}

fn listens(port: u16) -> bool {
    std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
}

#[test]
fn data_survives_a_stop_a_kill_and_a_restart_on_the_same_port() {
    let home = tempfile::tempdir().unwrap();
    let mut server = Postgres::start(home.path(), &Options::durable()).unwrap();
    let (url, port) = (server.url(), server.port());
    assert_eq!(sql(&url, "show fsync").unwrap(), "on");
    assert_eq!(sql(&url, "show server_encoding").unwrap(), "UTF8");
    sql(
        &url,
        "create table kept (n int); insert into kept values (1)",
    )
    .unwrap();

    server.kill();
    assert!(!server.is_running());
    assert!(!listens(port));
    server.restart().unwrap();
    assert_eq!((server.url(), server.port()), (url.clone(), port));
    assert_eq!(sql(&url, "select n from kept").unwrap(), "1");

    server.stop();
    assert!(!listens(port));
    drop(server);
    let again = Postgres::start(home.path(), &Options::throwaway()).unwrap();
    assert_eq!(sql(&again.url(), "select n from kept").unwrap(), "1");
    assert_eq!(sql(&again.url(), "show fsync").unwrap(), "off");
}

#[test]
fn a_standby_follows_and_becomes_a_primary_when_it_is_promoted() {
    let home = tempfile::tempdir().unwrap();
    let options = Options {
        settings: ["wal_level=replica", "max_wal_senders=4"]
            .map(String::from)
            .to_vec(),
        ..Options::throwaway()
    };
    let mut primary = Postgres::start(&home.path().join("one"), &options).unwrap();
    primary.query("CREATE TABLE kept (n int)").unwrap();
    let other = home.path().join("two");
    let standby = primary.start_standby(&other, primary.port()).unwrap();
    primary.query("INSERT INTO kept VALUES (7)").unwrap();
    while standby.query("SELECT n FROM kept").unwrap() != "7" {
        std::thread::sleep(Duration::from_millis(20));
    }
    standby.query("INSERT INTO kept VALUES (8)").unwrap_err();

    primary.kill();
    standby.promote().unwrap();

    standby.query("INSERT INTO kept VALUES (8)").unwrap();
    assert_eq!(standby.query("SELECT count(*) FROM kept").unwrap(), "2");
}

#[test]
fn private_postgres_requires_its_password() {
    let home = tempfile::tempdir().unwrap();
    let server = Postgres::start(home.path(), &Options::throwaway()).unwrap();
    let url = format!(
        "postgres://earshot:guess@127.0.0.1:{}/earshot",
        server.port()
    );
    let refusal = sql(&url, "select 1").unwrap_err();
    assert!(
        refusal.contains("password authentication failed"),
        "{refusal}"
    );
}

#[test]
fn directory_that_the_server_account_cannot_reach_works() {
    let outer = tempfile::tempdir().unwrap();
    std::fs::set_permissions(outer.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let home = outer.path().join("check out/.earshot");
    let mut server = Postgres::start(&home, &Options::throwaway()).unwrap();
    sql(&server.url(), "create table kept (n int); checkpoint").unwrap();
    server.kill();
    server.restart().unwrap();
    // A session with temporary files.
    let sorted = "set work_mem = '64kB'; select count(*) from (select n from generate_series(1, 50000) n order by -n) s";
    assert_eq!(sql(&server.url(), sorted).unwrap(), "50000");
}

#[test]
fn second_parent_is_refused_with_the_directory() {
    let home = tempfile::tempdir().unwrap();
    let server = Postgres::start(home.path(), &Options::throwaway()).unwrap();

    let error = Postgres::start(home.path(), &Options::throwaway())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains(&home.path().display().to_string()),
        "{error}"
    );
    assert_eq!(
        Postgres::running_url(home.path()).unwrap(),
        Some(server.url())
    );

    drop(server);
    assert_eq!(Postgres::running_url(home.path()).unwrap(), None);
}

#[test]
fn port_in_use_is_named() {
    let home = tempfile::tempdir().unwrap();
    let port = private_servers::free_port().unwrap();
    let _other = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    let options = Options {
        port: Some(port),
        ..Options::throwaway()
    };
    let error = Postgres::start(home.path(), &options)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains(&format!("port {port}")) && error.contains("Address already in use"),
        "{error}"
    );
}

#[test]
fn unfinished_initdb_is_repeated() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(home.path().join("data.new/base")).unwrap();
    Postgres::start(home.path(), &Options::throwaway()).unwrap();
}

#[test]
fn the_server_ends_with_a_killed_parent_and_the_next_one_starts() {
    let home = tempfile::tempdir().unwrap();
    let (mut parent, url) = parent_process(home.path());
    sql(&url, "create table kept (n int)").unwrap();
    let port: u16 = url.rsplit([':', '/']).nth(1).unwrap().parse().unwrap();
    parent.kill().unwrap();
    parent.wait().unwrap();

    let next = Postgres::start(home.path(), &Options::throwaway()).unwrap();
    sql(&next.url(), "select * from kept").unwrap();
    assert!(!listens(port));
}

#[test]
#[cfg(target_os = "linux")] // looks into /proc
fn an_orphan_without_a_watcher_is_stopped_by_the_next_parent() {
    let home = tempfile::tempdir().unwrap();
    let (mut parent, url) = parent_process(home.path());
    sql(&url, "create table kept (n int)").unwrap();
    for watcher in watchers_of(parent.id()) {
        kill(watcher, Signal::SIGKILL).unwrap();
    }
    parent.kill().unwrap();
    parent.wait().unwrap();
    for _ in 0..10 {
        std::thread::sleep(Duration::from_millis(20));
        sql(&url, "select 1").expect("the orphan still answers");
    }

    let next = Postgres::start(home.path(), &Options::throwaway()).unwrap();
    sql(&next.url(), "select * from kept").unwrap();
    sql(&url, "select 1").unwrap_err();
}

/// The shells among the children of process `parent`.
#[cfg(target_os = "linux")]
fn watchers_of(parent: u32) -> Vec<Pid> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let stats =
        processes.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    let found: Vec<_> = stats
        .filter_map(|stat| {
            // `pid (name) state parent …`
            let (pid, rest) = stat.split_once(" (")?;
            let (name, rest) = rest.rsplit_once(") ")?;
            let is_child = rest.split(' ').nth(1)? == parent.to_string();
            (is_child && !name.starts_with("postgres")).then(|| Pid::from_raw(pid.parse().unwrap()))
        })
        .collect();
    assert_eq!(found.len(), 1);
    found
}

/// Another process that runs a server in `home`: this test program, which runs the test below.
fn parent_process(home: &Path) -> (std::process::Child, String) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--ignored",
            "--exact",
            "be_the_parent_process",
            "--nocapture",
        ])
        .env("PRIVATE_SERVERS_HOME", home)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let url = lines
        .map_while(Result::ok)
        .find_map(|line| Some(line.split_once("url=")?.1.to_owned()));
    (child, url.expect("the parent process starts its server"))
}

#[test]
#[ignore = "not a test: the other process of the tests above"]
#[expect(
    clippy::disallowed_methods,
    reason = "how a test tells its other process the directory"
)]
fn be_the_parent_process() {
    let home = std::env::var("PRIVATE_SERVERS_HOME").unwrap();
    let server = Postgres::start(Path::new(&home), &Options::throwaway()).unwrap();
    println!("url={}", server.url());
    std::thread::sleep(Duration::from_secs(60));
}
