//! The secrets of a data directory: created once, readable only by their owner.

use std::{
    fs::{self, OpenOptions},
    io::{ErrorKind, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use anyhow::{Context, anyhow};
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
    let text = read_or_make(&path, || hex(&rand::random::<[u8; 32]>()))?;
    let bytes =
        unhex(&text).ok_or_else(|| anyhow!("{}: not 64 hexadecimal digits", path.display()))?;
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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{api_key, hex, unhex};

    #[test]
    fn hexadecimal_reads_back() {
        let bytes: [u8; 32] = std::array::from_fn(|at| u8::try_from(at * 8 % 256).unwrap());
        assert_eq!(unhex(&hex(&bytes)), Some(bytes));
        assert_eq!(unhex(&"zz".repeat(32)), None);
        assert_eq!(unhex("00"), None);
    }

    #[test]
    fn a_data_directory_keeps_its_key() {
        let directory = tempfile::tempdir().unwrap();
        let first = api_key(directory.path()).unwrap();
        assert_eq!(api_key(directory.path()).unwrap().expose(), first.expose());
    }
}
