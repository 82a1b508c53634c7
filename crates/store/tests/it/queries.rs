//! Checks the statements in `queries/` against the migrated schema, and the values that are bound to them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use diesel_async::SimpleAsyncConnection;
use test_support::TestDatabase;

/// Rules that several statements contain, each with a part that occurs nowhere else.
const RULES: [(&str, &str); 11] = [
    // Most requests in a minute that a Connection gets.
    (
        "'DISCORD'",
        "CASE c.format WHEN 'DISCORD' THEN 28 ELSE coalesce(c.max_per_second * 60, \
         CASE c.format WHEN 'SLACK' THEN 60 WHEN 'TEAMS' THEN 240 END) END",
    ),
    // What a request to send a delivery again sets.
    (
        "reopen_asked = d.state",
        "state = CASE d.state WHEN 'IN_FLIGHT' THEN d.state ELSE 'PENDING' END, \
         next_attempt_time = CASE d.state WHEN 'IN_FLIGHT' THEN NULL ELSE clock_timestamp() END, \
         reopen_asked = d.state = 'IN_FLIGHT', reopen_time = clock_timestamp(), \
         schedule_base = d.attempt_count, update_time = clock_timestamp()",
    ),
    // How many bytes an account's instructions and mutes have.
    (
        "bytes_of_content(",
        "coalesce( (SELECT sum(coalesce(content_bytes, bytes_of_content(NULL, NULL, mutes))) FROM namespaces \
         WHERE account_id = $1) + coalesce(( SELECT sum(coalesce(m.content_bytes, \
         bytes_of_content(m.instructions, m.submitted_instructions, m.mutes))) \
         FROM namespaces AS n JOIN managers AS m ON m.namespace_id = n.id WHERE n.account_id = $1), 0), 0)::bigint",
    ),
    // Today's Scans of the account `a`.
    (
        "account_days AS d ON",
        "LEFT JOIN account_days AS d ON d.account_id = a.id AND d.day = (clock_timestamp() AT TIME ZONE 'UTC')::date",
    ),
    // Whether the account has Scans left. The default quota is the first parameter.
    (
        "coalesce(d.scans, 0)",
        "(coalesce(d.scans, 0) < coalesce(a.quota_scans_per_day, $1))",
    ),
    // Start of the refused posts that a backfill still owes.
    (
        "<> 'DONE'",
        "CASE WHEN b.state <> 'DONE' THEN b.catch_up_since END",
    ),
    // Whether a replica is alive.
    (
        "heartbeat_time > clock_timestamp() -",
        "heartbeat_time > clock_timestamp() - interval '4 seconds'",
    ),
    // Whether a post is by an author.
    (
        "user_name, user_url]",
        "SELECT FROM unnest(ARRAY[user_id, user_name, user_url]) AS given \
         WHERE rtrim(regexp_replace(lower(btrim(given)), '^/?(@|!|u/|r/|c/)?', ''), '/') \
         = rtrim(regexp_replace(lower(btrim($2)), '^/?(@|!|u/|r/|c/)?', ''), '/')",
    ),
    // Since when an account watches a feed.
    (
        "'-infinity'",
        "CROSS JOIN LATERAL (SELECT coalesce(a.watch_time, '-infinity') AS since) AS watched",
    ),
    // When the next missing post is due.
    (
        "min(first_time)",
        "(SELECT min(first_time) + interval '1 hour' FROM missing_posts WHERE platform = $1)",
    ),
    // Which missing posts are due.
    (
        "first_time <=",
        "first_time <= clock_timestamp() - interval '1 hour'",
    ),
];

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

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

/// Texts of all statements, by their names.
fn statements() -> BTreeMap<String, String> {
    let folder = folder().join("queries");
    let mut paths = Vec::new();
    files(&folder, &mut paths);
    let read = |path: &PathBuf| {
        let name = path.strip_prefix(&folder).unwrap().with_extension("");
        let sql = fs::read_to_string(path).unwrap();
        (name.display().to_string(), sql)
    };
    paths.iter().map(read).collect()
}

/// Types of the parameters, by the comments such as `-- $1 uuid[]: namespaces`.
fn declared(name: &str, sql: &str) -> Vec<String> {
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

/// Arguments of a macro, given the source after its opening parenthesis.
fn arguments(source: &str) -> Vec<&str> {
    let (mut depth, mut start, mut arguments) = (0, 0, Vec::new());
    for (at, character) in source.char_indices() {
        match character {
            ')' if depth == 0 => {
                arguments.push(source[start..at].trim());
                break;
            }
            ',' if depth == 0 => {
                arguments.push(source[start..at].trim());
                start = at + 1;
            }
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
    }
    arguments.retain(|argument| !argument.is_empty());
    arguments
}

/// PostgreSQL's name of a type of diesel.
fn type_name(sql_type: &str) -> String {
    let within = |wrapper: &str| {
        let rest = sql_type.strip_prefix(wrapper);
        rest.and_then(|rest| rest.strip_suffix('>'))
    };
    if let Some(item) = within("Array<") {
        return format!("{}[]", type_name(item));
    }
    if let Some(value) = within("Nullable<") {
        return type_name(value);
    }
    let name = match sql_type {
        "BigInt" => "bigint",
        "Binary" | "Bytea" => "bytea",
        "Bool" => "boolean",
        "Date" => "date",
        "Double" => "double precision",
        "Integer" => "integer",
        "Interval" => "interval",
        "Jsonb" => "jsonb",
        "SmallInt" => "smallint",
        "SqlUuid" => "uuid",
        "Text" => "text",
        "Timestamptz" => "timestamptz",
        other => panic!("what is {other} in PostgreSQL?"),
    };
    name.to_owned()
}

/// A statement with a misspelt table or column, or with a value of the wrong type, cannot be prepared.
#[tokio::test]
async fn statements_fit_the_migrated_schema() {
    let database = TestDatabase::create().await;
    let mut conn = database.connect().await;
    let mut wrong = Vec::new();
    for (name, sql) in statements() {
        let mut types = declared(&name, &sql).join(", ");
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

#[test]
fn calls_bind_the_types_that_statements_declare() {
    let statements = statements();
    let mut unused: BTreeSet<&str> = statements.keys().map(String::as_str).collect();
    let mut sources = Vec::new();
    files(&folder().join("src"), &mut sources);
    for path in sources {
        let source = fs::read_to_string(path).unwrap();
        for call in source.split(" query!(").skip(1) {
            let arguments = arguments(call);
            let name = arguments[0].trim_matches('"');
            let bound = arguments[1..].iter().map(|argument| {
                let (sql_type, _) = argument.split_once(": ").unwrap();
                type_name(sql_type)
            });
            let bound: Vec<String> = bound.collect();
            assert_eq!(bound, declared(name, &statements[name]), "{name}");
            unused.remove(name);
        }
    }
    assert!(unused.is_empty(), "no call names {unused:?}");
}

#[test]
fn statements_agree_on_common_rules() {
    for (name, sql) in statements() {
        let sql = sql.split_whitespace().collect::<Vec<_>>().join(" ");
        for (part, rule) in RULES {
            let rest = sql.replace(rule, "");
            assert!(!rest.contains(part), "{name} has another rule: {part}");
        }
    }
}
