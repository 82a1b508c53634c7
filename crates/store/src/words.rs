//! Enumeration values and text, as stored in tables.

use std::borrow::Cow;

use serde::de::{DeserializeOwned, IntoDeserializer, value::StrDeserializer};
use serde_json::Value;

use crate::Error;

/// Parses an enumeration value, spelled as in JSON.
///
/// # Errors
/// If a newer version wrote a value that this one does not know.
pub(crate) fn parse<T: DeserializeOwned>(word: &str) -> Result<T, Error> {
    let deserializer: StrDeserializer<'_, serde_json::Error> = word.into_deserializer();
    T::deserialize(deserializer).map_err(Error::Json)
}

/// Removes NUL characters from foreign text, because PostgreSQL refuses them: one in a post or a receiver's
/// response must not fail its whole batch again and again.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', ""))
    } else {
        Cow::Borrowed(text)
    }
}

/// Same as [`text`], for all text in a JSON value; its keys are ours.
pub(crate) fn json(mut value: Value) -> Value {
    clean(&mut value);
    value
}

fn clean(value: &mut Value) {
    match value {
        Value::String(text) if text.contains('\0') => *text = text.replace('\0', ""),
        Value::Array(items) => items.iter_mut().for_each(clean),
        Value::Object(fields) => fields.values_mut().for_each(clean),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
