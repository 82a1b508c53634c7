//! What was built.

/// The version of the workspace.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit, where the build was told it by `EARSHOT_COMMIT`.
pub const COMMIT: &str = match option_env!("EARSHOT_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};

/// Both, as `--version` prints them.
pub fn version() -> String {
    format!("{VERSION} ({COMMIT})")
}
