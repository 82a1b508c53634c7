//! Words of closed sets, as tables hold them: the same as in JSON.

use serde::de::{DeserializeOwned, IntoDeserializer, value::StrDeserializer};

use crate::Error;

/// # Errors
/// When a newer version wrote a word that this one does not know.
pub(crate) fn parse<T: DeserializeOwned>(word: &str) -> Result<T, Error> {
    let deserializer: StrDeserializer<'_, serde_json::Error> = word.into_deserializer();
    T::deserialize(deserializer).map_err(Error::Json)
}
