//! The customer's own names: of the company, its products, and its handles.

use std::collections::BTreeMap;

use matching::text;
use url::Url;

use super::{
    MAX_NAMES, Named, clean, companies, domain, is_camel_case, is_in_capitals, is_person, products,
    squeeze,
};
use crate::{
    background::{self, Usage},
    compile::Page,
    extract::LinkKind,
    figures,
};

const MAX_WORDS: usize = 4;
const MAX_SPELLINGS: usize = 12;
/// Maximum number of links to the front page, or to accounts; more are not typical of a page.
const MAX_LINKS: usize = 50;
/// Maximum number of product names from a list on a page.
const MAX_PRODUCTS: usize = 20;
/// Separators between a page's title and the site's name.
const TITLE_SEPARATORS: [&str; 9] = [" | ", " - ", " – ", " — ", " · ", " • ", ": ", "｜", "："];
/// Words that a company's short name may omit: `United Airlines`, `Granary DB`.
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

/// Endings of the names of a site's sections; without them the brand remains: `Google Help`.
const PARTS: [&str; 9] = [
    "help",
    "support",
    "center",
    "centre",
    "community",
    "forum",
    "store",
    "website",
    "homepage",
];
/// Words of legal texts, which are not part of a name: `Steam Subscriber Agreement`.
const LEGAL: [&str; 21] = [
    "agb",
    "agreement",
    "agreements",
    "contrat",
    "datenschutz",
    "disclaimer",
    "eula",
    "imprint",
    "impressum",
    "license",
    "nutzungsbedingungen",
    "policies",
    "policy",
    "politica",
    "politique",
    "privacy",
    "privacidad",
    "privacidade",
    "refund",
    "refunds",
    "terms",
];

pub(super) fn own(pages: &[Page]) -> Vec<Named> {
    let labels: Vec<String> = pages
        .iter()
        .filter_map(|page| domain::label(&page.url))
        .collect();
    let mut found: Vec<Named> = Vec::new();
    let is_person = |name: &String| is_person(pages, name);
    for name in pages
        .iter()
        .flat_map(declared)
        .filter(|name| !is_person(name))
    {
        add_brand(&mut found, &name, &labels);
    }
    for name in pages
        .iter()
        .flat_map(home_links)
        .filter(|name| !is_person(name))
    {
        let is_spoken_of = || pages.iter().any(|page| is_spoken_of(page, &clean(&name)));
        if !is_of_ordinary_words(&name) || is_in_domain(&name, &labels) || is_spoken_of() {
            add_brand(&mut found, &name, &labels);
        }
    }
    for name in pages
        .iter()
        .flat_map(from_titles)
        .filter(|name| !is_person(name))
    {
        add_brand(&mut found, &name, &labels);
    }
    for page in pages {
        add_domain(&mut found, page);
    }
    add_handles(&mut found, pages);
    for (company, name) in pages.iter().flat_map(companies) {
        if company.is_of(&found) && !is_person(&name) {
            add(&mut found, &name);
        }
    }
    for named in &mut found {
        unshout(named, pages);
        add_short_form(named);
    }
    // The brand names the site; an owner or a section of the site does not.
    found.sort_by_key(|named| !is_in_domain(&named.spellings[0], &labels));
    found
}

/// Adds the name of the company or site, without the section of the site that it may name.
fn add_brand(found: &mut Vec<Named>, name: &str, labels: &[String]) {
    let name = clean(name);
    if labels.iter().any(|label| *label == squeeze(&name)) {
        return add(found, &name);
    }
    let is_brand = |rest: &str| {
        is_in_domain(rest, labels)
            || found.iter().any(|named| named.is_spelled(rest))
            || (!rest.contains(' ') && !is_of_ordinary_words(rest))
    };
    let brand = without_part(&name);
    // Some company names end with a word such as center or store.
    if brand.len() == name.len() || is_brand(brand) {
        add(found, brand);
    } else if !ends_with_help(&name) {
        add(found, &name);
    }
}

/// Returns the name without the words at its end that name a section of a site.
fn without_part(name: &str) -> &str {
    let mut rest = name;
    while let Some(last) = rest.split([' ', '_']).next_back()
        && PARTS.contains(&text::fold(last).as_ref())
    {
        rest = rest[..rest.len() - last.len()].trim_end_matches([' ', '_']);
    }
    rest
}

fn ends_with_help(name: &str) -> bool {
    let last = name.split([' ', '_']).next_back().unwrap_or_default();
    matches!(text::fold(last).as_ref(), "help" | "support")
}

/// Returns whether a site's domain is or begins with the name: `Steam` in `steampowered.com`.
fn is_in_domain(name: &str, labels: &[String]) -> bool {
    let name = squeeze(name);
    labels
        .iter()
        .any(|label| *label == name || (name.len() >= 4 && label.starts_with(&name)))
}

/// Returns whether each word is an ordinary word: `Gift Cards`.
fn is_of_ordinary_words(name: &str) -> bool {
    !name.split_whitespace().any(is_camel_case)
        && text::words(name).all(|word| {
            background::is_stop_word(&word.text) || background::is_ordinary(&text::stem(&word.text))
        })
}

/// Replaces a name in capitals with the most frequent form in the prose of the pages: `Comcast` for `COMCAST`.
fn unshout(named: &mut Named, pages: &[Page]) {
    let capitals = named.spellings[0].clone();
    if !is_in_capitals(&capitals) {
        return;
    }
    let blocks = pages
        .iter()
        .flat_map(|page| page.text.blocks.iter().map(|block| &block.text));
    let descriptions = pages.iter().map(|page| &page.text.description);
    let mut forms: BTreeMap<&str, usize> = BTreeMap::new();
    for word in blocks
        .chain(descriptions)
        .flat_map(|text| text::words(text))
    {
        let is_shouted = word.raw == capitals;
        if word.raw.starts_with(char::is_uppercase)
            && (is_shouted || squeeze(word.raw) == squeeze(&capitals))
        {
            *forms.entry(word.raw).or_default() += 1;
        }
    }
    if let Some((form, _)) = forms.into_iter().max_by_key(|(_, count)| *count) {
        form.clone_into(&mut named.spellings[0]);
    }
}

/// Adds the names of products, except `rivals`.
pub(super) fn add_products(found: &mut Vec<Named>, pages: &[Page], rivals: &[String]) {
    let listed = pages.iter().flat_map(products).take(MAX_PRODUCTS);
    let declared = pages
        .iter()
        .flat_map(|page| page.text.structured_products.iter().cloned());
    let spoken_of = products::spoken_of(pages, found);
    let names: Vec<String> = declared.chain(listed).chain(spoken_of).collect();
    for name in names {
        let is_rival = rivals
            .iter()
            .any(|rival| squeeze(rival) == squeeze(&clean(&name)));
        if !is_rival && !is_person(pages, &name) {
            add_product(found, &name);
        }
    }
}

/// Adds the name of a product. One that is also an ordinary word only counts after the company's: `Google Maps`.
fn add_product(found: &mut Vec<Named>, name: &str) {
    let name = clean(name);
    let is_known = |name: &str, found: &[Named]| found.iter().any(|named| named.is_spelled(name));
    if is_known(&name, found) || !is_name(&name) {
        return add(found, &name);
    }
    let words: Vec<_> = text::words(&name).collect();
    let is_word = match &words[..] {
        [word] => {
            !is_camel_case(&name) && background::usage(&text::stem(&word.text)) != Usage::Name
        }
        _ => is_of_ordinary_words(&name),
    };
    if !is_word {
        return add(found, &name);
    }
    if words.len() > 1 || found.len() >= MAX_NAMES {
        return;
    }
    let company = found.first().map(|named| named.spellings[0].as_str());
    let full = company.map(|company| format!("{company} {name}"));
    if let Some(full) = full.filter(|full| is_name(full) && !is_known(full, found)) {
        found.push(Named::new(full));
    }
}

/// Returns the names that the page's markup declares.
fn declared(page: &Page) -> Vec<String> {
    let mut names = vec![page.text.site_name.clone()];
    names.extend(page.text.structured_names.iter().cloned());
    names
}

/// Returns the texts of links to the front page, which are usually the brand.
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

/// Returns parts of the title that the page also uses as a name, or that the domain repeats.
fn from_titles(page: &Page) -> Vec<String> {
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
fn is_spoken_of(page: &Page, name: &str) -> bool {
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
fn companies(page: &Page) -> Vec<(companies::Tie, String)> {
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

/// Adds a name, or a further spelling of an existing one: `Tunnelry VPN` is `Tunnelry`.
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
            let Named {
                spellings,
                doubtful,
                ..
            } = Named::new(name);
            for spelling in spellings {
                push_spelling(named, spelling);
            }
            for spelling in doubtful {
                if !named.doubtful.contains(&spelling) {
                    named.doubtful.push(spelling);
                }
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

/// Returns whether it can be a name at all: `Home` and `Official site` cannot.
fn is_name(name: &str) -> bool {
    let words: Vec<_> = text::words(name).collect();
    let says_something = |word: &text::Token<'_>| {
        let stem = text::stem(&word.text);
        !background::is_stop_word(&word.text)
            && !background::is_web_word(&stem)
            && word.text.chars().any(char::is_alphabetic)
    };
    let is_legal = words.iter().any(|word| LEGAL.contains(&word.text.as_ref()));
    // In scripts without spaces, matching treats each character as a word.
    let count = match words.iter().any(|word| word.kind == text::Kind::Character) {
        true => name.split_whitespace().count(),
        false => words.len(),
    };
    (1..=MAX_WORDS).contains(&count)
        && !is_legal
        && !figures::is_figure(name)
        && squeeze(name).chars().nth(1).is_some()
        && words.iter().any(says_something)
}

/// Adds the domain's label if it is a spelling of a name, or an invented word.
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

/// Adds handles that look like a name, or that are the only one on their network.
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

/// Adds a short form: `United` for `United Airlines`, `Neiman` for `Neiman Marcus`.
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

/// Returns short items under a heading such as `Products` that are written like names.
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
