//! Detects pages that do not show their subject: a consent dialog, or an empty shell that scripts fill.
//!
//! Their title, descriptions and structured data may still be sufficient. If not, the customer gets an error that says
//! what the page is.

use std::{collections::HashSet, sync::LazyLock};

use matching::text;

use super::{PageText, Unreadable};
use crate::{background, word_lists};

/// A page whose text has more letters is not a shell.
const MAX_SHELL_LETTERS: usize = 120;
/// Number of distinct meaningful words that are sufficient.
const MIN_WORDS: usize = 4;
/// Phrases that ask for scripts, in lower case.
static SCRIPT_DEMANDS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    word_lists::entries(include_str!("../../data/words/script_demands.txt")).collect()
});
/// Beginnings of cookie banners.
static USES_COOKIES: LazyLock<Vec<&str>> = LazyLock::new(|| {
    word_lists::entries(include_str!("../../data/words/uses_cookies.txt")).collect()
});
const COOKIES: [&str; 3] = ["cookie", "クッキー", "galletas"];
/// Headings and titles of pages that ask for consent before anything else.
static BEFORE_YOU_CONTINUE: LazyLock<Vec<&str>> = LazyLock::new(|| {
    word_lists::entries(include_str!("../../data/words/before_you_continue.txt")).collect()
});
/// Further phrases in a request for cookie consent, in all supported page languages.
static CONSENT: LazyLock<Vec<&str>> =
    LazyLock::new(|| word_lists::entries(include_str!("../../data/words/consent.txt")).collect());

/// Drops requests for consent and for scripts.
///
/// # Errors
/// Returns [`Unreadable::ConsentWall`] or [`Unreadable::AppShell`] if too little is left, and title and descriptions do
/// not make up for it.
pub(super) fn look_behind(page: &mut PageText) -> Result<(), Unreadable> {
    let lower = |text: &str| text.to_lowercase();
    let asks_for_scripts = |text: &str| {
        let text = lower(text);
        SCRIPT_DEMANDS.iter().any(|demand| text.contains(demand))
    };
    if page.letters() < 10 * MAX_SHELL_LETTERS {
        let blocks = page.blocks.len();
        page.blocks.retain(|block| !asks_for_scripts(&block.text));
        page.needs_scripts |= page.blocks.len() < blocks;
    }

    // Cookies are the subject of some pages, which say much else about them.
    let head = lower(&format!("{} {}", page.title, page.description));
    let is_about_cookies = COOKIES.iter().any(|word| head.contains(word));
    let (asking, rest): (Vec<_>, Vec<_>) = page
        .blocks
        .iter()
        .cloned()
        .partition(|block| asks_for_consent(&block.text));
    let letters = |blocks: &[super::Block]| -> usize {
        let texts = blocks.iter().map(|block| block.text.as_str());
        texts.map(letters_of).sum()
    };
    let is_mostly_asking = !asking.is_empty() && letters(&asking) >= letters(&rest);
    let is_wall = is_mostly_asking || page.headings_ask_for_consent();
    if !asking.is_empty() && (is_mostly_asking || !is_about_cookies) {
        page.blocks = rest;
    }
    if page.text_letters() >= MAX_SHELL_LETTERS || !(is_wall || page.needs_scripts) {
        return Ok(());
    }
    if is_wall {
        page.headings.retain(|heading| !is_demand(&heading.text));
        page.blocks
            .iter_mut()
            .for_each(|block| block.heading = None);
    }
    match words_that_say_something(page, is_wall) {
        MIN_WORDS.. => Ok(()),
        _ if is_wall => Err(Unreadable::ConsentWall),
        _ => Err(Unreadable::AppShell),
    }
}

impl PageText {
    fn headings_ask_for_consent(&self) -> bool {
        let headings = self.headings.iter().map(|heading| heading.text.as_str());
        headings.chain([self.title.as_str()]).any(is_demand)
    }

    /// Returns the number of letters outside of the page's head.
    fn text_letters(&self) -> usize {
        let blocks = self.blocks.iter().map(|block| block.text.as_str());
        let headings = self.headings.iter().map(|heading| heading.text.as_str());
        blocks.chain(headings).map(letters_of).sum()
    }
}

fn letters_of(text: &str) -> usize {
    text.chars().filter(|c| c.is_alphabetic()).count()
}

fn asks_for_consent(text: &str) -> bool {
    let text = text.to_lowercase();
    let count = |signs: &[&str]| signs.iter().filter(|sign| text.contains(*sign)).count();
    count(&USES_COOKIES) > 0 || (count(&COOKIES) > 0 && count(&CONSENT) > 1)
}

/// Returns whether a title or heading asks for consent, and contains nothing else.
fn is_demand(line: &str) -> bool {
    let line = line.to_lowercase();
    let says = |signs: &[&str]| signs.iter().any(|sign| line.contains(sign));
    line.split_whitespace().count() <= 8
        && (says(&BEFORE_YOU_CONTINUE) || (says(&COOKIES) && says(&CONSENT)))
}

/// Counts distinct meaningful words in the page's head and, unless the page is a wall, in the remaining text.
fn words_that_say_something(page: &PageText, is_wall: bool) -> usize {
    let head = [
        &page.title,
        &page.description,
        &page.og_title,
        &page.og_description,
    ];
    let blocks = page.blocks.iter().map(|block| &block.text);
    let headings = page.headings.iter().map(|heading| &heading.text);
    let body = blocks.chain(headings).filter(|_| !is_wall);
    let lines = head.into_iter().chain(&page.structured_text).chain(body);
    let mut words = HashSet::new();
    for line in lines.filter(|line| !is_demand(line)) {
        for word in text::words(line) {
            let stem = text::stem(&word.text);
            if !background::is_stop_word(&word.text)
                && !background::is_web_word(&stem)
                && stem.chars().any(char::is_alphabetic)
                && !matches!(
                    stem.as_ref(),
                    "app" | "react" | "vite" | "vue" | "javascript"
                )
            {
                words.insert(stem.into_owned());
            }
        }
    }
    words.len()
}
