//! The data directory: created once, completely or not at all, and accessible to the server's account.
//!
//! Under root the server runs as another user, which cannot enter a checkout below `/root`. Then the server
//! inherits an open handle of its data directory and uses the path `/proc/self/fd/N`: this leads to the
//! directory itself and needs no permission on its parents.

use std::fs::{self, File};
use std::io::Write;
use std::ops::{Deref, DerefMut};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::Signal;
use nix::unistd::Uid;

use super::NAME;
use super::install::Installation;
use crate::account::Account;
use crate::home::Home;
use crate::log::Log;
use crate::process::{Process, Reach};
use crate::tls::Tls;

/// Passwords are sent only over loopback; SCRAM would cost each test connection thousands of hashes.
const ACCESS: &str = "# type database user address method\nhost all all 127.0.0.1/32 password\n\
    host replication all 127.0.0.1/32 password\n";

#[derive(Debug)]
pub(crate) struct Cluster {
    data: PathBuf,
    installation: Installation,
    account: Option<Account>,
}

impl Cluster {
    /// Opens the data directory of `home`, and creates it if it is missing.
    pub(crate) fn open(home: &Home, password: &str, durable: bool, log: &mut Log) -> Result<Self> {
        let data = home.join("data");
        if data.join("PG_VERSION").exists() {
            return Self::reopen(data);
        }
        if data.exists() {
            bail!("{} is not a PostgreSQL data directory", data.display());
        }
        Self::fill(home, |new| new.make(password, durable, log))
    }

    /// Copies the data of the running server at the address `primary` into the new directory of `home`, as a standby of it.
    pub(crate) fn copy(home: &Home, primary: &str, log: &mut Log) -> Result<Self> {
        Self::fill(home, |new| new.copy_from(primary, log))
    }

    /// Creates the data directory of `home` with `fill`, completely or not at all.
    fn fill(home: &Home, fill: impl FnOnce(&Self) -> Result<()>) -> Result<Self> {
        let installation = Installation::find(None)?;
        let account = Account::for_server(&["postgres", "nobody"])?;
        // Filled under another name, so that an interrupted initdb does not look complete.
        let unfinished = home.join("data.new");
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished)
                .with_context(|| format!("remove {}", unfinished.display()))?;
        }
        fs::create_dir(&unfinished).with_context(|| format!("create {}", unfinished.display()))?;
        if let Some(account) = &account {
            account.take_over(&unfinished)?;
        }
        let new = Self {
            data: unfinished,
            installation,
            account,
        };
        fill(&new)?;
        let data = home.join("data");
        fs::rename(&new.data, &data).with_context(|| format!("rename {}", new.data.display()))?;
        Ok(Self { data, ..new })
    }

    fn copy_from(&self, primary: &str, log: &mut Log) -> Result<()> {
        let mut copy = self.command("pg_basebackup")?;
        let data = copy.data.clone();
        copy.arg("--pgdata").arg(data);
        copy.args(["--write-recovery-conf", "--wal-method=stream"]);
        copy.args(["--checkpoint=fast", "--no-sync", "--dbname", primary]);
        log.attach(&mut copy)?;
        let status = Process::spawn(&mut copy, Reach::Group, Signal::SIGKILL)?.wait()?;
        if !status.success() {
            bail!("pg_basebackup failed ({status}):\n{}", log.last_lines());
        }
        // PostgreSQL demands it, and it is inherited from the source only in part.
        fs::set_permissions(&self.data, fs::Permissions::from_mode(0o700))?;
        Ok(())
    }

    fn reopen(data: PathBuf) -> Result<Self> {
        let version = fs::read_to_string(data.join("PG_VERSION")).context("read PG_VERSION")?;
        let major = version
            .trim()
            .parse()
            .with_context(|| format!("invalid PG_VERSION `{}`", version.trim()))?;
        let installation = Installation::find(Some(major))?;
        let owner = Account::of_owner(&data)?;
        let account = match Account::for_server(&["postgres", "nobody"])? {
            None if owner.uid != Uid::effective() => {
                bail!(
                    "{} belongs to user id {}, and we run as {}",
                    data.display(),
                    owner.uid,
                    Uid::effective()
                )
            }
            None => None,
            // Someone gave the whole checkout to root.
            Some(account) if owner.uid.is_root() => {
                account.take_over(&data)?;
                Some(account)
            }
            Some(_) => Some(owner),
        };
        fs::set_permissions(&data, fs::Permissions::from_mode(0o700))?;
        Ok(Self {
            data,
            installation,
            account,
        })
    }

    fn make(&self, password: &str, durable: bool, log: &mut Log) -> Result<()> {
        let mut initdb = self.command("initdb")?;
        initdb.args([
            "--username",
            NAME,
            "--encoding=UTF8",
            "--locale=C",
            "--auth=trust",
        ]);
        if !durable {
            initdb.arg("--no-sync");
        }
        log.attach(&mut initdb)?;
        // Killed with us: otherwise it would continue in a directory that the next start creates again.
        let status = Process::spawn(&mut initdb, Reach::Group, Signal::SIGKILL)?.wait()?;
        if !status.success() {
            bail!("initdb failed ({status}):\n{}", log.last_lines());
        }

        // In single-user mode there is no port to protect before the password is set.
        self.execute(&format!(
            "ALTER ROLE {NAME} PASSWORD '{password}'\nCREATE DATABASE {NAME}\n"
        ))?;

        let access = self.data.join("pg_hba.conf");
        fs::write(&access, ACCESS).with_context(|| format!("write {}", access.display()))?;
        Ok(())
    }

    /// Runs one SQL command per line in single-user mode.
    fn execute(&self, sql: &str) -> Result<()> {
        let mut command = self.command("postgres")?;
        command.args([
            "--single",
            "-c",
            "exit_on_error=on",
            "-c",
            "log_destination=stderr",
            "postgres",
        ]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("start PostgreSQL in single-user mode")?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin
                .write_all(sql.as_bytes())
                .context("write to PostgreSQL in single-user mode")?;
        }
        let Output { status, stderr, .. } = child.wait_with_output()?;
        if !status.success() {
            bail!(
                "PostgreSQL in single-user mode failed ({status}):\n{}",
                String::from_utf8_lossy(&stderr).trim()
            );
        }
        Ok(())
    }

    /// Writes the certificate and its key to the paths where the server reads them.
    pub(crate) fn write_tls(&self, tls: &Tls) -> Result<()> {
        for (name, text) in [("server.crt", &tls.certificate), ("server.key", &tls.key)] {
            let path = self.data.join(name);
            fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        }
        match &self.account {
            Some(account) => account.take_over(&self.data),
            None => Ok(()),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.data
    }

    /// The path of one of the programs.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.installation.bin.join(name)
    }

    /// One of the server's programs with its data directory, under the server's account.
    pub(crate) fn command(&self, program: &str) -> Result<ServerCommand> {
        let mut command = Command::new(self.program(program));
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("LC_ALL", "C")
            .current_dir("/");
        let mut handle = None;
        let mut data = self.data.clone();
        if let Some(account) = &self.account {
            account.apply(&mut command);
            if !account.reaches(&self.data) {
                let file = File::open(&self.data)?;
                fcntl(&file, FcntlArg::F_SETFD(FdFlag::empty()))
                    .context("let the server inherit a handle")?;
                data = format!("/proc/self/fd/{}", file.as_raw_fd()).into();
                if !data.exists() {
                    bail!(
                        "user id {} cannot reach {}: use a directory that it can enter",
                        account.uid,
                        self.data.display()
                    );
                }
                handle = Some(file);
            }
        }
        command.env("PGDATA", &data);
        Ok(ServerCommand {
            command,
            data,
            _handle: handle,
        })
    }
}

/// A command, with the handle that must be open when it is started.
pub(crate) struct ServerCommand {
    command: Command,
    /// The data directory as the command can reach it.
    data: PathBuf,
    _handle: Option<File>,
}

impl Deref for ServerCommand {
    type Target = Command;

    fn deref(&self) -> &Command {
        &self.command
    }
}

impl DerefMut for ServerCommand {
    fn deref_mut(&mut self) -> &mut Command {
        &mut self.command
    }
}
