//! Converts content of platforms to plain text.
//!
//! All functions are linear in their input, use no stack for nesting, and truncate long input: the size of a
//! post is bounded for every platform.

mod html;
mod markdown;
pub(crate) mod repair;

pub use html::{decode_entities, from_html};
pub use markdown::from_markdown;

/// Maximum length of a post's text.
pub const MAX_TEXT_CHARS: usize = 40_000;
/// Maximum length of a title, name or id.
pub const MAX_LINE_CHARS: usize = 500;
/// A link post without a title uses this much of its text as the title.
pub const FALLBACK_TITLE_CHARS: usize = 120;
/// Markup after this is ignored.
const MAX_MARKUP_BYTES: usize = 512 * 1024;

/// Converts text to one line: white space of any kind becomes one space, and other control characters are
/// removed.
pub fn line(text: &str) -> String {
    let mut out = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        if word.is_empty() {
            continue;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    cut(out, MAX_LINE_CHARS)
}

/// Cleans up lines: at most one consecutive empty line, none at the ends, no control characters.
pub fn block(text: &str) -> String {
    let mut out = String::new();
    let mut empty = 0;
    for one in text.lines() {
        let clean: String = one
            .chars()
            .filter(|c| !c.is_control() || *c == '\t')
            .collect();
        let clean = clean.trim_end();
        if clean.trim_start().is_empty() {
            empty += 1;
            continue;
        }
        if !out.is_empty() {
            out.push_str(if empty > 0 { "\n\n" } else { "\n" });
        }
        empty = 0;
        out.push_str(clean);
    }
    cut(out, MAX_TEXT_CHARS)
}

/// Same as [`block`]; `None` if nothing is left.
pub fn some_block(text: &str) -> Option<String> {
    Some(block(text)).filter(|text| !text.is_empty())
}

/// A title from the beginning of a text.
pub fn title_of(text: &str) -> String {
    cut(line(text), FALLBACK_TITLE_CHARS)
}

fn cut(mut text: String, max_chars: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(max_chars) {
        text.truncate(end);
        text.truncate(text.trim_end().len());
    }
    text
}

/// The beginning of `markup` that is processed.
fn bounded(markup: &str) -> &str {
    &markup[..markup.floor_char_boundary(MAX_MARKUP_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_has_no_line_breaks() {
        assert_eq!(line("  a\u{0}\tb\n\n c "), "a b c");
        assert_eq!(line(&"é".repeat(1_000)).chars().count(), MAX_LINE_CHARS);
    }

    #[test]
    fn block_text_keeps_its_paragraphs() {
        assert_eq!(block("\n a  \n\n\n\nb\u{7}\r\nc\n"), " a\n\nb\nc");
    }
}
