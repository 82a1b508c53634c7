//! Cuts a post into the sentences that the encoder reads, without links.

use crate::MAX_TOKENS;

/// Bytes of a title or text that are looked at. The encoder reads far fewer.
const MAX_BYTES: usize = 8_192;
/// A line behind this many bytes is not read.
const ENOUGH: usize = 1_200;

/// Returns the title and the sentences after it.
pub(crate) fn of_post(title: &str, text: &str) -> Vec<String> {
    let mut sentences = vec![of_title(beginning(title))];
    let text = without_links(beginning(text));
    let mut length = sentences[0].len();
    for line in text.split('\n') {
        for sentence in of_line(line) {
            let sentence = sentence.split_whitespace().collect::<Vec<_>>().join(" ");
            if !sentence.is_empty() && sentences.len() < MAX_TOKENS {
                length += sentence.len();
                sentences.push(sentence);
            }
        }
        if length > ENOUGH {
            break;
        }
    }
    sentences
}

fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_BYTES)]
}

/// A title counts as a sentence, so it ends as one. An empty one is a dash.
fn of_title(title: &str) -> String {
    if title.is_empty() {
        "-".to_owned()
    } else if title.ends_with(char::is_alphanumeric) {
        format!("{title}.")
    } else {
        title.to_owned()
    }
}

/// Cuts a line at white space behind a full stop, a question mark or an exclamation mark.
fn of_line(line: &str) -> impl Iterator<Item = &str> {
    let mut before = ' ';
    line.split(move |char: char| {
        let is_behind_end = matches!(std::mem::replace(&mut before, char), '.' | '!' | '?');
        is_behind_end && char.is_whitespace()
    })
}

/// Replaces Markdown links by their labels, and drops addresses.
fn without_links(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        if let Some((label, behind)) = markdown_link(rest) {
            kept.push_str(label);
            rest = behind;
        } else if let Some(behind) = behind_address(rest) {
            rest = behind;
        } else {
            kept.push(char);
            rest = &rest[char.len_utf8()..];
        }
    }
    kept
}

/// Returns label and what follows, if the text starts with `[label](target)`.
fn markdown_link(text: &str) -> Option<(&str, &str)> {
    let (label, behind) = text.strip_prefix('[')?.split_once(']')?;
    let (_target, behind) = behind.strip_prefix('(')?.split_once(')')?;
    Some((label, behind))
}

fn behind_address(text: &str) -> Option<&str> {
    let address = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"))?;
    let end = address.find(char::is_whitespace).unwrap_or(address.len());
    (end > 0).then(|| &address[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_behind_sentences_and_lines() {
        assert_eq!(
            of_post(
                "Which one",
                "I have a v2.0 one. Is\tit  good?!  Yes\n\n- no\n"
            ),
            [
                "Which one.",
                "I have a v2.0 one.",
                "Is it good?!",
                "Yes",
                "- no"
            ]
        );
        assert_eq!(of_post("", " \n "), ["-"]);
    }

    #[test]
    fn links_leave_their_labels() {
        assert_eq!(
            without_links(
                "see [the shop](http://x.y/(a) or https://x.y/?a=[b](c) now, http:// [x] (y)"
            ),
            "see the shop or  now, http:// [x] (y)"
        );
    }

    #[test]
    fn hostile_texts_are_cut_off() {
        // A soft hyphen is a sentence without a token.
        for text in ["[", "[](", "[a](http://", "a. ", "犬", "\u{ad}\n"] {
            let sentences = of_post(&text.repeat(100_000), &text.repeat(100_000));
            let length: usize = sentences.iter().map(String::len).sum();
            assert!(length <= 2 * MAX_BYTES + 1, "{text}: {length}");
            assert!(sentences.len() <= MAX_TOKENS, "{text}: {}", sentences.len());
        }
    }
}
