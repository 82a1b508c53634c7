//! Checks the statements in `queries/` against the migrated schema.

use std::{
    fs,
    path::{Path, PathBuf},
};

use diesel_async::SimpleAsyncConnection;
use test_support::TestDatabase;

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// Name and text of each statement.
fn statements() -> Vec<(String, String)> {
    let mut paths = Vec::new();
    files(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("queries"),
        &mut paths,
    );
    assert!(!paths.is_empty());
    let read = |path: &PathBuf| {
        (
            path.display().to_string(),
            fs::read_to_string(path).unwrap(),
        )
    };
    paths.iter().map(read).collect()
}

/// Types of the parameters, by the comments such as `-- $1 uuid[]: namespaces`.
fn types(name: &str, sql: &str) -> Vec<String> {
    let mut types = Vec::new();
    for line in sql.lines().filter_map(|line| line.strip_prefix("-- $")) {
        let (number, rest) = line.split_once(' ').unwrap();
        assert_eq!(number, (types.len() + 1).to_string(), "{name}");
        types.push(rest.split_once(':').unwrap().0.to_owned());
    }
    let next = format!("${}", types.len() + 1);
    assert!(
        !sql.contains(&next),
        "{name}: no comment says what {next} is"
    );
    types
}

/// A statement with a misspelt table or column, or with a value of the wrong type, cannot be prepared.
#[tokio::test]
async fn statements_fit_the_migrated_schema() {
    let database = TestDatabase::create().await;
    let mut conn = database.connect().await;
    let mut wrong = Vec::new();
    for (name, sql) in statements() {
        let mut types = types(&name, &sql).join(", ");
        if !types.is_empty() {
            types = format!(" ({types})");
        }
        let prepare = format!("PREPARE checked{types} AS {sql}; DEALLOCATE checked");
        if let Err(error) = conn.batch_execute(&prepare).await {
            wrong.push(format!("{name}: {error}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Most requests in a minute that a Connection gets, which several statements need.
const PER_MINUTE: &str = "CASE c.format WHEN 'DISCORD' THEN 28 ELSE coalesce(c.max_per_second * 60, \
    CASE c.format WHEN 'SLACK' THEN 60 WHEN 'TEAMS' THEN 240 END) END";

#[test]
fn statements_agree_on_the_limit_per_minute() {
    for (name, sql) in statements() {
        let sql = sql.split_whitespace().collect::<Vec<_>>().join(" ");
        let rest = sql.replace(PER_MINUTE, "");
        assert!(!rest.contains("'DISCORD'"), "{name} has another limit");
    }
}
