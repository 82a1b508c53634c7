//! Names of a subject in posts: the customer's own, and those to watch.
//!
//! A name that is also an ordinary word (`United`, `Giant`) only counts in its own case and near a word of the subject.
//! Its unmistakable spellings (`United Airlines`, `@united`) are in a separate entry without these conditions. Names of
//! persons are ignored.
//!
//! [`own`] collects the customer's names, with [`companies`] that own it and its [`products`]. [`brands`] contains
//! other spellings and products of well-known names. [`versus`] finds names that a line compares with, [`comparisons`]
//! those on pages about a comparison, [`contrasts`] those after `unlike`, and [`capitals`] reads runs of capitalised
//! words. [`domain`] reads hosts and handles. [`spelling`] has the rules for single names, and [`named`] is one name.

mod brands;
mod capitals;
mod companies;
mod comparisons;
mod contrasts;
mod domain;
mod lookup;
mod named;
mod own;
mod products;
mod spelling;
mod versus;

use std::collections::HashSet;

use ::domain::instructions::{NameKind, Term, WatchedName};
use matching::text;

use crate::{background, page::Page};

use named::MAX_NAMES;
pub use named::Named;
use spelling::clean;
pub use spelling::squeeze;

/// Names of the pages' subject, and names that they compare it with.
#[derive(Debug, Clone, Default)]
pub struct Names {
    pub own: Vec<Named>,
    pub watched: Vec<Named>,
}

impl Names {
    /// Finds names. `given` are the names that the customer wants to watch; without them the pages decide. A customer
    /// is never its own rival.
    pub fn find(pages: &[Page], given: &[String]) -> Self {
        let mut own = own::own(pages);
        let mut compared = versus::rivals(pages, &own);
        compared.retain(|name| !brands::is_technology(name));
        // A shop may sell what it names as a rival: then the customer's choice counts.
        let rivals: Vec<String> = given
            .iter()
            .chain(&compared)
            .map(|name| clean(name))
            .collect();
        own::add_products(&mut own, pages, &rivals);
        let mut is_first = true;
        own.retain(|named| {
            std::mem::take(&mut is_first) || !brands::is_technology(&named.spellings[0])
        });
        let from_pages = if given.is_empty() {
            compared
        } else {
            Vec::new()
        };
        let mut watched: Vec<Named> = Vec::new();
        let given = given.iter().map(|name| (name, true));
        for (name, is_given) in given.chain(from_pages.iter().map(|name| (name, false))) {
            let name = clean(name);
            let is_known = own
                .iter()
                .chain(&watched)
                .any(|named| named.is_spelled(&name));
            if !squeeze(&name).is_empty() && !is_known {
                watched.push(Named {
                    is_given,
                    ..Named::new(name)
                });
            }
        }
        watched.truncate(MAX_NAMES);
        own.iter_mut()
            .chain(&mut watched)
            .for_each(Named::add_spellings_of_brand);
        Self { own, watched }
    }

    /// Returns products of well-known names, each as a separate entry, because its share of posts about the subject is
    /// measured separately.
    pub fn products(&self, terms: &[Term]) -> Vec<WatchedName> {
        let mut products: Vec<(NameKind, Named)> = Vec::new();
        let own = self.own.iter().map(|named| (NameKind::Own, named));
        let watched = self.watched.iter().map(|named| (NameKind::Watched, named));
        for (kind, named) in own.chain(watched) {
            let brand = brands::find(&named.spellings[0]);
            for product in brand.iter().flat_map(|brand| &brand.products) {
                let mut all = self.own.iter().chain(&self.watched);
                // A mention of `Ford Focus` is already a mention of Ford.
                let is_known = all.any(|named| named.is_part_of(product))
                    || products.iter().any(|(_, named)| named.is_spelled(product));
                if !is_known {
                    let named = Named {
                        spellings: vec![(*product).to_owned()],
                        ..Named::default()
                    };
                    products.push((kind, named));
                }
            }
        }
        let entries = products
            .iter()
            .flat_map(|(kind, named)| named.entries(*kind, terms));
        entries.collect()
    }

    /// Returns the customer's name, for the brief.
    pub fn primary(&self) -> Option<&str> {
        self.own.first().map(|named| named.spellings[0].as_str())
    }

    /// Returns stems that belong to names and so do not become terms. For a name of several words, only those that are
    /// not also words of the subject: `Tunnelry VPN` leaves `vpn`.
    pub fn stems(&self) -> HashSet<String> {
        let mut stems = HashSet::new();
        for spelling in self
            .own
            .iter()
            .chain(&self.watched)
            .flat_map(|n| &n.spellings)
        {
            // A single character is not a word.
            if spelling.chars().any(text::spaceless) {
                stems.insert(squeeze(spelling));
                continue;
            }
            for (at, stem) in crate::terms::stems(spelling).enumerate() {
                if at == 0 || !background::is_known(&stem) {
                    stems.insert(stem.trim_start_matches(['@', '#']).to_owned());
                    stems.insert(stem);
                }
            }
        }
        stems
    }

    /// Returns the entries of the instructions. `terms` are the context for names that are also words.
    pub fn entries(&self, terms: &[Term]) -> Vec<WatchedName> {
        let own = self.own.iter().map(|named| (NameKind::Own, named));
        let watched = self.watched.iter().map(|named| (NameKind::Watched, named));
        own.chain(watched)
            .flat_map(|(kind, named)| named.entries(kind, terms))
            .collect()
    }
}

#[cfg(test)]
mod tests;
