//! The secrets of a data directory: created once, readable only by their owner.

use std::{
    fs::{self, OpenOptions},
    io::{ErrorKind, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use anyhow::Context;
use domain::key::ApiKey;
use runtime::config::EncryptionKey;

/// Returns the API key of the account `dev`.
pub(super) fn api_key(data_dir: &Path) -> anyhow::Result<ApiKey> {
    let path = data_dir.join("api.key");
    let text = read_or_make(&path, || ApiKey::generate().expose())?;
    text.parse().with_context(|| path.display().to_string())
}

/// Returns the key that seals customers' header values.
pub(super) fn encryption_key(data_dir: &Path) -> anyhow::Result<EncryptionKey> {
    let path = data_dir.join("encryption.key");
    let text = read_or_make(&path, || hex::encode(rand::random::<[u8; 32]>()))?;
    let mut bytes = [0; 32];
    hex::decode_to_slice(text, &mut bytes)
        .with_context(|| format!("{}: not 64 hexadecimal digits", path.display()))?;
    Ok(EncryptionKey::new("dev", bytes))
}

/// Writes the file atomically: a process that dies while writing leaves a file with another name.
fn read_or_make(path: &Path, make: impl FnOnce() -> String) -> anyhow::Result<String> {
    match fs::read_to_string(path) {
        Ok(text) => return Ok(text.trim().to_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
    let text = make();
    write(path, &text)?;
    Ok(text)
}

/// Writes address and key, for client commands in the folder that contains the data directory.
pub(super) fn write_profile(data_dir: &Path, url: &str, key: &str) -> anyhow::Result<()> {
    let text = format!("url = \"{url}\"\nkey = \"{key}\"\n");
    write(&data_dir.join("profile.toml"), &text)
}

/// Writes a file that only its owner can read.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let draft = path.with_extension("new");
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)
        .and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&draft, path));
    written.with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::{api_key, encryption_key};

    #[test]
    fn an_encryption_key_is_64_hexadecimal_digits() {
        let directory = tempfile::tempdir().unwrap();
        encryption_key(directory.path()).unwrap();
        encryption_key(directory.path()).unwrap();
        for text in ["zz".repeat(32), "00".to_owned()] {
            std::fs::write(directory.path().join("encryption.key"), text).unwrap();
            let error = encryption_key(directory.path()).map(drop).unwrap_err();
            assert!(error.to_string().contains("64 hexadecimal"), "{error}");
        }
    }

    #[test]
    fn a_data_directory_keeps_its_key() {
        let directory = tempfile::tempdir().unwrap();
        let first = api_key(directory.path()).unwrap();
        assert_eq!(api_key(directory.path()).unwrap().expose(), first.expose());
    }
}
