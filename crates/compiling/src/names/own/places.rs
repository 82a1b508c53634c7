//! Places of a page that name its company: markup, links, titles and small print.

use matching::text;
use url::Url;

use crate::{
    background,
    names::{
        companies, domain,
        spelling::{clean, is_camel_case, squeeze},
    },
    page::Page,
};

/// Maximum number of links to the front page, or to accounts; more are not typical of a page.
pub(super) const MAX_LINKS: usize = 50;
/// Separators between a page's title and the site's name.
const TITLE_SEPARATORS: [&str; 9] = [" | ", " - ", " – ", " — ", " · ", " • ", ": ", "｜", "："];

/// Returns the names that the page's markup declares.
pub(super) fn declared(page: &Page) -> Vec<String> {
    let mut names = vec![page.text.site_name.clone()];
    names.extend(page.text.structured_names.iter().cloned());
    names
}

/// Returns the texts of links to the front page, which are usually the brand.
pub(super) fn home_links(page: &Page) -> Vec<String> {
    let is_home = |href: &str| {
        Url::parse(href).is_ok_and(|url| {
            url.host() == page.url.host() && url.path() == "/" && url.query().is_none()
        })
    };
    let links = page.text.links.iter().filter(|link| is_home(&link.href));
    links
        .take(MAX_LINKS)
        .map(|link| link.text.clone())
        .collect()
}

/// Returns parts of the title that the page also uses as a name, or that the domain repeats.
pub(super) fn from_titles(page: &Page) -> Vec<String> {
    let label = domain::label(&page.url).unwrap_or_default();
    let parts = split_title(&page.text.title);
    let several = parts.len() > 1;
    let is_named = |name: &str| label.is_empty() && is_spoken_of(page, name);
    let opening = squeeze(&page.text.description);
    let first_block = page.text.blocks.first().map(|block| squeeze(&block.text));
    let speaks_of = |name: &str| {
        let name = squeeze(name);
        opening.starts_with(&name) || first_block.as_ref().is_some_and(|b| b.starts_with(&name))
    };
    parts
        .into_iter()
        .filter(|part| {
            let squeezed = squeeze(part);
            (!label.is_empty() && squeezed == label)
                || (several
                    && part.split_whitespace().count() <= 3
                    && (speaks_of(part) || is_named(part)))
        })
        .map(str::to_owned)
        .collect()
}

/// Returns whether a part of the title is not an ordinary phrase, and the page or its footer uses it as a name.
pub(super) fn is_spoken_of(page: &Page, name: &str) -> bool {
    let is_made_up =
        |word: &str| is_camel_case(word) || !background::is_known(&text::stem(&text::fold(word)));
    let is_signed = || {
        let signatures = page
            .text
            .small_print
            .iter()
            .filter_map(|line| companies::signature(line));
        signatures
            .map(|s| clean(&s))
            .any(|s| squeeze(&s) == squeeze(name))
    };
    let page = &page.text;
    let blocks = page.blocks.iter().map(|block| block.text.as_str());
    let texts = || blocks.clone().chain([page.description.as_str()]);
    let mentions = || {
        texts()
            .flat_map(|text| text.match_indices(name))
            .take(2)
            .count()
    };
    let starts_large = |word: &str| word.starts_with(char::is_uppercase);
    name.split_whitespace().all(starts_large)
        && (is_signed()
            || (page.lang != "de" && name.split_whitespace().any(is_made_up) && mentions() > 0)
            || (name.split_whitespace().any(is_camel_case) && mentions() > 0))
}

/// Returns the companies that lines of the page name, and how certain it is that they are the customer's.
pub(super) fn companies(page: &Page) -> Vec<(companies::Tie, String)> {
    let text = &page.text;
    let titles = [&text.title, &text.og_title];
    let by_title = titles.into_iter().flat_map(|title| {
        let parts = split_title(title);
        parts
            .into_iter()
            .flat_map(companies::product_by_company)
            .collect::<Vec<_>>()
    });
    let blocks = text.blocks.iter().map(|block| &block.text);
    let by_text = blocks
        .chain([&text.description])
        .chain(&text.small_print)
        .flat_map(|line| companies::parents(line));
    let signed = text
        .small_print
        .iter()
        .filter_map(|line| companies::copyright(line))
        .take(1);
    by_title
        .chain(by_text)
        .chain(signed)
        .take(MAX_LINKS)
        .collect()
}

fn split_title(title: &str) -> Vec<&str> {
    let mut parts = vec![title];
    for separator in TITLE_SEPARATORS {
        parts = parts
            .into_iter()
            .flat_map(|part| part.split(separator))
            .collect();
    }
    parts
        .into_iter()
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect()
}
