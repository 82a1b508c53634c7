//! Reads authors as people write them: `mail (Name)`, `Name <mail>`, `Name (mail)`.
//!
//! RSS 2.0 asks for a mail address with the name as a comment (RFC 822). The address is no name, and nobody else's
//! business.

use super::document::Person;

/// The author in a text; `None` if it holds nothing but a mail address.
pub(super) fn person(text: &str, uri: Option<String>) -> Option<Person> {
    let text = text.trim();
    let text = text.strip_prefix("mailto:").unwrap_or(text);
    let Some((start, end)) = mail(text) else {
        return some(text, uri);
    };
    let (before, after) = (text[..start].trim_end(), text[end..].trim_start());
    let before = before.strip_suffix("mailto:").unwrap_or(before);
    // The address may stand in brackets, or the name.
    let before = before.trim_end_matches(is_mark);
    let after = after.trim_start_matches(is_mark);
    let name = if before.trim_matches(is_mark).is_empty() {
        after
    } else {
        before
    };
    some(name.trim_matches(is_mark), uri)
}

fn some(name: &str, uri: Option<String>) -> Option<Person> {
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    let name = name.trim_matches(|c| c == '"').to_owned();
    (!name.is_empty()).then_some(Person { name, uri })
}

/// Begin and end of the mail address in `text`.
fn mail(text: &str) -> Option<(usize, usize)> {
    let at = text.char_indices().find_map(|(at, c)| {
        let is_inner = |c: char| c.is_ascii_alphanumeric();
        let before = text[..at].chars().next_back().is_some_and(is_inner);
        let after = text[at + c.len_utf8()..]
            .chars()
            .next()
            .is_some_and(is_inner);
        (c == '@' && before && after).then_some(at)
    })?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || ".!#$%&'*+/=?^_`{|}~-".contains(c);
    let local = text[..at].chars().rev().take_while(|c| is_part(*c)).count();
    let start = at - local;
    // `@ana@forum.example` is the name of an account.
    if text[..start].ends_with('@') {
        return None;
    }
    let domain = text[at + 1..].chars();
    let domain = domain.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'));
    let end = at + 1 + domain.count();
    text[at..end].contains('.').then_some((start, end))
}

/// Punctuation around a name or an address.
fn is_mark(c: char) -> bool {
    let is_bracket = matches!(
        c,
        '(' | ')' | '<' | '>' | '[' | ']' | '{' | '}' | '（' | '）' | '〈' | '〉' | '「' | '」'
    );
    let is_quote = matches!(c, '"' | '\'' | '“' | '”' | '„' | '‘' | '’' | '«' | '»');
    is_bracket
        || is_quote
        || matches!(c, ',' | ';' | ':' | '-' | '–' | '—' | '|' | '/')
        || c.is_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_next_to_addresses() {
        for (text, name) in [
            ("jane@garden.example (Jane Doe)", Some("Jane Doe")),
            ("Jane Doe <jane@garden.example>", Some("Jane Doe")),
            ("\"Doe, Jane\" <jane@garden.example>", Some("Doe, Jane")),
            ("Jane Doe (jane@garden.example)", Some("Jane Doe")),
            ("<jane@garden.example> Jane", Some("Jane")),
            ("jane@garden.example - Jane Doe", Some("Jane Doe")),
            ("mailto:jane@garden.example (Jane)", Some("Jane")),
            ("chen@garden.example（陈明）", Some("陈明")),
            ("Ana（me@example.com）", Some("Ana")),
            ("“me@example.com” Ana", Some("Ana")),
            ("me@example.com—Ana", Some("Ana")),
            ("me@example.com\u{A0}Ana", Some("Ana")),
            ("é@example.com", Some("é@example.com")),
            ("jane@garden.example", None),
            ("(jane@garden.example)", None),
            ("  ", None),
            ("Tom  Poe", Some("Tom Poe")),
            ("@ana@forum.example", Some("@ana@forum.example")),
            ("Ana @ Work", Some("Ana @ Work")),
            ("O'Neil", Some("O'Neil")),
        ] {
            let found = person(text, None).map(|person| person.name);
            assert_eq!(found.as_deref(), name, "{text}");
        }
    }
}
