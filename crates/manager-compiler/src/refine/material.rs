//! The text of the pages that a model reads, and a check whether a proposal occurs in it.

use std::collections::HashSet;

use compiling::{compile::Seed, extract::PageText};
use domain::{Focus, Instructions, instructions::Term};
use matching::{Plan, PostText};
use serde_json::{Value, json};

/// Maximum length of the text of all pages together: about three thousand tokens.
const MAX_CHARS: usize = 12_000;
/// Maximum number of compiled terms and names that are shown.
const MAX_SHOWN: usize = 60;

/// The beginnings of the pages, each with an equal share.
#[derive(Debug, Default)]
pub(crate) struct Material {
    pages: Vec<(String, String)>,
}

impl Material {
    pub(crate) fn of(seeds: &[Seed]) -> Self {
        let subjects: Vec<_> = seeds
            .iter()
            .filter_map(|seed| match seed {
                Seed::Subject(page, _) => Some(page),
                Seed::Place(_) => None,
            })
            .collect();
        let share = MAX_CHARS / subjects.len().max(1);
        let pages = subjects.into_iter().map(|page| {
            let host = page.url.host_str().unwrap_or_default().to_owned();
            (host, beginning(&page.text, share))
        });
        Self {
            pages: pages.collect(),
        }
    }

    /// Returns the question as one JSON value, so that no text in it can end its quotation.
    pub(super) fn question(&self, focus: Focus, compiled: &Instructions) -> Value {
        let pages = self.pages.iter();
        let pages = pages.map(|(host, text)| json!({"host": host, "text": text}));
        let names = compiled.names.iter().take(MAX_SHOWN);
        let names = names.map(|name| json!({"text": name.text, "kind": name.kind}));
        json!({
            "focus": focus.as_str(),
            "pages": pages.collect::<Vec<_>>(),
            "terms": compiled.include.iter().take(MAX_SHOWN).collect::<Vec<_>>(),
            "names": names.collect::<Vec<_>>(),
            "brief": compiled.brief,
            "sells": compiled.sells,
        })
    }

    /// Returns those `texts` that occur on the pages, by the same rules as for posts.
    pub(super) fn occurring<'a>(&self, texts: impl Iterator<Item = &'a str>) -> HashSet<String> {
        let include = texts.map(|text| Term {
            text: text.to_owned(),
            weight: 1.0,
        });
        let instructions = Instructions {
            include: include.collect(),
            ..Instructions::default()
        };
        let Ok(plan) = Plan::compile(&instructions) else {
            return HashSet::new();
        };
        let text: Vec<String> = self
            .pages
            .iter()
            .map(|(host, text)| format!("{host}\n{text}"))
            .collect();
        let text = PostText::new(None, Some(&text.join("\n")));
        matching::evaluate(&plan, &text, None)
            .terms
            .into_iter()
            .collect()
    }
}

fn beginning(page: &PageText, share: usize) -> String {
    let headings = page.headings.iter().map(|heading| heading.text.as_str());
    let blocks = page.blocks.iter().map(|block| block.text.as_str());
    let lines = [page.title.as_str(), page.description.as_str()]
        .into_iter()
        .chain(headings)
        .chain(blocks)
        .filter(|line| !line.is_empty());
    let mut text = String::new();
    let mut left = share;
    for line in lines {
        if left == 0 {
            break;
        }
        let line: String = line.chars().take(left).collect();
        left = left.saturating_sub(line.chars().count() + 1);
        text.push_str(&line);
        text.push('\n');
    }
    text
}
