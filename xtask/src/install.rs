//! Installs missing servers with the machine's package manager.
//!
//! Only their programs are needed. No system-wide instance is created or started, as far as the package manager allows.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail, ensure};
use private_servers::{postgres, rabbitmq};

const APT_SCRIPT: &str = include_str!("install/apt.sh");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Software {
    PostgreSql,
    RabbitMq,
    /// Any version: npm then downloads the required one.
    Node,
    Chromium,
    /// Python's package installer, and Python with it.
    Pip,
}

/// Installs missing software; if that fails, the error says what to do.
pub(crate) fn ensure(software: &[Software]) -> Result<()> {
    for software in software {
        let Err(missing) = software.find() else {
            continue;
        };
        let Some(manager) = Manager::detect() else {
            return Err(missing);
        };
        manager
            .install(*software)
            .with_context(|| format!("{missing}"))?;
        software.find()?;
    }
    Ok(())
}

impl Software {
    fn find(self) -> Result<()> {
        match self {
            Self::PostgreSql => postgres::Installation::find(None).map(drop),
            Self::RabbitMq => rabbitmq::Installation::find().map(drop),
            Self::Pip => {
                let mut pip = Command::new("python3");
                pip.args(["-m", "pip", "--version"]);
                pip.stdout(Stdio::null()).stderr(Stdio::null());
                let works = pip.status().is_ok_and(|status| status.success());
                ensure!(works, "python3 with pip is missing");
                Ok(())
            }
            Self::Node if is_program("node") && is_program("npm") => Ok(()),
            Self::Node => Err(anyhow!(
                "the web console needs Node and npm, which are missing"
            )),
            Self::Chromium => chromium()
                .map(drop)
                .context("the web console is tested in Chromium, which is missing"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manager {
    Apt,
    Dnf,
    Pacman,
    Apk,
    Brew,
}

impl Manager {
    const ALL: [Self; 5] = [Self::Apt, Self::Dnf, Self::Pacman, Self::Apk, Self::Brew];

    fn detect() -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|manager| is_program(manager.program()))
    }

    fn program(self) -> &'static str {
        match self {
            Self::Apt => "apt-get",
            Self::Dnf => "dnf",
            Self::Pacman => "pacman",
            Self::Apk => "apk",
            Self::Brew => "brew",
        }
    }

    /// Returns one or more package names, separated by spaces.
    fn package(self, software: Software) -> &'static str {
        match (software, self) {
            (Software::PostgreSql, Self::Dnf) => "postgresql-server",
            (Software::PostgreSql, Self::Brew) => "postgresql@17",
            (Software::PostgreSql, Self::Apt | Self::Pacman | Self::Apk) => "postgresql",
            (Software::RabbitMq, Self::Pacman | Self::Brew) => "rabbitmq",
            (Software::RabbitMq, Self::Apt | Self::Dnf | Self::Apk) => "rabbitmq-server",
            (Software::Node, Self::Brew) => "node",
            (Software::Node, Self::Dnf) => "nodejs nodejs-npm",
            (Software::Node, Self::Apt | Self::Pacman | Self::Apk) => "nodejs npm",
            (Software::Chromium, _) => "chromium",
            (Software::Pip, Self::Pacman) => "python python-pip",
            (Software::Pip, Self::Apk) => "python3 py3-pip",
            (Software::Pip, Self::Brew) => "python",
            (Software::Pip, Self::Apt | Self::Dnf) => "python3 python3-pip",
        }
    }

    /// Returns the program and its arguments.
    fn command(self, software: Software) -> Vec<&'static str> {
        let mut words = match self {
            Self::Apt => vec!["sh", "-c", APT_SCRIPT, "apt.sh"],
            Self::Dnf => vec!["dnf", "install", "--assumeyes"],
            Self::Pacman => vec!["pacman", "-S", "--needed", "--noconfirm"],
            Self::Apk => vec!["apk", "add"],
            Self::Brew => vec!["brew", "install"],
        };
        words.extend(self.package(software).split(' '));
        words
    }

    fn install(self, software: Software) -> Result<()> {
        let mut words = self.command(software);
        if self != Self::Brew && !nix::unistd::Uid::effective().is_root() {
            if !is_program("sudo") {
                bail!("installing packages needs root, and sudo is missing");
            }
            words.insert(0, "sudo");
        }
        eprintln!(
            "installing {} with {}",
            self.package(software),
            self.program()
        );
        let status = Command::new(words[0])
            .args(&words[1..])
            .stdin(Stdio::null())
            // Stdout is reserved for the task's own output.
            .stdout(Stdio::from(std::io::stderr()))
            .status()
            .with_context(|| format!("run {}", self.program()))?;
        if !status.success() {
            bail!(
                "{} could not install {} ({status})",
                self.program(),
                self.package(software)
            );
        }
        Ok(())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "PATH is the system's, not a setting of ours"
)]
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|dir| dir.join(name))
        .find(|program| program.is_file())
}

fn is_program(name: &str) -> bool {
    program(name).is_some()
}

/// Returns the path of the browser, under any of its usual names.
pub(crate) fn chromium() -> Option<PathBuf> {
    ["chromium", "chromium-browser", "google-chrome", "chrome"]
        .into_iter()
        .find_map(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_managers_get_their_own_package_names() {
        let words = |manager: Manager, software| manager.command(software).join(" ");
        assert!(words(Manager::Apt, Software::PostgreSql).ends_with(" apt.sh postgresql"));
        assert_eq!(
            words(Manager::Dnf, Software::PostgreSql),
            "dnf install --assumeyes postgresql-server"
        );
        assert_eq!(
            words(Manager::Brew, Software::PostgreSql),
            "brew install postgresql@17"
        );
        assert_eq!(
            words(Manager::Pacman, Software::RabbitMq),
            "pacman -S --needed --noconfirm rabbitmq"
        );
        assert!(words(Manager::Apt, Software::Node).ends_with(" apt.sh nodejs npm"));
        assert!(words(Manager::Apt, Software::Chromium).ends_with(" apt.sh chromium"));
        assert_eq!(
            words(Manager::Apk, Software::RabbitMq),
            "apk add rabbitmq-server"
        );
    }
}
