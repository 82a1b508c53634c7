//! Rivals on pages that compare without `vs` or `alternative to`: in tables, headings, links and prose.
//!
//! A page is about a comparison if its title or address says so. Otherwise only the text under a comparison heading
//! counts. Trademark notices name rivals on any page.

use std::{
    collections::{BTreeMap, HashSet},
    ops::Range,
};

use matching::text;
use url::Url;

use super::{contrasts, domain, is_camel_case, products, squeeze, versus};
use crate::{
    background::{self, Usage},
    compile::Page,
    extract::{Block, LinkKind},
    figures,
};

const MAX_NAME_WORDS: usize = 3;
/// Maximum length of a table cell.
const MAX_CELL_WORDS: usize = 8;
const MIN_MENTIONS: usize = 2;
const MAX_LINKS: usize = 500;
/// Folded words that mark a comparison.
const COMPARING: &str = "compare compared comparing comparison comparisons versus vs alternatives switching differences
vergleich vergleiche vergleichen verglichen alternativen wechsel wechseln umstieg umsteigen unterschied unterschiede
comparar comparacion comparativa comparativo comparado comparada comparados comparadas alternativas cambiarse diferencias
comparer comparaison comparatif alternatives differences comparacao diferencas";
/// Folded phrases that mark a comparison.
const COMPARING_PHRASES: [&str; 23] = [
    "frente a",
    "face a",
    "par rapport a",
    "moving from",
    "move from",
    "moving over",
    "move over from",
    "coming from",
    "come from",
    "switch from",
    "switch to",
    "migrate from",
    "migrating from",
    "we compare",
    "compares to",
    "compares with",
    "cambiar de",
    "cambiar desde",
    "changer de",
    "passer de",
    "migrar de",
    "mudar de",
    "trocar de",
];
const COMPARING_IN_JAPANESE: [&str; 5] = ["比較", "違い", "乗り換え", "乗換", "代替"];
/// Things that the customer compares about its own offers.
const OF_CUSTOMER: &str = "plans plan models model prices pricing products product editions tiers features packages
options sizes tarife modelle preise produkte planes modelos precios productos modeles prix produits offres planos precos";
/// Words between the customer's name and a rival's in a heading, or before a rival's.
const LINKS_IN_HEADINGS: &str = "and to with from against than or over und mit von zu als oder y e et con com desde de avec contre que o ou a";
/// Words before a rival's name in a heading without the customer's.
const BEFORE_RIVALS: &str =
    "from than over with to against von als mit gegenuber desde de con com avec que";
const MONTHS_AND_DAYS: &str =
    "january february march april may june july august september october november december
monday tuesday wednesday thursday friday saturday sunday";
const OF_PLACES: [&str; 8] = [
    "in", "at", "near", "across", "around", "outside", "en", "em",
];

/// The part of a page that is about a comparison.
enum Scope {
    Page,
    /// Text under these headings.
    Headings(HashSet<usize>),
}

impl Scope {
    fn of(page: &Page) -> Option<Self> {
        let text = &page.text;
        let mut titles = [text.title.as_str(), text.og_title.as_str()].into_iter();
        let mut first = text.headings.iter().filter(|heading| heading.level == 1);
        if titles.any(is_about_comparison)
            || first.any(|heading| is_about_comparison(&heading.text))
            || is_comparison_path(&page.url)
        {
            return Some(Self::Page);
        }
        let mut is_inside = false;
        let mut headings = HashSet::new();
        for (at, heading) in text.headings.iter().enumerate() {
            if heading.level <= 2 {
                is_inside = is_about_comparison(&heading.text);
            }
            if is_inside {
                headings.insert(at);
            }
        }
        (!headings.is_empty()).then_some(Self::Headings(headings))
    }

    fn has_heading(&self, at: usize) -> bool {
        match self {
            Self::Page => true,
            Self::Headings(headings) => headings.contains(&at),
        }
    }

    fn has(&self, block: &Block) -> bool {
        match self {
            Self::Page => true,
            Self::Headings(_) => block.heading.is_some_and(|at| self.has_heading(at)),
        }
    }
}

/// Returns names of others on pages about a comparison, and in trademark notices.
pub(super) fn rivals(pages: &[Page], is_own: &dyn Fn(&str) -> bool) -> Vec<String> {
    let scopes: Vec<(&Page, Scope)> = pages
        .iter()
        .filter_map(|page| Some((page, Scope::of(page)?)))
        .collect();
    let prose = Prose::of(pages, &scopes);
    let mut found = Vec::new();
    for (page, scope) in &scopes {
        let headings = page.text.headings.iter().enumerate();
        let headings = headings
            .filter(|(at, _)| scope.has_heading(*at))
            .map(|(_, heading)| heading.text.as_str());
        let titles = [page.text.title.as_str(), page.text.og_title.as_str()];
        let lines = titles.into_iter().filter(|_| matches!(scope, Scope::Page));
        for line in lines.chain(headings) {
            let names_customer = names_customer(line, is_own);
            let lang = &page.text.lang;
            let is_name = |name: &str| {
                is_brand(name)
                    || prose.is_name(name, lang)
                    || (names_customer && contrasts::is_coined(name, lang))
            };
            let names = of_heading(line, names_customer, is_own).into_iter();
            found.extend(names.filter(|name| !is_of_others(name) && is_name(name)));
            if COMPARING_IN_JAPANESE.iter().any(|word| line.contains(word)) {
                let names = contrasts::of_japanese_heading(line).into_iter();
                found.extend(names.filter(|name| !is_own(name)));
            }
        }
        found.extend(of_tables(page, scope, is_own, &prose));
    }
    found.extend(pages.iter().flat_map(of_links));
    for page in pages {
        let blocks = page.text.blocks.iter().map(|block| &block.text);
        let lines = page.text.small_print.iter().chain(blocks);
        let names = lines.flat_map(|line| of_trademarks(line));
        found.extend(names.filter(|name| !is_of_others(name)));
    }
    found.extend(prose.rivals(pages));
    let names = contrasts::rivals(pages, is_own).into_iter();
    found.extend(names.filter(|name| !is_of_others(name)));
    found
}

/// Returns whether a folded word marks a comparison.
pub(super) fn is_comparing(word: &str) -> bool {
    COMPARING.split_whitespace().any(|other| other == word)
}

/// Returns whether a line holds the customer's name.
fn names_customer(line: &str, is_own: &dyn Fn(&str) -> bool) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    (0..words.len()).any(|from| {
        (from + 1..=words.len().min(from + MAX_NAME_WORDS))
            .any(|to| versus::checked(&words[from..to]).is_some_and(|name| is_own(&name)))
    })
}

fn is_about_comparison(line: &str) -> bool {
    if COMPARING_IN_JAPANESE.iter().any(|word| line.contains(word)) {
        return true;
    }
    let words: Vec<String> = text::words(line)
        .map(|word| word.text.into_owned())
        .collect();
    let is_in = |list: &str, word: &str| list.split_whitespace().any(|other| other == word);
    let of_customer = words.iter().any(|word| is_in(OF_CUSTOMER, word));
    let folded = format!(" {} ", words.join(" "));
    let has_word = words.iter().enumerate().any(|(at, word)| {
        let ends = || {
            words
                .get(at + 1)
                .is_none_or(|next| background::is_stop_word(next))
        };
        (is_in(COMPARING, word) && !of_customer)
            || (matches!(word.as_str(), "alternative" | "alternativa") && ends())
    });
    has_word
        || COMPARING_PHRASES
            .iter()
            .any(|phrase| folded.contains(&format!(" {phrase} ")))
}

fn is_comparison_path(url: &Url) -> bool {
    let words = url.path().split(|c: char| !c.is_alphanumeric());
    is_about_comparison(
        &words
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join(" "),
    ) || url
        .path()
        .split(['/', '-', '_'])
        .any(|word| matches!(word, "alternative" | "switch"))
}

/// Returns both sides of a word that links two names: `LedgerLeaf and QuickBooks`, `If you come from Foo`.
fn of_heading(line: &str, names_customer: bool, is_own: &dyn Fn(&str) -> bool) -> Vec<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let links = if names_customer {
        LINKS_IN_HEADINGS
    } else {
        BEFORE_RIVALS
    };
    let mut names = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let is_link = *word == "&" || links.split_whitespace().any(|link| squeeze(word) == link);
        if is_link {
            names.extend(versus::name_after(&words[at + 1..]));
            if names_customer && at > 0 {
                names.extend(versus::name_before(&words[..at]));
            }
        }
    }
    names.retain(|name| !is_own(name) && name.split_whitespace().count() <= MAX_NAME_WORDS);
    names
}

/// Returns cells and list items in the same run as one with the customer's name. A table is read as a run of cells.
fn of_tables(
    page: &Page,
    scope: &Scope,
    is_own: &dyn Fn(&str) -> bool,
    prose: &Prose,
) -> Vec<String> {
    let mut found = Vec::new();
    for run in runs(&page.text.blocks) {
        let cells = &page.text.blocks[run];
        let owns: Vec<usize> = (0..cells.len())
            .filter(|at| scope.has(&cells[*at]))
            .filter(|at| is_short(&cells[*at].text) && is_own(&cells[*at].text))
            .collect();
        let Some(first) = owns.first() else {
            continue;
        };
        // If the customer's cell names a model too, the others do as well.
        let has_models = cells[*first].text.split_whitespace().count() > 1
            && is_own(
                cells[*first]
                    .text
                    .split_whitespace()
                    .next()
                    .unwrap_or_default(),
            );
        for (at, cell) in cells.iter().enumerate() {
            let text = cell.text.as_str();
            if !is_short(text) || !text.split_whitespace().all(versus::is_capitalised) {
                continue;
            }
            let Some(name) = versus::checked(&text.split_whitespace().collect::<Vec<_>>()) else {
                continue;
            };
            let name = if has_models {
                brand_of_model(&name)
            } else {
                name
            };
            let is_beside = owns.iter().any(|own| own.abs_diff(at) == 1);
            if is_own(&name) || is_abbreviation(&name) || prose.small.contains(&folded(&name)) {
                continue;
            }
            let is_english = matches!(page.text.lang.as_str(), "en" | "");
            let is_invented = || {
                is_beside
                    && text::words(&name).all(|word| !background::is_known(&text::stem(&word.text)))
            };
            if name.split_whitespace().any(is_camel_case)
                || prose.is_name(&name, &page.text.lang)
                || (is_english && (is_brand(&name) || is_invented()))
            {
                found.push(name);
            }
        }
    }
    found
}

/// Returns runs of short blocks under one heading.
fn runs(blocks: &[Block]) -> Vec<Range<usize>> {
    let is_cell = |block: &Block| block.text.split_whitespace().nth(MAX_CELL_WORDS).is_none();
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, block) in blocks
        .iter()
        .enumerate()
        .filter(|(_, block)| is_cell(block))
    {
        match runs.last_mut() {
            Some(run) if run.end == at && blocks[at - 1].heading == block.heading => run.end += 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs
}

/// Returns the brand in a product name: `Nike` of `Nike Pegasus`, `New Balance` of `New Balance 1080`.
fn brand_of_model(name: &str) -> String {
    let words: Vec<&str> = name.split_whitespace().collect();
    let length = if words.first().is_some_and(|word| is_brand(word)) {
        1
    } else {
        words.len().min(2)
    };
    words[..length].join(" ")
}

/// Returns the texts of links to the site's own comparisons: `Square`, which leads to `/compare/square`.
fn of_links(page: &Page) -> Vec<String> {
    let links = page
        .text
        .links
        .iter()
        .filter(|link| matches!(link.kind, LinkKind::Anchor { .. }) && is_short(&link.text));
    links
        .take(MAX_LINKS)
        .filter(|link| {
            Url::parse(&link.href).is_ok_and(|url| {
                domain::site(&url).is_some()
                    && domain::site(&url) == domain::site(&page.url)
                    && is_comparison_path(&url)
                    && squeeze(url.path()).contains(&squeeze(&link.text))
            })
        })
        .filter(|link| !is_about_comparison(&link.text))
        .filter_map(|link| {
            let words: Vec<&str> = link.text.split_whitespace().collect();
            let capitals = words.iter().all(|word| versus::is_capitalised(word));
            versus::checked(&words).filter(|_| capitals)
        })
        .collect()
}

/// Returns the names in `A, B and C are trademarks of their respective owners`.
fn of_trademarks(line: &str) -> Vec<String> {
    const NOTICES: [(&str, &[&str]); 6] = [
        ("trademark", &["owner", "holder"]),
        ("trade mark", &["owner", "holder"]),
        ("marken", &["inhaber", "eigentumer"]),
        ("marcas", &["propietarios", "titulares", "proprietarios"]),
        ("marques", &["proprietaires", "detenteurs"]),
        ("商標", &["各社", "それぞれ"]),
    ];
    const VERBS: [&str; 7] = [" are ", " is ", " sind ", " son ", " sont ", " são ", "は"];
    let mut names = Vec::new();
    for sentence in line.split_inclusive(['.', '。', '!', '|']) {
        let folded = text::fold(sentence);
        let is_notice = NOTICES.iter().any(|(mark, owners)| {
            folded.contains(mark) && owners.iter().any(|owner| folded.contains(owner))
        });
        let end = VERBS.iter().filter_map(|verb| sentence.find(verb)).min();
        let Some(list) = end.filter(|_| is_notice).map(|end| &sentence[..end]) else {
            continue;
        };
        let list = [
            " and ",
            " or ",
            " & ",
            " und ",
            " y ",
            " e ",
            " et ",
            "、",
            "・",
            "および",
        ]
        .iter()
        .fold(list.to_owned(), |list, and| list.replace(and, ","));
        for name in list.split(',') {
            let words: Vec<&str> = name.split_whitespace().collect();
            let capitals = words.iter().all(|word| versus::is_capitalised(word));
            if (1..=MAX_NAME_WORDS).contains(&words.len()) && capitals {
                names.extend(versus::checked(&words));
            }
        }
    }
    names
}

/// Capitalisation of words and names in the prose of the pages.
#[derive(Default)]
struct Prose {
    names: BTreeMap<String, Mentions>,
    /// Folded words and pairs that occur in lower case.
    small: HashSet<String>,
    people: HashSet<String>,
}

#[derive(Default)]
struct Mentions {
    form: String,
    all: usize,
    in_scope: usize,
    of_places: usize,
    of_integrations: usize,
}

impl Prose {
    fn of(pages: &[Page], scopes: &[(&Page, Scope)]) -> Self {
        let mut prose = Self::default();
        if scopes.is_empty() {
            return prose;
        }
        for page in pages {
            let scope = scopes
                .iter()
                .find(|(other, _)| std::ptr::eq(*other, page))
                .map(|(_, scope)| scope);
            // German capitalises every noun.
            let is_german = page.text.lang == "de";
            for block in &page.text.blocks {
                let is_in_scope = scope.is_some_and(|scope| scope.has(block));
                prose.read(&block.text, is_in_scope, is_german);
            }
            prose.read(&page.text.description, false, is_german);
            for person in &page.text.people {
                let words = text::words(person).map(|word| word.text.into_owned());
                prose.people.extend(words);
            }
        }
        let mut again: BTreeMap<String, usize> = BTreeMap::new();
        for page in pages {
            let headings = page.text.headings.iter().map(|heading| &heading.text);
            let blocks = page.text.blocks.iter().map(|block| &block.text);
            for line in headings.chain(blocks).chain([&page.text.title]) {
                let words: Vec<String> = line.split_whitespace().map(folded).collect();
                for length in 1..=MAX_NAME_WORDS {
                    for run in words.windows(length) {
                        let run = run.join(" ");
                        if prose.names.contains_key(&run) {
                            *again.entry(run).or_default() += 1;
                        }
                    }
                }
            }
        }
        for (name, count) in again {
            if let Some(mentions) = prose.names.get_mut(&name) {
                mentions.all = count;
            }
        }
        prose
    }

    /// Counts runs of capitalised words in mid sentence.
    fn read(&mut self, text: &str, is_in_scope: bool, is_german: bool) {
        let words: Vec<&str> = text.split_whitespace().collect();
        let capitals = words
            .iter()
            .filter(|word| versus::is_capitalised(word))
            .count();
        let is_headline = capitals * 2 > words.len();
        let is_about_integration = products::is_about_integration(text);
        for pair in words.windows(2) {
            if !pair.iter().any(|word| word.chars().any(char::is_uppercase)) {
                self.small.insert(folded(&pair.join(" ")));
            }
        }
        let mut at = 0;
        while at < words.len() {
            if !words[at].chars().any(char::is_uppercase) {
                self.small.insert(folded(words[at]));
                at += 1;
                continue;
            }
            let mut to = at + 1;
            while to < words.len()
                && words[to - 1].ends_with(char::is_alphanumeric)
                && words[to].chars().any(char::is_uppercase)
            {
                to += 1;
            }
            let goes_on = at > 0
                && words[at - 1].ends_with(|c: char| c.is_alphanumeric() || matches!(c, ',' | ')'));
            let form = words[at..to].join(" ");
            let form = form.trim_matches(|c: char| !c.is_alphanumeric());
            let form = form.trim_end_matches("'s").trim_end_matches("’s");
            let is_camel = form.split_whitespace().any(is_camel_case);
            if goes_on
                && !is_headline
                && to - at <= MAX_NAME_WORDS
                && form.chars().nth(2).is_some()
                && (is_camel || !is_german)
            {
                let mentions = self.names.entry(folded(form)).or_default();
                form.clone_into(&mut mentions.form);
                mentions.in_scope += usize::from(is_in_scope);
                mentions.of_integrations += usize::from(is_about_integration);
                mentions.of_places +=
                    usize::from(OF_PLACES.contains(&squeeze(words[at - 1]).as_str()));
            }
            at = to;
        }
    }

    /// Returns whether the prose writes this as a name, and never in lower case.
    fn is_name(&self, name: &str, lang: &str) -> bool {
        let folded = folded(name);
        lang != "de" && self.names.contains_key(&folded) && !self.small.contains(&folded)
    }

    /// Returns names that the prose of a comparison mentions, the most frequent first.
    fn rivals(&self, pages: &[Page]) -> Vec<String> {
        let mut found: Vec<&Mentions> = self
            .names
            .iter()
            .filter(|(folded, mentions)| {
                mentions.in_scope > 0
                    && mentions.all >= MIN_MENTIONS
                    && mentions.of_places * 2 < mentions.all
                    && mentions.of_integrations == 0
                    && !self.small.contains(*folded)
                    && is_brand(&mentions.form)
                    && !is_abbreviation(&mentions.form)
                    && !is_of_others(&mentions.form)
                    && !folded.split(' ').all(|word| self.people.contains(word))
                    && !pages.iter().any(|page| is_own_product(page, folded))
            })
            .map(|(_, mentions)| mentions)
            .collect();
        found.sort_by_key(|mentions| std::cmp::Reverse(mentions.all));
        found.iter().map(|mentions| mentions.form.clone()).collect()
    }
}

/// Returns whether the name is in the page's markup, or in a link to the site itself that is not a comparison.
fn is_own_product(page: &Page, name: &str) -> bool {
    let name = squeeze(name);
    let declared = page.text.structured_products.iter();
    declared.into_iter().any(|product| squeeze(product) == name)
        || page.text.links.iter().any(|link| {
            squeeze(&link.text) == name
                && Url::parse(&link.href).is_ok_and(|url| {
                    domain::site(&url).is_some()
                        && domain::site(&url) == domain::site(&page.url)
                        && !is_comparison_path(&url)
                })
        })
}

/// Returns whether one of its words is known as a name, or written like one.
fn is_brand(name: &str) -> bool {
    let is_name_word = |word: &str| {
        let folded = folded(word);
        let stem = text::stem(&folded);
        is_camel_case(word)
            || (background::usage(&stem) == Usage::Name
                && background::is_known(&stem)
                && !background::is_stop_word(&folded)
                && !background::is_web_word(&stem)
                && !MONTHS_AND_DAYS
                    .split_whitespace()
                    .any(|other| other == folded))
    };
    !figures::is_figure(name)
        && folded(name).chars().nth(2).is_some()
        && name.split_whitespace().any(is_name_word)
}

fn is_of_others(name: &str) -> bool {
    text::words(name).any(|word| products::is_of_others(&word.text))
}

/// Returns whether the name is an abbreviation (`SSO`, `APIs`): more often a feature than a rival.
fn is_abbreviation(name: &str) -> bool {
    name.trim_end_matches('s').chars().all(char::is_uppercase)
}

fn is_short(text: &str) -> bool {
    (1..=MAX_NAME_WORDS).contains(&text.split_whitespace().count())
}

fn folded(name: &str) -> String {
    let name = name.trim_matches(|c: char| !c.is_alphanumeric());
    let name = name.trim_end_matches("'s").trim_end_matches("’s");
    text::fold(name).into_owned()
}
