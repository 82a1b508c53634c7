//! The customer's own names: of the company, its products, and its handles.

mod brand;
mod places;
mod products;
mod spellings;

use matching::text;

use super::{
    domain,
    lookup::Names,
    named::Named,
    spelling::{clean, squeeze},
};
use crate::{background, extract::LinkKind, page::Page};

use brand::{add_brand, is_in_domain};
use places::{MAX_LINKS, companies, declared, from_titles, home_links, is_spoken_of};
pub(super) use products::add_products;
use spellings::{add, add_short_form, is_of_ordinary_words, push_spelling, unshout};

pub(super) fn own(pages: &[Page]) -> Vec<Named> {
    let labels: Vec<String> = pages
        .iter()
        .filter_map(|page| domain::label(&page.url))
        .collect();
    let mut found: Vec<Named> = Vec::new();
    let people = Names::of_people(pages);
    let is_person = |name: &String| people.has(&clean(name));
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
