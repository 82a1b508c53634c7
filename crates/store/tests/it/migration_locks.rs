//! Migrations never lock existing tables while they read or build something.
//!
//! Everyone who uses the table would have to wait that long. A statement that must do so anyway, on a table that is
//! always small, gives the reason in a comment directly above it: `-- Locks: <reason>`.

use std::{collections::BTreeSet, fs, path::Path};

use store::migrations::BASELINE_VERSION;

use crate::baseline::version;

/// A statement in capitals, without comments and function bodies, and whether it has a reason to lock.
struct Statement {
    text: String,
    is_excused: bool,
}

fn statements(sql: &str) -> Vec<Statement> {
    let mut found = Vec::new();
    let (mut text, mut is_excused) = (String::new(), false);
    // Function bodies are between dollar quotes.
    for (at, part) in sql.split("$$").enumerate() {
        if at % 2 == 1 {
            continue;
        }
        for line in part.lines() {
            let (code, comment) = line.split_once("--").unwrap_or((line, ""));
            is_excused |= comment.trim().starts_with("Locks: ");
            for (at, piece) in code.split(';').enumerate() {
                if at > 0 {
                    let text = std::mem::take(&mut text);
                    found.push(Statement { text, is_excused });
                    is_excused = false;
                }
                let words = piece.split_whitespace().map(str::to_uppercase);
                for word in words {
                    text.push_str(&word);
                    text.push(' ');
                }
            }
        }
    }
    found
}

fn word_after<'a>(text: &'a str, before: &str) -> Option<&'a str> {
    let rest = text.split_once(before)?.1;
    let word = rest
        .trim_start_matches("IF NOT EXISTS ")
        .trim_start_matches("IF EXISTS ")
        .trim_start_matches("ONLY ")
        .split([' ', '('])
        .next()?;
    Some(word)
}

/// Returns why the migration would keep others waiting.
fn problems(sql: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut own: BTreeSet<String> = BTreeSet::new();
    let mut unvalidated = false;
    for Statement { text, is_excused } in statements(sql) {
        if let Some(table) = word_after(&text, "CREATE TABLE ") {
            own.insert(table.to_owned());
        }
        let changes_rows = text.starts_with("UPDATE ") || text.starts_with("DELETE FROM ");
        let table = ["ALTER TABLE ", "UPDATE ", "DELETE FROM "]
            .iter()
            .find(|verb| text.starts_with(*verb))
            .and_then(|verb| word_after(&text, verb))
            .or_else(|| {
                text.starts_with("CREATE")
                    .then(|| word_after(&text, " ON "))?
            });
        if is_excused || table.is_some_and(|table| own.contains(table)) {
            continue;
        }
        let has = |words: &str| text.contains(words);
        let is_index = text.starts_with("CREATE INDEX") || text.starts_with("CREATE UNIQUE INDEX");
        unvalidated |= has("NOT VALID");
        let refusals = [
            (
                is_index && !has("CONCURRENTLY") && !has(" ON ONLY "),
                "builds an index under a lock: use CONCURRENTLY, on the partitions first",
            ),
            (
                has(" ADD ")
                    && (has(" CHECK ") || has(" FOREIGN KEY ") || has(" REFERENCES "))
                    && !has("NOT VALID"),
                "validates a constraint under a lock: add it NOT VALID, and VALIDATE it in a later migration",
            ),
            (
                has(" ADD ")
                    && (has(" PRIMARY KEY") || has(" UNIQUE") || has(" EXCLUDE "))
                    && !has("USING INDEX"),
                "builds an index under a lock: build it CONCURRENTLY, and add the constraint USING INDEX",
            ),
            (
                has("VALIDATE CONSTRAINT") && unvalidated,
                "validates under the lock of its ADD: VALIDATE in a later migration",
            ),
            (
                has(" SET NOT NULL"),
                "reads the table under a lock: validate a CHECK first, and say so above the statement",
            ),
            (
                has("ALTER COLUMN") && (has(" TYPE ") || has(" SET DATA TYPE ")),
                "rewrites the table: add a column, copy in batches, and drop the old one later",
            ),
            (
                has(" ADD COLUMN ")
                    && (has("GENERATED ")
                        || has("SERIAL")
                        || has("DEFAULT GEN_RANDOM_UUID")
                        || has("DEFAULT CLOCK_TIMESTAMP")),
                "rewrites the table: add the column without that, then set its default",
            ),
            (
                changes_rows,
                "locks each row that it changes until the end: let a service change them in batches",
            ),
            (
                text.starts_with("CLUSTER")
                    || text.starts_with("VACUUM FULL")
                    || text.starts_with("LOCK ")
                    || text.starts_with("REINDEX") && !has("CONCURRENTLY"),
                "locks a table",
            ),
        ];
        for (_, reason) in refusals.iter().filter(|(refused, _)| *refused) {
            problems.push(format!("`{}` {reason}", text.trim()));
        }
    }
    problems
}

#[test]
fn migrations_keep_no_one_waiting() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // Those of the baseline only run on empty databases.
        if version(&name).as_str() > BASELINE_VERSION {
            let sql = fs::read_to_string(path.join("up.sql")).unwrap();
            let problems = problems(&sql);
            assert!(
                problems.is_empty(),
                "{name}: {}\nSee docs/development/add-a-migration.md.",
                problems.join("\n")
            );
        }
    }
}

#[test]
fn statements_that_lock_while_they_work_are_refused() {
    for refused in [
        "CREATE INDEX a_idx ON scans (id);",
        "create unique index a_idx on scans (id);",
        "ALTER TABLE scans ADD CONSTRAINT a CHECK (id IS NOT NULL);",
        "ALTER TABLE scans ADD COLUMN a uuid REFERENCES posts (id);",
        "ALTER TABLE scans ADD CONSTRAINT a FOREIGN KEY (id) REFERENCES posts (id);",
        "ALTER TABLE scans ADD CONSTRAINT a UNIQUE (id);",
        "ALTER TABLE scans ADD PRIMARY KEY (id);",
        "ALTER TABLE scans ADD CONSTRAINT a CHECK (id IS NOT NULL) NOT VALID; ALTER TABLE scans VALIDATE CONSTRAINT a;",
        "ALTER TABLE scans ALTER COLUMN a SET NOT NULL;",
        "ALTER TABLE scans ALTER COLUMN a TYPE bigint;",
        "ALTER TABLE scans ADD COLUMN a uuid DEFAULT gen_random_uuid();",
        "ALTER TABLE scans ADD COLUMN a bigint GENERATED ALWAYS AS IDENTITY;",
        "LOCK TABLE scans;",
        "UPDATE scans SET value = true;",
        "DELETE FROM scans WHERE value;",
        "CREATE TABLE a (id uuid); CREATE INDEX b ON scans (id);",
    ] {
        assert_eq!(problems(refused).len(), 1, "{refused}");
    }
}

#[test]
fn statements_that_lock_briefly_or_a_new_table_are_taken() {
    for taken in [
        "CREATE TABLE a (id uuid PRIMARY KEY, b text CHECK (b <> '')); CREATE INDEX a_idx ON a (b); ALTER TABLE a ADD UNIQUE (b);",
        "ALTER TABLE scans ADD COLUMN a boolean NOT NULL DEFAULT false;",
        "ALTER TABLE scans ADD CONSTRAINT a CHECK (id IS NOT NULL) NOT VALID;",
        "ALTER TABLE scans VALIDATE CONSTRAINT a;",
        "CREATE INDEX CONCURRENTLY a_idx ON scans_20261123 (id);",
        "CREATE INDEX a_idx ON ONLY scans (id);",
        "CREATE TABLE a (id uuid); UPDATE a SET id = NULL; DELETE FROM a;",
        "CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN LOCK TABLE scans; END $$;",
        "-- Locks: has a row for each account\nALTER TABLE accounts ALTER COLUMN a SET NOT NULL;",
    ] {
        assert_eq!(problems(taken), Vec::<String>::new(), "{taken}");
    }
    let next = "-- Locks: small\nALTER TABLE a ALTER COLUMN b SET NOT NULL; ALTER TABLE scans ALTER COLUMN b SET NOT NULL;";
    assert_eq!(problems(next).len(), 1, "an excuse is for one statement");
}
