//! No other crate knows one kind of platform from another.

use std::{fs, path::Path};

use runtime::config::Kind;

/// Files that name kinds, and why.
const ALLOWED: [&str; 3] = [
    // The rules of kinds' settings, one block each: `runtime` must not know `platforms`.
    "runtime/src/config/kinds.rs",
    // The platform that `earshot dev` watches without a configuration.
    "earshot/src/dev.rs",
    // The feeds of the demo.
    "earshot/src/trigger.rs",
];

fn sources(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.ends_with("tests") || path.ends_with("tests.rs") {
            continue;
        }
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// Returns true if a line of code depends on the kind.
fn tells(line: &str, kind: Kind) -> bool {
    let word = kind.as_str();
    let is_compared = [
        format!("\"{word}\" =>"),
        format!("\"{word}\" |"),
        format!("| \"{word}\""),
        format!("== \"{word}\""),
        format!("!= \"{word}\""),
        format!("(\"{word}\", None)"),
        format!("= [\"{word}\""),
    ];
    let is_char = |c: char| c.is_alphanumeric() || c == '_';
    let variant = format!("Kind::{kind:?}");
    is_compared.iter().any(|form| line.contains(form.as_str()))
        || line.match_indices(variant.as_str()).any(|(at, _)| {
            let after = &line[at + variant.len()..];
            !line[..at].ends_with(is_char) && !after.starts_with(is_char)
        })
}

#[test]
fn no_other_crate_matches_on_a_kind() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut wrong = Vec::new();
    let mut used = Vec::new();
    for own in fs::read_dir(crates).unwrap().flatten() {
        if ["platforms", "platform-simulator"].contains(&own.file_name().to_str().unwrap()) {
            continue;
        }
        let mut files = Vec::new();
        sources(&own.path().join("src"), &mut files);
        for file in files {
            let name = file.strip_prefix(crates).unwrap().display().to_string();
            let text = fs::read_to_string(&file).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for (number, line) in code.lines().enumerate() {
                let line = line.trim_start();
                if line.starts_with("//") || !Kind::ALL.iter().any(|kind| tells(line, *kind)) {
                    continue;
                }
                match ALLOWED.iter().find(|allowed| name == **allowed) {
                    Some(allowed) => used.push(*allowed),
                    None => wrong.push(format!("{name}:{}: {line}", number + 1)),
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "ask `platforms::PlatformKind` instead of comparing kinds, and add to it what is missing:\n{}",
        wrong.join("\n")
    );
    for allowed in &ALLOWED[1..] {
        assert!(
            used.contains(allowed),
            "`{allowed}` needs no exception any more"
        );
    }
}

#[test]
fn the_configuration_and_the_registry_have_the_same_kinds() {
    let configured = |kind: &Kind| (kind.as_str(), kind.source().map(|source| source.as_str()));
    let mut configured: Vec<_> = Kind::ALL.iter().map(configured).collect();
    configured.sort_unstable();
    let described = platforms::registry::KINDS.map(|kind| {
        let source = kind.source.map(|source| match source {
            platforms::Source::Forum => "FORUM",
            platforms::Source::Microblog => "MICROBLOG",
            platforms::Source::Network => "NETWORK",
        });
        (kind.name, source)
    });
    assert_eq!(configured, described);
}
