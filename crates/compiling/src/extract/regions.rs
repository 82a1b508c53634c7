//! Parts of a page that are about its subject, detected by tag names and common class names.

use std::{collections::HashSet, sync::LazyLock};

use crate::word_lists;

static BOILERPLATE_CLASSES: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    word_lists::entries(include_str!("../../data/words/boilerplate_classes.txt")).collect()
});
static BOILERPLATE_HEADINGS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    word_lists::entries(include_str!("../../data/words/boilerplate_headings.txt")).collect()
});

/// Meaning of an element for the text inside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Region {
    /// Same region as its parent.
    Plain,
    /// Content, according to the author.
    Main,
    /// Never text about the subject: scripts, navigation, footers, quotes of others.
    Never,
    /// Boilerplate by its class or role; used only if there is no other text.
    Boilerplate,
    /// A page's banner, where only headings and paragraphs count.
    Banner,
}

/// Classifies an element by its tag alone.
pub(super) fn by_tag(tag: &[u8]) -> Region {
    match tag {
        b"main" | b"article" => Region::Main,
        b"header" => Region::Banner,
        b"script" | b"style" | b"template" | b"svg" | b"math" | b"iframe" | b"object"
        | b"canvas" | b"audio" | b"video" | b"select" | b"textarea" | b"button" | b"nav"
        | b"footer" | b"blockquote" | b"cite" | b"q" | b"noframes" | b"rt" | b"rp" => Region::Never,
        // Pages that scripts render may repeat their text here.
        b"aside" | b"form" | b"dialog" | b"noscript" => Region::Boilerplate,
        _ => Region::Plain,
    }
}

/// Classifies an element by an attribute's value.
pub(super) fn by_attribute(name: &[u8], value: &str) -> Region {
    match name {
        b"hidden" => Region::Never,
        b"aria-hidden" if value == "true" => Region::Never,
        b"style" if value.replace(' ', "").contains("display:none") => Region::Never,
        b"role" => match value {
            "main" => Region::Main,
            "navigation" | "contentinfo" | "search" | "menu" | "menubar" | "alertdialog" => {
                Region::Never
            }
            "dialog" | "complementary" | "banner" => Region::Boilerplate,
            _ => Region::Plain,
        },
        b"class"
            if ["skip-link", "skip-nav", "skip-to"]
                .iter()
                .any(|link| value.contains(link)) =>
        {
            Region::Never
        }
        b"class" | b"id" if is_boilerplate_class(value) => Region::Boilerplate,
        _ => Region::Plain,
    }
}

/// Matches whole words, so that `cookie-bar` and `siteFooter` match and `unavoidable` does not. A word after `no`,
/// `not`, `has` or `with` does not count, because it says what a wrapper has or lacks: `no-sidebar`,
/// `wsite-not-footer`.
fn is_boilerplate_class(value: &str) -> bool {
    if value.len() > 300 {
        return false;
    }
    let mut word = String::new();
    let mut previous_lower = false;
    let mut is_of_wrapper = false;
    for c in value.chars().chain([' ']) {
        let boundary = !c.is_ascii_alphanumeric() || (c.is_ascii_uppercase() && previous_lower);
        if boundary {
            if BOILERPLATE_CLASSES.contains(word.as_str()) && !is_of_wrapper {
                return true;
            }
            is_of_wrapper = c == '-' && matches!(word.as_str(), "no" | "not" | "has" | "with");
            word.clear();
        }
        if c.is_ascii_alphanumeric() {
            word.push(c.to_ascii_lowercase());
        }
        previous_lower = c.is_ascii_lowercase();
    }
    false
}

/// Returns whether the text under a heading is by others, or about the site itself.
pub(super) fn is_boilerplate_heading(text: &str) -> bool {
    let lower = text.to_lowercase();
    BOILERPLATE_HEADINGS.iter().any(|sign| lower.contains(sign))
}

/// Returns whether an element has an id that frameworks use for the element that their scripts fill.
pub(super) fn is_script_root(id: &str) -> bool {
    matches!(
        id,
        "root" | "app" | "__next" | "__nuxt" | "___gatsby" | "svelte" | "app-root"
    )
}

/// Returns whether the element has no end tag.
pub(super) fn is_void(name: &[u8]) -> bool {
    matches!(
        name,
        b"area"
            | b"base"
            | b"br"
            | b"col"
            | b"embed"
            | b"hr"
            | b"img"
            | b"input"
            | b"link"
            | b"meta"
            | b"param"
            | b"source"
            | b"track"
            | b"wbr"
    )
}

/// Returns whether an element contains separate words: all except emphasis and other markup of parts of a word.
pub(super) fn holds_words(name: &[u8]) -> bool {
    !matches!(
        name,
        b"abbr"
            | b"b"
            | b"big"
            | b"del"
            | b"em"
            | b"font"
            | b"i"
            | b"ins"
            | b"mark"
            | b"ruby"
            | b"s"
            | b"small"
            | b"strong"
            | b"sub"
            | b"sup"
            | b"u"
            | b"wbr"
    )
}

/// Returns whether an element ends the run of text before it.
pub(super) fn is_block(name: &[u8]) -> bool {
    matches!(
        name,
        b"address"
            | b"article"
            | b"aside"
            | b"blockquote"
            | b"body"
            | b"dd"
            | b"details"
            | b"dialog"
            | b"div"
            | b"dl"
            | b"dt"
            | b"fieldset"
            | b"figcaption"
            | b"figure"
            | b"footer"
            | b"form"
            | b"h1"
            | b"h2"
            | b"h3"
            | b"h4"
            | b"h5"
            | b"h6"
            | b"head"
            | b"header"
            | b"hgroup"
            | b"html"
            | b"li"
            | b"main"
            | b"nav"
            | b"ol"
            | b"p"
            | b"pre"
            | b"section"
            | b"summary"
            | b"table"
            | b"tbody"
            | b"td"
            | b"tfoot"
            | b"th"
            | b"thead"
            | b"tr"
            | b"ul"
    )
}
