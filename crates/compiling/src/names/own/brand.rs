//! The name of the company or site.

use matching::text;

use super::spellings::{add, is_of_ordinary_words};
use crate::names::{
    named::Named,
    spelling::{clean, squeeze},
};

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

/// Adds the name of the company or site, without the section of the site that it may name.
pub(super) fn add_brand(found: &mut Vec<Named>, name: &str, labels: &[String]) {
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
pub(super) fn is_in_domain(name: &str, labels: &[String]) -> bool {
    let name = squeeze(name);
    labels
        .iter()
        .any(|label| *label == name || (name.len() >= 4 && label.starts_with(&name)))
}
