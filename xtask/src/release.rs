//! `cargo xtask release`: sets the version in every file that has it, commits, and tags the commit.
//!
//! Nothing leaves the machine. Pushing the tag starts `.github/workflows/release.yaml`.

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::Path,
    process::{Command, ExitCode, Stdio},
    str::FromStr,
};

use anyhow::{Context, Result, ensure};

use crate::cargo;

const CHANGELOG: &str = "CHANGELOG.md";
const LOCK: &str = "Cargo.lock";
const MANIFEST: &str = "Cargo.toml";
const UPGRADING: &str = "helm/UPGRADING.md";

/// Files that have the version, each with the text around it.
const PLACES: &[(&str, &str)] = &[
    (MANIFEST, "\nversion = \"{}\"\n"),
    (".github/workflows/ci.yaml", " earshot:{}\n"),
    ("clients/python/pyproject.toml", "\nversion = \"{}\"\n"),
    (
        "clients/typescript/package.json",
        "\n  \"version\": \"{}\",\n",
    ),
    (
        "clients/typescript/package-lock.json",
        "\n  \"name\": \"@earshot/client\",\n  \"version\": \"{}\",\n",
    ),
    (
        "clients/typescript/package-lock.json",
        "\n      \"name\": \"@earshot/client\",\n      \"version\": \"{}\",\n",
    ),
    ("docker-compose.yml", " earshot:{}\n"),
    ("docker-compose.yml", " earshot-demo:{}\n"),
    ("helm/Chart.yaml", "\nversion: {}\n"),
    ("helm/Chart.yaml", "\nappVersion: \"{}\"\n"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version {
    major: u64,
    minor: u64,
    patch: u64,
}

impl Version {
    fn successors(self) -> [Self; 3] {
        let Self {
            major,
            minor,
            patch,
        } = self;
        [
            (major, minor, patch + 1),
            (major, minor + 1, 0),
            (major + 1, 0, 0),
        ]
        .map(|(major, minor, patch)| Self {
            major,
            minor,
            patch,
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl FromStr for Version {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let numbers: Vec<u64> = text
            .split('.')
            .map_while(|part| part.parse().ok())
            .collect();
        let version = match numbers[..] {
            [major, minor, patch] => Some(Self {
                major,
                minor,
                patch,
            }),
            _ => None,
        };
        version
            .filter(|version| version.to_string() == text)
            .with_context(|| format!("`{text}` is no version such as 1.2.3"))
    }
}

pub(crate) fn run(version: Version, sign: bool) -> Result<ExitCode> {
    let branch = release(cargo::root(), version, &today()?, sign)?;
    println!("committed, and tagged as v{version}. This publishes it:");
    println!("git push --atomic origin {branch} v{version}");
    Ok(ExitCode::SUCCESS)
}

/// Returns the name of the branch that has the new commit.
fn release(root: &Path, version: Version, date: &str, sign: bool) -> Result<String> {
    let changes = git(root, &["status", "--porcelain"])?;
    ensure!(
        changes.is_empty(),
        "there are changes that are not committed:\n{changes}"
    );
    let branch = git(root, &["branch", "--show-current"])?;
    ensure!(!branch.is_empty(), "no branch is checked out");
    let tag = format!("v{version}");
    let exists = !git(root, &["tag", "--list", &tag])?.is_empty();
    ensure!(!exists, "the tag {tag} exists already");

    for (path, text) in changed_files(root, version, date)? {
        fs::write(root.join(path), text).with_context(|| format!("write {path}"))?;
    }
    let title = format!("all: Release {version}");
    git(root, &["commit", "--quiet", "--all", "--message", &title])?;
    let sign = if sign { "--sign" } else { "--no-sign" };
    let message = format!("Earshot {version}");
    git(root, &["tag", sign, "--message", &message, &tag]).context(
        "the release is committed, but not tagged: undo it by `git reset --hard HEAD~1`, and try again",
    )?;
    Ok(branch)
}

/// Returns the new text of each file, by its path.
fn changed_files(
    root: &Path,
    version: Version,
    date: &str,
) -> Result<BTreeMap<&'static str, String>> {
    let read =
        |path: &str| fs::read_to_string(root.join(path)).with_context(|| format!("read {path}"));
    let changelog = read(CHANGELOG)?;
    let current = current_version(&read(MANIFEST)?)?;
    check_order(version, current, &changelog)?;
    let heading = format!("## {version}");
    ensure!(
        read(UPGRADING)?.lines().any(|line| line == heading),
        "{UPGRADING} has no section `{heading}`: say what the version asks of operators"
    );

    let mut files = BTreeMap::from([
        (CHANGELOG, dated(&changelog, version, date)?),
        (LOCK, locked(&read(LOCK)?, current, version)),
    ]);
    for &(path, place) in PLACES {
        let text = match files.remove(path) {
            Some(text) => text,
            None => read(path)?,
        };
        let old = place.replace("{}", &current.to_string());
        ensure!(text.contains(&old), "{path} has no `{}`", old.trim());
        let new = place.replace("{}", &version.to_string());
        files.insert(path, text.replace(&old, &new));
    }
    Ok(files)
}

fn current_version(manifest: &str) -> Result<Version> {
    manifest
        .lines()
        .find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'))
        .context("Cargo.toml has no version")?
        .parse()
}

/// Refuses a version that is not the next one: that of the tree, or if it is released, one that follows it.
fn check_order(version: Version, current: Version, changelog: &str) -> Result<()> {
    let heading = format!("## {current} - ");
    if changelog.lines().any(|line| line.starts_with(&heading)) {
        let [patch, minor, major] = current.successors();
        ensure!(
            current.successors().contains(&version),
            "{version} does not follow {current}: release {patch}, {minor} or {major}"
        );
    } else {
        ensure!(
            version == current,
            "{current} is not released yet: release it before {version}"
        );
    }
    Ok(())
}

/// Returns the changelog with the version and the date above the unreleased changes, and an empty section for new ones.
fn dated(changelog: &str, version: Version, date: &str) -> Result<String> {
    const UNRELEASED: &str = "\n## Unreleased";
    let (head, rest) = changelog
        .split_once(UNRELEASED)
        .context("CHANGELOG.md has no section `## Unreleased`")?;
    let section = rest.split("\n## ").next().unwrap_or_default();
    ensure!(
        section
            .lines()
            .any(|line| !line.trim().is_empty() && !line.starts_with('#')),
        "the section `## Unreleased` of CHANGELOG.md is empty: say what changed"
    );
    Ok(format!("{head}{UNRELEASED}\n\n## {version} - {date}{rest}"))
}

/// Returns the lock file with the new version of the workspace's packages, which are those without a source.
fn locked(lock: &str, current: Version, version: Version) -> String {
    const PACKAGE: &str = "[[package]]\n";
    let old = format!("\nversion = \"{current}\"\n");
    let new = format!("\nversion = \"{version}\"\n");
    let packages = lock.split(PACKAGE).map(|package| {
        if package.contains("\nsource = ") {
            package.to_owned()
        } else {
            package.replace(&old, &new)
        }
    });
    packages.collect::<Vec<_>>().join(PACKAGE)
}

/// Returns today's date in UTC.
fn today() -> Result<String> {
    let output = Command::new("date")
        .args(["-u", "+%Y-%m-%d"])
        .output()
        .context("run date")?;
    ensure!(output.status.success(), "`date` failed");
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Runs git and returns what it prints. It may ask for a passphrase.
fn git(root: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new("git")
        .current_dir(root)
        // Hooks set them, and then git uses another repository than the one in this directory.
        .env_remove("GIT_DIR")
        .env_remove("GIT_INDEX_FILE")
        .env_remove("GIT_WORK_TREE")
        .args(arguments)
        .stdin(Stdio::inherit())
        .stderr(Stdio::inherit())
        .output()
        .context("run git")?;
    ensure!(
        output.status.success(),
        "`git {}` failed",
        arguments.join(" ")
    );
    Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    const DATE: &str = "2026-12-01";

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    fn read(root: &Path, path: &str) -> String {
        fs::read_to_string(root.join(path)).unwrap()
    }

    /// Returns the version of the workspace, and the one after it.
    fn versions() -> (Version, Version) {
        let current = current_version(&read(cargo::root(), MANIFEST)).unwrap();
        (current, current.successors()[1])
    }

    /// Returns a changelog in which the workspace's version is released.
    fn changelog(unreleased: &str) -> String {
        let current = versions().0;
        format!("# Changelog\n\n## Unreleased\n{unreleased}\n## {current} - 2026-11-01\n\n- Old.\n")
    }

    /// A repository with this workspace's files that have the version, and a changelog.
    fn repository(changelog: &str) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for path in PLACES.iter().map(|(path, _)| *path).chain([LOCK]) {
            let copy = root.join(path);
            fs::create_dir_all(copy.parent().unwrap()).unwrap();
            fs::copy(cargo::root().join(path), copy).unwrap();
        }
        fs::write(root.join(CHANGELOG), changelog).unwrap();
        let (current, next) = versions();
        let upgrading = format!("## {next}\n\nNothing.\n\n## {current}\n\nNothing.\n");
        fs::write(root.join(UPGRADING), upgrading).unwrap();
        for arguments in [
            &["init", "--quiet", "--initial-branch=main"][..],
            &["config", "user.name", "Test"],
            &["config", "user.email", "test@example.com"],
            &["config", "commit.gpgSign", "false"],
            &["config", "core.hooksPath", "none"],
            &["add", "--all"],
            &["commit", "--quiet", "--message", "all: Begin"],
        ] {
            git(root, arguments).unwrap();
        }
        folder
    }

    #[test]
    fn release_sets_the_version_everywhere_commits_and_tags() {
        let (current, next) = versions();
        let folder = repository(&changelog("\n- New.\n"));
        let root = folder.path();
        let lock = read(root, LOCK);

        assert_eq!(release(root, next, DATE, false).unwrap(), "main");

        for (path, place) in PLACES {
            let text = read(root, path);
            assert!(
                text.contains(&place.replace("{}", &next.to_string())),
                "{path}"
            );
            assert!(
                !text.contains(&place.replace("{}", &current.to_string())),
                "{path}"
            );
        }
        let new_lock = read(root, LOCK);
        let packages = new_lock
            .matches(&format!("\nversion = \"{next}\"\ndependencies"))
            .count();
        assert!(packages > 20, "{packages}");
        assert_eq!(locked(&new_lock, next, current), lock);
        assert_eq!(
            read(root, CHANGELOG),
            format!(
                "# Changelog\n\n## Unreleased\n\n## {next} - {DATE}\n\n- New.\n\n## {current} - 2026-11-01\n\n- Old.\n"
            )
        );
        assert_eq!(git(root, &["status", "--porcelain"]).unwrap(), "");
        let subject = git(root, &["log", "-1", "--format=%s"]).unwrap();
        assert_eq!(subject, format!("all: Release {next}"));
        let tag = git(root, &["describe", "--exact-match"]).unwrap();
        assert_eq!(tag, format!("v{next}"));
    }

    #[test]
    fn first_release_keeps_the_version_of_the_tree() {
        let (current, next) = versions();
        let folder = repository("# Changelog\n\n## Unreleased\n\nThe first version.\n");
        let root = folder.path();
        let manifest = read(root, MANIFEST);

        let refused = release(root, next, DATE, false).unwrap_err().to_string();
        assert!(refused.contains("is not released yet"), "{refused}");
        release(root, current, DATE, false).unwrap();

        assert_eq!(read(root, MANIFEST), manifest);
        let heading = format!("\n## Unreleased\n\n## {current} - {DATE}\n\nThe first version.\n");
        assert!(read(root, CHANGELOG).ends_with(&heading));
    }

    /// Changelog, version, command of git that prepares the repository, and reason.
    type Refusal<'a> = (&'a str, Version, &'a [&'a str], &'a str);

    #[test]
    fn release_refuses_and_changes_nothing() {
        let (current, next) = versions();
        let [patch, _, major] = current.successors();
        let [_, skipped, _] = major.successors();
        let new = changelog("\n- New.\n");
        let titles = changelog("\n### Added\n");
        let empty = changelog("");
        let tag = format!("v{next}");
        let refusals: [Refusal<'_>; 9] = [
            (&new, current, &[], "does not follow"),
            (&new, skipped, &[], "does not follow"),
            (&new, next, &["rm", "--quiet", LOCK], "not committed"),
            (&new, next, &["tag", &tag], "exists already"),
            (&new, next, &["switch", "--quiet", "--detach"], "no branch"),
            (&titles, next, &[], "is empty"),
            (&empty, next, &[], "is empty"),
            (&new, patch, &[], "helm/UPGRADING.md has no section"),
            ("# Changelog\n", current, &[], "no section"),
        ];
        for (changelog, version, prepare, reason) in refusals {
            let folder = repository(changelog);
            let root = folder.path();
            if !prepare.is_empty() {
                git(root, prepare).unwrap();
            }
            let state = || {
                let head = git(root, &["rev-parse", "HEAD"]).unwrap();
                (head, git(root, &["status", "--porcelain"]).unwrap())
            };
            let before = state();

            let refused = release(root, version, DATE, false).unwrap_err().to_string();

            assert!(refused.contains(reason), "{refused}");
            assert_eq!(state(), before, "{reason}");
        }
    }

    #[test]
    fn versions_have_three_numbers() {
        assert_eq!(version("1.20.3").to_string(), "1.20.3");
        for wrong in [
            "",
            "1",
            "1.2",
            "1.2.3.4",
            "v1.2.3",
            "1.2.3-rc.1",
            "01.2.3",
            "1.2.+3",
        ] {
            assert!(wrong.parse::<Version>().is_err(), "{wrong}");
        }
        let next = version("1.2.3").successors().map(|next| next.to_string());
        assert_eq!(next, ["1.2.4", "1.3.0", "2.0.0"]);
    }
}
