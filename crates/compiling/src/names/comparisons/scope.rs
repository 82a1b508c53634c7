//! The part of a page that is about a comparison.

use std::{collections::HashSet, sync::LazyLock};

use matching::text;
use url::Url;

use crate::{background, extract::Block, page::Page, word_lists};

/// Folded words that mark a comparison.
static COMPARING: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    word_lists::words(include_str!("../../../data/words/comparing.txt")).collect()
});
/// Folded phrases that mark a comparison.
static COMPARING_PHRASES: LazyLock<Vec<&str>> = LazyLock::new(|| {
    word_lists::entries(include_str!("../../../data/words/comparing_phrases.txt")).collect()
});
pub(super) const COMPARING_IN_JAPANESE: [&str; 5] = ["比較", "違い", "乗り換え", "乗換", "代替"];
/// Things that the customer compares about its own offers.
static OF_CUSTOMER: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    word_lists::words(include_str!("../../../data/words/own_offers.txt")).collect()
});

/// The part of a page that is about a comparison.
pub(super) enum Scope {
    Page,
    /// Text under these headings.
    Headings(HashSet<usize>),
}

impl Scope {
    pub(super) fn of(page: &Page) -> Option<Self> {
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

    pub(super) fn has_heading(&self, at: usize) -> bool {
        match self {
            Self::Page => true,
            Self::Headings(headings) => headings.contains(&at),
        }
    }

    pub(super) fn has(&self, block: &Block) -> bool {
        match self {
            Self::Page => true,
            Self::Headings(_) => block.heading.is_some_and(|at| self.has_heading(at)),
        }
    }
}

/// Returns whether a folded word marks a comparison.
pub(super) fn is_comparing(word: &str) -> bool {
    COMPARING.contains(word)
}

pub(super) fn is_about_comparison(line: &str) -> bool {
    if COMPARING_IN_JAPANESE.iter().any(|word| line.contains(word)) {
        return true;
    }
    let words: Vec<String> = text::words(line)
        .map(|word| word.text.into_owned())
        .collect();
    let of_customer = words.iter().any(|word| OF_CUSTOMER.contains(word.as_str()));
    let folded = format!(" {} ", words.join(" "));
    let has_word = words.iter().enumerate().any(|(at, word)| {
        let ends = || {
            words
                .get(at + 1)
                .is_none_or(|next| background::is_stop_word(next))
        };
        (is_comparing(word) && !of_customer)
            || (matches!(word.as_str(), "alternative" | "alternativa") && ends())
    });
    has_word
        || COMPARING_PHRASES
            .iter()
            .any(|phrase| folded.contains(&format!(" {phrase} ")))
}

pub(super) fn is_comparison_path(url: &Url) -> bool {
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
