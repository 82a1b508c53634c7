//! The names that scanners can resolve: separate `/etc/hosts` and `/etc/resolv.conf`, by mount namespaces. This
//! needs root.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::harness::programs;

/// Host name of the platforms for scanners.
pub(super) const NAME: &str = "localhost";

/// Lays both files over the machine's, and becomes the program.
const START: &str =
    r#"mount --bind "$1" /etc/hosts && mount --bind "$2" /etc/resolv.conf && shift 2 && exec "$@""#;

pub(super) struct Names {
    hosts: PathBuf,
    servers: PathBuf,
}

impl Names {
    /// `None` if this process may not make namespaces.
    pub(super) fn new(directory: &Path) -> Option<Self> {
        let names = Self {
            hosts: directory.join("hosts"),
            servers: directory.join("resolv.conf"),
        };
        names.set(true);
        // No name server listens there, so lookups fail at once.
        fs::write(&names.servers, "nameserver 127.0.0.1\n").unwrap();
        let tried = names.wrapped(Path::new("true")).output();
        let is_permitted = tried.is_ok_and(|tried| tried.status.success());
        is_permitted.then_some(names)
    }

    /// Sets whether [`NAME`] resolves.
    pub(super) fn set(&self, resolves: bool) {
        let hosts = if resolves {
            format!("127.0.0.1 {NAME}\n")
        } else {
            String::new()
        };
        // In place, because it is this file that is mounted.
        fs::write(&self.hosts, hosts).unwrap();
    }

    /// Returns the command of a program that resolves these names alone.
    pub(super) fn command(&self, program: &str) -> Command {
        let own = programs::command(program);
        let mut command = self.wrapped(Path::new(own.get_program()));
        for (name, value) in own.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }

    fn wrapped(&self, program: &Path) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", START, "sh"]);
        command.arg(&self.hosts).arg(&self.servers).arg(program);
        command
    }
}
