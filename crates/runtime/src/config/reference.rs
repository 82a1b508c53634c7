//! The reference in `docs/operations/configuration.md`, generated from the comments of the settings.

use std::fmt::Write;

use super::{
    platform::PlatformConfig,
    reader::{Entry, Reader},
    sections::Config,
    tree::Tree,
};

const INTRODUCTION: &str = "\
<!-- Written by `cargo xtask generate` from crates/runtime/src/config. -->

# Configuration

Each process reads the defaults, then the TOML file that `--config` names, then environment
variables; later ones win. A key `scanner.backfill` is the variable `EARSHOT_SCANNER__BACKFILL`. In a
variable a list is written with commas, `10.0.0.0/8,fd00::/8`, or as a TOML list, and an empty value
counts as absent.

The value of a key marked *secret* may instead be the content of a file: `<key>_file` names it, as in
`database.url_file` or `EARSHOT_DATABASE__URL_FILE`. Files are read at start; those
of `secrets.encryption_keys` are read again when they change.

Durations carry a unit: `\"500ms\"`, `\"5s\"`, `\"30m\"`, `\"2h\"`, `\"30d\"`; only `0` needs none.

An unknown key or a wrong value stops the start, with a message that names the key.
`--check-config` only checks the configuration. `deploy/earshot.toml` is a sample to start from.

Traces follow the standard `OTEL_*` variables and are off unless `OTEL_EXPORTER_OTLP_ENDPOINT` is
set; they are sent as OTLP, over HTTP with Protobuf, or over gRPC if `OTEL_EXPORTER_OTLP_PROTOCOL` is `grpc`.
";

/// The whole page.
#[must_use]
pub fn reference() -> String {
    let mut page = INTRODUCTION.to_owned();
    for entry in entries() {
        line(&mut page, &entry);
    }
    page
}

/// Every section and key, platforms as `platforms[0]`.
pub(super) fn entries() -> Vec<Entry> {
    let mut reader = Reader::new(Tree::new());
    Config::default().read(&mut reader);
    PlatformConfig::describe(&mut reader);
    reader.finish().0
}

fn line(page: &mut String, entry: &Entry) {
    match entry {
        Entry::Section { path, doc } => {
            let header = if path == "platforms" {
                format!("[[{path}]]")
            } else {
                format!("[{path}]")
            };
            let _ = write!(
                page,
                "\n## `{header}`\n\n{doc}\n\n| Key | Value | Default | |\n|---|---|---|---|\n"
            );
        }
        Entry::Key {
            key,
            doc,
            form,
            default,
            within,
            required,
            secret,
        } => {
            let name = key.rsplit('.').next().unwrap_or(key);
            let secret = if *secret { ", *secret*" } else { "" };
            let within = within
                .as_ref()
                .map(|within| format!(", between {within}"))
                .unwrap_or_default();
            let default = match (required, default.as_str()) {
                (true, _) => "required".to_owned(),
                (false, "") => String::new(),
                (false, default) => format!("`{default}`"),
            };
            let _ = writeln!(
                page,
                "| `{name}` | {form}{within}{secret} | {default} | {doc} |"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, entries};

    #[test]
    fn every_key_says_what_it_is_for() {
        for entry in entries() {
            let (Entry::Section { path: name, doc } | Entry::Key { key: name, doc, .. }) = entry;
            assert!(doc.ends_with('.'), "{name}: `{doc}`");
        }
    }
}
