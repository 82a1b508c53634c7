//! Rivals on pages that compare without `vs` or `alternative to`: in tables, headings, links and prose.
//!
//! A page is about a comparison if its title or address says so. Otherwise only the text under a comparison heading
//! counts. Trademark notices name rivals on any page.

mod form;
mod prose;
mod scope;
mod tables;
mod trademarks;

use matching::text;
use url::Url;

use super::{capitals, contrasts, domain, spelling::squeeze};
use crate::{background, extract::LinkKind, page::Page};

use form::{MAX_NAME_WORDS, is_brand, is_of_others, is_short};
use prose::Prose;
use scope::{COMPARING_IN_JAPANESE, Scope, is_about_comparison, is_comparing, is_comparison_path};
use tables::of_tables;
use trademarks::of_trademarks;

const MAX_LINKS: usize = 500;
/// Words between the customer's name and a rival's in a heading, or before a rival's.
const LINKS_IN_HEADINGS: &str = "and to with from against than or over und mit von zu als oder y e et con com desde de avec contre que o ou a";
/// Words before a rival's name in a heading without the customer's.
const BEFORE_RIVALS: &str =
    "from than over with to against von als mit gegenuber desde de con com avec que";

/// Returns names of others on pages about a comparison, and in trademark notices.
pub(super) fn rivals(pages: &[Page], is_own: &dyn Fn(&str) -> bool) -> Vec<String> {
    let scopes: Vec<(&Page, Scope)> = pages
        .iter()
        .filter_map(|page| Some((page, Scope::of(page)?)))
        .collect();
    let prose = Prose::of(pages, &scopes);
    let mut found = Vec::new();
    for (page, scope) in &scopes {
        let headings = page.text.headings.iter().enumerate();
        let headings = headings
            .filter(|(at, _)| scope.has_heading(*at))
            .map(|(_, heading)| heading.text.as_str());
        let titles = [page.text.title.as_str(), page.text.og_title.as_str()];
        let lines = titles.into_iter().filter(|_| matches!(scope, Scope::Page));
        for line in lines.chain(headings) {
            let names_customer = names_customer(line, is_own);
            let lang = &page.text.lang;
            let is_name = |name: &str| {
                is_brand(name)
                    || prose.is_name(name, lang)
                    || (names_customer && is_coined(name, lang))
            };
            let names = of_heading(line, names_customer, is_own).into_iter();
            found.extend(names.filter(|name| !is_of_others(name) && is_name(name)));
            if COMPARING_IN_JAPANESE.iter().any(|word| line.contains(word)) {
                let names = contrasts::of_japanese_heading(line).into_iter();
                found.extend(names.filter(|name| !is_own(name)));
            }
        }
        found.extend(of_tables(page, scope, is_own, &prose));
    }
    found.extend(pages.iter().flat_map(of_links));
    for page in pages {
        let blocks = page.text.blocks.iter().map(|block| &block.text);
        let lines = page.text.small_print.iter().chain(blocks);
        let names = lines.flat_map(|line| of_trademarks(line));
        found.extend(names.filter(|name| !is_of_others(name)));
    }
    found.extend(prose.rivals(pages));
    let names = contrasts::rivals(pages, is_own).into_iter();
    found.extend(names.filter(|name| !is_of_others(name)));
    found
}

/// Returns whether no ordinary post has any of the words, as with invented names. German capitalises every noun, so
/// the rule does not apply there.
fn is_coined(name: &str, lang: &str) -> bool {
    lang != "de"
        && text::words(name).all(|word| {
            word.text.chars().count() >= 4
                && word.text.chars().all(char::is_alphabetic)
                && !is_comparing(&word.text)
                && !background::is_known(&text::stem(&word.text))
                && !background::is_web_word(&text::stem(&word.text))
        })
}

/// Returns whether a line holds the customer's name.
fn names_customer(line: &str, is_own: &dyn Fn(&str) -> bool) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    (0..words.len()).any(|from| {
        (from + 1..=words.len().min(from + MAX_NAME_WORDS))
            .any(|to| capitals::checked(&words[from..to]).is_some_and(|name| is_own(&name)))
    })
}

/// Returns both sides of a word that links two names: `LedgerLeaf and QuickBooks`, `If you come from Foo`.
fn of_heading(line: &str, names_customer: bool, is_own: &dyn Fn(&str) -> bool) -> Vec<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let links = if names_customer {
        LINKS_IN_HEADINGS
    } else {
        BEFORE_RIVALS
    };
    let mut names = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let is_link = *word == "&" || links.split_whitespace().any(|link| squeeze(word) == link);
        if is_link {
            names.extend(capitals::name_after(&words[at + 1..]));
            if names_customer && at > 0 {
                names.extend(capitals::name_before(&words[..at]));
            }
        }
    }
    names.retain(|name| !is_own(name) && name.split_whitespace().count() <= MAX_NAME_WORDS);
    names
}

/// Returns the texts of links to the site's own comparisons: `Square`, which leads to `/compare/square`.
fn of_links(page: &Page) -> Vec<String> {
    let links = page
        .text
        .links
        .iter()
        .filter(|link| matches!(link.kind, LinkKind::Anchor { .. }) && is_short(&link.text));
    links
        .take(MAX_LINKS)
        .filter(|link| {
            Url::parse(&link.href).is_ok_and(|url| {
                domain::site(&url).is_some()
                    && domain::site(&url) == domain::site(&page.url)
                    && is_comparison_path(&url)
                    && squeeze(url.path()).contains(&squeeze(&link.text))
            })
        })
        .filter(|link| !is_about_comparison(&link.text))
        .filter_map(|link| {
            let words: Vec<&str> = link.text.split_whitespace().collect();
            let capitals = words.iter().all(|word| capitals::is_capitalised(word));
            capitals::checked(&words).filter(|_| capitals)
        })
        .collect()
}
