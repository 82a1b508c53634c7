//! Messages that are not quite JSON.

use serde_json::Value;

/// Replaces escapes of half a character (`\ud83d` alone), which programs write that cut text between its UTF-16 units.
/// JSON's grammar allows them, but they are no text.
pub(crate) fn with_whole_characters(line: &[u8]) -> Vec<u8> {
    let mut mended = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some((&byte, after)) = rest.split_first() {
        let length = match (unit(rest), rest.get(6..).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                mended.extend_from_slice(b"\\ufffd");
                rest = &rest[6..];
                continue;
            }
            // The character after a backslash begins no escape.
            _ if byte == b'\\' && !after.is_empty() => 2,
            _ => 1,
        };
        mended.extend_from_slice(&rest[..length]);
        rest = &rest[length..];
    }
    mended
}

/// Returns the UTF-16 unit of an escape at the beginning.
fn unit(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    let digits = std::str::from_utf8(digits).ok()?;
    u16::from_str_radix(digits, 16).ok()
}

/// Returns the `id` of a message that cannot be parsed, so that the client learns which one is meant. Null if it is not
/// found.
pub(crate) fn id(line: &[u8]) -> Value {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = line.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let end = end_of_text(line, at);
                if depth == 1
                    && &line[at..end] == b"\"id\""
                    && let Some(value) = line[end..].trim_ascii_start().strip_prefix(b":")
                {
                    return first_value(value);
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    Value::Null
}

/// Returns the position after the text that begins at `begin`.
fn end_of_text(line: &[u8], begin: usize) -> usize {
    let mut at = begin + 1;
    while let Some(byte) = line.get(at) {
        at += 1;
        match byte {
            b'"' => return at,
            b'\\' => at += 1,
            _ => {}
        }
    }
    line.len()
}

fn first_value(text: &[u8]) -> Value {
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<Value>();
    match values.next() {
        // At the end of the line, a number may be cut off.
        Some(Ok(id)) if values.byte_offset() < text.len() => checked(id),
        _ => Value::Null,
    }
}

/// Returns an id, or null for what can be none.
pub(crate) fn checked(id: Value) -> Value {
    if id.is_string() || id.is_i64() || id.is_u64() {
        id
    } else {
        Value::Null
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{id, with_whole_characters};

    #[test]
    fn halves_of_characters_are_replaced() {
        for (given, expected) in [
            (r#""\ud83d""#, r#""\ufffd""#),
            (r#""a\ude00b\uD83Dc""#, r#""a\ufffdb\ufffdc""#),
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\\\ud83d""#, r#""\\\ufffd""#),
            (r"\", r"\"),
            (r"\ud8", r"\ud8"),
            (r"\u+123", r"\u+123"),
        ] {
            let found = with_whole_characters(given.as_bytes());
            assert_eq!(String::from_utf8(found).unwrap(), expected, "{given}");
        }
    }

    #[test]
    fn id_of_a_broken_message_is_found() {
        for (line, expected) in [
            (r#"{"id":7,"params":"\x"}"#, json!(7)),
            (
                r#"{"params":{"id":1,"a":"\x \" }"},"id" : "a-7"}"#,
                json!("a-7"),
            ),
            (r#"{"method":"x","id":-1"#, Value::Null),
            (r#"{"method":"x","id":-1,"#, json!(-1)),
            (r#"{"id":{"a":1}, "#, Value::Null),
            (r#"{"id":1.5,"#, Value::Null),
            (r#"["id":1]"#, json!(1)),
            (r#"{"x":"id","#, Value::Null),
            (r#"{"id"#, Value::Null),
            (r#"{"id\"#, Value::Null),
            ("", Value::Null),
        ] {
            assert_eq!(id(line.as_bytes()), expected, "{line}");
        }
    }
}
