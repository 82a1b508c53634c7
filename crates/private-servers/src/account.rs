//! The unprivileged account for a server when we are root.
//!
//! PostgreSQL refuses to run as root. Its packages create the user `postgres`; otherwise `nobody` works.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use nix::unistd::{Gid, Uid, User};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) uid: Uid,
    pub(crate) gid: Gid,
}

impl Account {
    /// The account to change to, or `None` if we are unprivileged already.
    pub(crate) fn for_server(preferred: &[&str]) -> Result<Option<Self>> {
        if !Uid::effective().is_root() {
            return Ok(None);
        }
        for name in preferred {
            let user = User::from_name(name).with_context(|| format!("look up user {name}"))?;
            if let Some(user) = user.filter(|user| !user.uid.is_root()) {
                return Ok(Some(Self {
                    uid: user.uid,
                    gid: user.gid,
                }));
            }
        }
        bail!(
            "running as root needs one of the users {} for the server to run under",
            preferred.join(", ")
        )
    }

    pub(crate) fn of_owner(path: &Path) -> Result<Self> {
        let metadata = fs::metadata(path).with_context(|| format!("read {}", path.display()))?;
        Ok(Self {
            uid: Uid::from_raw(metadata.uid()),
            gid: Gid::from_raw(metadata.gid()),
        })
    }

    /// Makes `command` run under this account, with no supplementary groups.
    pub(crate) fn apply(&self, command: &mut Command) {
        command.uid(self.uid.as_raw()).gid(self.gid.as_raw());
    }

    /// Gives the whole tree at `path` to this account. Symbolic links are neither followed nor changed.
    pub(crate) fn take_over(&self, path: &Path) -> Result<()> {
        let give = |path: &Path| {
            chown(path, Some(self.uid.as_raw()), Some(self.gid.as_raw()))
                .with_context(|| format!("change the owner of {}", path.display()))
        };
        give(path)?;
        for entry in fs::read_dir(path).with_context(|| format!("read {}", path.display()))? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.take_over(&entry.path())?;
            } else if !kind.is_symlink() {
                give(&entry.path())?;
            }
        }
        Ok(())
    }

    /// Returns true if this account may enter every directory above `path`.
    ///
    /// It checks only the mode bits. If an access list allows more, the answer may be a wrong "no".
    pub(crate) fn reaches(&self, path: &Path) -> bool {
        path.ancestors().skip(1).all(|directory| {
            fs::metadata(directory).is_ok_and(|metadata| {
                let bit = if metadata.uid() == self.uid.as_raw() {
                    0o100
                } else if metadata.gid() == self.gid.as_raw() {
                    0o010
                } else {
                    0o001
                };
                metadata.permissions().mode() & bit != 0
            })
        })
    }
}
