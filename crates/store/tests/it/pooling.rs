//! Connections through PgBouncer.

use std::{
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::{Child, Command},
};

use store::pooling::{SHARES_SESSIONS, pool_keeps_sessions};
use test_support::{TestDatabase, eventually};
use tokio::net::TcpStream;
use url::Url;

/// PgBouncer, which ends with this value.
struct Pooler(Child);

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
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

/// Starts PgBouncer before `database`, and returns it with the database's address there.
async fn start(
    program: &Path,
    home: &Path,
    database: &TestDatabase,
    mode: &str,
) -> (Pooler, String) {
    let mut url = Url::parse(database.url()).unwrap();
    let name = url.path().trim_start_matches('/').to_owned();
    let (host, port) = (url.host_str().unwrap(), url.port().unwrap_or(5432));
    let (user, password) = (url.username(), url.password().unwrap_or_default());
    let own = private_servers::free_port().unwrap();
    let config = format!(
        "[databases]\n{name} = host={host} port={port} user={user} password={password}\n\
         [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {own}\nunix_socket_dir =\n\
         auth_type = any\npool_mode = {mode}\n"
    );
    let path = home.join(format!("{mode}.ini"));
    std::fs::write(&path, config).unwrap();
    let mut command = Command::new(program);
    // It does not run as root.
    if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
        command.args(["--user", "nobody"]);
    }
    let child = command.arg("--quiet").arg(&path).spawn().unwrap();
    eventually("PgBouncer listens", async || {
        TcpStream::connect(("127.0.0.1", own)).await.is_ok()
    })
    .await;
    url.set_host(Some("127.0.0.1")).unwrap();
    url.set_port(Some(own)).unwrap();
    (Pooler(child), url.into())
}

#[tokio::test]
async fn poolers_that_share_sessions_are_refused() {
    let database = TestDatabase::create().await;
    assert!(pool_keeps_sessions(&database.pool()).await.unwrap());
    let Some(program) = program() else {
        println!("SKIPPED: PgBouncer is not installed (Debian package `pgbouncer`)");
        return;
    };
    let home = tempfile::tempdir().unwrap();
    for (mode, keeps) in [("session", true), ("transaction", false)] {
        let (_pooler, url) = start(&program, home.path(), &database, mode).await;
        let pool = store::connect(&url, 2).unwrap();
        assert_eq!(pool_keeps_sessions(&pool).await.unwrap(), keeps, "{mode}");
        let migrated = store::migrations::migrate(&url).await;
        let error = migrated.err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), (!keeps).then_some(SHARES_SESSIONS));
    }
}
