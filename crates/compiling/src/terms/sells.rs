//! Phrases and a summary for what the pages sell, for a reader that compares posts with them by meaning.
//!
//! Phrases are parts of titles, sentences of descriptions, and short headings, as the customer wrote them. Each needs
//! words that the terms and the offers of the pages agree on. Whole sentences of descriptions say more than their parts,
//! and entries of menus say less than headings (`docs/matching-quality.md`).

use std::collections::{HashMap, HashSet};

use domain::instructions::{MAX_PHRASES, MAX_SUMMARY_CHARS, Sells, Term, term};

use super::{content_words, stems};
use crate::{background, language::CommonWords, page::Page};

/// Maximum words of a heading; longer ones are sentences.
const MAX_HEADING_WORDS: usize = 5;
/// Maximum number of phrases from titles and descriptions, so that headings have room.
const MAX_LEADING: usize = 14;
/// Minimum value of a phrase's words together.
const MIN_VALUE: f64 = 0.3;
/// Minimum value of a heading of one word.
const MIN_VALUE_ALONE: f64 = 0.9;
/// Minimum mean value of a heading's words, with one word more that says nothing.
const MIN_QUALITY: f64 = 0.17;
/// Separators of the parts of a title, besides a dash or a colon before white space.
const SEPARATORS: [char; 8] = ['|', '｜', '·', '•', '–', '—', '：', '\n'];

/// Returns what the pages sell; `None` if they do not say it. `names` are stems that belong to names.
pub(crate) fn sells(
    pages: &[Page],
    names: &HashSet<String>,
    terms: &[Term],
    offers: &[Term],
) -> Option<Sells> {
    let words = Words {
        names,
        values: values(terms, offers),
    };
    let mut leading = Vec::new();
    let mut headings = Vec::new();
    for page in pages {
        let (text, common) = (&page.text, CommonWords::of(&page.text.lang));
        for title in [&text.title, &text.og_title] {
            leading
                .extend(parts(title).filter_map(|part| words.phrase(Place::Title, part, &common)));
        }
    }
    for page in pages {
        let (text, common) = (&page.text, CommonWords::of(&page.text.lang));
        for description in [&text.description, &text.og_description] {
            let lines = sentences(description);
            leading
                .extend(lines.filter_map(|line| words.phrase(Place::Description, line, &common)));
        }
        let short = text.headings.iter().map(|heading| heading.text.as_str());
        let short = short.filter(|text| text.split_whitespace().count() <= MAX_HEADING_WORDS);
        headings.extend(short.filter_map(|text| words.phrase(Place::Heading, text, &common)));
    }
    headings.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    let mut seen = HashSet::new();
    let mut is_new = |phrase: &Phrase| seen.insert(phrase.key.clone());
    let leading: Vec<Phrase> = leading.into_iter().filter(&mut is_new).collect();
    let leading = leading.into_iter().take(MAX_LEADING);
    let phrases = leading.chain(headings.into_iter().filter(is_new));
    let offers = phrases.take(MAX_PHRASES).map(|phrase| phrase.text);
    Sells {
        summary: summary(pages),
        offers: offers.collect(),
    }
    .or_none()
}

struct Phrase {
    text: String,
    /// Its stems, which show repetitions.
    key: Vec<String>,
    quality: f64,
}

#[derive(Clone, Copy)]
enum Place {
    Title,
    Description,
    Heading,
}

struct Words<'a> {
    names: &'a HashSet<String>,
    /// How much each stem says about the offer, 0 to 1.
    values: HashMap<String, f64>,
}

impl Words<'_> {
    /// Returns what a line says of the offer; `None` for noise, prices and questions.
    fn phrase(&self, place: Place, line: &str, common: &CommonWords) -> Option<Phrase> {
        // Prices and shares are no goods.
        if line.contains(['$', '€', '£', '¥', '%']) || line.ends_with(['?', '？']) {
            return None;
        }
        let text = match place {
            Place::Description => line.to_owned(),
            Place::Title | Place::Heading => self.core(line, common)?,
        };
        let text = text.trim_matches(|c: char| !c.is_alphanumeric());
        let text = term(&text.into()).ok()?;
        let content = content_words(&text, common, self.names);
        let mut key: Vec<String> = content.into_iter().map(|word| word.stem).collect();
        key.sort_unstable();
        key.dedup();
        let value: f64 = key.iter().filter_map(|stem| self.values.get(stem)).sum();
        let count = u32::try_from(key.len()).unwrap_or(u32::MAX);
        // Further words make a heading more specific as far as they are about the offer.
        let quality = value / (f64::from(count) + 1.0);
        let is_enough = match place {
            Place::Heading if count == 1 => value >= MIN_VALUE_ALONE,
            Place::Heading => quality >= MIN_QUALITY,
            Place::Title | Place::Description => value >= MIN_VALUE,
        };
        is_enough.then_some(Phrase { text, key, quality })
    }

    /// Returns a line without names, and without words at its ends that say nothing.
    fn core(&self, line: &str, common: &CommonWords) -> Option<String> {
        let says_little = |word: &&str| {
            let folded = word.to_lowercase();
            let folded = folded.trim_matches(|c: char| !c.is_alphanumeric());
            folded.is_empty() || background::is_stop_word(folded) || common.is_stop_word(folded)
        };
        let is_name = |word: &str| {
            let mut stems = stems(word).peekable();
            stems.peek().is_some() && stems.all(|stem| self.names.contains(&stem))
        };
        let words = line.split_whitespace().filter(|word| !is_name(word));
        let words: Vec<&str> = words.collect();
        let start = words.iter().position(|word| !says_little(word))?;
        let end = words.iter().rposition(|word| !says_little(word))?;
        Some(words[start..=end].join(" "))
    }
}

/// Returns how much each stem says about the offer, 0 to 1: the mean of its weights among terms and offers.
fn values(terms: &[Term], offers: &[Term]) -> HashMap<String, f64> {
    let mut values: HashMap<String, f64> = HashMap::new();
    let highest = terms.iter().map(|term| term.weight).fold(1e-9, f64::max);
    let relative = |term: &Term| (term.weight / highest * 2.0).min(1.0);
    let terms = terms.iter().map(|term| (&term.text, relative(term)));
    let offers = offers.iter().map(|term| (&term.text, term.weight));
    for (text, weight) in terms.chain(offers) {
        let mut stems = stems(text);
        if let (Some(stem), None) = (stems.next(), stems.next()) {
            *values.entry(stem).or_default() += weight / 2.0;
        }
    }
    values
}

/// Splits a title at its separators.
fn parts(title: &str) -> impl Iterator<Item = &str> {
    title
        .split(SEPARATORS)
        .flat_map(|part| part.split(" - "))
        .flat_map(|part| part.split(": "))
}

/// Splits a description into sentences.
fn sentences(description: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| matches!(c, '.' | '!' | '?');
    let mut before = ' ';
    description
        .split_inclusive(move |c: char| {
            let is_end = matches!(c, '。' | '！' | '？') || (c.is_whitespace() && ends(before));
            before = c;
            is_end
        })
        .map(str::trim)
}

/// Titles and descriptions, as far as whole words fit.
fn summary(pages: &[Page]) -> String {
    let mut seen = HashSet::new();
    let lines = pages.iter().flat_map(|page| {
        let text = &page.text;
        let description = [&text.description, &text.og_description];
        let description = description.into_iter().find(|line| !line.is_empty());
        [Some(&text.title), description].into_iter().flatten()
    });
    let lines = lines.filter(|line| !line.is_empty() && seen.insert(line.to_lowercase()));
    let mut summary = String::new();
    let mut left = MAX_SUMMARY_CHARS;
    for line in lines {
        let line = line.trim();
        let stop = if line.ends_with(['.', '!', '?', '。']) {
            ""
        } else {
            "."
        };
        for word in format!("{line}{stop}").split_whitespace() {
            let word: String = word.chars().filter(|c| !c.is_control()).collect();
            let chars = word.chars().count() + usize::from(!summary.is_empty());
            if chars > left {
                return summary;
            }
            left -= chars;
            if !summary.is_empty() {
                summary.push(' ');
            }
            summary.push_str(&word);
        }
    }
    summary
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{parts, sells, sentences};
    use crate::{
        page::Page,
        terms::{offers, stems, terms},
    };

    fn sold(html: &[&str]) -> domain::instructions::Sells {
        let url = "https://shop.example/".parse().unwrap();
        let pages: Vec<Page> = html
            .iter()
            .map(|html| Page::read(&url, Some("text/html"), html.as_bytes()).unwrap())
            .collect();
        let names: HashSet<String> = stems("Rollwerk Shimano").collect();
        let texts: Vec<_> = pages.iter().map(|page| page.text.clone()).collect();
        let offers = offers::offers(&pages, &names);
        sells(&pages, &names, &terms(&texts, &names), &offers).unwrap()
    }

    const SHOP: &str = "<html lang=en><title>Bicycle helmets and lamps | Rollwerk</title>\
        <meta name=description content='Bicycle helmets for commuters, dynamo lamps, child seats. From $20.'>\
        <nav><a href='/helmets'>Helmets</a> <a href='/dynamo'>Dynamo lamps</a> <a href='/login'>Log in</a> \
        <a href='/cart'>Cart</a> <a href='/contact'>Contact</a> <a href='/legal'>Legal notice</a></nav>\
        <h1>Bicycle Helmets</h1><h2>Why a helmet?</h2><h2>Rollwerk and Shimano</h2><h3>Dynamo lamps</h3>\
        <p>Every helmet is tested. Bicycle lamps with a dynamo shine without batteries. Helmets for a bicycle, lamps \
        for a bicycle.</p></html>";

    #[test]
    fn phrases_name_goods_without_noise_and_repetition() {
        let sold = sold(&[SHOP, SHOP]);
        let expected = [
            "Bicycle helmets and lamps",
            "Bicycle helmets for commuters, dynamo lamps, child seats",
            "Bicycle Helmets",
            "Dynamo lamps",
        ];
        assert_eq!(sold.offers, expected);
    }

    #[test]
    fn summary_joins_titles_and_descriptions_within_its_limit() {
        let expected = "Bicycle helmets and lamps | Rollwerk. Bicycle helmets for commuters, dynamo lamps, child \
            seats. From $20.";
        assert_eq!(sold(&[SHOP, SHOP]).summary, expected);
        let long = format!(
            "<html lang=en><title>Helmets</title><p>{}</p></html>",
            "Helmets and lamps. ".repeat(9)
        )
        .replace(
            "<title>",
            &format!("<title>{}", "bicycle helmet ".repeat(39)),
        );
        let summary = sold(&[&long]).summary;
        assert!(
            summary.ends_with("bicycle") || summary.ends_with("helmet"),
            "{summary}"
        );
        assert!((480..=500).contains(&summary.len()), "{}", summary.len());
    }

    #[test]
    fn titles_are_split_at_separators_and_descriptions_at_sentences() {
        let title: Vec<&str> = parts("Shop - e-bikes | lamps: v2.5").collect();
        assert_eq!(title, ["Shop", "e-bikes ", " lamps", "v2.5"]);
        let lines: Vec<&str> = sentences("E-bikes, v2.5. Why us? Lamps！自転車。").collect();
        assert_eq!(lines, ["E-bikes, v2.5.", "Why us?", "Lamps！", "自転車。"]);
    }
}
