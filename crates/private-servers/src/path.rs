//! Directories that may contain programs.

use std::fs;
use std::path::PathBuf;

#[expect(
    clippy::disallowed_methods,
    reason = "PATH is the system's, not a setting of ours"
)]
pub(crate) fn search_path() -> Vec<PathBuf> {
    std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).collect())
        .unwrap_or_default()
}

/// The directories that match `pattern`; one `*` in it matches part of a component.
pub(crate) fn expand(pattern: &str) -> Vec<PathBuf> {
    let Some((before, after)) = pattern.split_once('*') else {
        return vec![pattern.into()];
    };
    let Some((parent, prefix)) = before.rsplit_once('/') else {
        return Vec::new();
    };
    let Ok(entries) = fs::read_dir(parent) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| PathBuf::from(format!("{}{after}", entry.path().display())))
        .collect()
}
