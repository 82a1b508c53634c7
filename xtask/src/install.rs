//! Installs servers that the machine lacks, with its own package manager.
//!
//! We need their programs only. No system-wide instance is made or started, as far as the package
//! manager lets us prevent it.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use private_servers::{postgres, rabbitmq};

const APT_SCRIPT: &str = include_str!("install/apt.sh");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Software {
    PostgreSql,
    RabbitMq,
}

/// Installs what is missing; fails where it cannot, saying what to do.
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

    fn package(self, software: Software) -> &'static str {
        match (software, self) {
            (Software::PostgreSql, Self::Dnf) => "postgresql-server",
            (Software::PostgreSql, Self::Brew) => "postgresql@17",
            (Software::PostgreSql, Self::Apt | Self::Pacman | Self::Apk) => "postgresql",
            (Software::RabbitMq, Self::Pacman | Self::Brew) => "rabbitmq",
            (Software::RabbitMq, Self::Apt | Self::Dnf | Self::Apk) => "rabbitmq-server",
        }
    }

    /// The program and its arguments.
    fn command(self, software: Software) -> Vec<&'static str> {
        let package = self.package(software);
        match self {
            Self::Apt => vec!["sh", "-c", APT_SCRIPT, "apt.sh", package],
            Self::Dnf => vec!["dnf", "install", "--assumeyes", package],
            Self::Pacman => vec!["pacman", "-S", "--needed", "--noconfirm", package],
            Self::Apk => vec!["apk", "add", package],
            Self::Brew => vec!["brew", "install", package],
        }
    }

    fn install(self, software: Software) -> Result<()> {
        let mut words = self.command(software);
        if self != Self::Brew && !nix::unistd::Uid::effective().is_root() {
            if !is_program("sudo") {
                bail!("installing packages takes root, and there is no sudo");
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
            // Ours is for what the task itself prints.
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
fn is_program(name: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(name).is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_manager_is_asked_for_its_own_package_and_nothing_else() {
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
        assert_eq!(
            words(Manager::Apk, Software::RabbitMq),
            "apk add rabbitmq-server"
        );
    }
}
