//! The reference in `docs/operations/configuration.md`, generated from the comments of the settings.

use super::{platform::PlatformConfig, reader::Reader, root::Config};

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
pub fn reference() -> String {
    format!("{INTRODUCTION}{}", read_nothing().page)
}

/// A reader that has looked for every key, platforms as `platforms[0]`.
pub(super) fn read_nothing() -> Reader {
    let mut reader = Reader::default();
    Config::read(&mut reader, None);
    PlatformConfig::read(&mut reader, "platforms[0]");
    reader
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_setting_has_a_description() {
        let page = super::read_nothing().page;
        let is_prose = |line: &&str| !line.is_empty() && !line.starts_with(['#', '|']);
        let is_row = |line: &&str| line.starts_with("| `");
        assert!(page.lines().filter(is_row).count() > 50);
        for line in page.lines().filter(|line| is_prose(line) || is_row(line)) {
            assert!(line.trim_end_matches(" |").ends_with('.'), "{line}");
        }
    }
}
