//! Version and commit of the build.

/// The version of the workspace.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit, if the build got it in `EARSHOT_COMMIT`.
pub const COMMIT: &str = match option_env!("EARSHOT_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};

/// Both, as `--version` prints them.
pub fn version() -> String {
    format!("{VERSION} ({COMMIT})")
}
