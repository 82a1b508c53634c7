//! Documents: Managers in YAML files.

use std::{
    fs,
    io::{Read, stdin},
    path::{Path, PathBuf},
};

use domain::{
    Issue,
    address::AddressPolicy,
    feed::{FeedName, FeedRules},
    manager::{CreateManager, PATHS, Rules, SourceType},
};
use serde_json::{Map, Value};

use super::{
    super::{Failure, one_line},
    yaml,
};

/// Bound on one file.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// Bound on all documents together.
const MAX_DOCUMENTS: usize = 10_000;

/// Fields of a document, in their written order.
pub(super) const FIELDS: [&str; 12] = [
    "nickname",
    "type",
    "enable",
    "source",
    "input",
    "instructions",
    "notices",
    "mutes",
    "languages",
    "maxScansPerDay",
    "kinds",
    "duplicates",
];

/// One Manager as its file has it.
#[derive(Debug, Clone)]
pub(super) struct Document {
    /// File and line.
    pub(super) place: String,
    /// Name or id, if the Manager exists.
    pub(super) name: Option<String>,
    /// The body for the API, with all defaults.
    pub(super) spec: Value,
}

impl Document {
    pub(super) fn nickname(&self) -> &str {
        self.spec["nickname"].as_str().unwrap_or_default()
    }
}

/// Reads all files and folders, and reports everything that is wrong with them.
pub(super) fn read(paths: &[PathBuf]) -> Result<Vec<Document>, Failure> {
    let mut documents = Vec::new();
    let mut wrong = Vec::new();
    for path in files(paths)? {
        let shown = one_line(&path.display().to_string());
        parse(&shown, &text(&path)?, &mut documents, &mut wrong);
        if documents.len() > MAX_DOCUMENTS {
            let words = format!("more than {MAX_DOCUMENTS} documents");
            return Err(Failure::usage(words));
        }
    }
    if wrong.is_empty() {
        return Ok(documents);
    }
    Err(Failure::usage(wrong.join("\n  ")))
}

/// Returns the files, and the YAML files of the folders in the order of their names.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let unreadable = |error| unreadable(path, &error);
        let mut found = Vec::new();
        for entry in fs::read_dir(path).map_err(unreadable)? {
            let file = entry.map_err(unreadable)?.path();
            let is_yaml = file
                .extension()
                .is_some_and(|it| it == "yaml" || it == "yml");
            if is_yaml && file.is_file() {
                found.push(file);
            }
        }
        if found.is_empty() {
            let words = format!("{} has no .yaml or .yml file", path.display());
            return Err(Failure::usage(words));
        }
        found.sort();
        files.extend(found);
    }
    Ok(files)
}

fn text(path: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let read = match path == Path::new("-") {
        true => stdin().take(MAX_BYTES + 1).read_to_string(&mut text),
        false => {
            fs::File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text))
        }
    };
    let length = read.map_err(|error| unreadable(path, &error))?;
    if length as u64 > MAX_BYTES {
        let words = format!("{} is longer than {MAX_BYTES} bytes", path.display());
        return Err(Failure::usage(words));
    }
    Ok(text)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot read {}: {error}", path.display()))
}

fn parse(file: &str, text: &str, documents: &mut Vec<Document>, wrong: &mut Vec<String>) {
    for (start, part) in parts(text) {
        let value = match yaml::parse(&part) {
            Ok(Value::Null) => continue,
            Ok(value) => value,
            Err((line, error)) => {
                let line = start + line.unwrap_or(1) - 1;
                wrong.push(format!(
                    "{file}:{line}: not valid YAML: {}",
                    one_line(&error)
                ));
                continue;
            }
        };
        let at = |field: &str| format!("{file}:{}", start + line_of(&part, field));
        match document(value) {
            Ok((name, spec)) => documents.push(Document {
                place: at(""),
                name,
                spec,
            }),
            Err(issues) => wrong.extend(
                issues
                    .into_iter()
                    .map(|(field, issue)| format!("{}: {}: {issue}", at(&field), one_line(&field))),
            ),
        }
    }
}

/// Returns the documents of a file, each with the number of its first line.
fn parts(text: &str) -> Vec<(usize, String)> {
    let mut parts = vec![(1, String::new())];
    for (at, line) in text.lines().enumerate() {
        let rest = line.strip_prefix("---");
        match rest {
            // YAML allows this at the start of a line only between documents.
            Some(rest) if rest.is_empty() || rest.starts_with([' ', '\t']) => {
                parts.push((at + 1, rest.to_owned()));
            }
            _ => {
                if let Some((_, part)) = parts.last_mut() {
                    part.push_str(line);
                }
            }
        }
        if let Some((_, part)) = parts.last_mut() {
            part.push('\n');
        }
    }
    parts
}

/// Returns the line of a field such as `input.urls[0]` within a document, or the nearest one that is found. An empty
/// field gives the first line with content.
fn line_of(text: &str, field: &str) -> usize {
    let lines: Vec<&str> = text
        .lines()
        .map(|line| line.trim_start_matches([' ', '-']))
        .collect();
    let filled = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let mut found = lines.iter().position(filled).unwrap_or(0);
    for key in field.split('.').filter(|key| !key.is_empty()) {
        let key = key.split('[').next().unwrap_or_default();
        let has = |line: &&str| {
            let line = line.trim_start_matches(['"', '\'', '{', ' ']);
            let rest = line.strip_prefix(key);
            rest.is_some_and(|rest| rest.trim_start_matches(['"', '\'']).starts_with(':'))
        };
        match lines.iter().skip(found).position(has) {
            Some(at) => found += at,
            None => break,
        }
    }
    found
}

type Wrong = Vec<(String, String)>;

fn document(value: Value) -> Result<(Option<String>, Value), Wrong> {
    let one = |field: &str, words: &str| vec![(field.to_owned(), words.to_owned())];
    let Value::Object(mut fields) = value else {
        return Err(one(
            "document",
            "invalid_type: it has fields, such as `kind: Manager`",
        ));
    };
    match fields.remove("kind") {
        Some(Value::String(kind)) if kind == "Manager" => {}
        Some(_) => return Err(one("kind", "invalid_enum: the only kind is `Manager`")),
        None => return Err(one("kind", "required: `kind: Manager`")),
    }
    let name = match fields.remove("name") {
        None => None,
        Some(Value::String(name)) if !name.is_empty() => Some(name),
        Some(_) => {
            return Err(one(
                "name",
                "invalid_type: the Manager's name or id, as text",
            ));
        }
    };
    let output_only: Wrong = PATHS
        .output_only
        .iter()
        .filter(|&&field| fields.contains_key(field))
        .map(|&field| {
            (
                field.to_owned(),
                "unknown_field: only in answers; remove it".to_owned(),
            )
        })
        .collect();
    if !output_only.is_empty() {
        return Err(output_only);
    }
    Ok((name, canonical(&Value::Object(fields))?))
}

/// Returns what the service would answer for the body: every default applied, or every field that fails.
pub(super) fn canonical(body: &Value) -> Result<Value, Wrong> {
    // Addresses and feeds depend on the deployment, so the service decides on them.
    let addresses = AddressPolicy {
        allow_cidrs: ["0.0.0.0/0", "::/0"]
            .iter()
            .filter_map(|all| all.parse().ok())
            .collect(),
        allow_http: true,
        ..AddressPolicy::default()
    };
    let rules = Rules {
        addresses: &addresses,
        feeds: &AnyFeed,
    };
    let parsed = CreateManager::parse(body, rules).map_err(|issues| {
        let words = |issue: Issue| serde_json::to_value(issue).ok();
        let issues = issues.as_slice().iter().map(|one| {
            let word = words(one.issue).and_then(|word| Some(word.as_str()?.to_owned()));
            (one.field.clone(), word.unwrap_or_default())
        });
        issues.collect::<Wrong>()
    })?;
    spec(parsed).map_err(|error| vec![("document".to_owned(), error.to_string())])
}

fn spec(manager: CreateManager) -> Result<Value, serde_json::Error> {
    use domain::manager::Origin;
    use serde_json::{json, to_value};

    let mut spec = json!({
        "nickname": manager.nickname,
        "type": "FEED_MANAGER",
        "enable": manager.enable,
        "source": {"type": manager.source},
        "notices": manager.notices,
    });
    match manager.origin {
        Origin::Input(input) => spec["input"] = to_value(input)?,
        Origin::Instructions(instructions) => spec["instructions"] = to_value(instructions)?,
    }
    if let (Value::Object(spec), Value::Object(screen)) = (&mut spec, to_value(manager.screen)?) {
        spec.extend(screen);
    }
    Ok(spec)
}

/// Returns what a customer can edit of a Manager of the API. Compiled instructions are not part of it.
pub(super) fn editable(manager: &Value) -> Value {
    let compiled = manager["mode"] == "AUTOMATIC";
    let fields = FIELDS
        .into_iter()
        .filter(|&field| field != "instructions" || !compiled);
    let picked: Map<String, Value> = fields
        .filter_map(|field| Some((field.to_owned(), manager.get(field)?.clone())))
        .collect();
    let picked = Value::Object(picked);
    // A newer service can have values that this version cannot read. They stay as they are.
    canonical(&picked).unwrap_or(picked)
}

struct AnyFeed;

impl FeedRules for AnyFeed {
    fn check(&self, _: &FeedName, _: Option<SourceType>) -> Result<(), Issue> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Document, parse};

    const MANAGER: &str = "kind: Manager\nnickname: a\ntype: FEED_MANAGER\nsource: {type: FORUM}\n\
        input:\n  type: STRUCTURED\n  urls: [\"https://example.com/\"]\n  focus: {type: SALES}\n";

    fn parsed(text: &str) -> (Vec<Document>, Vec<String>) {
        let (mut documents, mut wrong) = (Vec::new(), Vec::new());
        parse("f.yaml", text, &mut documents, &mut wrong);
        (documents, wrong)
    }

    #[test]
    fn defaults_are_applied() {
        let (documents, wrong) = parsed(&format!("# ours\n---\n{MANAGER}---\n"));
        assert!(wrong.is_empty(), "{wrong:?}");
        assert_eq!(documents.len(), 1);
        assert_eq!(documents[0].place, "f.yaml:3");
        let spec = &documents[0].spec;
        assert_eq!(spec["enable"], true);
        assert_eq!(spec["input"]["sensitivity"], "BALANCED");
    }

    #[test]
    fn wrong_fields_are_named_with_their_line() {
        let text = format!(
            "{MANAGER}  mood: x\n---\n{MANAGER}state: APPLIED\n---\nkind: Pod\n---\na: [\n"
        );
        let (documents, wrong) = parsed(&text);
        assert!(documents.is_empty());
        for (at, start) in [
            "f.yaml:9: input.mood: unknown_field",
            "f.yaml:19: state: unknown_field: only in answers",
            "f.yaml:21: kind: invalid_enum",
            "f.yaml:2",
        ]
        .into_iter()
        .enumerate()
        {
            assert!(wrong[at].starts_with(start), "{wrong:#?}");
        }
    }
}
