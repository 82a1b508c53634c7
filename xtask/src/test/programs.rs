//! The test programs of the workspace, as cargo builds them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::cargo;
use crate::signals::Signals;

#[derive(Debug, PartialEq)]
pub(super) struct Program {
    /// Cargo's arguments that run only this program: `-p store --test it`.
    pub(super) name: String,
    path: PathBuf,
    package: PathBuf,
}

impl Program {
    /// Returns the command that cargo would run.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command
            .current_dir(&self.package)
            .env("CARGO_MANIFEST_DIR", &self.package);
        command
    }
}

/// Runs `build`, and returns the test programs among what it built, or the exit code if it fails.
pub(super) fn build(
    signals: &Signals,
    mut build: Command,
) -> Result<Result<Vec<Program>, ExitCode>> {
    let path = cargo::target_dir()?.join("test-programs.jsonl");
    let messages = File::create(&path).with_context(|| format!("make {}", path.display()))?;
    build
        .arg("--message-format=json-render-diagnostics")
        .stdout(messages);
    let code = signals.run(build)?;
    if code != ExitCode::SUCCESS {
        return Ok(Err(code));
    }
    let messages =
        std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    Ok(Ok(messages.lines().filter_map(program).collect()))
}

/// Returns the test program that one of cargo's messages is about.
fn program(message: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(message).ok()?;
    if message["profile"]["test"] != true {
        return None;
    }
    let package = Path::new(message["manifest_path"].as_str()?).parent()?;
    let target = &message["target"];
    let which = match target["kind"][0].as_str()? {
        "lib" => "--lib".to_owned(),
        kind => format!("--{kind} {}", target["name"].as_str()?),
    };
    // Packages are called as their directories are.
    let name = package.file_name()?.to_str()?;
    Some(Program {
        name: format!("-p {name} {which}"),
        path: message["executable"].as_str()?.into(),
        package: package.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(kind: &str, name: &str, test: bool) -> String {
        format!(
            r#"{{"reason":"compiler-artifact","manifest_path":"/w/crates/store/Cargo.toml",
                "target":{{"kind":["{kind}"],"name":"{name}"}},"profile":{{"test":{test}}},
                "executable":"/w/target/debug/deps/{name}-1"}}"#
        )
    }

    #[test]
    fn test_programs_are_distinguished_from_other_messages() {
        let test = program(&artifact("test", "it", true)).unwrap();
        assert_eq!(test.name, "-p store --test it");
        assert_eq!(test.path, Path::new("/w/target/debug/deps/it-1"));
        assert_eq!(test.package, Path::new("/w/crates/store"));
        let unit = program(&artifact("lib", "store", true)).unwrap();
        assert_eq!(unit.name, "-p store --lib");
        assert_eq!(program(&artifact("bin", "scanner", false)), None);
        for other in [
            r#"{"reason":"build-finished","success":true}"#,
            "a line of a build script",
        ] {
            assert_eq!(program(other), None);
        }
    }
}
