//! LinkedIn's "little text": plain text with reserved characters escaped, mentions, and hashtags.

/// Maximum length of a mention or hashtag; longer text only looks like one.
const MAX_ELEMENT_BYTES: usize = 600;

/// Returns the text that a reader sees: `\(` is `(`, `@[Acme](urn:li:organization:1)` is `Acme`,
/// `{hashtag|\#|rust}` is `#rust`. Malformed elements stay unchanged. Linear in the text.
pub(super) fn decode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['\\', '@', '{']) {
        out.push_str(&rest[..at]);
        let tail = &rest[at..];
        let found = mention(tail).or_else(|| hashtag(tail));
        let (seen, after) = found.unwrap_or_else(|| one(tail));
        out.push_str(&seen);
        rest = after;
    }
    out + rest
}

/// `@[name](urn)`.
fn mention(tail: &str) -> Option<(String, &str)> {
    let (name, after) = until(tail.strip_prefix("@[")?, ']')?;
    let (_, after) = until(after.strip_prefix('(')?, ')')?;
    Some((name, after))
}

/// `{hashtag|\#|word}`; the sign may be the full-width one.
fn hashtag(tail: &str) -> Option<(String, &str)> {
    let (_, after) = until(tail.strip_prefix("{hashtag|")?, '|')?;
    let (word, after) = until(after, '}')?;
    Some((format!("#{word}"), after))
}

/// The unescaped text before the first `end` that is not escaped, and the text after it.
fn until(text: &str, end: char) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        if at > MAX_ELEMENT_BYTES {
            return None;
        }
        match c {
            '\\' => out.push(chars.next()?.1),
            c if c == end => return Some((out, &text[at + c.len_utf8()..])),
            c => out.push(c),
        }
    }
    None
}

/// One character, possibly escaped.
fn one(tail: &str) -> (String, &str) {
    let mut chars = tail.chars();
    let first = chars.next();
    if first == Some('\\')
        && let Some(escaped) = chars.next()
    {
        return (escaped.to_string(), chars.as_str());
    }
    let first: String = first.into_iter().collect();
    let after = &tail[first.len()..];
    (first, after)
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn text_is_as_a_reader_sees_it() {
        for (little, plain) in [
            ("", ""),
            ("plain", "plain"),
            (
                r"a \(b\) \[c\] \{d\} \<e\> \*f\* \_g\_ \~ \| \\ \@ \#",
                r"a (b) [c] {d} <e> *f* _g_ ~ | \ @ #",
            ),
            (
                "Hello @[Acme \\[EU\\]](urn:li:organization:1)!",
                "Hello Acme [EU]!",
            ),
            (r"in the EU. {hashtag|\#|rust}", "in the EU. #rust"),
            ("{hashtag|＃|kaffee_ist}", "#kaffee_ist"),
            ("ana@example.com", "ana@example.com"),
            ("@[no end", "@[no end"),
            ("@[name] (urn)", "@[name] (urn)"),
            ("{hashtag|\\#", "{hashtag|#"),
            ("ends in \\", "ends in \\"),
        ] {
            assert_eq!(decode(little), plain, "{little}");
        }
    }

    #[test]
    fn invalid_markup_is_cheap_to_parse() {
        for piece in ["@[", "{hashtag|", "@[a](", "\\"] {
            let text = piece.repeat(200_000 / piece.len());
            assert!(decode(&text).len() <= text.len());
        }
    }
}
