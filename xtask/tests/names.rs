//! Checks that README and docs name only settings, metrics and endpoints that exist. Decisions (`docs/adr`) keep the
//! names of their time. The truth is what other tests hold the code to: the references below `docs/operations`, and
//! `openapi.yaml`. Command lines are checked by the crate `earshot`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod documents;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use documents::{files, root};

const SETTINGS: &str = "docs/operations/configuration.md";
const METRICS: &str = "docs/operations/metrics.md";
/// Words that look like metrics: roles in the database, and the package for Python.
const NO_METRICS: [&str; 5] = [
    "earshot_api_gateway",
    "earshot_client",
    "earshot_manager_compiler",
    "earshot_scanner",
    "earshot_webhook_dispatcher",
];
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// Checks each document with `faults`, which returns the number of names that it saw and the wrong ones.
fn check(least: usize, faults: impl Fn(&str) -> (usize, Vec<String>)) {
    let mut documents = vec![PathBuf::from("README.md")];
    files(Path::new("docs"), "md", &mut documents);
    documents.retain(|page| !page.starts_with("docs/adr"));
    let (mut seen, mut wrong) = (0, Vec::new());
    for page in documents {
        let (names, faults) = faults(&read(&page));
        seen += names;
        wrong.extend(
            faults
                .iter()
                .map(|one| format!("{}: {one}", page.display())),
        );
    }
    assert!(seen >= least, "only {seen} names were found");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Code spans, and lines of code blocks, with those around the blocks.
fn code(text: &str) -> Vec<&str> {
    let mut fenced = false;
    let mut code = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            code.push(line);
        } else if fenced {
            code.push(line);
        } else {
            code.extend(line.split('`').skip(1).step_by(2));
        }
    }
    code
}

/// Words of `text` that begin with `prefix` and continue with `part`.
fn words<'a>(
    text: &'a str,
    prefix: &'a str,
    part: fn(char) -> bool,
) -> impl Iterator<Item = &'a str> {
    text.match_indices(prefix)
        .filter(move |(at, _)| !text[..*at].ends_with(part))
        .map(move |(at, _)| {
            let end = text[at..].find(|c| !part(c));
            &text[at..end.map_or(text.len(), |end| at + end)]
        })
}

/// Keys of each section of the configuration, by its name.
fn settings(reference: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let sections = reference.split("\n## `").skip(1);
    sections
        .map(|section| {
            let name = section.split('`').next().unwrap();
            let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
            let keys = rows.map(|row| row.split('`').next().unwrap()).collect();
            (name.trim_matches(['[', ']']), keys)
        })
        .collect()
}

/// Returns the fault of a setting `section.key`, if the section is one of the configuration.
fn setting(known: &BTreeMap<&str, BTreeSet<&str>>, name: &str) -> Option<Result<(), String>> {
    let (section, key) = name.rsplit_once('.')?;
    if known.contains_key(name) {
        return Some(Ok(()));
    }
    // A secret may be in a file: `url_file`.
    let is_known = |keys: &BTreeSet<&str>| {
        keys.contains(key) || keys.contains(key.strip_suffix("_file").unwrap_or(key))
    };
    match known.get(section) {
        Some(keys) if is_known(keys) => Some(Ok(())),
        Some(_) => Some(Err(format!("no setting {name}"))),
        None => known
            .contains_key(section.split('.').next()?)
            .then(|| Err(format!("no section {section}"))),
    }
}

fn faults_of_settings(known: &BTreeMap<&str, BTreeSet<&str>>, text: &str) -> (usize, Vec<String>) {
    let (mut seen, mut faults) = (0, Vec::new());
    let mut note = |outcome: Result<(), String>| {
        seen += 1;
        faults.extend(outcome.err());
    };
    let named = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.".contains(c);
    // Section of the lines in a code block.
    let mut section = None;
    for code in code(text) {
        if let Some(name) = code
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            let name = name.trim_start_matches('[').trim_end_matches(']');
            if !name.is_empty() && name.chars().all(named) {
                let is_known = known.contains_key(name);
                note(is_known.then_some(()).ok_or(format!("no section {name}")));
                section = Some(name);
            }
        } else if code.trim_start().starts_with("```") {
            section = None;
        } else if let (Some(section), Some((key, _))) = (section, code.split_once(" = "))
            && key.chars().all(named)
        {
            setting(known, &format!("{section}.{key}"))
                .into_iter()
                .for_each(&mut note);
        } else if code.chars().all(named) && !code.ends_with(".rs") {
            setting(known, code).into_iter().for_each(&mut note);
        }
        for variable in words(code, "EARSHOT_", |c| c.is_ascii_alphanumeric() || c == '_') {
            let name = variable["EARSHOT_".len()..]
                .replace("__", ".")
                .to_lowercase();
            // Blocks of platforms are numbered: `EARSHOT_PLATFORMS__0__TOKEN`.
            if !name.starts_with("platforms.") {
                setting(known, &name).into_iter().for_each(&mut note);
            }
        }
    }
    (seen, faults)
}

#[test]
fn settings_in_documents_exist() {
    let reference = read(SETTINGS);
    let known = settings(&reference);
    assert!(known.len() > 10, "{known:?}");
    check(90, |text| faults_of_settings(&known, text));
}

/// Names in the first cells of the tables.
fn metrics(reference: &str) -> BTreeSet<&str> {
    let cells = reference
        .lines()
        .filter_map(|line| line.strip_prefix("| `"));
    let cells = cells.filter_map(|line| line.split(" |").next());
    cells
        .flat_map(|cell| cell.split(['`', ',', ' ']))
        .filter(|name| !name.is_empty())
        .collect()
}

fn faults_of_metrics(known: &BTreeSet<&str>, text: &str) -> (usize, Vec<String>) {
    let part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let prefixes = ["earshot_", "http_server_", "messaging_", "db_client_"];
    let code = code(text);
    let names: Vec<&str> = code
        .iter()
        .flat_map(|code| prefixes.iter().flat_map(|prefix| words(code, prefix, part)))
        .filter(|name| !NO_METRICS.contains(name) && !prefixes.contains(name))
        .collect();
    let is_known = |name: &str| {
        let series = ["_bucket", "_sum", "_count"];
        let mut of = series.iter().filter_map(|end| name.strip_suffix(end));
        known.contains(name) || of.any(|name| known.contains(name))
    };
    let wrong = names.iter().filter(|name| !is_known(name));
    let wrong = wrong.map(|name| format!("no metric {name}")).collect();
    (names.len(), wrong)
}

#[test]
fn metrics_in_documents_exist() {
    let reference = read(METRICS);
    let known = metrics(&reference);
    assert!(known.len() > 50, "{known:?}");
    check(100, |text| faults_of_metrics(&known, text));
}

/// Methods of each path of the API.
fn paths(openapi: &str) -> BTreeMap<&str, BTreeSet<String>> {
    let mut paths = BTreeMap::new();
    let mut path = None;
    for line in openapi.lines() {
        if let Some(name) = line
            .strip_prefix("  /")
            .and_then(|rest| rest.strip_suffix(':'))
        {
            path = Some(name);
            paths.insert(name, BTreeSet::new());
        } else if let Some(method) = line
            .strip_prefix("    ")
            .and_then(|rest| rest.strip_suffix(':'))
            && let Some(path) = path
        {
            paths.get_mut(path).unwrap().insert(method.to_uppercase());
        } else if !line.starts_with(' ') {
            path = None;
        }
    }
    paths
}

/// Returns true if the path fits the template. `…` stands for any segments, and a placeholder for one.
fn fits(path: &str, template: &str) -> bool {
    fn fit(path: &[&str], template: &[&str]) -> bool {
        match (path, template) {
            ([], []) => true,
            (["…", rest @ ..], _) => (0..=template.len()).any(|at| fit(rest, &template[at..])),
            ([one, path @ ..], [other, template @ ..]) => same(one, other) && fit(path, template),
            _ => false,
        }
    }
    /// A placeholder may have a method or an extension after it: `{managerId}:apply`, `{managerId}.atom`.
    fn same(one: &str, template: &str) -> bool {
        match template.split_once('}') {
            None => one == template,
            Some((_, end)) => {
                let rest = one.strip_suffix(end);
                rest.is_some_and(|rest| {
                    !rest.is_empty() && (!end.is_empty() || !rest.contains(':'))
                })
            }
        }
    }
    let path: Vec<&str> = path.split('/').collect();
    fit(&path, &template.split('/').collect::<Vec<_>>())
}

fn faults_of_endpoints(
    known: &BTreeMap<&str, BTreeSet<String>>,
    text: &str,
) -> (usize, Vec<String>) {
    let (mut seen, mut faults) = (0, Vec::new());
    for code in code(text) {
        // A custom method alone.
        if let Some(method) = code.strip_prefix(':')
            && !method.is_empty()
            && method.bytes().all(|b| b.is_ascii_lowercase())
        {
            seen += 1;
            if !known.keys().any(|path| path.ends_with(code)) {
                faults.push(format!("no method {code}"));
            }
        }
        for prefix in ["/v1/", "/feeds/"] {
            for (at, _) in code.match_indices(prefix) {
                let path = &code[at + 1..];
                let end = path.find(|c: char| c.is_whitespace() || "?\"'),;\\".contains(c));
                let path = &path[..end.unwrap_or(path.len())];
                // The base address, event schemas, and the folder of a platform's API.
                if path == "v1/" || path.ends_with(".proto") {
                    continue;
                }
                seen += 1;
                let before = code[..at].split_whitespace().next_back();
                let method = before.filter(|word| METHODS.contains(word));
                let is_known = known.iter().any(|(template, methods)| {
                    fits(path, template) && method.is_none_or(|method| methods.contains(method))
                });
                if !is_known {
                    faults.push(format!(
                        "no endpoint {} /{path}",
                        method.unwrap_or_default()
                    ));
                }
            }
        }
    }
    (seen, faults)
}

#[test]
fn endpoints_in_documents_exist() {
    let openapi = read("crates/api-gateway/openapi.yaml");
    let known = paths(&openapi);
    assert!(known.len() > 20, "{known:?}");
    check(15, |text| faults_of_endpoints(&known, text));
}

#[test]
fn names_that_do_not_exist_are_found() {
    let reference = "\n## `[gateway]`\n| `listen` | x |\n## `[scanner.judge]`\n| `model` | x |\n\n## `[[platforms]]`\n| `name` |";
    let known = settings(reference);
    let text = "`gateway.listen` `gateway.port` `gateway.listen_file` `[scanner.judge]` `[judge]` `EARSHOT_GATEWAY__PORT` \
                `post.id` `gateway.rs`\n```toml\n[[platforms]]\nname = 1\nnick = 2\n```\n`nick = 2`";
    let (seen, faults) = faults_of_settings(&known, text);
    assert_eq!(seen, 9, "{faults:?}");
    let expected = [
        "no setting gateway.port",
        "no section judge",
        "no setting gateway.port",
        "no setting platforms.nick",
    ];
    assert_eq!(faults, expected);

    let known = metrics("| `earshot_a_seconds`, `earshot_b` | gauge |");
    let text = "`earshot_a_seconds_sum` `earshot_b{x=\"earshot\"}` `earshot_c` earshot_d";
    assert_eq!(
        faults_of_metrics(&known, text),
        (3, vec!["no metric earshot_c".to_owned()])
    );

    let known = paths(
        "paths:\n  /v1/a/{b}:\n    get:\n      x:\n  /v1/a/{b}/c:\n    post:\n  /v1/a/{b}:apply:\n    post:\ncomponents:\n  x:\n    y:\n",
    );
    let text = "`GET /v1/a/1?x=1` `/v1/a/1:apply` `POST /v1/a/1` `/v1/…/c` `/v1/…/d/e` `:apply` `:undo` `/v1/a/1:undo`";
    let (seen, faults) = faults_of_endpoints(&known, text);
    let expected = [
        "no endpoint POST /v1/a/1",
        "no endpoint  /v1/…/d/e",
        "no method :undo",
        "no endpoint  /v1/a/1:undo",
    ];
    assert_eq!(faults, expected);
    assert_eq!(seen, 8);
}
