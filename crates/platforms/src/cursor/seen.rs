//! The seen set as a short text.
//!
//! Every poll with a new post writes the whole set. As a JSON array it takes 30 bytes per post, most of which
//! repeat the post before it. The text has two fields for each post, separated by spaces: its key, and the seconds
//! since the post before it. A key is `=` and the key itself; or `#` and a hash in base64; or, if it and the one
//! before it are numbers, the signed difference. An unknown time is `_`.

use std::fmt::Write;

use base64::{Engine, prelude::BASE64_STANDARD_NO_PAD as BASE64};
use serde::{Deserialize, Deserializer, Serializer, de};

use super::{HASH_BYTES, Seen};

const NO_TIME: &str = "_";

pub(super) fn serialize<S: Serializer>(seen: &[Seen], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&write(seen))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Seen>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Stored {
        Text(String),
        /// The form of earlier versions.
        Array(Vec<Seen>),
    }
    match Stored::deserialize(deserializer)? {
        Stored::Text(text) => read(&text).ok_or_else(|| de::Error::custom("malformed seen posts")),
        Stored::Array(seen) => Ok(seen),
    }
}

fn write(seen: &[Seen]) -> String {
    let mut text = String::new();
    let (mut number, mut time) = (None, 0_i64);
    for Seen(key, seconds) in seen {
        if !text.is_empty() {
            text.push(' ');
        }
        let before = std::mem::replace(&mut number, as_number(key));
        let written = match (before, number) {
            (Some(before), Some(now)) => write!(text, "{:+}", now - before),
            _ => match as_hash(key) {
                Some(hash) => write!(text, "#{}", BASE64.encode(hash)),
                None => write!(text, "={key}"),
            },
        };
        let written = written.and_then(|()| match seconds {
            Some(seconds) => {
                let since = seconds.wrapping_sub(std::mem::replace(&mut time, *seconds));
                write!(text, " {since}")
            }
            None => write!(text, " {NO_TIME}"),
        });
        debug_assert!(written.is_ok(), "a String takes any text");
    }
    text
}

fn read(text: &str) -> Option<Vec<Seen>> {
    let mut seen = Vec::new();
    let (mut number, mut time) = (None, 0_i64);
    let mut fields = text.split_ascii_whitespace();
    while let Some(field) = fields.next() {
        let key = if let Some(key) = field.strip_prefix('=') {
            key.to_owned()
        } else if let Some(hash) = field.strip_prefix('#') {
            hex::encode(BASE64.decode(hash).ok()?)
        } else {
            let difference: i64 = field.parse().ok()?;
            i64::checked_add(number?, difference)?.to_string()
        };
        number = as_number(&key);
        let seconds = match fields.next()? {
            NO_TIME => None,
            since => {
                time = time.wrapping_add(since.parse().ok()?);
                Some(time)
            }
        };
        seen.push(Seen(key, seconds));
    }
    Some(seen)
}

/// Returns the number that is written exactly like the key. It is not negative, so differences never overflow.
fn as_number(key: &str) -> Option<i64> {
    let number: i64 = key.parse().ok()?;
    (number >= 0 && number.to_string() == key).then_some(number)
}

/// Returns the hash that is written exactly like the key.
fn as_hash(key: &str) -> Option<[u8; HASH_BYTES / 2]> {
    let mut hash = [0; HASH_BYTES / 2];
    hex::decode_to_slice(key, &mut hash).ok()?;
    (hex::encode(hash) == key).then_some(hash)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{read, write};
    use crate::cursor::{HIDDEN, Seen, key};

    fn post(key: &str, seconds: Option<i64>) -> Seen {
        Seen(key.into(), seconds)
    }

    #[test]
    fn consecutive_ids_are_stored_compactly() {
        let seen = [
            post("45001200", Some(1_700_000_000)),
            post("45001203", Some(1_700_000_009)),
            post("45001198", Some(1_700_000_004)),
            post("?45001204", None),
            post("45001207", Some(1_700_000_010)),
        ];
        let text = write(&seen);
        assert_eq!(
            text,
            "=45001200 1700000000 +3 9 -5 -5 =?45001204 _ =45001207 6"
        );
        assert_eq!(read(&text).unwrap(), seen);
    }

    #[test]
    fn hashes_are_written_in_base64() {
        let seen = [post(
            &key("https://forum.example/t/a-long-address/1"),
            Some(5),
        )];
        let text = write(&seen);
        assert_eq!(text.len(), "#".len() + 16 + " 5".len());
        assert_eq!(read(&text).unwrap(), seen);
    }

    #[test]
    fn malformed_texts_are_refused() {
        for text in [
            "all",
            "=1",
            "+1 5",
            "=a 1 +1 1",
            "=1 x",
            "=1 1 +9223372036854775807 1",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    fn native_id() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<u64>().prop_map(|id| id.to_string()),
            (0_u32..2_000).prop_map(|id| id.to_string()),
            "[ -~]{0,30}",
            "[0+=_-]{0,5}[0-9]{0,25}",
            any::<String>(),
            // Almost a hash.
            "[0-9a-fA-F+]{22,26}",
        ]
    }

    proptest! {
        #[test]
        fn every_seen_set_round_trips(posts in prop::collection::vec((native_id(), any::<bool>(), any::<Option<i64>>()), 0..40)) {
            let seen: Vec<Seen> = posts
                .into_iter()
                .map(|(id, hidden, seconds)| {
                    let key = key(&id);
                    Seen(if hidden { format!("{HIDDEN}{key}") } else { key }, seconds)
                })
                .collect();
            prop_assert_eq!(read(&write(&seen)), Some(seen));
        }

        #[test]
        fn no_text_panics(text in "[ =#+_0-9a-]{0,60}") {
            let _ = read(&text);
        }
    }
}
