//! Makes untrusted text safe for a terminal: it can neither move the cursor nor reverse the line.

/// Returns the text without control characters, including direction marks.
pub(crate) fn inert(text: &str) -> String {
    let shown = |c: char| if is_active(c) { '\u{fffd}' } else { c };
    text.chars().map(shown).collect()
}

/// Works like [`inert`], and replaces any white space with one space.
pub(crate) fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    inert(&words.join(" "))
}

fn is_active(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Replaces characters that JSON leaves unescaped and that a terminal may interpret with JSON escapes.
pub(crate) fn escaped(json: &str) -> String {
    use std::fmt::Write as _;

    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        if is_active(c) && c != '\n' {
            let _ = write!(shown, "\\u{:04x}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::{escaped, inert, one_line};

    #[test]
    fn untrusted_text_cannot_control_the_terminal() {
        let hostile = "a\u{1b}[2Jb\u{9b}1mc\u{202e}d\u{2066}e\nf";
        assert_eq!(
            inert(hostile),
            "a\u{fffd}[2Jb\u{fffd}1mc\u{fffd}d\u{fffd}e\u{fffd}f"
        );
        assert_eq!(one_line(" a\n\tb  c "), "a b c");
        let json = serde_json::to_string(hostile).unwrap();
        let shown = escaped(&json);
        assert!(!shown.chars().any(super::is_active), "{shown}");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), hostile);
    }
}
