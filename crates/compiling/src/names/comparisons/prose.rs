//! Names in the prose of the pages.

use std::{
    cell::LazyCell,
    collections::{BTreeMap, HashSet},
};

use matching::text;
use url::Url;

use super::{
    form::{MAX_NAME_WORDS, folded, is_abbreviation, is_brand, is_of_others},
    scope::{Scope, is_comparison_path},
};
use crate::{
    names::{
        capitals, domain,
        lookup::Names,
        products,
        spelling::{is_camel_case, squeeze},
    },
    page::Page,
};

const MIN_MENTIONS: usize = 2;
const OF_PLACES: [&str; 8] = [
    "in", "at", "near", "across", "around", "outside", "en", "em",
];

/// Capitalisation of words and names in the prose of the pages.
#[derive(Default)]
pub(super) struct Prose {
    names: BTreeMap<String, Mentions>,
    /// Folded words and pairs that occur in lower case.
    pub(super) small: HashSet<String>,
    people: HashSet<String>,
}

#[derive(Default)]
struct Mentions {
    form: String,
    all: usize,
    in_scope: usize,
    of_places: usize,
    of_integrations: usize,
}

impl Prose {
    pub(super) fn of(pages: &[Page], scopes: &[(&Page, Scope)]) -> Self {
        let mut prose = Self::default();
        if scopes.is_empty() {
            return prose;
        }
        for page in pages {
            let scope = scopes
                .iter()
                .find(|(other, _)| std::ptr::eq(*other, page))
                .map(|(_, scope)| scope);
            // German capitalises every noun.
            let is_german = page.text.lang == "de";
            for block in &page.text.blocks {
                let is_in_scope = scope.is_some_and(|scope| scope.has(block));
                prose.read(&block.text, is_in_scope, is_german);
            }
            prose.read(&page.text.description, false, is_german);
            for person in &page.text.people {
                let words = text::words(person).map(|word| word.text.into_owned());
                prose.people.extend(words);
            }
        }
        let mut again: BTreeMap<String, usize> = BTreeMap::new();
        for page in pages {
            let headings = page.text.headings.iter().map(|heading| &heading.text);
            let blocks = page.text.blocks.iter().map(|block| &block.text);
            for line in headings.chain(blocks).chain([&page.text.title]) {
                let words: Vec<String> = line.split_whitespace().map(folded).collect();
                for length in 1..=MAX_NAME_WORDS {
                    for run in words.windows(length) {
                        let run = run.join(" ");
                        if prose.names.contains_key(&run) {
                            *again.entry(run).or_default() += 1;
                        }
                    }
                }
            }
        }
        for (name, count) in again {
            if let Some(mentions) = prose.names.get_mut(&name) {
                mentions.all = count;
            }
        }
        prose
    }

    /// Counts runs of capitalised words in mid sentence.
    fn read(&mut self, text: &str, is_in_scope: bool, is_german: bool) {
        let words: Vec<&str> = text.split_whitespace().collect();
        let capitals = words
            .iter()
            .filter(|word| capitals::is_capitalised(word))
            .count();
        let is_headline = capitals * 2 > words.len();
        let is_about_integration = products::is_about_integration(text);
        for pair in words.windows(2) {
            if !pair.iter().any(|word| word.chars().any(char::is_uppercase)) {
                self.small.insert(folded(&pair.join(" ")));
            }
        }
        let mut at = 0;
        while at < words.len() {
            if !words[at].chars().any(char::is_uppercase) {
                self.small.insert(folded(words[at]));
                at += 1;
                continue;
            }
            let mut to = at + 1;
            while to < words.len()
                && words[to - 1].ends_with(char::is_alphanumeric)
                && words[to].chars().any(char::is_uppercase)
            {
                to += 1;
            }
            let goes_on = at > 0
                && words[at - 1].ends_with(|c: char| c.is_alphanumeric() || matches!(c, ',' | ')'));
            let form = words[at..to].join(" ");
            let form = form.trim_matches(|c: char| !c.is_alphanumeric());
            let form = form.trim_end_matches("'s").trim_end_matches("’s");
            let is_camel = form.split_whitespace().any(is_camel_case);
            if goes_on
                && !is_headline
                && to - at <= MAX_NAME_WORDS
                && form.chars().nth(2).is_some()
                && (is_camel || !is_german)
            {
                let mentions = self.names.entry(folded(form)).or_default();
                form.clone_into(&mut mentions.form);
                mentions.in_scope += usize::from(is_in_scope);
                mentions.of_integrations += usize::from(is_about_integration);
                mentions.of_places +=
                    usize::from(OF_PLACES.contains(&squeeze(words[at - 1]).as_str()));
            }
            at = to;
        }
    }

    /// Returns whether the prose writes this as a name, and never in lower case.
    pub(super) fn is_name(&self, name: &str, lang: &str) -> bool {
        let folded = folded(name);
        lang != "de" && self.names.contains_key(&folded) && !self.small.contains(&folded)
    }

    /// Returns names that the prose of a comparison mentions, the most frequent first.
    pub(super) fn rivals(&self, pages: &[Page]) -> Vec<String> {
        let own = LazyCell::new(|| own_products(pages));
        let mut found: Vec<&Mentions> = self
            .names
            .iter()
            .filter(|(folded, mentions)| {
                mentions.in_scope > 0
                    && mentions.all >= MIN_MENTIONS
                    && mentions.of_places * 2 < mentions.all
                    && mentions.of_integrations == 0
                    && !self.small.contains(*folded)
                    && is_brand(&mentions.form)
                    && !is_abbreviation(&mentions.form)
                    && !is_of_others(&mentions.form)
                    && !folded.split(' ').all(|word| self.people.contains(word))
                    && !own.has(folded)
            })
            .map(|(_, mentions)| mentions)
            .collect();
        found.sort_by_key(|mentions| std::cmp::Reverse(mentions.all));
        found.iter().map(|mentions| mentions.form.clone()).collect()
    }
}

/// Returns the names in the markup of pages, and in links to the site itself that are no comparisons.
fn own_products(pages: &[Page]) -> Names {
    let is_own = |page: &Page, href: &str| {
        Url::parse(href).is_ok_and(|url| {
            domain::site(&url).is_some()
                && domain::site(&url) == domain::site(&page.url)
                && !is_comparison_path(&url)
        })
    };
    Names::of(pages.iter().flat_map(|page| {
        let links = page.text.links.iter();
        let linked = links.filter(move |link| is_own(page, &link.href));
        let declared = page.text.structured_products.iter();
        declared.chain(linked.map(|link| &link.text))
    }))
}
