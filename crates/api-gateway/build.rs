//! Makes the list of the web console's files, which are embedded: building Earshot needs Rust alone.
//!
//! `console/dist` is committed; `cargo xtask generate` writes it from `console/src`.

use std::{env, error::Error, fmt::Write as _, fs, path::Path};

const DIST: &str = "../../console/dist";

#[expect(clippy::disallowed_methods, reason = "cargo's, not a setting of ours")]
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={DIST}");
    let dist = Path::new(DIST).canonicalize()?;
    let mut names = Vec::new();
    for entry in fs::read_dir(&dist)? {
        let name = entry?.file_name();
        names.push(name.to_str().ok_or("a name that is not UTF-8")?.to_owned());
    }
    names.sort();

    let mut list = String::from("&[\n");
    for name in &names {
        let path = dist.join(name);
        writeln!(list, "    ({name:?}, include_bytes!({path:?})),")?;
    }
    list.push_str("]\n");
    let out = env::var_os("OUT_DIR").ok_or("no OUT_DIR")?;
    fs::write(Path::new(&out).join("console.rs"), list)?;
    Ok(())
}
