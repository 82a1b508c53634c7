//! The names of the customer's products.

use matching::text;

use super::spellings::{add, is_name, is_of_ordinary_words};
use crate::{
    background::{self, Usage},
    names::{
        lookup::Names,
        named::{MAX_NAMES, Named},
        products,
        spelling::{clean, is_camel_case, squeeze},
    },
    page::Page,
};

/// Maximum number of product names from a list on a page.
const MAX_PRODUCTS: usize = 20;

/// Adds the names of products, except `rivals`.
pub(in crate::names) fn add_products(found: &mut Vec<Named>, pages: &[Page], rivals: &[String]) {
    let listed = pages.iter().flat_map(products).take(MAX_PRODUCTS);
    let declared = pages
        .iter()
        .flat_map(|page| page.text.structured_products.iter().cloned());
    let spoken_of = products::spoken_of(pages, found);
    let names: Vec<String> = declared.chain(listed).chain(spoken_of).collect();
    let (rivals, people) = (Names::of(rivals), Names::of_people(pages));
    for name in names {
        let cleaned = clean(&name);
        if !rivals.has(&cleaned) && !people.has(&cleaned) {
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
