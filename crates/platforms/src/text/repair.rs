//! Repairs documents that one invalid character makes unreadable: invalid characters become U+FFFD.

use serde::de::DeserializeOwned;

/// Reads JSON, and repairs it if necessary.
pub(crate) fn read_json<T: DeserializeOwned>(body: &[u8]) -> serde_json::Result<T> {
    let error = match serde_json::from_slice(body) {
        Ok(read) => return Ok(read),
        Err(error) => error,
    };
    match json(body) {
        Some(repaired) => serde_json::from_slice(&repaired),
        None => Err(error),
    }
}

/// How much white space is looked through.
const MAX_SPACE: usize = 1_000;
/// The deepest nesting that the parser takes, but for a few levels.
const MAX_DEPTH: usize = 100;

/// Repairs JSON with lone surrogates, raw control characters in strings, or bytes that are not UTF-8. Numbers beyond
/// a double, and values that nest deeper than [`MAX_DEPTH`], become `null`, so that only their item suffers. `None` if
/// there is nothing to repair.
pub(crate) fn json(body: &[u8]) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(body);
    let body = text.as_bytes();
    let mut repaired = Vec::with_capacity(body.len());
    let mut is_changed = matches!(text, std::borrow::Cow::Owned(_));
    let mut in_string = false;
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(&byte) = body.get(at) {
        let mut length = 1;
        match byte {
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string && depth >= MAX_DEPTH => {
                repaired.extend(b"null");
                is_changed = true;
                at = end_of_nesting(body, at);
                continue;
            }
            // A comma before the end of a list or an object.
            b',' if !in_string && ends_after(&body[at + 1..]) => {
                is_changed = true;
                at += 1;
                continue;
            }
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            b'-' | b'0'..=b'9' | b'N' | b'I' if !in_string => {
                let rest = body[at..].iter();
                length = rest.take_while(|byte| is_of_number(**byte)).count().max(1);
                let number = std::str::from_utf8(&body[at..at + length]);
                let number = number.ok().and_then(|number| number.parse::<f64>().ok());
                if number.is_some_and(|number| !number.is_finite()) {
                    repaired.extend(b"null");
                    is_changed = true;
                    at += length;
                    continue;
                }
            }
            b'\\' if in_string => {
                length = 2;
                match escape(body, at) {
                    Some(0xD800..=0xDBFF)
                        if matches!(escape(body, at + 6), Some(0xDC00..=0xDFFF)) =>
                    {
                        length = 12;
                    }
                    Some(0xD800..=0xDFFF) => {
                        repaired.extend(b"\\ufffd");
                        is_changed = true;
                        at += 6;
                        continue;
                    }
                    Some(_) => length = 6,
                    None => {}
                }
            }
            0..0x20 if in_string => {
                repaired.push(b' ');
                is_changed = true;
                at += 1;
                continue;
            }
            _ => {}
        }
        let end = body.len().min(at + length);
        repaired.extend(&body[at..end]);
        at = end;
    }
    is_changed.then_some(repaired)
}

/// Returns true if the next byte that is no white space ends a list or an object.
fn ends_after(rest: &[u8]) -> bool {
    let rest = rest.iter().take(MAX_SPACE);
    let next = rest.copied().find(|byte| !byte.is_ascii_whitespace());
    matches!(next, Some(b'}' | b']'))
}

/// Returns true for a byte of a number, `NaN` or `Infinity`.
fn is_of_number(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
}

/// The place behind the array or object that begins at `start`.
fn end_of_nesting(body: &[u8], start: usize) -> usize {
    let (mut at, mut depth, mut in_string) = (start, 0_usize, false);
    while let Some(&byte) = body.get(at) {
        match byte {
            b'"' => in_string = !in_string,
            b'\\' if in_string => at += 1,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    at.min(body.len())
}

/// The code of the escape `\uXXXX` at this position.
fn escape(body: &[u8], at: usize) -> Option<u32> {
    let digits = body.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let digits = std::str::from_utf8(digits).ok()?;
    let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
    u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_and_control_characters_are_repaired_in_json() {
        let read = |body: &[u8]| -> serde_json::Value {
            serde_json::from_slice(&json(body).unwrap()).unwrap()
        };
        assert_eq!(
            read(br#"["a\ud83d", "\udE00b"]"#),
            serde_json::json!(["a\u{fffd}", "\u{fffd}b"])
        );
        assert_eq!(
            read(br#"["\ud83d\u0041\ud83d\ude00"]"#),
            serde_json::json!(["\u{fffd}A\u{1f600}"])
        );
        assert_eq!(read(b"[\"a\x01b\"]"), serde_json::json!(["a b"]));
        assert_eq!(read(b"[\"a\xffb\"]"), serde_json::json!(["a\u{fffd}b"]));
        for huge in ["1e999", "-1E+400", "NaN", "-Infinity", "Infinity"] {
            let body = format!(r#"[{{"odd": {huge}, "text": "1e999 {{[NaN"}}, 2.5e3]"#);
            let expected = serde_json::json!([{"odd": null, "text": "1e999 {[NaN"}, 2500.0]);
            assert_eq!(read(body.as_bytes()), expected);
        }
        let deep = format!("[{}\"]\\\"\"{}, 2]", "[".repeat(5_000), "]".repeat(5_000));
        assert_eq!(read(deep.as_bytes())[1], 2);
        // An escaped escape is not an escape.
        for sound in [
            r#"["\\ud83d"]"#,
            r#"["\ud83d\ude00"]"#,
            r#"{"a": "\""}"#,
            "\"\\",
            "\"\\u12",
        ] {
            assert_eq!(json(sound.as_bytes()), None, "{sound}");
        }
    }
}
