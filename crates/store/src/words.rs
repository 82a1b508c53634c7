//! Words and text, as tables hold them.

use std::borrow::Cow;

use serde::de::{DeserializeOwned, IntoDeserializer, value::StrDeserializer};
use serde_json::Value;

use crate::Error;

/// A word of a closed set: the same as in JSON.
///
/// # Errors
/// When a newer version wrote a word that this one does not know.
pub(crate) fn parse<T: DeserializeOwned>(word: &str) -> Result<T, Error> {
    let deserializer: StrDeserializer<'_, serde_json::Error> = word.into_deserializer();
    T::deserialize(deserializer).map_err(Error::Json)
}

/// Text from elsewhere without NUL characters, which PostgreSQL refuses: one in a post or in a
/// receiver's answer must not fail the batch that it is in, again and again.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', ""))
    } else {
        Cow::Borrowed(text)
    }
}

/// Same as [`text`], for all text in a value of JSON; keys are ours.
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
