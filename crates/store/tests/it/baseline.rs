//! Runs `earshot migrate` on databases of the first release and of earlier versions.

use std::{collections::BTreeMap, fs, path::Path};

use diesel_async::SimpleAsyncConnection;
use store::migrations::{self, BASELINE_VERSION, Schema, migrate};
use test_support::TestDatabase;

use crate::{migrations::emptied, support::run};

/// The migrations table, as diesel creates it.
const VERSIONS: &str = "CREATE TABLE __diesel_schema_migrations \
    (version varchar(50) PRIMARY KEY, run_on timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP)";

/// Names of the folders of migrations: those of the baseline, and the later ones.
fn folders() -> (Vec<String>, Vec<String>) {
    let mut names: Vec<String> =
        fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
    names.sort();
    names
        .into_iter()
        .partition(|name| version(name).as_str() <= BASELINE_VERSION)
}

/// Returns the version of a migration, which is the beginning of its folder's name.
pub(crate) fn version(folder: &str) -> String {
    folder.split_once('_').unwrap().0.replace('-', "")
}

fn up(folder: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    fs::read_to_string(path.join(folder).join("up.sql")).unwrap()
}

/// Number of rows of each table.
async fn rows(database: &TestDatabase) -> BTreeMap<String, i64> {
    let tables = database
        .texts(
            "relname",
            "pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') \
             AND NOT relispartition AND relname <> '__diesel_schema_migrations'",
        )
        .await;
    let mut rows = BTreeMap::new();
    for table in tables {
        let count = database.count(&table).await;
        rows.insert(table, count);
    }
    rows
}

#[tokio::test]
async fn a_database_of_the_first_release_is_migrated_and_keeps_its_rows() {
    let database = emptied().await;
    let mut conn = database.connect().await;
    run(&mut conn, VERSIONS).await;
    let (baseline, later) = folders();
    for folder in &baseline {
        conn.batch_execute(&up(folder)).await.unwrap();
        let version = version(folder);
        run(
            &mut conn,
            format!("INSERT INTO __diesel_schema_migrations (version) VALUES ('{version}')"),
        )
        .await;
    }
    conn.batch_execute(include_str!("baseline_rows.sql"))
        .await
        .unwrap();
    let before = rows(&database).await;
    let empty: Vec<_> = before.iter().filter(|(_, count)| **count == 0).collect();
    assert!(empty.is_empty(), "without a row: {empty:?}");

    let ran = migrate(database.url()).await.unwrap();
    let later: Vec<String> = later.iter().map(|folder| version(folder)).collect();
    assert_eq!(ran, later);
    assert_eq!(migrations::schema(&mut conn).await.unwrap(), Schema::Suits);
    let after = rows(&database).await;
    for (table, count) in before {
        assert_eq!(after.get(&table), Some(&count), "{table}");
    }
}

#[tokio::test]
async fn migrate_refuses_a_schema_from_before_the_baseline_and_changes_nothing() {
    let database = emptied().await;
    let mut conn = database.connect().await;
    for sql in [
        VERSIONS,
        "INSERT INTO __diesel_schema_migrations (version) VALUES ('20261124001010'), ('20261128001500')",
        "CREATE TABLE accounts (id uuid PRIMARY KEY)",
    ] {
        run(&mut conn, sql).await;
    }

    let refused = migrate(database.url()).await.unwrap_err().to_string();

    for text in [
        "20261128001500",
        "cannot be migrated",
        "create a new, empty database and run `earshot migrate` on it",
    ] {
        assert!(refused.contains(text), "{refused}");
    }
    assert_eq!(
        rows(&database).await.into_keys().collect::<Vec<_>>(),
        ["accounts"]
    );
    assert_eq!(
        migrations::schema(&mut conn).await.unwrap(),
        Schema::Unsupported {
            found: "20261128001500".to_owned()
        }
    );
}

/// Statements that remove something that the previous release may still read or write.
fn breaking(sql: &str) -> Vec<String> {
    let code: Vec<&str> = sql
        .lines()
        .map(|line| line.split("--").next().unwrap_or_default())
        .collect();
    code.join(" ")
        .split(';')
        .map(|statement| {
            let words: Vec<&str> = statement.split_whitespace().collect();
            words.join(" ").to_uppercase()
        })
        .filter(|statement| {
            if statement.starts_with("DROP TABLE ") || statement.starts_with("DROP FUNCTION ") {
                return true;
            }
            statement.starts_with("ALTER TABLE ")
                && statement.split(", ").any(|action| {
                    let has = |text| action.contains(text);
                    has("DROP COLUMN ")
                        || has(" RENAME ")
                        || has("ALTER COLUMN ") && (has(" TYPE ") || has(" SET NOT NULL"))
                        || has("ADD COLUMN ") && has(" NOT NULL") && !has(" DEFAULT ")
                })
        })
        .collect()
}

#[test]
fn breaking_statements_are_recognised() {
    for sql in [
        "ALTER TABLE feeds DROP COLUMN slow;",
        "alter table feeds\n    rename column slow TO late;",
        "ALTER TABLE feeds RENAME TO sources;",
        "DROP TABLE feeds;",
        "ALTER TABLE feeds ALTER COLUMN slow SET NOT NULL;",
        "ALTER TABLE feeds ALTER COLUMN gap_count TYPE integer;",
        "ALTER TABLE feeds ADD COLUMN a text, ADD COLUMN b text NOT NULL;",
        "ALTER TABLE feeds ADD COLUMN b text NOT NULL, ADD COLUMN a text NOT NULL DEFAULT '';",
    ] {
        assert_eq!(breaking(sql).len(), 1, "{sql}");
    }
    for sql in [
        "-- DROP TABLE feeds;\nCREATE TABLE later (id uuid NOT NULL);",
        "ALTER TABLE feeds ADD COLUMN a text, ADD COLUMN b bigint NOT NULL DEFAULT 0;",
        "DROP INDEX feeds_due_idx;",
    ] {
        assert_eq!(breaking(sql), Vec::<String>::new(), "{sql}");
    }
}

/// Expand first, contract a release later: a migration may only remove what the previous release does not use, and
/// must say so in a line that begins with `-- Contracts:`.
#[test]
fn migrations_after_the_baseline_keep_the_release_before_running() {
    for folder in folders().1 {
        let sql = up(&folder);
        let found = breaking(&sql);
        assert!(
            found.is_empty() || sql.lines().any(|line| line.starts_with("-- Contracts: ")),
            "{folder} takes away what the release before may use: {found:?}. If it does not use it, say since which \
             release in a line `-- Contracts: …`"
        );
    }
}
