//! The settings by the full path of the key, each with its origin.

use std::{collections::BTreeMap, fs::File, io::Read, path::Path};

use toml::{Table, Value};

use super::error::Problem;

/// A configuration is one or two pages long; a larger file is a mistake, such as the wrong file.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Prefix of all our variables.
pub(super) const PREFIX: &str = "EARSHOT_";

/// One setting with its origin.
#[derive(Debug, Clone)]
pub(super) struct Given {
    /// The text of a variable is a string.
    pub(super) value: Value,
    pub(super) origin: String,
    /// Variables override the file.
    pub(super) is_variable: bool,
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
    for (name, value) in table {
        flatten(tree, name, value, &format!("file {key}"));
    }
    Ok(())
}

pub(super) fn read_bounded(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text))
        .map_err(|error| format!("cannot read the file: {error}"))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("the file is larger than {MAX_FILE_BYTES} bytes"));
    }
    Ok(text)
}

/// Empty tables stay as leaves, so that a misspelt empty section is reported too.
fn flatten(tree: &mut Tree, key: String, value: Value, origin: &str) {
    match value {
        Value::Table(table) if !table.is_empty() => {
            for (name, value) in table {
                flatten(tree, format!("{key}.{name}"), value, origin);
            }
        }
        Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_table) => {
            for (index, item) in items.into_iter().enumerate() {
                flatten(tree, format!("{key}[{index}]"), item, origin);
            }
        }
        value => {
            let origin = origin.to_owned();
            let is_variable = false;
            tree.insert(
                key,
                Given {
                    value,
                    origin,
                    is_variable,
                },
            );
        }
    }
}

/// Adds a variable if it is one of ours: `EARSHOT_SECTION__KEY`.
///
/// An empty value counts as absent, because compose files and charts pass empty values.
pub(super) fn add_variable(tree: &mut Tree, name: &str, value: &str) {
    let Some(path) = name.strip_prefix(PREFIX) else {
        return;
    };
    if !path.contains("__") {
        return;
    }
    let path = path.to_ascii_lowercase();
    let mut parts = path.split("__");
    let mut key = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        if key == "platforms" && part.parse::<u16>().is_ok() {
            key += &format!("[{part}]");
        } else {
            key += &format!(".{part}");
        }
    }
    add_text(tree, key, name, value);
}

/// Sets `key` to the value of the variable `name`.
pub(super) fn add_text(tree: &mut Tree, key: String, name: &str, value: &str) {
    if !value.is_empty() {
        let given = Given {
            value: value.into(),
            origin: format!("environment variable {name}"),
            is_variable: true,
        };
        tree.insert(key, given);
    }
}
