//! Finds the installed server programs.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::path;

/// Directories with one version each; `*` matches one path component or a part of it.
const PATTERNS: &[&str] = &[
    "/usr/lib/postgresql/*/bin",          // Debian, Ubuntu
    "/usr/pgsql-*/bin",                   // PostgreSQL's own packages for Red Hat
    "/usr/libexec/postgresql*",           // Alpine
    "/opt/homebrew/opt/postgresql@*/bin", // Homebrew
    "/usr/local/opt/postgresql@*/bin",    // Homebrew on Intel
    "/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
];

/// One installed version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    pub bin: PathBuf,
    pub major: u32,
}

/// The machine has no PostgreSQL server, or not the version of the data.
#[derive(Debug, PartialEq, Eq)]
pub struct NotInstalled {
    /// The required version, if only one works.
    pub major: Option<u32>,
}

impl std::fmt::Display for NotInstalled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.major {
            None => f.write_str(
                "the PostgreSQL server is not installed: install the package `postgresql` \
                 (Debian, Ubuntu, Arch, Alpine), `postgresql-server` (Fedora) or `postgresql@17` (Homebrew), \
                 or run `cargo xtask up`, which does that",
            ),
            Some(major) => write!(
                f,
                "the data directory was made by PostgreSQL {major}, which is not installed: install \
                 `postgresql-{major}`, or move the directory away to begin anew"
            ),
        }
    }
}

impl std::error::Error for NotInstalled {}

impl Installation {
    /// Finds the newest version, or the version `major`.
    pub fn find(major: Option<u32>) -> Result<Self> {
        Self::find_in(&path::search_path(), PATTERNS, major)
    }

    fn find_in(on_path: &[PathBuf], patterns: &[&str], major: Option<u32>) -> Result<Self> {
        let known = patterns.iter().flat_map(|pattern| path::expand(pattern));
        let mut found: Vec<_> = on_path
            .iter()
            .cloned()
            .chain(known)
            .filter(|bin| bin.join("postgres").is_file() && bin.join("initdb").is_file())
            .filter_map(|bin| {
                Some(Self {
                    major: version(&bin).ok()?,
                    bin,
                })
            })
            .filter(|installed| major.is_none_or(|major| installed.major == major))
            .collect();
        // A stable sort: of equal versions the known directory wins, because the PATH may contain links to
        // some.
        found.sort_by_key(|installed| installed.major);
        found.pop().ok_or_else(|| NotInstalled { major }.into())
    }
}

/// Runs the program, which prints `postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)`.
fn version(bin: &Path) -> Result<u32> {
    let program = bin.join("postgres");
    let output = Command::new(&program)
        .arg("--version")
        .output()
        .with_context(|| format!("run {}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match major_of(&text) {
        Some(major) => Ok(major),
        None => bail!("{} does not print its version", program.display()),
    }
}

fn major_of(version: &str) -> Option<u32> {
    let number = version
        .split_whitespace()
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    number
        .split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn fake(bin: &Path, version: &str) {
        fs::create_dir_all(bin).unwrap();
        for program in ["postgres", "initdb"] {
            let path = bin.join(program);
            fs::write(
                &path,
                format!("#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n"),
            )
            .unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    #[test]
    fn newest_postgres_is_found_by_version_number() {
        let root = tempfile::tempdir().unwrap();
        fake(&root.path().join("9/bin"), "9.6.1");
        fake(&root.path().join("17/bin"), "17.2 (Debian 17.2-1)");
        fake(&root.path().join("on-path"), "16beta1");
        let pattern = format!("{}/*/bin", root.path().display());
        let find =
            |major| Installation::find_in(&[root.path().join("on-path")], &[&pattern], major);

        assert_eq!(find(None).unwrap().major, 17);
        assert_eq!(find(Some(9)).unwrap().bin, root.path().join("9/bin"));
        assert_eq!(find(Some(16)).unwrap().bin, root.path().join("on-path"));
        let missing = find(Some(15)).unwrap_err();
        assert_eq!(
            missing.downcast_ref(),
            Some(&NotInstalled { major: Some(15) })
        );
        assert!(missing.to_string().contains("postgresql-15"), "{missing}");
    }

    #[test]
    fn missing_postgres_error_names_the_package() {
        let root = tempfile::tempdir().unwrap();
        let pattern = format!("{}/*/bin", root.path().display());
        let error = Installation::find_in(&[root.path().into()], &[&pattern], None).unwrap_err();
        assert!(error.downcast_ref::<NotInstalled>().is_some());
        assert!(error.to_string().contains("`postgresql`"), "{error}");
    }
}
