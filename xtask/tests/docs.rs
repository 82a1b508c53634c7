//! Checks that tests exist if documents name them as proof.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    fs,
    path::{Path, PathBuf},
};

const DOCUMENTS: [&str; 3] = [
    "docs/security.md",
    "docs/reliability.md",
    "docs/development/reviewed-faults.md",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .into()
}

fn sources(folder: &Path, found: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

/// Returns the crate and test of a code span `crate::test`.
fn named(span: &str) -> Option<(&str, &str)> {
    let (package, test) = span.split_once("::")?;
    let plain = |text: &str| {
        text.bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-".contains(&b))
    };
    (plain(package) && plain(test) && !test.is_empty()).then_some((package, test))
}

#[test]
fn tests_that_documents_name_exist() {
    let mut missing = Vec::new();
    let mut seen = 0;
    for document in DOCUMENTS {
        let text = fs::read_to_string(root().join(document)).unwrap();
        for (package, test) in text.split('`').skip(1).step_by(2).filter_map(named) {
            let folder = [root().join("crates").join(package), root().join(package)]
                .into_iter()
                .find(|folder| folder.is_dir());
            let mut code = String::new();
            if let Some(folder) = folder {
                sources(&folder, &mut code);
            }
            // Scenarios are named by strings.
            let there =
                code.contains(&format!("fn {test}(")) || code.contains(&format!("\"{test}\""));
            if !there {
                missing.push(format!("{document}: {package}::{test}"));
            }
            seen += 1;
        }
    }
    assert!(seen > 80, "{seen} tests are named");
    assert!(missing.is_empty(), "{missing:#?}");
}
