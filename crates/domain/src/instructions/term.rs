//! Words and phrases.

use serde_json::Value;

use super::MAX_TERM_CHARS;
use crate::Issue;

/// A word or phrase of 1 to 100 characters once trimmed.
///
/// # Errors
/// The issue with it.
pub fn term(item: &Value) -> Result<String, Issue> {
    let text = item.as_str().ok_or(Issue::InvalidType)?.trim();
    match text.chars().count() {
        0 => Err(Issue::TooShort),
        count if count > MAX_TERM_CHARS => Err(Issue::TooLong),
        // Punctuation alone is not a word, and never occurs.
        _ if !text.chars().any(char::is_alphanumeric) || text.contains('\0') => {
            Err(Issue::InvalidFormat)
        }
        _ => Ok(text.to_owned()),
    }
}
