//! Migrates a database to the schema of this version, and checks the schema.
//!
//! A replica never runs migrations on its own. `earshot migrate` and `earshot dev` call [`migrate`], under an
//! advisory lock, so that two concurrent calls run each migration once.

use std::{fmt, path::Path, time::Duration};

use anyhow::{Context, anyhow, bail, ensure};
use diesel::{
    QueryableByName,
    migration::MigrationSource,
    pg::Pg,
    sql_query,
    sql_types::{Array, Bool, Nullable, Text},
};
use diesel_async::{AsyncMigrationHarness, AsyncPgConnection, RunQueryDsl};
use diesel_migrations::{
    EmbeddedMigrations, FileBasedMigrations, MigrationHarness, embed_migrations,
};

use crate::{QueryError, QueryResult, error::LOCK_NOT_AVAILABLE, pooling, prepared::query, roles};

/// Longest time that a migration waits for a lock, because everyone else who needs the table waits behind it.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);
/// Pause that lets others lock the table.
const PAUSE: Duration = Duration::from_secs(2);
/// Number of tries, about five minutes in total.
const MAX_TRIES: u32 = 100;
/// Pause between two checks whether another session still migrates.
const TURN_PAUSE: Duration = Duration::from_millis(100);

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("migrations");

/// The newest migration, which this release needs. The build script sets it.
pub const REQUIRED_VERSION: &str = env!("NEWEST_MIGRATION");

/// The oldest migration. A database with an older one was created before the migrations were squashed into a
/// baseline, and cannot be migrated to this schema.
const OLDEST_VERSION: &str = env!("OLDEST_MIGRATION");

/// The newest migration of the baseline, which is the schema of the first release. Every release can migrate from
/// it.
pub const BASELINE_VERSION: &str = "20261128001100";

/// Hash that changes with the migrations, so that tests never use the template database of another version.
pub fn fingerprint() -> &'static str {
    env!("MIGRATIONS_FINGERPRINT")
}

/// Runs the missing migrations, grants the services' roles their privileges ([`crate::roles`]), and returns the
/// versions of the migrations that it ran.
///
/// # Errors
/// If the database does not answer, is behind a pooler that shares sessions, or has a schema from before the baseline;
/// or if a migration fails, which is then rolled back.
pub async fn migrate(url: &str) -> anyhow::Result<Vec<String>> {
    migrate_from(url, || MIGRATIONS).await
}

/// Does the same as [`migrate`] with the migrations in `folder`. Only for tests of how a later release migrates.
///
/// # Errors
/// Same as [`migrate`], or if the folder cannot be read.
pub async fn migrate_with(url: &str, folder: &Path) -> anyhow::Result<Vec<String>> {
    let migrations = FileBasedMigrations::from_path(folder)?;
    migrate_from(url, move || migrations.clone()).await
}

async fn migrate_from<S: MigrationSource<Pg>>(
    url: &str,
    source: impl Fn() -> S + Clone + Send + 'static,
) -> anyhow::Result<Vec<String>> {
    let mut guard = connect(url).await?;
    let keeps_sessions = pooling::keeps_sessions(&mut guard, &mut connect(url).await?).await?;
    ensure!(keeps_sessions, pooling::SHARES_SESSIONS);
    // This session holds the lock until it ends; the harness below uses another session.
    take_turn(&mut guard).await?;
    let found = schema(&mut guard).await?;
    if matches!(found, Schema::Unsupported { .. }) {
        bail!("{found}");
    }
    let run = run_pending(url, source).await?;
    roles::grant(&mut guard)
        .await
        .context("cannot give the services' roles their rights")?;
    Ok(run)
}

/// Waits until no other session migrates. Checks this repeatedly, because a session that waits inside a statement has a
/// snapshot, and `CREATE INDEX CONCURRENTLY` of the migrating session waits for all snapshots.
async fn take_turn(guard: &mut AsyncPgConnection) -> QueryResult<()> {
    #[derive(QueryableByName)]
    struct Had {
        #[diesel(sql_type = Bool)]
        had: bool,
    }
    loop {
        let Had { had } =
            sql_query("SELECT pg_try_advisory_lock(hashtext('earshot.migrate')) AS had")
                .get_result(guard)
                .await?;
        if had {
            return Ok(());
        }
        tokio::time::sleep(TURN_PAUSE).await;
    }
}

/// Runs each migration in its own transaction, or without one if it says so. One that cannot lock its tables in time
/// is rolled back and run again.
async fn run_pending<S: MigrationSource<Pg>>(
    url: &str,
    source: impl Fn() -> S + Clone + Send + 'static,
) -> anyhow::Result<Vec<String>> {
    let mut conn = connect(url).await?;
    let (mut names, mut tries) = (Vec::new(), 0);
    loop {
        let migrations = source.clone();
        let next = with_harness(conn, move |harness| {
            let pending = harness.pending_migrations(migrations())?;
            let next = pending.into_iter().next();
            Ok(next.map(|migration| migration.metadata().run_in_transaction()))
        });
        let (returned, next) = next.await?;
        conn = returned;
        let Some(in_transaction) = next.map_err(|error| anyhow!(error))? else {
            return Ok(names);
        };
        prepare(&mut conn, in_transaction).await?;
        let migrations = source.clone();
        let ran = with_harness(conn, move |harness| {
            let ran = harness.run_next_migration(migrations())?;
            Ok(ran.to_string())
        });
        let (returned, ran) = ran.await?;
        conn = returned;
        match ran {
            Ok(name) => {
                names.push(name);
                tries = 0;
            }
            Err(error) if is_lock_timeout(error.as_ref()) && tries < MAX_TRIES => {
                tries += 1;
                tracing::info!(tries, "a migration waits for locks of others; trying again");
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => return Err(anyhow!(error)),
        }
    }
}

type Harness = AsyncMigrationHarness<AsyncPgConnection>;
type StepResult<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Runs blocking work of diesel, and returns the connection with its result.
async fn with_harness<T: Send + 'static>(
    conn: AsyncPgConnection,
    work: impl FnOnce(&mut Harness) -> StepResult<T> + Send + 'static,
) -> anyhow::Result<(AsyncPgConnection, StepResult<T>)> {
    tokio::task::spawn_blocking(move || {
        let mut harness = Harness::new(conn);
        let result = work(&mut harness);
        (harness.into_inner(), result)
    })
    .await
    .context("the migration was interrupted")
}

/// Sets the lock timeout for the next migration. An index that is built `CONCURRENTLY`, without a transaction, waits
/// for all earlier transactions, and no one waits behind it: it has no timeout. If an earlier attempt was interrupted,
/// its invalid index is dropped first. One that another session builds now is invalid too, and stays.
async fn prepare(conn: &mut AsyncPgConnection, in_transaction: bool) -> QueryResult<()> {
    #[derive(QueryableByName)]
    struct Invalid {
        #[diesel(sql_type = Text)]
        name: String,
    }
    let timeout = if in_transaction {
        LOCK_TIMEOUT
    } else {
        Duration::ZERO
    };
    sql_query(format!("SET lock_timeout = '{}ms'", timeout.as_millis()))
        .execute(conn)
        .await?;
    if in_transaction {
        return Ok(());
    }
    let invalid: Vec<Invalid> = sql_query(
        "SELECT indexrelid::regclass::text AS name FROM pg_index JOIN pg_class AS c ON c.oid = indexrelid \
         WHERE NOT indisvalid AND c.relkind = 'i' AND c.relnamespace = current_schema()::regnamespace \
             AND pg_has_role(c.relowner, 'MEMBER') \
             AND indexrelid NOT IN (SELECT index_relid FROM pg_stat_progress_create_index WHERE index_relid IS NOT NULL)",
    )
    .load(conn)
    .await?;
    for Invalid { name } in invalid {
        tracing::info!(index = name, "dropping an index that was not finished");
        sql_query(format!("DROP INDEX CONCURRENTLY IF EXISTS {name}"))
            .execute(conn)
            .await?;
    }
    Ok(())
}

/// diesel keeps only the text of a failed migration's error.
fn is_lock_timeout(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |error| error.source());
    causes.any(|cause| crate::sqlstate::ends_with(&cause.to_string(), LOCK_NOT_AVAILABLE))
}

/// Reverts every migration. Only for tests of `down.sql`.
///
/// # Errors
/// Same as [`migrate`].
pub async fn revert_all(url: &str) -> anyhow::Result<()> {
    let mut harness = AsyncMigrationHarness::new(connect(url).await?);
    tokio::task::spawn_blocking(move || {
        harness
            .revert_all_migrations(MIGRATIONS)
            .map(|_| ())
            .map_err(|error| anyhow!(error))
    })
    .await
    .context("the migration was interrupted")?
}

async fn connect(url: &str) -> anyhow::Result<AsyncPgConnection> {
    crate::establish(url)
        .await
        .context("cannot connect to the database")
}

/// How the schema of a database compares with the one that this release needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Schema {
    Suits,
    /// `earshot migrate` of this release has not been run.
    TooOld {
        found: Option<String>,
    },
    /// Older than the baseline: it cannot be migrated.
    Unsupported {
        found: String,
    },
}

/// States the problem and what to do about it.
impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Suits => f.write_str("the schema is up to date"),
            Self::TooOld { found: None } => {
                f.write_str("the database has no schema, run `earshot migrate`")
            }
            Self::TooOld {
                found: Some(version),
            } => write!(f, "the schema is that of {version}, run `earshot migrate`"),
            Self::Unsupported { found } => write!(
                f,
                "the schema is that of {found}, from before version 0.1.0, and cannot be migrated: create a new, empty \
                 database and run `earshot migrate` on it; with `earshot dev`, remove its data directory"
            ),
        }
    }
}

/// Compares the schema. A newer one is suitable too, because migrations keep the previous release working.
pub async fn schema(conn: &mut AsyncPgConnection) -> QueryResult<Schema> {
    #[derive(QueryableByName)]
    struct Versions {
        #[diesel(sql_type = Nullable<Text>)]
        oldest: Option<String>,
        #[diesel(sql_type = Nullable<Text>)]
        newest: Option<String>,
    }
    let versions = sql_query(
        "SELECT min(version)::text AS oldest, max(version)::text AS newest FROM __diesel_schema_migrations",
    )
    .get_result::<Versions>(conn)
    .await;
    let (oldest, newest) = match versions {
        Ok(Versions { oldest, newest }) => (oldest, newest),
        // There is no migrations table: nothing was ever migrated here.
        Err(QueryError::DatabaseError(_, info))
            if info.message().contains("__diesel_schema_migrations") =>
        {
            (None, None)
        }
        Err(error) => return Err(error),
    };
    Ok(match newest {
        Some(found) if oldest.is_some_and(|oldest| oldest.as_str() < OLDEST_VERSION) => {
            Schema::Unsupported { found }
        }
        Some(version) if version.as_str() >= REQUIRED_VERSION => Schema::Suits,
        found => Schema::TooOld { found },
    })
}

/// The tables that are partitioned by week.
const PARTITIONED: [&str; 4] = ["posts", "scans", "deliveries", "delivery_attempts"];

/// Creates the partitions of last week, this week, and the next four. Cheap if they exist. Each table has a
/// separate transaction, so that no lock is held while waiting for another.
///
/// # Errors
/// If the database does not answer, or is too busy to attach a partition now.
pub async fn ensure_partitions(conn: &mut AsyncPgConnection) -> QueryResult<()> {
    for parent in PARTITIONED {
        query!(
            "partitions/ensure",
            Text: parent,
        )
        .execute(conn)
        .await?;
    }
    Ok(())
}

/// Returns true if a table has no partition for the current week, by the database's clock: the clock jumped, or no
/// partitions were created for a month. Reads only the catalogue.
pub async fn lacks_partition(conn: &mut AsyncPgConnection) -> QueryResult<bool> {
    #[derive(QueryableByName)]
    struct Lacks {
        #[diesel(sql_type = Bool)]
        lacks: bool,
    }
    let lacks: Lacks = query!(
        "partitions/lacks",
        Array<Text>: &PARTITIONED[..],
    )
    .get_result(conn)
    .await?;
    Ok(lacks.lacks)
}
