//! Checks that relative links in documents lead somewhere, and that the table of contents has every page.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod documents;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Component, Path, PathBuf},
};

use documents::{files, root};

/// Documents outside of `docs`.
const OTHERS: [&str; 10] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "crates/matching/model/README.md",
    "deploy/README.md",
    "helm/README.md",
    "helm/UPGRADING.md",
    "proto-events/README.md",
];
const SUMMARY: &str = "docs/SUMMARY.md";

/// Text without code blocks and code spans.
fn prose(text: &str) -> String {
    let mut fenced = false;
    let mut prose = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    prose.split('`').step_by(2).collect()
}

/// Targets of the links that stay in the repository.
fn targets(prose: &str) -> impl Iterator<Item = &str> {
    prose
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
}

/// Anchor of a heading, as GitHub and mdBook make it.
fn slug(heading: &str) -> String {
    let heading = heading.trim().to_lowercase();
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let mut fenced = false;
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        let heading = line.trim_start_matches('#');
        if fenced || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let slug = slug(heading);
        let before = seen.entry(slug.clone()).or_default();
        anchors.insert(match *before {
            0 => slug,
            count => format!("{slug}-{count}"),
        });
        *before += 1;
    }
    anchors
}

/// `docs/guides/../x.md` as `docs/x.md`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = plain.pop(),
            other => plain.push(other),
        }
    }
    plain
}

/// Returns what is wrong with a link of the page.
fn fault(page: &Path, target: &str) -> Option<String> {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = match path {
        "" => page.to_path_buf(),
        path => plain(&page.parent().unwrap().join(path)),
    };
    let there = root().join(&path);
    if !there.exists() {
        return Some(format!("{}: no file {target}", page.display()));
    }
    if anchor.is_empty() || anchors(&fs::read_to_string(&there).unwrap()).contains(anchor) {
        return None;
    }
    Some(format!("{}: no heading {target}", page.display()))
}

#[test]
fn every_relative_link_leads_to_a_file_and_a_heading() {
    let mut documents: Vec<PathBuf> = OTHERS.iter().map(PathBuf::from).collect();
    files(Path::new("docs"), "md", &mut documents);
    let (mut seen, mut wrong) = (0, Vec::new());
    for page in documents {
        let prose = prose(&fs::read_to_string(root().join(&page)).unwrap());
        for target in targets(&prose) {
            seen += 1;
            wrong.extend(fault(&page, target));
        }
    }
    assert!(seen > 200, "{seen} links");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn table_of_contents_has_each_page_once() {
    let mut expected = Vec::new();
    files(Path::new("docs"), "md", &mut expected);
    expected.retain(|page| page != Path::new(SUMMARY));
    let summary = fs::read_to_string(root().join(SUMMARY)).unwrap();
    let mut listed: Vec<PathBuf> = targets(&summary)
        .map(|target| Path::new("docs").join(target))
        .collect();
    expected.sort();
    listed.sort();
    assert_eq!(listed, expected);
}

#[test]
fn anchors_are_those_of_github() {
    let text = "# A B\n```sh\n# no heading\n```\n## What to look at when …\n### `too_short`\n## A B\n#no\n";
    let expected = ["a-b", "a-b-1", "too_short", "what-to-look-at-when-"];
    assert_eq!(anchors(text), expected.map(str::to_owned).into());
    let text =
        "[a](x.md) `[b](y.md)`\n```\n[c](z.md)\n```\n[d](https://example.com) [e](../v.md#w)";
    let text = prose(text);
    assert_eq!(targets(&text).collect::<Vec<_>>(), ["x.md", "../v.md#w"]);
}
