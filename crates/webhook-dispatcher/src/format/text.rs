//! Makes untrusted text fit for display.

use url::Url;

/// Maximum length of an address. Longer ones are not addresses of posts, and some services refuse a whole message
/// because of one.
const MAX_URL_CHARS: usize = 2_000;

/// Removes invisible characters that change the text: control characters, and those that change the text direction.
/// The result has at most `max` UTF-16 units, which is the strictest count of any service; text that is cut ends
/// with an ellipsis.
pub(super) fn plain(text: &str, max: usize) -> String {
    escaped(text, max, |_| "")
}

/// A character with its neighbours.
pub(super) struct Place {
    pub(super) before: Option<char>,
    pub(super) character: char,
    pub(super) after: Option<char>,
    /// True if only spaces precede it in its line.
    pub(super) starts_line: bool,
}

/// Same as [`plain`], with the escape that `escape` returns in front of each character. Never cuts between the two.
pub(super) fn escaped(text: &str, max: usize, escape: impl Fn(&Place) -> &'static str) -> String {
    let mut shown = String::new();
    let (mut previous, mut starts_line) = (None, true);
    let mut units = 0;
    // Maximum length if an ellipsis has to follow.
    let mut fits = 0;
    let given = text.trim().chars();
    let mut given = given.filter(|character| is_shown(*character)).peekable();
    while let Some(character) = given.next() {
        let escape = escape(&Place {
            before: previous,
            character,
            after: given.peek().copied(),
            starts_line,
        });
        previous = Some(character);
        starts_line = character == '\n' || starts_line && character == ' ';
        units += escape.len() + character.len_utf16();
        if units > max {
            shown.truncate(fits);
            shown.push('…');
            return shown;
        }
        shown.push_str(escape);
        shown.push(character);
        if units < max {
            fits = shown.len();
        }
    }
    shown
}

fn is_shown(character: char) -> bool {
    match character {
        '\n' => true,
        '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{061c}' => false,
        '\u{feff}' | '\u{2028}' | '\u{2029}' => false,
        other => !other.is_control(),
    }
}

/// Returns the address of a post for a link: with an http scheme, and without characters that have a meaning
/// outside of browsers. `None` for anything else.
pub(super) fn link(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return None;
    }
    let mut spelled = String::new();
    for character in url.as_str().chars() {
        match character {
            '|' | '<' | '>' | '"' | '\'' | '`' | '\\' | '(' | ')' | '*' | '[' | ']' => {
                spelled.push_str(&format!("%{:02X}", u32::from(character)));
            }
            other => spelled.push(other),
        }
    }
    // A literal IPv6 address needs its brackets, but no post has such an address.
    (spelled.len() <= MAX_URL_CHARS && Url::parse(&spelled).is_ok()).then_some(spelled)
}

#[cfg(test)]
mod tests {
    use super::{Place, escaped, link, plain};

    #[test]
    fn invisible_characters_are_removed() {
        assert_eq!(plain(" a\0b\u{202e}c\r\nd\te\u{feff} ", 99), "abc\nde");
    }

    #[test]
    fn text_is_cut_at_the_limit_and_never_within_an_escape() {
        assert_eq!(plain("abcdef", 6), "abcdef");
        assert_eq!(plain("abcdefg", 6), "abcde…");
        // Characters outside of the basic plane count twice.
        assert_eq!(plain("😀😀😀", 6), "😀😀😀");
        assert_eq!(plain("😀😀😀a", 6), "😀😀…");
        let escape = |place: &Place| if place.character == '*' { "\\" } else { "" };
        assert_eq!(escaped("***", 6, escape), "\\*\\*\\*");
        assert_eq!(escaped("a****", 6, escape), "a\\*\\*…");
        for max in 2..20 {
            let cut = escaped(&"a*😀".repeat(9), max, escape);
            assert!(cut.encode_utf16().count() <= max, "{max}: {cut}");
        }
    }

    #[test]
    fn only_web_addresses_become_links() {
        for (text, expected) in [
            (
                "https://example.com/a?b=c&d",
                Some("https://example.com/a?b=c&d"),
            ),
            (
                "https://example.com/a|b>",
                Some("https://example.com/a%7Cb%3E"),
            ),
            (
                "https://example.com/(a)",
                Some("https://example.com/%28a%29"),
            ),
            ("javascript:alert(1)", None),
            ("data:text/html,x", None),
            ("at://did:plc:x/app.bsky.feed.post/y", None),
            ("//example.com/", None),
            ("https://", None),
            ("", None),
        ] {
            assert_eq!(link(text).as_deref(), expected, "{text}");
        }
        assert_eq!(
            link(&format!("https://example.com/{}", "a".repeat(3_000))),
            None
        );
    }
}
