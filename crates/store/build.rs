//! Rebuilds the crate when a migration changes, which `embed_migrations!` alone does not do, and passes on the
//! versions of the oldest and the newest migration.

use std::{
    collections::hash_map::DefaultHasher,
    fs,
    hash::{Hash, Hasher},
    path::Path,
};

fn main() {
    println!("cargo::rerun-if-changed=migrations");
    let mut files = Vec::new();
    collect(Path::new("migrations"), &mut files);
    files.sort();
    let mut hasher = DefaultHasher::new();
    files.hash(&mut hasher);
    println!(
        "cargo::rustc-env=MIGRATIONS_FINGERPRINT={:016x}",
        hasher.finish()
    );
    // As diesel does: the part before the first underscore, without hyphens.
    let mut versions: Vec<_> = files
        .iter()
        .filter_map(|(path, _)| {
            let folder = Path::new(path).parent()?.file_name()?.to_str()?;
            Some(folder.split_once('_')?.0.replace('-', ""))
        })
        .collect();
    versions.sort();
    let [oldest, .., newest] = versions.as_slice() else {
        panic!("there are migrations");
    };
    println!("cargo::rustc-env=OLDEST_MIGRATION={oldest}");
    println!("cargo::rustc-env=NEWEST_MIGRATION={newest}");
}

fn collect(folder: &Path, files: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).expect("the migrations can be listed") {
        let path = entry.expect("the migrations can be listed").path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            let text = fs::read_to_string(&path).expect("a migration can be read");
            files.push((path.display().to_string(), text));
        }
    }
}
