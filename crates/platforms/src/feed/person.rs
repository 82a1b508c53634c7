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
        let before = text[..at].chars().next_back().is_some_and(is_letter);
        let after = text[at + c.len_utf8()..].chars().next();
        (c == '@' && before && after.is_some_and(is_letter)).then_some(at)
    })?;
    let is_part = |c: char| is_letter(c) || ".!#$%&'*+/=?^_`{|}~-".contains(c);
    let start = text[..at].rfind(|c| !is_part(c));
    let start = start.map_or(0, |before| {
        before + text[before..].chars().next().map_or(1, char::len_utf8)
    });
    // `@ana@forum.example` is the name of an account.
    if text[..start].ends_with('@') {
        return None;
    }
    let domain = &text[at + 1..];
    let length = domain.find(|c: char| !(is_letter(c) || matches!(c, '.' | '-')));
    let domain = &domain[..length.unwrap_or(domain.len())];
    let end = at + 1 + domain.len();
    // A machine of the own network, next to a name in brackets.
    let is_marked = text[end..].trim_start().starts_with(['(', '>', ')', '（']);
    (domain.contains('.') || is_marked).then_some((start, end))
}

/// Returns true for what addresses consist of: not for scripts that are written without spaces.
fn is_letter(c: char) -> bool {
    c.is_alphanumeric() && c < '\u{2E80}'
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
            ("é@example.com", None),
            ("jörg@garden.example (Jörg)", Some("Jörg")),
            ("jane@gärten.example (Jane)", Some("Jane")),
            ("root@localhost (Jane Doe)", Some("Jane Doe")),
            ("陈明me@example.com", Some("陈明")),
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
