//! Generates `src/generated/` from `proto-events/`; with `--check`, only checks that it is up to date.
//!
//! protox compiles the schemas, so `protoc` is not needed. The result is committed, so that a build needs
//! neither, and a schema change is visible in review.

use std::{fs, path::Path};

use anyhow::{Context, ensure};

const FILE: &str = "earshot.events.v1.rs";

fn main() -> anyhow::Result<()> {
    let check = std::env::args().nth(1).as_deref() == Some("--check");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let schemas = root.join("../../proto-events");
    let folder = schemas.join("earshot/events/v1");

    let mut files = fs::read_dir(&folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<anyhow::Result<Vec<_>>>()?;
    files.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "proto")
    });
    files.sort();

    let set = protox::compile(&files, [&schemas])?;
    let scratch = std::env::temp_dir().join(format!("earshot-events-{}", std::process::id()));
    fs::create_dir_all(&scratch)?;
    let compiled = prost_build::Config::new()
        .out_dir(&scratch)
        .compile_fds(set)
        .and_then(|()| fs::read_to_string(scratch.join(FILE)));
    fs::remove_dir_all(&scratch)?;
    let compiled = compiled.context("cannot generate code")?;

    let target = root.join("src/generated").join(FILE);
    if check {
        ensure!(
            fs::read_to_string(&target).is_ok_and(|present| present == compiled),
            "{} differs from proto-events/: run `cargo xtask generate`",
            target.display()
        );
    } else {
        fs::write(&target, compiled)
            .with_context(|| format!("cannot write {}", target.display()))?;
    }
    Ok(())
}
