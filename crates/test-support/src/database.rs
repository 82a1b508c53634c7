//! Databases for tests: migrated, empty, and one for each test.
//!
//! The server is the one in `DATABASE_URL`, which `cargo xtask test` sets. Otherwise a private one is started
//! once per test binary and ends with it. Each database is cloned from a migrated template, which takes some
//! tens of milliseconds, and dropped at the end.

use std::{
    path::{Path, PathBuf},
    sync::OnceLock,
};

use diesel::sql_query;
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use private_servers::{Postgres, postgres::Options};
use store::{Pool, roles::Service};
use url::Url;

/// Password of the services' roles on test servers.
const ROLE_PASSWORD: &str = "earshot";

/// A database that is dropped with this value.
pub struct TestDatabase {
    server: Url,
    name: String,
    url: String,
    pool: Pool,
}

impl TestDatabase {
    /// # Panics
    /// If there is no server, or it returns an error.
    pub async fn create() -> Self {
        let server = server().await;
        let template = template(&server).await;
        let name = format!("test_{}", uuid::Uuid::new_v4().simple());
        admin(
            &server,
            &format!("CREATE DATABASE {name} TEMPLATE {template}"),
        )
        .await;
        let url = at(&server, &name);
        let pool = store::connect(&url, 8).expect("the settings of a test database are sound");
        Self {
            server,
            name,
            url,
            pool,
        }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns `host:port` of the server.
    ///
    /// # Panics
    /// If the address is not a URL with a host and a port.
    pub fn server(&self) -> String {
        let host = self.server.host_str().expect("it has a host");
        format!("{host}:{}", self.server.port().expect("it has a port"))
    }

    /// Address with the role of a service, which only has the rights of [`store::roles`].
    ///
    /// # Panics
    /// If the address is not a URL.
    pub fn url_of(&self, service: Service) -> String {
        let mut url: Url = self.url.parse().expect("the address is a URL");
        url.set_username(service.role()).expect("it takes a user");
        url.set_password(Some(ROLE_PASSWORD))
            .expect("it takes a password");
        url.into()
    }

    pub fn pool(&self) -> Pool {
        self.pool.clone()
    }

    /// Opens a connection outside the pool.
    ///
    /// # Panics
    /// If the server does not answer.
    pub async fn connect(&self) -> AsyncPgConnection {
        AsyncPgConnection::establish(&self.url)
            .await
            .expect("the test server answers")
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let (server, name) = (self.server.clone(), self.name.clone());
        // A separate runtime, because the test's may be ending.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(async {
                let mut conn = AsyncPgConnection::establish(server.as_str()).await?;
                sql_query(format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))
                    .execute(&mut conn)
                    .await?;
                anyhow::Ok(())
            })
        });
        if let Ok(Err(error)) = dropped.join() {
            eprintln!("the test database {} stays behind: {error:#}", self.name);
        }
    }
}

/// Version of the migration that [`run_later_migration`] runs, after all others.
pub const LATER_VERSION: &str = "99991231000000";

/// Migrates as `earshot migrate` of a later release, which has one more migration with this `up.sql`.
///
/// # Errors
/// Same as [`store::migrations::migrate`].
pub async fn run_later_migration(
    url: &str,
    up: &str,
    in_transaction: bool,
) -> anyhow::Result<Vec<String>> {
    let folder = tempfile::tempdir()?;
    let migration = folder.path().join(format!("{LATER_VERSION}_later"));
    std::fs::create_dir(&migration)?;
    std::fs::write(migration.join("up.sql"), up)?;
    let metadata = format!("run_in_transaction = {in_transaction}");
    std::fs::write(migration.join("metadata.toml"), metadata)?;
    store::migrations::migrate_with(url, folder.path()).await
}

async fn server() -> Url {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests are no service: there is no configuration to read"
    )]
    if let Ok(url) = std::env::var("DATABASE_URL") {
        return url.parse().expect("DATABASE_URL is a URL");
    }
    static SERVER: tokio::sync::OnceCell<Url> = tokio::sync::OnceCell::const_new();
    let start = || async {
        tokio::task::spawn_blocking(|| {
            let homes = target_dir().join("test-support");
            sweep(&homes);
            let home = homes.join(format!("postgres-{}", std::process::id()));
            let server = Postgres::start(&home, &Options::throwaway())
                .expect("a private PostgreSQL server starts");
            let url = server.url().parse().expect("its address is a URL");
            // It ends with the process.
            std::mem::forget(server);
            url
        })
        .await
        .expect("starting a server does not panic")
    };
    SERVER.get_or_init(start).await.clone()
}

/// Removes directories that the servers of earlier test binaries left behind.
fn sweep(homes: &Path) {
    let Ok(entries) = std::fs::read_dir(homes) else {
        return;
    };
    for home in entries.flatten().map(|entry| entry.path()) {
        // A server that is just starting has no lock yet, but its process lives.
        let process = home
            .file_name()
            .and_then(|name| name.to_str()?.strip_prefix("postgres-"));
        let alive = process.is_some_and(|id| Path::new("/proc").join(id).exists());
        if !alive && !private_servers::is_in_use(&home) {
            // If two processes sweep at once, one of them finds nothing left to remove.
            let _ = std::fs::remove_dir_all(home);
        }
    }
}

/// Cargo's target folder: test binaries are in `<target>/<profile>/deps`.
fn target_dir() -> PathBuf {
    let binary = std::env::current_exe().expect("a process knows its binary");
    binary
        .ancestors()
        .nth(3)
        .map_or_else(std::env::temp_dir, PathBuf::from)
}

/// The migrated database that others are cloned from. The first process creates it.
async fn template(server: &Url) -> String {
    static NAME: OnceLock<String> = OnceLock::new();
    if let Some(name) = NAME.get() {
        return name.clone();
    }
    // Other migrations get another template.
    let name = format!("template_{}", store::migrations::fingerprint());
    let mut conn = AsyncPgConnection::establish(server.as_str())
        .await
        .expect("the test server answers");
    let lock = |conn| {
        run(
            conn,
            "SELECT pg_advisory_lock(hashtext('earshot.test-template'))".to_owned(),
        )
    };
    lock(&mut conn).await;
    let found = sql_query(format!(
        "SELECT FROM pg_database WHERE datname = '{name}' AND datistemplate"
    ))
    .execute(&mut conn)
    .await
    .expect("databases can be listed");
    if found == 0 {
        run(
            &mut conn,
            format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"),
        )
        .await;
        for service in Service::EACH {
            ensure_role(&mut conn, service.role()).await;
        }
        run(&mut conn, format!("CREATE DATABASE {name}")).await;
        store::migrations::migrate(&at(server, &name))
            .await
            .expect("the migrations run");
        // Only now, so that a template is never incomplete.
        run(
            &mut conn,
            format!("ALTER DATABASE {name} IS_TEMPLATE true ALLOW_CONNECTIONS false"),
        )
        .await;
    }
    NAME.get_or_init(|| name).clone()
}

/// Roles belong to the whole server, and outlive its databases.
async fn ensure_role(conn: &mut AsyncPgConnection, role: &str) {
    let sql = format!(
        "DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') \
         THEN CREATE ROLE {role} LOGIN; END IF; ALTER ROLE {role} PASSWORD '{ROLE_PASSWORD}'; END $$"
    );
    run(conn, sql).await;
}

async fn admin(server: &Url, sql: &str) {
    let mut conn = AsyncPgConnection::establish(server.as_str())
        .await
        .expect("the test server answers");
    run(&mut conn, sql.to_owned()).await;
}

async fn run(conn: &mut AsyncPgConnection, sql: String) {
    sql_query(sql.clone())
        .execute(conn)
        .await
        .unwrap_or_else(|error| panic!("`{sql}`: {error}"));
}

fn at(server: &Url, database: &str) -> String {
    let mut url = server.clone();
    url.set_path(database);
    url.into()
}
