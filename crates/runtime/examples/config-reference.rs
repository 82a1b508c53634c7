//! Writes the page `docs/operations/configuration.md`; with `--check`, only checks that it is up to date.

use std::{fs, path::Path, process::ExitCode};

fn main() -> ExitCode {
    let check = std::env::args().nth(1).as_deref() == Some("--check");
    let target =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations/configuration.md");
    let page = runtime::config::reference();
    if check {
        if fs::read_to_string(&target).is_ok_and(|present| present == page) {
            return ExitCode::SUCCESS;
        }
        eprintln!(
            "{} differs from the configuration: run `cargo xtask generate`",
            target.display()
        );
        return ExitCode::FAILURE;
    }
    match fs::write(&target, page) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot write {}: {error}", target.display());
            ExitCode::FAILURE
        }
    }
}
