//! The JSON of a request, from a file, from the command line, or field by field.

use std::{
    io::{Read, stdin},
    path::{Path, PathBuf},
};

use clap::Args;
use serde_json::{Map, Value};

use super::Failure;

/// Maximum size of a body; the service accepts no more.
const MAX_BYTES: u64 = 256 * 1024;

#[derive(Debug, Args)]
pub(crate) struct Body {
    /// File with the JSON; `-` for standard input.
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The JSON itself.
    #[arg(long, value_name = "JSON", conflicts_with = "file")]
    data: Option<String>,
    /// Set a field, such as `nickname=Larkspur` or `input.focus.type=SALES`. A value that is valid JSON is used as
    /// JSON, otherwise as text. Can be repeated, and overrides the JSON.
    #[arg(long = "set", value_name = "FIELD=VALUE")]
    set: Vec<String>,
}

impl Body {
    pub(crate) fn is_given(&self) -> bool {
        self.file.is_some() || self.data.is_some() || !self.set.is_empty()
    }

    /// Adds a field as `--set` does.
    pub(crate) fn set_field(&mut self, path: &str, value: &str) {
        self.set.push(format!("{path}={value}"));
    }

    pub(crate) fn read(&self) -> Result<Value, Failure> {
        let text = match (&self.file, &self.data) {
            (Some(path), _) => Some(read(path)?),
            (None, data) => data.clone(),
        };
        let mut body = match text {
            Some(text) => serde_json::from_str(&text)
                .map_err(|error| Failure::usage(format!("the body is not JSON: {error}")))?,
            None if self.set.is_empty() => {
                return Err(Failure::usage(
                    "no content: give --set FIELD=VALUE, --file FILE, or --data JSON",
                ));
            }
            None => Value::Object(Map::new()),
        };
        for field in &self.set {
            let (path, value) = field.split_once('=').ok_or_else(|| {
                Failure::usage(format!(
                    "`--set {field}` has no `=`: --set nickname=Larkspur"
                ))
            })?;
            let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
            put(&mut body, path, value);
        }
        Ok(body)
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    let unreadable = |error| Failure::usage(format!("cannot read {}: {error}", path.display()));
    let mut text = String::new();
    if path == Path::new("-") {
        stdin().take(MAX_BYTES + 1).read_to_string(&mut text)
    } else {
        std::fs::File::open(path)
            .and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text))
    }
    .map_err(unreadable)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(Failure::usage(format!(
            "{} is longer than {MAX_BYTES} bytes",
            path.display()
        )));
    }
    Ok(text)
}

/// Sets the value, and creates missing objects on its path.
fn put(body: &mut Value, path: &str, value: Value) {
    let mut place = body;
    for part in path.split('.') {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[part];
    }
    *place = value;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Body;

    #[test]
    fn set_fields_override_the_json_body() {
        let body = Body {
            file: None,
            data: Some(r#"{"nickname": "a", "input": {"urls": []}}"#.to_owned()),
            set: ["nickname=b c", "input.focus.type=SALES", "enable=false"]
                .map(str::to_owned)
                .to_vec(),
        };
        let expected = json!({
            "nickname": "b c", "input": {"urls": [], "focus": {"type": "SALES"}}, "enable": false
        });
        assert_eq!(body.read().unwrap(), expected);
    }
}
