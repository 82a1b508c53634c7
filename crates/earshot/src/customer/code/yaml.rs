//! One YAML document as JSON, within bounds.
//!
//! Aliases can make a small text large. So their expansion counts too, before it is stored.

use std::{cell::Cell, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Bound on one document, aliases included. The service accepts a quarter of it.
const MAX_BYTES: usize = 1024 * 1024;
/// Size of a value in addition to its text.
const VALUE_BYTES: usize = 16;

/// Parses one document; an error has the line within it, if it is known.
pub(super) fn parse(text: &str) -> Result<Value, (Option<usize>, String)> {
    let left = Cell::new(MAX_BYTES);
    let parsed = Node { left: &left }.deserialize(serde_yaml_ng::Deserializer::from_str(text));
    parsed.map_err(|error| {
        let line = error.location().map(|at| at.line());
        let words = error.to_string();
        // Its line is relative to the document, and the caller knows the file.
        let words = words.split(" at line ").next().unwrap_or_default();
        (line, words.to_owned())
    })
}

#[derive(Clone, Copy)]
struct Node<'a> {
    left: &'a Cell<usize>,
}

impl Node<'_> {
    fn spend<E: Error>(self, bytes: usize) -> Result<(), E> {
        let cost = bytes.saturating_add(VALUE_BYTES);
        let left = self.left.get().checked_sub(cost);
        self.left
            .set(left.ok_or_else(|| E::custom("the document is too large, aliases included"))?);
        Ok(())
    }

    fn value<E: Error>(self, value: impl Into<Value>) -> Result<Value, E> {
        self.spend(0)?;
        Ok(value.into())
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text, a number, true, false, null, a list, or fields; no tags")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        self.value(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.value(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.value(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        if !value.is_finite() {
            return Err(E::custom("not a finite number"));
        }
        self.value(value)
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        self.value(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        self.deserialize(from)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.spend(value.len())?;
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        self.spend(0)?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        self.spend(0)?;
        let mut map = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            self.spend(key.len())?;
            let value = fields.next_value_seed(self)?;
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!(
                    "the field `{key}` is given twice"
                )));
            }
            map.insert(key, value);
        }
        Ok(map.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::parse;

    #[test]
    fn documents_become_json() {
        let text = "a: [1, 0.5, x, true, null]\nb: {c: 'on'}\n";
        let expected = json!({"a": [1, 0.5, "x", true, null], "b": {"c": "on"}});
        assert_eq!(parse(text).unwrap(), expected);
    }

    #[test]
    fn bombs_and_repeated_fields_are_refused() {
        let many = |word: &str, times: usize| vec![word; times].join(", ");
        let wide = format!("a: &a [{}]\nb: [{}]\n", many("x", 5_000), many("*a", 5_000));
        let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(9_000), many("*a", 9_000));
        let mut deep = "a0: &a0 [x, x]\n".to_owned();
        for level in 1..60 {
            let below = level - 1;
            deep += &format!("a{level}: &a{level} [*a{below}, *a{below}]\n");
        }
        let nested = "[".repeat(100_000);
        for bomb in [wide, long, deep, nested] {
            assert!(parse(&bomb).is_err());
        }
        let (line, error) = parse("a: 1\nb: 2\na: 3\n").unwrap_err();
        assert!(
            line.is_some() && error.contains("`a` is given twice"),
            "{error}"
        );
        for wrong in [
            "a: .nan",
            "a: !t {b: 1}",
            "? [a]\n: b",
            "a: *b",
            "a: &a [*a]",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
