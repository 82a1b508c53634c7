//! Words for what a customer sells, without the field around it.
//!
//! A page about backup software mentions files, drives and laptops; its title, menu and short headings name the offer.
//! A post that asks for something in the field is a lead only if it names the offer.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use domain::instructions::{MAX_TERM_CHARS, Term};
use matching::text;

use super::content_words;
use crate::{background, extract::LinkKind, figures, language::CommonWords, page::Page};

const MAX_OFFERS: usize = 12;
/// Minimum inverse document frequency; commoner words do not name an offer.
const MIN_IDF: f64 = 1.8;
const MAX_IDF: f64 = 6.0;
/// Maximum words of a menu entry or heading; longer ones are sentences.
const MAX_LABEL_WORDS: usize = 4;
/// Offers up to this rank count 1.
const FULL_RANK: usize = 3;

/// Location of a word.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Title,
    Description,
    Menu,
    Heading,
}

#[derive(Default)]
struct Count {
    sum: f64,
    places: BTreeSet<Place>,
    occurrences: u32,
    form: String,
}

/// Returns the words that name what the pages sell, with weights of at most 1, the best first.
pub(crate) fn offers(pages: &[Page], names: &HashSet<String>) -> Vec<Term> {
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    for page in pages {
        let common = CommonWords::of(&page.text.lang);
        let mut add = |line: &str, weight: f64, place: Place| {
            let words = content_words(before_purpose(line), &common, names);
            let mut seen = BTreeSet::new();
            for word in words
                .into_iter()
                .filter(|word| !word.web && !word.is_sign())
            {
                if seen.insert(word.stem.clone()) {
                    let count = counts.entry(word.stem).or_default();
                    count.sum += weight;
                    count.places.insert(place);
                    count.form = word.form;
                }
            }
        };
        add(&page.text.title, 2.0, Place::Title);
        add(&page.text.description, 1.2, Place::Description);
        for link in &page.text.links {
            if matches!(link.kind, LinkKind::Anchor { .. })
                && is_label(&link.text)
                && is_section(page, &link.href)
            {
                add(&link.text, 2.0, Place::Menu);
            }
        }
        for heading in &page.text.headings {
            let weight = if is_label(&heading.text) { 1.0 } else { 0.3 };
            add(&heading.text, weight, Place::Heading);
        }
    }
    for page in pages {
        count_occurrences(page, &mut counts);
    }
    ranked(counts)
}

fn ranked(counts: BTreeMap<String, Count>) -> Vec<Term> {
    let mut offers: Vec<(f64, String)> = counts
        .into_iter()
        .filter(|(_, count)| !figures::is_figure(&count.form))
        .filter(|(_, count)| count.form.chars().count() <= MAX_TERM_CHARS)
        .filter_map(|(stem, count)| {
            let idf = background::idf(&stem);
            let places = f64::from(u32::try_from(count.places.len()).unwrap_or(u32::MAX));
            let score = count.sum
                * ((places + 1.0) / 3.0).min(1.5)
                * f64::from(count.occurrences.max(1)).ln_1p()
                * idf.min(MAX_IDF).sqrt();
            (idf >= MIN_IDF).then_some((score, count.form))
        })
        .collect();
    offers.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    offers.truncate(MAX_OFFERS);
    let full = offers.get(FULL_RANK - 1).or(offers.last()).map(|(s, _)| *s);
    let weight = |score: f64| (score / full.unwrap_or(score)).min(1.0).sqrt();
    offers
        .into_iter()
        .map(|(score, text)| Term {
            weight: (weight(score) * 100.0).round() / 100.0,
            text,
        })
        .collect()
}

fn count_occurrences(page: &Page, counts: &mut BTreeMap<String, Count>) {
    let headings = page.text.headings.iter().map(|heading| &heading.text);
    let blocks = page.text.blocks.iter().map(|block| &block.text);
    let lines = [&page.text.title, &page.text.description];
    for line in lines.into_iter().chain(headings).chain(blocks) {
        for word in text::words(line) {
            if let Some(count) = counts.get_mut(text::stem(&word.text).as_ref()) {
                count.occurrences = count.occurrences.saturating_add(1);
            }
        }
    }
}

/// Returns the line up to the word that introduces the customer or the provider.
fn before_purpose(line: &str) -> &str {
    const PURPOSE: &str = "for by from für von pour par para por";
    let mut at = 0;
    for word in line.split_inclusive(char::is_whitespace) {
        let folded = word.trim().to_lowercase();
        if at > 0 && PURPOSE.split(' ').any(|purpose| purpose == folded) {
            return &line[..at];
        }
        at += word.len();
    }
    line
}

fn is_label(line: &str) -> bool {
    (1..=MAX_LABEL_WORDS).contains(&line.split_whitespace().count())
}

/// Returns whether a link leads to a section of the page's own site, one or two levels down.
fn is_section(page: &Page, href: &str) -> bool {
    url::Url::parse(href).is_ok_and(|url| {
        let parts = url.path().split('/').filter(|part| !part.is_empty());
        url.host_str() == page.url.host_str() && (1..=2).contains(&parts.count())
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{before_purpose, offers};
    use crate::page::Page;

    #[test]
    fn offers_are_found_in_title_menu_and_short_headings() {
        let html = "<html lang=en><title>Helmet shop: bicycle helmets for commuters</title>\
            <nav><a href='/helmets'>Bicycle helmets</a> <a href='/imprint/legal/x'>Legal notice</a>\
            <a href='https://elsewhere.example/garden'>Garden gnomes</a></nav>\
            <h1>Bicycle helmets</h1><p>Every helmet is tested. We deliver by courier to your house, and repair \
            bicycle lamps and saddles in our workshop near the river.</p></html>";
        let url = "https://helmets.example/".parse().unwrap();
        let page = Page::read(&url, Some("text/html"), html.as_bytes()).unwrap();
        let offers = offers(&[page], &HashSet::new());
        let texts: Vec<&str> = offers.iter().map(|term| term.text.as_str()).collect();
        assert_eq!(texts[..2], ["helmets", "bicycle"]);
        for absent in ["commuters", "gnomes", "notice", "river"] {
            assert!(!texts.contains(&absent), "{texts:?}");
        }
    }

    #[test]
    fn offer_line_ends_before_its_audience() {
        assert_eq!(before_purpose("Backup for families"), "Backup ");
        assert_eq!(before_purpose("For families"), "For families");
    }
}
