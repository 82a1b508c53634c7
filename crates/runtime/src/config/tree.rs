//! The settings by the full path of the key, each with its origin.

use std::{collections::BTreeMap, path::Path};

use toml::{Table, Value};

use super::error::Problem;

/// A configuration is one or two pages long; a larger file is a mistake, such as the wrong file.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Prefix of all our variables.
pub(super) const PREFIX: &str = "EARSHOT_";

/// One setting with its origin.
#[derive(Debug, Clone)]
pub(super) struct Given {
    pub(super) value: Raw,
    pub(super) origin: String,
    pub(super) rank: Rank,
}

#[derive(Debug, Clone)]
pub(super) enum Raw {
    Toml(Value),
    Text(String),
}

/// Precedence of the sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    File,
    Environment,
}

/// `database.url`, `platforms[0].name` and so on.
pub(super) type Tree = BTreeMap<String, Given>;

/// Adds the settings of the TOML file.
pub(super) fn add_file(tree: &mut Tree, path: &Path) -> Result<(), Problem> {
    let key = path.display().to_string();
    let text = read_bounded(path).map_err(|reason| Problem::new(&key, reason))?;
    // The error's own text would quote the line, and the line may contain a secret.
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error
            .span()
            .map_or(1, |span| 1 + text[..span.start].matches('\n').count());
        Problem::new(&key, format!("line {line}: not TOML: {}", error.message()))
    })?;
    flatten(tree, "", Value::Table(table), &format!("file {key}"));
    Ok(())
}

pub(super) fn read_bounded(path: &Path) -> Result<String, String> {
    use std::io::Read;
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text))
        .map_err(|error| format!("cannot read the file: {error}"))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("the file is larger than {MAX_FILE_BYTES} bytes"));
    }
    Ok(text)
}

/// Empty tables stay as leaves, so that a misspelt empty section is reported too.
fn flatten(tree: &mut Tree, key: &str, value: Value, origin: &str) {
    match value {
        Value::Table(table) if !table.is_empty() => {
            for (name, value) in table {
                let key = if key.is_empty() {
                    name
                } else {
                    format!("{key}.{name}")
                };
                flatten(tree, &key, value, origin);
            }
        }
        Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_table) => {
            for (index, item) in items.into_iter().enumerate() {
                flatten(tree, &format!("{key}[{index}]"), item, origin);
            }
        }
        leaf if !key.is_empty() => {
            let given = Given {
                value: Raw::Toml(leaf),
                origin: origin.to_owned(),
                rank: Rank::File,
            };
            tree.insert(key.to_owned(), given);
        }
        _ => {}
    }
}

/// Adds a variable if it is one of ours: `EARSHOT_SECTION__KEY`.
///
/// An empty value counts as absent, because compose files and charts pass empty values.
pub(super) fn add_variable(tree: &mut Tree, name: &str, value: &str) {
    let Some(path) = name.strip_prefix(PREFIX) else {
        return;
    };
    if !path.contains("__") || value.is_empty() {
        return;
    }
    let mut key = String::new();
    for part in path.to_ascii_lowercase().split("__") {
        if key == "platforms" && part.parse::<u16>().is_ok() {
            key = format!("{key}[{part}]");
        } else if key.is_empty() {
            key = part.to_owned();
        } else {
            key = format!("{key}.{part}");
        }
    }
    let given = Given {
        value: Raw::Text(value.to_owned()),
        origin: format!("environment variable {name}"),
        rank: Rank::Environment,
    };
    tree.insert(key, given);
}
