//! Products that the pages name: always capitalised in the middle of a sentence, and connected to the customer.
//!
//! Pages name many things that are not theirs: places, platforms, rivals. So a name only counts after one of the
//! customer's names (`Amazon Kindle`), in a title or main heading, or as the target of a link on the same host.

use std::{
    cell::LazyCell,
    collections::{BTreeMap, HashMap, HashSet},
    sync::LazyLock,
};

use matching::text;
use url::Url;

use super::{domain, lookup::Names, named::Named, spelling::is_camel_case};
use crate::{
    background::{self, Usage},
    extract::LinkKind,
    figures,
    page::Page,
    word_lists,
};

/// Minimum mentions of an ordinary word or a known name, and of an invented word.
const MIN_MENTIONS: u32 = 3;
const MIN_MENTIONS_INVENTED: u32 = 2;
const MAX_PRODUCTS: usize = 10;
/// Minimum headings, blocks and such that mention a name with a link.
const MIN_PLACES: usize = 2;
/// Words that more often precede a place than a product.
static OF_PLACES: LazyLock<Vec<&str>> = LazyLock::new(|| {
    word_lists::entries(include_str!("../../data/words/before_places.txt")).collect()
});
/// Platforms of other companies that pages name as compatible.
static OF_OTHERS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    word_lists::words(include_str!("../../data/words/others_platforms.txt")).collect()
});
/// Products in [`OF_OTHERS`] by the company that makes them.
const OWNERS: [(&str, &str); 8] = [
    ("amazon", "kindle"),
    ("apple", "iphone ipad mac macos ios safari"),
    ("facebook", "instagram"),
    ("google", "gmail youtube android chrome"),
    ("meta", "facebook instagram"),
    ("microsoft", "windows excel outlook linkedin github"),
    ("mozilla", "firefox"),
    ("salesforce", "slack"),
];
/// Path segments of links that lead to other companies' products, or to places and languages.
static FOREIGN_PATHS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    word_lists::words(include_str!("../../data/words/foreign_paths.txt")).collect()
});
/// Words of a sentence that lists integrations, folded. It may begin with them.
static INTEGRATIONS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    word_lists::entries(include_str!("../../data/words/integrations.txt")).collect()
});

#[derive(Default)]
struct Mentions {
    capitalised: u32,
    small: u32,
    of_places: u32,
    of_integrations: u32,
    behind_own: bool,
    form: String,
}

/// Returns product names in alphabetical order.
pub(super) fn spoken_of(pages: &[Page], own: &[Named]) -> Vec<String> {
    let mut mentions: BTreeMap<String, Mentions> = BTreeMap::new();
    let spellings = Names::of_spellings(own);
    // German capitalises every noun.
    for page in pages.iter().filter(|page| page.text.lang != "de") {
        let blocks = page.text.blocks.iter().map(|block| block.text.as_str());
        for text in blocks.chain([page.text.description.as_str()]) {
            count(text, &spellings, &mut mentions);
        }
    }
    let people = words_of(pages.iter().flat_map(|page| &page.text.people));
    // Parts of names: `Airlines` of `Southwest Airlines`.
    let own_words = words_of(own.iter().flat_map(|named| &named.spellings));
    // Pages may name thousands of words in capitals, so what they are compared with is read once.
    let presented = LazyCell::new(|| Presented::on(pages));
    let linked = LazyCell::new(|| linked(pages));
    let places = LazyCell::new(|| places(pages));
    let products = mentions.into_iter().filter(|(folded, mentions)| {
        let stem = text::stem(folded);
        let is_invented = is_camel_case(&mentions.form) || !background::is_known(&stem);
        let enough = if is_invented {
            MIN_MENTIONS_INVENTED
        } else {
            MIN_MENTIONS
        };
        let is_excluded = background::is_stop_word(folded)
            || background::is_web_word(&stem)
            || figures::is_figure(folded)
            || people.contains(folded)
            || is_abbreviation(&mentions.form)
            || own_words.contains(folded)
            || (is_of_others(folded) && !is_made_by(folded, own, pages));
        let is_presented = || mentions.behind_own || presented.has(folded);
        let is_common = || mentions.capitalised >= enough && mentions.small == 0 && is_presented();
        // Unmistakably a name, which the site links to itself, and mentions elsewhere.
        let is_linked = || {
            mentions.of_integrations == 0
                && background::usage(&stem) == Usage::Name
                && linked.contains(folded)
                && places.get(folded).is_some_and(|count| *count >= MIN_PLACES)
        };
        !is_excluded
            && mentions.of_places * 2 < mentions.capitalised
            && (is_common() || is_linked())
    });
    products
        .take(MAX_PRODUCTS)
        .map(|(_, mentions)| mentions.form)
        .collect()
}

/// Returns whether another company makes it, and many pages name it.
pub(super) fn is_of_others(folded: &str) -> bool {
    OF_OTHERS.contains(folded)
}

/// Returns whether the pages belong to the maker of a product.
fn is_made_by(folded: &str, own: &[Named], pages: &[Page]) -> bool {
    let is_customer = |owner: &str| {
        own.iter().any(|named| named.is_spelled(owner))
            || pages
                .iter()
                .any(|page| domain::site(&page.url).is_some_and(|site| site == owner))
    };
    let mut owners = OWNERS
        .iter()
        .filter(|(_, products)| products.split(' ').any(|product| product == folded));
    owners.any(|(owner, _)| is_customer(owner))
}

/// Returns whether a line lists integrations of the customer's product.
pub(super) fn is_about_integration(line: &str) -> bool {
    let line = text::fold(line);
    INTEGRATIONS.iter().any(|phrase| line.contains(phrase))
}

fn words_of<'a>(names: impl Iterator<Item = &'a String>) -> HashSet<String> {
    let words = names.flat_map(|name| text::words(name));
    words.map(|word| word.text.into_owned()).collect()
}

/// Returns the folded texts of links to the site itself.
fn linked(pages: &[Page]) -> HashSet<String> {
    let links = pages.iter().flat_map(|page| {
        let links = page.text.links.iter();
        let anchors = links.filter(|link| matches!(link.kind, LinkKind::Anchor { .. }));
        anchors.filter(|link| is_part_of_site(&page.url, &link.href))
    });
    links
        .map(|link| text::fold(link.text.trim()).into_owned())
        .collect()
}

/// Returns the number of places that mention each word.
fn places(pages: &[Page]) -> HashMap<String, usize> {
    let places = pages.iter().flat_map(|page| {
        let headings = page.text.headings.iter().map(|heading| &heading.text);
        let blocks = page.text.blocks.iter().map(|block| &block.text);
        headings
            .chain(blocks)
            .chain([&page.text.title, &page.text.description])
    });
    let mut counts = HashMap::new();
    for place in places {
        for word in words_of(std::iter::once(place)) {
            *counts.entry(word).or_default() += 1;
        }
    }
    counts
}

/// Returns whether a link leads to a section of the page's site that presents the customer's own products.
fn is_part_of_site(page: &Url, href: &str) -> bool {
    Url::parse(href).is_ok_and(|url| {
        let mut segments = url.path().split(['/', '-', '_']);
        domain::site(page).is_some()
            && domain::site(page) == domain::site(&url)
            && !segments.any(|segment| FOREIGN_PATHS.contains(segment))
    })
}

/// Returns whether the form is an abbreviation that is common in the trade: `CRM`, `PCs`.
fn is_abbreviation(form: &str) -> bool {
    form.trim_end_matches('s').chars().all(char::is_uppercase)
}

fn count(text: &str, own: &Names, mentions: &mut BTreeMap<String, Mentions>) {
    let words: Vec<&str> = text.split_whitespace().collect();
    // A line in capitals is a headline, regardless of its markup.
    let capitals = words
        .iter()
        .filter(|word| word.starts_with(char::is_uppercase))
        .count();
    let is_headline = capitals * 2 > words.len();
    let is_about_integration = is_about_integration(text);
    for (at, word) in words.iter().enumerate() {
        let form = word
            .trim_matches(|c: char| !c.is_alphanumeric())
            .trim_end_matches("'s")
            .trim_end_matches("’s");
        let folded = text::fold(form).into_owned();
        if form.chars().nth(2).is_none() {
            continue;
        }
        let before = at.checked_sub(1).map(|at| words[at]);
        let goes_on = before.is_some_and(|before| {
            before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, ',' | ')' | '®' | '™'))
        });
        if !form.chars().any(char::is_uppercase) {
            mentions.entry(folded).or_default().small += 1;
        } else if goes_on && !is_headline {
            let before = before.unwrap_or_default();
            let entry = mentions.entry(folded).or_default();
            entry.capitalised += 1;
            form.clone_into(&mut entry.form);
            entry.of_places += u32::from(OF_PLACES.contains(&text::fold(before).as_ref()));
            entry.of_integrations += u32::from(is_about_integration);
            entry.behind_own |= own.has(before) && !own.has(&format!("{before} {form}"));
        }
    }
}

/// Words and names in titles, main headings and links to the same host.
struct Presented {
    words: HashSet<String>,
    names: Names,
}

impl Presented {
    fn on(pages: &[Page]) -> Self {
        let lines = pages.iter().flat_map(|page| {
            let headings = page.text.headings.iter();
            let main = headings.filter(|heading| heading.level <= 2);
            main.map(|heading| &heading.text)
                .chain([&page.text.title, &page.text.og_title])
        });
        let words = lines.clone().flat_map(|line| line.split_whitespace());
        let mut names: Vec<String> = words.map(str::to_owned).collect();
        names.extend(pages.iter().flat_map(slugs));
        Self {
            words: words_of(lines),
            names: Names::of(&names),
        }
    }

    fn has(&self, folded: &str) -> bool {
        self.words.contains(folded) || self.names.has(folded)
    }
}

/// Returns the last segments of the links to the same host.
fn slugs(page: &Page) -> impl Iterator<Item = String> {
    let links = page.text.links.iter();
    let anchors = links.filter(|link| matches!(link.kind, LinkKind::Anchor { .. }));
    anchors.filter_map(|link| {
        let url = Url::parse(&link.href).ok()?;
        let slug = url.path().trim_matches('/').rsplit('/').next();
        (url.host() == page.url.host()).then(|| slug.unwrap_or_default().to_owned())
    })
}
