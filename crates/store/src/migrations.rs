//! Brings a database to the schema of this version, and checks for it.
//!
//! Migrations are never run by a replica on its own: `earshot migrate` and `earshot dev` call
//! [`migrate`], under an advisory lock, so that two at once do the work once.

use std::time::Duration;

use anyhow::{Context, anyhow};
use diesel::{QueryableByName, sql_query, sql_types::Text};
use diesel_async::{AsyncMigrationHarness, AsyncPgConnection, RunQueryDsl};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};

use crate::{QueryError, QueryResult, roles};

/// Longest wait of a migration for a lock: everyone else who wants the table waits behind it.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);
/// Pause that lets others lock the table.
const PAUSE: Duration = Duration::from_secs(2);
/// About five minutes.
const MAX_TRIES: u32 = 100;

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("migrations");

/// The newest migration of this version, which it needs: no hand has to keep it.
pub const REQUIRED_VERSION: &str = env!("NEWEST_MIGRATION");

/// Changes whenever a migration does, so that tests never use the template of another version.
#[must_use]
pub fn fingerprint() -> &'static str {
    env!("MIGRATIONS_FINGERPRINT")
}

/// Runs what is missing, gives the services' roles their rights ([`crate::roles`]), and returns the names of what was
/// run.
///
/// # Errors
/// When the database does not answer, or a migration fails; it is rolled back then.
pub async fn migrate(url: &str) -> anyhow::Result<Vec<String>> {
    let mut guard = connect(url).await?;
    // Held by this session until it ends; the harness below works on another.
    sql_query("SELECT pg_advisory_lock(hashtext('earshot.migrate'))")
        .execute(&mut guard)
        .await?;
    let mut conn = connect(url).await?;
    sql_query(format!(
        "SET lock_timeout = '{}ms'",
        LOCK_TIMEOUT.as_millis()
    ))
    .execute(&mut conn)
    .await?;
    let mut harness = AsyncMigrationHarness::new(conn);
    let run = tokio::task::spawn_blocking(move || run_pending(&mut harness))
        .await
        .context("the migration was interrupted")??;
    roles::grant(&mut guard)
        .await
        .context("cannot give the services' roles their rights")?;
    Ok(run)
}

/// Runs each migration in its own transaction. One that cannot lock its tables in time is rolled back and run again.
fn run_pending(
    harness: &mut AsyncMigrationHarness<AsyncPgConnection>,
) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    let mut tries = 0;
    while harness
        .has_pending_migration(MIGRATIONS)
        .map_err(|error| anyhow!(error))?
    {
        match harness.run_next_migration(MIGRATIONS) {
            Ok(name) => {
                names.push(name.to_string());
                tries = 0;
            }
            Err(error) if is_lock_timeout(error.as_ref()) && tries < MAX_TRIES => {
                tries += 1;
                tracing::info!(tries, "a migration waits for locks of others; trying again");
                std::thread::sleep(PAUSE);
            }
            Err(error) => return Err(anyhow!(error)),
        }
    }
    Ok(names)
}

/// diesel has no kind for SQLSTATE 55P03.
fn is_lock_timeout(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |error| error.source());
    causes.any(|cause| cause.to_string().contains("lock timeout"))
}

/// Takes back every migration. For tests of `down.sql` alone.
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

/// How the schema of a database stands to this version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Schema {
    Suits,
    /// `earshot migrate` has not been run, or that of an older version.
    TooOld {
        found: Option<String>,
    },
}

/// A newer schema suits too: migrations work with the release before.
///
/// # Errors
/// When the database does not answer.
pub async fn schema(conn: &mut AsyncPgConnection) -> QueryResult<Schema> {
    #[derive(QueryableByName)]
    struct Version {
        #[diesel(sql_type = Text)]
        version: String,
    }
    let newest = sql_query(
        "SELECT version::text FROM __diesel_schema_migrations ORDER BY version DESC LIMIT 1",
    )
    .get_result::<Version>(conn)
    .await;
    match newest {
        Ok(Version { version }) if version.as_str() >= REQUIRED_VERSION => Ok(Schema::Suits),
        Ok(Version { version }) => Ok(Schema::TooOld {
            found: Some(version),
        }),
        Err(QueryError::NotFound) => Ok(Schema::TooOld { found: None }),
        // No table at all: nothing was ever migrated here.
        Err(QueryError::DatabaseError(_, info))
            if info.message().contains("__diesel_schema_migrations") =>
        {
            Ok(Schema::TooOld { found: None })
        }
        Err(error) => Err(error),
    }
}

/// The tables that are partitioned by week.
const PARTITIONED: [&str; 4] = ["posts", "scans", "deliveries", "delivery_attempts"];

/// Makes the partitions of last week, this one, and the four to come. Cheap when they are there. Each
/// table in a separate transaction, so that no lock is held while another is waited for.
///
/// # Errors
/// When the database does not answer, or is too busy to attach a partition just now.
pub async fn ensure_partitions(conn: &mut AsyncPgConnection) -> QueryResult<()> {
    for parent in PARTITIONED {
        sql_query("SELECT ensure_partitions($1, clock_timestamp() - interval '7 days', 6)")
            .bind::<Text, _>(parent)
            .execute(conn)
            .await?;
    }
    Ok(())
}
