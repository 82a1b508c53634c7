//! Checks that each table of benchmarks names the commit of its figures, above it or in it.

use std::{fs, path::Path};

/// Returns the tables, each with the text between it and the table or heading before it.
fn tables(text: &str) -> Vec<String> {
    let mut tables = Vec::new();
    let (mut part, mut is_table) = (String::new(), false);
    for line in text.lines() {
        if is_table && !line.starts_with('|') {
            tables.push(std::mem::take(&mut part));
        }
        is_table = line.starts_with('|');
        if line.starts_with('#') {
            part.clear();
        }
        part.extend([line, "\n"]);
    }
    if is_table {
        tables.push(part);
    }
    tables
}

fn has_commit(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| {
        word.len() == 7
            && word.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
            && word.bytes().any(|b| b.is_ascii_digit())
    })
}

#[test]
fn tables_of_benchmarks_name_a_commit() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = fs::read_to_string(root.join("docs/benchmarks.md")).unwrap();
    let tables = tables(&text);
    assert!(tables.len() > 8, "{} tables", tables.len());
    let without: Vec<&String> = tables.iter().filter(|table| !has_commit(table)).collect();
    assert!(without.is_empty(), "no commit: {without:#?}");
}

#[test]
fn tables_without_a_commit_are_found() {
    let text = "# A\nof 1a2b3c4\n\n| x |\n\n| y |\n# B\n\n| z | 0123abc |\n";
    let named: Vec<bool> = tables(text).iter().map(|table| has_commit(table)).collect();
    assert_eq!(named, [true, false, true]);
    assert!(!has_commit("defaced 1a2b3c 12345678"));
}
