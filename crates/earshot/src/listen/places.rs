//! Position in each Manager's Scans: a small file, replaced atomically by a rename.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions, TryLockError},
    io::{ErrorKind, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use domain::Timestamp;
use serde::{Deserialize, Serialize};

use crate::customer::{Failure, place::home};

#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    /// For each Manager, the `createTime` of the last printed Scan.
    places: BTreeMap<String, Timestamp>,
}

pub(super) struct Places {
    path: PathBuf,
    state: State,
    /// True if there was no state file yet.
    new: bool,
    /// Held while this value exists: two processes with one state file would each miss Scans that the other saw.
    _lock: File,
}

impl Places {
    /// Opens a given file, or the default one for this purpose.
    pub(super) fn open(path: Option<&Path>, purpose: &[&str]) -> Result<Self, Failure> {
        let path = match path {
            Some(path) => path.to_owned(),
            None => usual(purpose)?,
        };
        let wrong = |error: std::io::Error| {
            Failure::Local(format!(
                "cannot use the state file {}: {error}",
                path.display()
            ))
        };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(wrong)?;
        }
        let lock = owned(&path.with_extension("lock")).map_err(wrong)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::Local(format!(
                    "another `earshot listen` uses the state file {}: give this one --state FILE",
                    path.display()
                )));
            }
            Err(TryLockError::Error(error)) => return Err(wrong(error)),
        }
        let (state, new) = match fs::read(&path) {
            Ok(bytes) => {
                let state = serde_json::from_slice(&bytes).map_err(|_damage| {
                    Failure::Local(format!(
                        "{} is not a valid state file: remove it",
                        path.display()
                    ))
                })?;
                (state, false)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => (State::default(), true),
            Err(error) => return Err(wrong(error)),
        };
        Ok(Self {
            path,
            state,
            new,
            _lock: lock,
        })
    }

    /// Returns whether this is the first start.
    pub(super) fn are_new(&self) -> bool {
        self.new
    }

    pub(super) fn of(&self, manager: &str) -> Option<Timestamp> {
        self.state.places.get(manager).copied()
    }

    /// Adds the start positions of more Managers.
    pub(super) fn begin(&mut self, places: BTreeMap<String, Timestamp>) -> Result<(), Failure> {
        self.state.places.extend(places);
        self.write()?.keep()?;
        self.new = false;
        Ok(())
    }

    /// Writes a state that becomes active with [`Next::keep`].
    pub(super) fn prepare(&mut self, manager: &str, place: Timestamp) -> Result<Next, Failure> {
        self.state.places.insert(manager.to_owned(), place);
        self.write()
    }

    fn write(&self) -> Result<Next, Failure> {
        let draft = self.path.with_extension("next");
        let written = serde_json::to_vec(&self.state)
            .map_err(std::io::Error::from)
            .and_then(|bytes| {
                let mut file = owned(&draft)?;
                file.set_len(0)?;
                file.write_all(&bytes)?;
                // Otherwise the rename could survive a power failure that loses the content.
                file.sync_data()
            });
        written.map_err(|error| {
            Failure::Local(format!("cannot write {}: {error}", draft.display()))
        })?;
        Ok(Next {
            draft,
            path: self.path.clone(),
        })
    }
}

/// A state that is written, but not active yet.
#[must_use]
pub(super) struct Next {
    draft: PathBuf,
    path: PathBuf,
}

impl Next {
    pub(super) fn keep(self) -> Result<(), Failure> {
        fs::rename(&self.draft, &self.path).map_err(|error| {
            Failure::Local(format!("cannot write {}: {error}", self.path.display()))
        })
    }
}

fn owned(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

fn usual(purpose: &[&str]) -> Result<PathBuf, Failure> {
    let folder = home("XDG_STATE_HOME", ".local/state")
        .ok_or_else(|| Failure::usage("there is no home folder: give --state FILE"))?;
    Ok(folder.join(format!("listen-{:016x}.json", fingerprint(purpose))))
}

/// FNV-1a: the same in every release, because an upgrade must find the old file. The lock would detect a collision.
fn fingerprint(purpose: &[&str]) -> u64 {
    let bytes = purpose.iter().flat_map(|part| part.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use domain::Timestamp;

    use super::{Places, fingerprint};

    #[test]
    fn state_file_name_is_stable() {
        assert_eq!(
            fingerprint(&["http://a/", "", "m"]),
            fingerprint(&["http://a/", "", "m"])
        );
        assert_ne!(fingerprint(&["ab", "c"]), fingerprint(&["a", "bc"]));
        // The test vector of FNV-1a for one zero byte.
        assert_eq!(fingerprint(&[""]), 0xaf63_bd4c_8601_b7df);
    }

    #[test]
    fn position_is_active_once_it_is_saved() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/place.json");
        let open = || Places::open(Some(&path), &[]);
        let at = |micros| Timestamp::from_micros(micros).unwrap();
        let mut places = open().unwrap();
        assert!(places.are_new());
        assert!(open().is_err(), "the place is kept by one at a time");
        places
            .begin(BTreeMap::from([("m".to_owned(), at(1))]))
            .unwrap();
        places.prepare("m", at(2)).unwrap().keep().unwrap();
        drop(places.prepare("m", at(3)).unwrap());
        drop(places);
        let places = open().unwrap();
        assert!(!places.are_new());
        assert_eq!(places.of("m"), Some(at(2)));
        assert_eq!(places.of("n"), None);
    }

    #[test]
    fn damaged_state_file_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("place.json");
        std::fs::write(&path, "{\"places\": {\"m\"").unwrap();
        assert!(Places::open(Some(&path), &[]).is_err());
    }
}
