//! Checks that each crate uses the dependencies that it declares.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    fs,
    path::{Path, PathBuf},
};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Folders of the workspace's packages.
fn packages() -> Vec<PathBuf> {
    let mut folders = vec![root().join("tests-e2e"), root().join("xtask")];
    let crates = fs::read_dir(root().join("crates")).unwrap();
    folders.extend(crates.map(|entry| entry.unwrap().path()));
    folders.retain(|folder| folder.join("Cargo.toml").is_file());
    folders
}

/// Names in the sections of dependencies of a manifest, as paths in Rust spell them.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_listed = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            is_listed = section.trim_end_matches(']').ends_with("dependencies");
        } else if is_listed
            && !line.starts_with('#')
            && let Some(end) = line.find(['.', ' ', '='])
        {
            names.push(line[..end].replace('-', "_"));
        }
    }
    names
}

/// Returns true if `name` is a whole word of `text`.
fn has_word(text: &str, name: &str) -> bool {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    text.match_indices(name).any(|(start, _)| {
        !text[..start].ends_with(is_word) && !text[start + name.len()..].starts_with(is_word)
    })
}

/// The text of all Rust sources below `folder`.
fn sources(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_declared_dependency_is_used() {
    let mut unused = Vec::new();
    for package in packages() {
        let mut text = String::new();
        sources(&package, &mut text);
        for name in dependencies(&fs::read_to_string(package.join("Cargo.toml")).unwrap()) {
            if !has_word(&text, &name) {
                unused.push(format!("{name} in {}", package.display()));
            }
        }
    }
    assert!(
        unused.is_empty(),
        "no source file names: {unused:#?}\nremove them from Cargo.toml"
    );
}

/// `cargo run -p earshot` gets only the features that its own dependencies ask for; a build of the workspace hides a
/// missing one.
#[test]
fn crates_that_send_json_ask_reqwest_for_it() {
    let (mut senders, mut without) = (0, Vec::new());
    for package in packages() {
        let mut text = String::new();
        sources(&package.join("src"), &mut text);
        if !text.contains("reqwest::Client::builder()") || !text.contains(".json(&") {
            continue;
        }
        senders += 1;
        let manifest = fs::read_to_string(package.join("Cargo.toml")).unwrap();
        let mut lines = manifest.lines().filter(|line| line.starts_with("reqwest"));
        if !lines.any(|line| line.contains("\"json\"")) {
            without.push(package);
        }
    }
    assert!(senders > 0);
    assert!(
        without.is_empty(),
        "without the feature `json`: {without:#?}"
    );
}

#[test]
fn dependencies_are_read_from_manifests() {
    let manifest = "[package]\nname = \"x\"\n[dependencies]\n# why\nactix-web.workspace = true\n\
                    [target.'cfg(unix)'.dev-dependencies]\nnix = { workspace = true }\n[features]\nfuzz = []";
    assert_eq!(dependencies(manifest), ["actix_web", "nix"]);
    assert!(has_word("use nix::unistd;", "nix"));
    assert!(!has_word("use phoenix::nixed;", "nix"));
}
