//! Makes untrusted text fit for display.

use url::{Host, Url};

use super::limits;

/// Returns the text without invisible characters, in at most `max` UTF-16 units.
pub(super) fn plain(text: &str, max: usize) -> String {
    cut(text, max, units, |place, shown| shown.push(place.character))
}

pub(super) fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// Returns true if a reader would see nothing. Services refuse such a text as if it were empty.
pub(super) fn is_blank(text: &str) -> bool {
    text.chars().all(is_invisible)
}

pub(super) fn or_dash(shown: String) -> String {
    if shown.is_empty() {
        "-".to_owned()
    } else {
        shown
    }
}

fn is_invisible(character: char) -> bool {
    let fills = matches!(
        character,
        '\u{ad}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}'
    );
    let joins = matches!(character, '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}');
    fills || joins || character.is_whitespace() || !is_shown(character)
}

/// A character with its neighbours.
pub(super) struct Place {
    pub(super) before: Option<char>,
    pub(super) character: char,
    pub(super) after: Option<char>,
    /// True if only spaces precede it in its line.
    pub(super) starts_line: bool,
}

/// Removes invisible characters that change the text: control characters, and those that change the text direction.
/// `spell` writes each character with its escapes. The result measures at most `max`, and is never cut within an escape;
/// text that is cut ends with an ellipsis.
pub(super) fn cut(
    text: &str,
    max: usize,
    measure: impl Fn(&str) -> usize,
    spell: impl Fn(&Place, &mut String),
) -> String {
    const ELLIPSIS: &str = "…";
    let ellipsis = measure(ELLIPSIS);
    let mut shown = String::new();
    let (mut previous, mut starts_line) = (None, true);
    let mut size = 0;
    // Length of what fits if an ellipsis has to follow.
    let mut fits = 0;
    let given = text.trim_matches(is_invisible).chars();
    let mut given = given.filter(|character| is_shown(*character)).peekable();
    while let Some(character) = given.next() {
        let begin = shown.len();
        let place = Place {
            before: previous,
            character,
            after: given.peek().copied(),
            starts_line,
        };
        spell(&place, &mut shown);
        previous = Some(character);
        starts_line = character == '\n' || starts_line && character == ' ';
        size += measure(&shown[begin..]);
        if size > max {
            shown.truncate(fits);
            if ellipsis <= max {
                shown.push_str(ELLIPSIS);
            }
            return shown;
        }
        if size + ellipsis <= max {
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
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    let mut spelled = String::new();
    // The brackets of an IPv6 address come first, and it needs them.
    let mut host_brackets = match url.host()? {
        Host::Ipv6(_) => 2,
        _ => 0,
    };
    for character in url.as_str().chars() {
        match character {
            '[' | ']' if host_brackets > 0 => {
                host_brackets -= 1;
                spelled.push(character);
            }
            '|' | '<' | '>' | '"' | '\'' | '`' | '\\' | '(' | ')' | '*' | '[' | ']' => {
                spelled.push_str(&format!("%{:02X}", u32::from(character)));
            }
            other => spelled.push(other),
        }
    }
    (spelled.len() <= limits::URL && Url::parse(&spelled).is_ok()).then_some(spelled)
}

#[cfg(test)]
mod tests {
    use super::{Place, cut, is_blank, link, plain, units};

    #[test]
    fn invisible_characters_are_removed() {
        assert_eq!(plain(" a\0b\u{202e}c\r\nd\te\u{feff} ", 99), "abc\nde");
        assert_eq!(plain("\u{200b}👨\u{200d}👩\u{3164}", 99), "👨\u{200d}👩");
        assert!(is_blank(" \u{200b}\u{3164}\u{202e}\0"));
        assert!(!is_blank("\u{200b}."));
    }

    #[test]
    fn text_is_cut_at_the_limit_and_never_within_an_escape() {
        assert_eq!(plain("abcdef", 6), "abcdef");
        assert_eq!(plain("abcdefg", 6), "abcde…");
        // Characters outside of the basic plane count twice.
        assert_eq!(plain("😀😀😀", 6), "😀😀😀");
        assert_eq!(plain("😀😀😀a", 6), "😀😀…");
        let spell = |place: &Place, shown: &mut String| {
            if place.character == '*' {
                shown.push('\\');
            }
            shown.push(place.character);
        };
        assert_eq!(cut("***", 6, units, spell), "\\*\\*\\*");
        assert_eq!(cut("a****", 6, units, spell), "a\\*\\*…");
        assert_eq!(cut("ab", 0, units, spell), "");
        for max in 2..20 {
            let cut = cut(&"a*😀".repeat(9), max, units, spell);
            assert!(units(&cut) <= max, "{max}: {cut}");
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
            (
                "http://[2001:db8::1]:1313/[a](b)",
                Some("http://[2001:db8::1]:1313/%5Ba%5D%28b%29"),
            ),
            (
                "http://[a]@[::1]/?[b]",
                Some("http://%5Ba%5D@[::1]/?%5Bb%5D"),
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
