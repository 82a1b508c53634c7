//! Names that the pages compare their subject with: `X vs Y`, `alternative to Y`, links to comparisons.

use super::{
    capitals::{name_after, name_before},
    comparisons,
    lookup::Names,
    named::Named,
    spelling::{clean, squeeze},
};
use crate::page::Page;

/// Maximum length of a line; longer lines are prose, where the words next to `vs` are rarely a whole name.
const MAX_LINE_WORDS: usize = 12;
const MAX_RIVALS: usize = 15;

/// Returns names of others: first those in lines, each in reading order.
pub(super) fn rivals(pages: &[Page], own: &[Named]) -> Vec<String> {
    let own = Names::of_spellings(own);
    let is_own = |name: &str| own.begins(name);
    let people = Names::of_people(pages);
    let stated = pages.iter().flat_map(lines).flat_map(of_line);
    let mut found: Vec<String> = Vec::new();
    for name in stated.chain(comparisons::rivals(pages, &is_own)) {
        if found.len() >= MAX_RIVALS {
            break;
        }
        let known = found.iter().any(|other| squeeze(other) == squeeze(&name));
        if !known && !is_own(&name) && !people.has(&clean(&name)) {
            found.push(name);
        }
    }
    found
}

fn lines(page: &Page) -> impl Iterator<Item = &str> {
    let page = &page.text;
    let links = page.links.iter().map(|link| link.text.as_str());
    [page.title.as_str(), page.description.as_str()]
        .into_iter()
        .chain(page.headings.iter().map(|heading| heading.text.as_str()))
        .chain(links)
        .chain(page.blocks.iter().map(|block| block.text.as_str()))
}

/// Returns both sides of a comparison, and the names that something is an alternative to.
fn of_line(line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let folded: Vec<String> = words.iter().map(|word| squeeze(word)).collect();
    let mut names = Vec::new();
    for (at, word) in folded.iter().enumerate() {
        if matches!(word.as_str(), "vs" | "versus") && words.len() <= MAX_LINE_WORDS {
            names.extend(name_before(&words[..at]));
            names.extend(name_after(&words[at + 1..]));
        }
        let alternative = matches!(word.as_str(), "alternative" | "alternatives")
            && folded.get(at + 1).is_some_and(|next| next == "to");
        let moving = matches!(
            word.as_str(),
            "switch" | "switching" | "migrate" | "migrating"
        ) && folded.get(at + 1).is_some_and(|next| next == "from");
        if alternative || moving {
            names.extend(name_after(&words[at + 2..]));
        }
    }
    names
}
