//! Known brands: their other spellings, and products that represent them (`iPhone` for Apple).
//!
//! A page that lists `Apple` as a rival rarely lists its products, and posts rarely name the company.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use super::spelling::squeeze;
use crate::word_lists;

pub(super) struct Brand {
    pub(super) names: Vec<&'static str>,
    pub(super) products: Vec<&'static str>,
}

/// Brands by each of their names, squeezed. See `data/README.md`.
static BRANDS: LazyLock<HashMap<String, Brand>> = LazyLock::new(|| {
    let lines = include_str!("../../data/brands.tsv").lines();
    let brands = lines.filter_map(|line| {
        let mut fields = line.split('\t').map(|field| {
            let parts = field.split('|').filter(|part| !part.is_empty());
            parts.collect::<Vec<_>>()
        });
        Some((fields.next()?, fields.next()?))
    });
    brands
        .flat_map(|(names, products)| {
            let keys: Vec<String> = names.iter().map(|name| squeeze(name)).collect();
            keys.into_iter().map(move |key| {
                let brand = Brand {
                    names: names.clone(),
                    products: products.clone(),
                };
                (key, brand)
            })
        })
        .collect()
});

/// Returns the brand with this name, if it is known.
pub(super) fn find(name: &str) -> Option<&'static Brand> {
    BRANDS.get(&squeeze(name))
}

static TECHNOLOGIES: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let names = word_lists::entries(include_str!("../../data/technologies.txt"));
    names.map(squeeze).collect()
});

/// Returns whether it is the name of a language, format, protocol or standard, which belongs to no company.
pub(super) fn is_technology(name: &str) -> bool {
    TECHNOLOGIES.contains(&squeeze(name))
}

#[cfg(test)]
mod tests {
    use super::{BRANDS, find, is_technology};

    #[test]
    fn brand_is_found_by_any_of_its_names() {
        let brand = find("go daddy").unwrap();
        assert_eq!(brand.names[0], "GoDaddy");
        assert!(find("Apple").unwrap().products.contains(&"iPhone"));
        assert!(find("Brewforge").is_none());
    }

    #[test]
    fn technologies_belong_to_no_company() {
        for name in ["JavaScript", "wi-fi", "WiFi"] {
            assert!(is_technology(name), "{name}");
        }
        assert!(!is_technology("WireGuard Systems") && !is_technology(""));
    }

    #[test]
    fn table_has_no_empty_name() {
        assert!(BRANDS.len() > 1_000);
        for (key, brand) in BRANDS.iter() {
            assert!(!key.is_empty() && !brand.names.is_empty(), "{key}");
        }
    }
}
