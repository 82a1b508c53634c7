//! Reads the data that a page leaves for its scripts (`__NEXT_DATA__`, `__NUXT_DATA__`, `window.__INITIAL_STATE__`):
//! the text of pages that only scripts render.

use std::{borrow::Cow, fmt};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Minimum number of words of a text; shorter strings are keys, labels and names.
const MIN_WORDS: usize = 5;
const MAX_TEXTS: usize = 300;
/// Maximum number of JSON documents inside of strings, one in the other.
const MAX_NESTED: usize = 2;

/// Fields with the texts of forms and errors, in all languages.
const MESSAGES: [&str; 8] = [
    "dictionary",
    "errors",
    "i18n",
    "labels",
    "locales",
    "messages",
    "resources",
    "translations",
];

/// Returns whether a script may be data: a JSON value, or one that is assigned to a variable of the window.
pub(super) fn is_data(script: &str) -> bool {
    script.trim_start().starts_with(['{', '[']) || script.trim_start().starts_with("window.")
}

/// Returns the sentences of the first JSON value of a script, in its order; none for other scripts.
pub(super) fn texts(script: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let script = script.trim_start();
    let json = match script.strip_prefix("window.") {
        Some(assignment) => assignment.split_once('=').map_or("", |(_, value)| value),
        None => script,
    };
    read(json, 0, &mut texts);
    texts
}

fn read(json: &str, nested: usize, texts: &mut Vec<String>) {
    if json.trim_start().starts_with(['{', '[']) && nested <= MAX_NESTED {
        let mut json = serde_json::Deserializer::from_str(json);
        // What follows the value, or is broken, is code.
        let _ = Strings { nested, texts }.deserialize(&mut json);
    }
}

/// Collects the strings of a JSON value without keeping the value, which takes many times the memory of its text.
struct Strings<'a> {
    nested: usize,
    texts: &'a mut Vec<String>,
}

impl Strings<'_> {
    fn again(&mut self) -> Strings<'_> {
        Strings {
            nested: self.nested,
            texts: self.texts,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Strings<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strings<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        if !is_prose(text) {
            read(text, self.nested + 1, self.texts);
        } else if self.texts.len() < MAX_TEXTS && !self.texts.iter().any(|known| known == text) {
            self.texts.push(text.to_owned());
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut values: A) -> Result<(), A::Error> {
        while values.next_element_seed(self.again())?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
        while let Some(key) = fields.next_key::<Cow<'_, str>>()? {
            if MESSAGES.contains(&key.as_ref()) {
                fields.next_value::<IgnoredAny>()?;
            } else {
                fields.next_value_seed(self.again())?;
            }
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Returns whether a string is a sentence or markup with sentences, and not code, JSON or a list of addresses.
fn is_prose(text: &str) -> bool {
    let words = text.split_whitespace().filter(|word| {
        word.chars()
            .all(|c| c.is_alphabetic() || ".,;:!?'’-".contains(c))
    });
    let is_code = text.starts_with(['{', '[', '#', '.', '@', '$'])
        || text.contains("function")
        || text.contains("=>");
    // Scripts without spaces have no words to count.
    let spaceless = text
        .chars()
        .filter(|&c| matching::text::spaceless(c))
        .count();
    !is_code && (words.take(MIN_WORDS).count() == MIN_WORDS || spaceless >= 4 * MIN_WORDS)
}

#[cfg(test)]
mod tests {
    use super::texts;

    const ABOUT: &str = "We weave wool blankets on old looms in Galashiels.";

    #[test]
    fn sentences_of_each_kind_of_state_are_found() {
        for script in [
            format!(r#"{{"props":{{"pageProps":{{"hero":"{ABOUT}"}}}},"page":"/"}}"#),
            format!(r#"[{{"data":1}},["Reactive",2],"{ABOUT}","looms"]"#),
            format!(
                r#"window.__INITIAL_STATE__ = {{"page":{{"text":"{ABOUT}"}}}};(function(){{}})()"#
            ),
            format!(r#"{{"status":200,"body":"{{\"text\":\"{ABOUT}\"}}"}}"#),
        ] {
            assert_eq!(texts(&script), [ABOUT], "{script}");
        }
    }

    #[test]
    fn code_labels_and_addresses_are_left_out() {
        for script in [
            r#"{"a":"Add to cart","b":"https://a.example/b c d e","c":"function(a) { return the value of a }"}"#,
            r#"{"css":".a { color: red } and more of the same kind"}"#,
            "var a = {}; window.location = 'the other side of the page'",
            "window.dataLayer = window.dataLayer || [];",
            "{",
        ] {
            assert_eq!(texts(script), [""; 0], "{script}");
        }
        assert!(texts(&"[".repeat(100_000)).is_empty());
    }
}
