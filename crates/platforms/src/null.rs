//! `null` in the JSON of platforms means that a member is absent, as some servers of the same API leave it out.

use serde::{Deserialize, Deserializer};

/// Reads a member that may be `null`; `null` is the default.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
