//! Checks that the guide to errors explains exactly the issues of `openapi.yaml`, one heading each.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{fs, path::Path};

/// Words of the schema `Issue`.
fn documented(openapi: &str) -> Vec<&str> {
    let schema = openapi.split("\n    Issue:\n").nth(1).unwrap();
    let words = schema.split("\n      enum:\n").nth(1).unwrap();
    words
        .lines()
        .map_while(|line| line.strip_prefix("        - "))
        .collect()
}

/// Headings of the form ``### `word` ``.
fn explained(guide: &str) -> Vec<&str> {
    guide
        .lines()
        .filter_map(|line| line.strip_prefix("### `")?.strip_suffix('`'))
        .collect()
}

#[test]
fn guide_to_errors_has_each_issue_of_the_api_and_no_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let openapi = fs::read_to_string(root.join("crates/api-gateway/openapi.yaml")).unwrap();
    let guide = fs::read_to_string(root.join("docs/guides/errors.md")).unwrap();
    let (mut documented, mut explained) = (documented(&openapi), explained(&guide));
    assert!(documented.len() > 10, "{documented:?}");
    documented.sort_unstable();
    explained.sort_unstable();
    assert_eq!(documented, explained);
}
