//! Reads untrusted JSON.
//!
//! [`parse`] accepts unambiguous RFC 8259 JSON: duplicate keys, invalid UTF-8, numbers that do not fit an f64,
//! nesting past 128 levels and very many values are errors. [`Object`] then takes the fields one by one and reports all errors, so
//! that a client sees all of them at once.

use std::{
    cell::{Cell, RefCell},
    collections::HashSet,
    fmt,
};

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Number, Value};

use crate::{Issue, Issues};

/// Maximum objects of a body, and maximum values. Valid bodies have some 1,500 and 10,000. An object of five bytes takes
/// more than a hundred times as many in memory.
const MAX_OBJECTS: u32 = 4_096;
const MAX_VALUES: u32 = 32_768;

/// The bytes are not JSON that we accept.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ParseJsonError(String);

/// # Errors
/// With line and column, if the bytes are not exactly one JSON value, or an ambiguous one.
pub fn parse(bytes: &[u8]) -> Result<Value, ParseJsonError> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let left = Left {
        objects: Cell::new(MAX_OBJECTS),
        values: Cell::new(MAX_VALUES),
    };
    let value = Strict(&left)
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| ParseJsonError(error.to_string()))?;
    Ok(value)
}

/// Deserializes into a [`Value`], and refuses an object with a duplicate key.
#[derive(Clone, Copy)]
struct Strict<'a>(&'a Left);

/// Objects and values that a body may still have.
struct Left {
    objects: Cell<u32>,
    values: Cell<u32>,
}

fn take_one<E: serde::de::Error>(left: &Cell<u32>) -> Result<(), E> {
    let rest = left.get().checked_sub(1);
    left.set(rest.ok_or_else(|| E::custom("too many values"))?);
    Ok(())
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = items.next_element_seed(self)? {
            take_one(&self.0.values)?;
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        take_one(&self.0.objects)?;
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format_args!("duplicate key `{key}`")));
            }
            take_one(&self.0.values)?;
            let value = entries.next_value_seed(self)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

/// A JSON object whose fields are taken one by one; errors are reported in the shared [`Issues`].
///
/// `null` counts as absent. [`Object::finish`] reports the fields that were not taken.
pub struct Object<'a> {
    map: &'a Map<String, Value>,
    path: String,
    taken: RefCell<HashSet<&'static str>>,
    issues: &'a RefCell<Issues>,
}

impl<'a> Object<'a> {
    /// The whole body; a value that is not an object is an issue on the field `body`.
    pub fn root(value: &'a Value, issues: &'a RefCell<Issues>) -> Option<Self> {
        Self::at(value, String::new(), issues)
    }

    pub fn at(value: &'a Value, path: String, issues: &'a RefCell<Issues>) -> Option<Self> {
        if let Value::Object(map) = value {
            return Some(Self {
                map,
                path,
                taken: RefCell::default(),
                issues,
            });
        }
        let field = if path.is_empty() {
            "body".to_owned()
        } else {
            path
        };
        issues.borrow_mut().add(field, Issue::InvalidType);
        None
    }

    /// The full path of one of this object's fields.
    pub fn path(&self, field: &str) -> String {
        if self.path.is_empty() {
            field.to_owned()
        } else {
            format!("{}.{field}", self.path)
        }
    }

    /// Reports an issue with a field.
    pub fn report(&self, field: &str, issue: Issue) {
        self.issues.borrow_mut().add(self.path(field), issue);
    }

    /// Reports an issue with the object as a whole.
    pub fn report_whole(&self, issue: Issue) {
        self.issues.borrow_mut().add(self.path.clone(), issue);
    }

    pub fn issues(&self) -> &'a RefCell<Issues> {
        self.issues
    }

    /// Returns true if the body has the field, even if it is `null`.
    pub fn has(&self, field: &str) -> bool {
        self.map.contains_key(field)
    }

    /// Result of `parse` if the object has the field, even if it is `null`. A change leaves absent fields
    /// unchanged.
    pub fn given<T>(&self, field: &str, parse: impl FnOnce() -> Option<T>) -> Option<T> {
        self.has(field).then(parse).flatten()
    }

    /// Returns true if a list or object is absent or empty.
    pub fn is_empty(&self, field: &str) -> bool {
        match self.map.get(field) {
            None | Some(Value::Null) => true,
            Some(Value::Array(items)) => items.is_empty(),
            Some(Value::Object(fields)) => fields.is_empty(),
            Some(_) => false,
        }
    }

    /// The raw value, unless absent or `null`.
    pub fn take(&self, field: &'static str) -> Option<&'a Value> {
        self.taken.borrow_mut().insert(field);
        self.map.get(field).filter(|value| !value.is_null())
    }

    /// Like [`Object::take`], but a missing value is an issue.
    pub fn require(&self, field: &'static str) -> Option<&'a Value> {
        let value = self.take(field);
        if value.is_none() {
            self.report(field, Issue::Required);
        }
        value
    }

    /// A string, unchanged.
    pub fn text(&self, field: &'static str, value: Option<&'a Value>) -> Option<&'a str> {
        let text = value?.as_str();
        if text.is_none() {
            self.report(field, Issue::InvalidType);
        }
        text
    }

    /// A string of `min..=max` characters once trimmed.
    pub fn trimmed(
        &self,
        field: &'static str,
        value: Option<&'a Value>,
        bounds: std::ops::RangeInclusive<usize>,
    ) -> Option<String> {
        let text = self.text(field, value)?.trim();
        let length = text.chars().count();
        if length < *bounds.start() {
            self.report(field, Issue::TooShort);
        } else if length > *bounds.end() {
            self.report(field, Issue::TooLong);
        } else {
            return Some(text.to_owned());
        }
        None
    }

    /// An integer within `bounds`; `5.0` counts as one.
    pub fn whole_number(
        &self,
        field: &'static str,
        value: &Value,
        bounds: std::ops::RangeInclusive<u32>,
    ) -> Option<u32> {
        let number = value.as_f64().filter(|number| number.fract() == 0.0);
        let bounded = number.ok_or(Issue::InvalidType).and_then(|number| {
            let sound = (f64::from(*bounds.start())..=f64::from(*bounds.end())).contains(&number);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "an integer between two of type u32"
            )]
            sound.then_some(number as u32).ok_or(Issue::OutOfRange)
        });
        bounded.map_err(|issue| self.report(field, issue)).ok()
    }

    pub fn boolean(&self, field: &'static str, value: Option<&Value>) -> Option<bool> {
        let flag = value?.as_bool();
        if flag.is_none() {
            self.report(field, Issue::InvalidType);
        }
        flag
    }

    /// One of a fixed set of words.
    pub fn word<T: Deserialize<'a>>(
        &self,
        field: &'static str,
        value: Option<&'a Value>,
    ) -> Option<T> {
        let word = self.text(field, value)?;
        let parsed = T::deserialize(
            serde::de::value::BorrowedStrDeserializer::<serde_json::Error>::new(word),
        );
        if parsed.is_err() {
            self.report(field, Issue::InvalidEnum);
        }
        parsed.ok()
    }

    pub fn array(&self, field: &'static str, value: Option<&'a Value>) -> Option<&'a [Value]> {
        let items = value?.as_array();
        if items.is_none() {
            self.report(field, Issue::InvalidType);
        }
        items.map(Vec::as_slice)
    }

    pub fn object(&self, field: &'static str, value: Option<&'a Value>) -> Option<Object<'a>> {
        Self::at(value?, self.path(field), self.issues)
    }

    /// Output-only fields: a client may send back what it read.
    pub fn ignore(&self, fields: &[&'static str]) {
        self.taken.borrow_mut().extend(fields);
    }

    /// Notes every field that was not taken.
    pub fn finish(self) {
        let taken = self.taken.borrow();
        for key in self.map.keys().filter(|key| !taken.contains(key.as_str())) {
            self.report(&shown(key), Issue::UnknownField);
        }
    }
}

/// A key for an error message: bounded, and without control characters.
pub fn shown(key: &str) -> String {
    if key.is_empty() {
        return r#""""#.to_owned();
    }
    key.chars()
        .take(80)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::{Object, parse};
    use crate::Issue;

    #[test]
    fn empty_json_key_is_shown_as_quotes() {
        let issues = RefCell::default();
        Object::root(&serde_json::json!({"": 1}), &issues)
            .unwrap()
            .finish();
        let issues = issues.into_inner();
        let one = &issues.as_slice()[0];
        assert_eq!(
            (one.field.as_str(), one.issue),
            (r#""""#, Issue::UnknownField)
        );
    }

    #[test]
    fn body_of_very_many_values_is_refused() {
        let nested = format!("{}0{}", r#"{"":"#.repeat(100), "}".repeat(100));
        let lists = |item: &str, count: usize| format!("[{}]", vec![item; count].join(","));
        for (fits, too_many) in [
            (lists(&nested, 40), lists(&nested, 41)),
            (lists("0", 32_768), lists("0", 32_769)),
        ] {
            assert!(parse(fits.as_bytes()).is_ok());
            let error = parse(too_many.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with("too many values"), "{error}");
        }
    }

    #[test]
    fn ambiguous_json_is_refused() {
        let deep = "[".repeat(1_000_000);
        let wrong: [&[u8]; 8] = [
            br#"{"a": 1, "a": 2}"#,
            br#"{"b": {"a": 1, "a": 2}}"#,
            b"{} {}",
            b"1e999",
            b"\"\xff\"",
            b"\"\\ud800\"",
            deep.as_bytes(),
            b"",
        ];
        for bytes in wrong {
            assert!(
                parse(bytes).is_err(),
                "{}",
                String::from_utf8_lossy(&bytes[..bytes.len().min(40)])
            );
        }
    }

    #[test]
    fn plain_json_is_parsed_unchanged() {
        let text = r#"{"a":[1,-2,3.5,true,null,"x"],"b":{}}"#;
        assert_eq!(parse(text.as_bytes()).unwrap().to_string(), text);
    }
}
