//! The customer's own names: of the company, its products, and its handles.

use matching::text;
use url::Url;

use super::{MAX_NAMES, Named, clean, domain, is_camel_case, squeeze, with_variants};
use crate::{background, compile::Page, extract::LinkKind};

const MAX_WORDS: usize = 4;
const MAX_SPELLINGS: usize = 12;
/// A page with more links home, or to accounts, is no ordinary page.
const MAX_LINKS: usize = 50;
/// Product names taken from a list on a page.
const MAX_PRODUCTS: usize = 20;
/// What separates a page's title from the site's name.
const TITLE_SEPARATORS: [&str; 7] = [" | ", " - ", " – ", " — ", " · ", " • ", ": "];
/// Words that a company may go without: `United Airlines`, `Granary DB`.
const KINDS: [&str; 28] = [
    "air",
    "airline",
    "airlines",
    "airways",
    "app",
    "bank",
    "cloud",
    "coffee",
    "db",
    "foods",
    "group",
    "games",
    "health",
    "insurance",
    "labs",
    "media",
    "motors",
    "restaurants",
    "shop",
    "software",
    "store",
    "studio",
    "studios",
    "systems",
    "technologies",
    "tv",
    "vpn",
    "works",
];

pub(super) fn own(pages: &[Page]) -> Vec<Named> {
    let mut found: Vec<Named> = Vec::new();
    for name in pages.iter().flat_map(declared) {
        add(&mut found, &name);
    }
    for name in pages.iter().flat_map(from_titles) {
        add(&mut found, &name);
    }
    for page in pages {
        add_domain(&mut found, page);
    }
    add_handles(&mut found, pages);
    for named in &mut found {
        add_short_form(named);
    }
    for name in pages.iter().flat_map(products).take(MAX_PRODUCTS) {
        add(&mut found, &name);
    }
    found
}

/// What the page's markup says outright.
fn declared(page: &Page) -> Vec<String> {
    let mut names = vec![page.text.site_name.clone()];
    names.extend(page.text.structured_names.iter().cloned());
    names.extend(home_links(page));
    names
}

/// The text of the link to the front page is most often the brand.
fn home_links(page: &Page) -> Vec<String> {
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

/// Parts of the title that the page speaks of, or that the domain repeats.
fn from_titles(page: &Page) -> Vec<String> {
    let label = domain::label(&page.url).unwrap_or_default();
    let parts = split_title(&page.text.title);
    let several = parts.len() > 1;
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
                || (several && part.split_whitespace().count() <= 3 && speaks_of(part))
        })
        .map(str::to_owned)
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

/// Adds a name, or a further spelling of one that is there: `Tunnelry VPN` is `Tunnelry`.
fn add(found: &mut Vec<Named>, name: &str) {
    let name = clean(name);
    if !is_name(&name) || found.len() >= MAX_NAMES {
        return;
    }
    let squeezed = squeeze(&name);
    let first = |text: &str| squeeze(text.split_whitespace().next().unwrap_or_default());
    let same = found.iter_mut().find(|named| {
        let main = &named.spellings[0];
        let shorter = main
            .split_whitespace()
            .count()
            .min(name.split_whitespace().count());
        squeeze(main) == squeezed
            || (shorter == 1
                && first(main) == first(&name)
                && !background::is_stop_word(&first(main)))
    });
    match same {
        Some(named) => {
            for spelling in with_variants(name) {
                push_spelling(named, spelling);
            }
        }
        None => found.push(Named::new(name)),
    }
}

fn push_spelling(named: &mut Named, spelling: String) {
    let folded = text::fold(&spelling).into_owned();
    let is_new = || {
        !named
            .spellings
            .iter()
            .any(|known| text::fold(known) == folded)
    };
    if named.spellings.len() < MAX_SPELLINGS && is_new() {
        named.spellings.push(spelling);
    }
}

/// Whether it can be a name at all: `Home` and `Official site` cannot.
fn is_name(name: &str) -> bool {
    let words: Vec<_> = text::words(name).collect();
    let says_something = |word: &text::Token<'_>| {
        let stem = text::stem(&word.text);
        !background::is_stop_word(&word.text)
            && !background::is_web_word(&stem)
            && word.text.chars().any(char::is_alphabetic)
    };
    (1..=MAX_WORDS).contains(&words.len())
        && squeeze(name).chars().nth(1).is_some()
        && words.iter().any(says_something)
}

/// The domain's label where it is a spelling of a name, or a made-up word of its own.
fn add_domain(found: &mut Vec<Named>, page: &Page) {
    let Some(label) = domain::label(&page.url) else {
        return;
    };
    if let Some(named) = found
        .iter_mut()
        .find(|n| n.spellings.iter().any(|s| squeeze(s) == label))
    {
        push_spelling(named, label);
    } else if label.chars().nth(3).is_some() && !background::is_known(&text::stem(&label)) {
        add(found, &label);
    }
}

/// Handles that look like a name, or that are the only one on their network.
fn add_handles(found: &mut [Named], pages: &[Page]) {
    let links = pages.iter().flat_map(|page| &page.text.links);
    let mut handles: Vec<String> = links
        .filter(|link| matches!(link.kind, LinkKind::Anchor { .. }))
        .filter_map(|link| domain::handle(&link.href))
        .collect();
    handles.sort();
    handles.dedup();
    handles.truncate(MAX_LINKS);
    let only = handles.len() == 1;
    for handle in handles {
        let squeezed = squeeze(&handle);
        let alike = |name: &str| {
            let name = squeeze(name);
            name.len() >= 3
                && (squeezed.contains(&name)
                    || (squeezed.len() >= 4 && name.starts_with(&squeezed)))
        };
        let at = found
            .iter()
            .position(|named| named.spellings.iter().any(|s| alike(s)));
        let Some(named) = found
            .get_mut(at.unwrap_or(0))
            .filter(|_| at.is_some() || only)
        else {
            continue;
        };
        push_spelling(named, format!("@{handle}"));
        if !background::is_known(&text::stem(&text::fold(&handle))) {
            push_spelling(named, handle);
        }
    }
}

/// `United` for `United Airlines`, `Neiman` for `Neiman Marcus`.
fn add_short_form(named: &mut Named) {
    let name = named.spellings[0].clone();
    let mut words = name.split_whitespace();
    let (Some(first), Some(rest)) = (words.next(), words.next()) else {
        return;
    };
    let goes_without = words.next().is_none() && KINDS.contains(&text::fold(rest).as_ref());
    let known = background::is_known(&text::stem(&text::fold(first)));
    if first.chars().nth(3).is_none() {
        return;
    }
    if !known {
        push_spelling(named, first.to_owned());
    } else if goes_without && !named.doubtful.iter().any(|doubtful| doubtful == first) {
        named.doubtful.push(first.to_owned());
    }
}

/// Short items under a heading such as `Products` that are written like names.
fn products(page: &Page) -> Vec<String> {
    let is_list_of_products = |heading: usize| {
        page.text.headings.get(heading).is_some_and(|heading| {
            matches!(
                squeeze(&heading.text).as_str(),
                "products" | "ourproducts" | "apps" | "ourapps" | "brands" | "ourbrands"
            )
        })
    };
    page.text
        .blocks
        .iter()
        .filter(|block| block.heading.is_some_and(is_list_of_products))
        .filter(|block| {
            block.text.split_whitespace().count() <= 3 && is_written_like_a_name(&block.text)
        })
        .map(|block| block.text.clone())
        .collect()
}

fn is_written_like_a_name(text: &str) -> bool {
    let capital = |word: &str| word.chars().any(char::is_uppercase);
    text.split_whitespace().all(capital)
        && text::words(text).any(|word| {
            is_camel_case(word.raw) || !background::is_ordinary(&text::stem(&word.text))
        })
}
