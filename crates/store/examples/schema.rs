//! Writes `src/schema.rs` from a freshly migrated database. With `--check`, reports whether it is up to date.
//!
//! The database is created on the server of `DATABASE_URL`, or on a private one.

use std::{fs, path::Path};

use anyhow::{Context, ensure};
use test_support::TestDatabase;

#[path = "schema/tables.rs"]
mod tables;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let check = std::env::args().nth(1).as_deref() == Some("--check");
    let database = TestDatabase::create().await;
    let written = tables::write(&mut database.connect().await).await?;

    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/schema.rs");
    if check {
        ensure!(
            fs::read_to_string(&target).is_ok_and(|present| present == written),
            "{} differs from the migrations: run `cargo xtask generate`",
            target.display()
        );
    } else {
        fs::write(&target, written)
            .with_context(|| format!("cannot write {}", target.display()))?;
    }
    Ok(())
}
