//! A server's home directory, with a lock that allows one parent at a time.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::process::wait_until;

const LOCK_PATIENCE: Duration = Duration::from_secs(1);

/// Holds the lock until dropped; the kernel releases it for a process that is killed.
#[derive(Debug)]
pub(crate) struct Home {
    path: PathBuf,
    _lock: File,
}

impl Home {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        fs::create_dir_all(path).with_context(|| format!("create {}", path.display()))?;
        // Absolute, because servers have another working directory.
        let path = path
            .canonicalize()
            .with_context(|| format!("resolve {}", path.display()))?;
        let lock_path = path.join("lock");
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&lock_path)
            .with_context(|| format!("open {}", lock_path.display()))?;
        // Another process that only checks, or a child between fork and exec, may hold it for a moment.
        let mut answer = Ok(());
        wait_until(Instant::now() + LOCK_PATIENCE, || {
            answer = lock.try_lock();
            !matches!(answer, Err(TryLockError::WouldBlock))
        });
        match answer {
            Ok(()) => Ok(Self { path, _lock: lock }),
            Err(TryLockError::WouldBlock) => {
                bail!("{} is in use by another running process", path.display())
            }
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("lock {}", lock_path.display()))
            }
        }
    }

    /// Returns true if some process holds the home at `path`.
    pub(crate) fn is_held(path: &Path) -> bool {
        File::open(path.join("lock"))
            .is_ok_and(|lock| matches!(lock.try_lock(), Err(TryLockError::WouldBlock)))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The secret in file `name`, created on first use; only our own user can read it.
    pub(crate) fn secret(&self, name: &str) -> Result<String> {
        let path = self.join(name);
        if let Ok(secret) = fs::read_to_string(&path)
            && !secret.is_empty()
        {
            return Ok(secret);
        }
        let secret = random_hex()?;
        self.set_secret(name, &secret)?;
        Ok(secret)
    }

    /// Writes the secret of file `name`.
    pub(crate) fn set_secret(&self, name: &str, secret: &str) -> Result<()> {
        let path = self.join(name);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        options
            .open(&path)
            .and_then(|mut file| std::io::Write::write_all(&mut file, secret.as_bytes()))
            .with_context(|| format!("write {}", path.display()))
    }
}

fn random_hex() -> Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .context("read /dev/urandom")?;
    Ok(hex::encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_holder_gets_an_error_with_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let first = Home::open(dir.path()).unwrap();

        let error = Home::open(dir.path()).unwrap_err().to_string();
        assert!(
            error.contains(&first.path().display().to_string()),
            "{error}"
        );
        assert!(Home::is_held(dir.path()));

        drop(first);
        assert!(!Home::is_held(dir.path()));
        Home::open(dir.path()).unwrap();
    }

    #[test]
    fn secret_is_stable() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path()).unwrap();
        let secret = home.secret("password").unwrap();
        assert_eq!(secret.len(), 32);
        assert_eq!(home.secret("password").unwrap(), secret);
    }
}
