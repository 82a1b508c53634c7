//! Names in tables and lists next to the customer's.

use std::ops::Range;

use matching::text;

use super::{
    form::{folded, is_abbreviation, is_brand, is_short},
    prose::Prose,
    scope::Scope,
};
use crate::{
    background,
    extract::Block,
    names::{capitals, spelling::is_camel_case},
    page::Page,
};

/// Maximum length of a table cell.
const MAX_CELL_WORDS: usize = 8;

/// Returns cells and list items in the same run as one with the customer's name. A table is read as a run of cells.
pub(super) fn of_tables(
    page: &Page,
    scope: &Scope,
    is_own: &dyn Fn(&str) -> bool,
    prose: &Prose,
) -> Vec<String> {
    let mut found = Vec::new();
    for run in runs(&page.text.blocks) {
        let cells = &page.text.blocks[run];
        let owns: Vec<usize> = (0..cells.len())
            .filter(|at| scope.has(&cells[*at]))
            .filter(|at| is_short(&cells[*at].text) && is_own(&cells[*at].text))
            .collect();
        let Some(first) = owns.first() else {
            continue;
        };
        // If the customer's cell names a model too, the others do as well.
        let has_models = cells[*first].text.split_whitespace().count() > 1
            && is_own(
                cells[*first]
                    .text
                    .split_whitespace()
                    .next()
                    .unwrap_or_default(),
            );
        for (at, cell) in cells.iter().enumerate() {
            let text = cell.text.as_str();
            if !is_short(text) || !text.split_whitespace().all(capitals::is_capitalised) {
                continue;
            }
            let Some(name) = capitals::checked(&text.split_whitespace().collect::<Vec<_>>()) else {
                continue;
            };
            let name = if has_models {
                brand_of_model(&name)
            } else {
                name
            };
            let is_beside = owns.iter().any(|own| own.abs_diff(at) == 1);
            if is_own(&name) || is_abbreviation(&name) || prose.small.contains(&folded(&name)) {
                continue;
            }
            let is_english = matches!(page.text.lang.as_str(), "en" | "");
            let is_invented = || {
                is_beside
                    && text::words(&name).all(|word| !background::is_known(&text::stem(&word.text)))
            };
            if name.split_whitespace().any(is_camel_case)
                || prose.is_name(&name, &page.text.lang)
                || (is_english && (is_brand(&name) || is_invented()))
            {
                found.push(name);
            }
        }
    }
    found
}

/// Returns runs of short blocks under one heading.
fn runs(blocks: &[Block]) -> Vec<Range<usize>> {
    let is_cell = |block: &Block| block.text.split_whitespace().nth(MAX_CELL_WORDS).is_none();
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, block) in blocks
        .iter()
        .enumerate()
        .filter(|(_, block)| is_cell(block))
    {
        match runs.last_mut() {
            Some(run) if run.end == at && blocks[at - 1].heading == block.heading => run.end += 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs
}

/// Returns the brand in a product name: `Nike` of `Nike Pegasus`, `New Balance` of `New Balance 1080`.
fn brand_of_model(name: &str) -> String {
    let words: Vec<&str> = name.split_whitespace().collect();
    let length = if words.first().is_some_and(|word| is_brand(word)) {
        1
    } else {
        words.len().min(2)
    };
    words[..length].join(" ")
}
