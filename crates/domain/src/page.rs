//! Page tokens: the position of the last item of a page, bound to its list.
//!
//! Opaque to clients. A checksum over the position and the list's parent, filter and order detects damage and
//! use with another list. It is not secret, because a forged position shows nothing that the caller may not
//! list anyway.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{
    Id,
    field::{Kind, Literal},
    order::OrderBy,
};

const CHECKSUM_BYTES: usize = 8;
const MAX_TOKEN_BYTES: usize = 16 * 1024;

/// The values of the fields that the list is ordered by, and the id that breaks ties.
#[derive(Debug, Clone, PartialEq)]
pub struct PageToken {
    /// One value for each field of the order; `None` if the item has no value.
    pub values: Vec<Option<Literal>>,
    pub id: Id,
}

/// The token is damaged, or belongs to another list.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a page token of this list")]
pub struct ParsePageTokenError;

impl PageToken {
    /// The token in the form for clients.
    pub fn encode(&self, binding: &str) -> String {
        let mut parts: Vec<Value> = vec![Value::from(self.id.to_string())];
        parts.extend(self.values.iter().map(|value| match value {
            None => Value::Null,
            Some(Literal::Text(text)) => Value::from(text.as_str()),
            Some(Literal::Time(time)) => Value::from(time.micros()),
            Some(Literal::Bool(flag)) => Value::from(*flag),
            // serde_json reads some numbers slightly wrong, which would move the position.
            Some(Literal::Number(number)) => Value::from(number.to_string()),
        }));
        Self::forge(Value::from(parts).to_string().as_bytes(), binding)
    }

    /// A token with a valid checksum over any `place`, as anyone can create it, so that tests reach the code
    /// after the checksum.
    pub fn forge(place: &[u8], binding: &str) -> String {
        let mut bytes = checksum(binding, place).to_vec();
        bytes.extend(place);
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    /// # Errors
    /// If `token` was not encoded with the same `binding`.
    pub fn parse(token: &str, binding: &str, order: &OrderBy) -> Result<Self, ParsePageTokenError> {
        Self::try_parse(token, binding, order).ok_or(ParsePageTokenError)
    }

    fn try_parse(token: &str, binding: &str, order: &OrderBy) -> Option<Self> {
        if token.len() > MAX_TOKEN_BYTES {
            return None;
        }
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).ok()?;
        let (sum, place) = bytes.split_at_checked(CHECKSUM_BYTES)?;
        if sum != checksum(binding, place) {
            return None;
        }
        let parts: Vec<Value> = serde_json::from_slice(place).ok()?;
        let (id, values) = parts.split_first()?;
        if values.len() != order.0.len() {
            return None;
        }
        let values = values
            .iter()
            .zip(&order.0)
            .map(|(value, (field, _))| literal(value, field.kind))
            .collect::<Option<_>>()?;
        Some(Self {
            values,
            id: id.as_str()?.parse().ok()?,
        })
    }
}

/// The outer `None` means that the value is not of this kind.
#[expect(
    clippy::option_option,
    reason = "an absent value has a place in the order too"
)]
fn literal(value: &Value, kind: Kind) -> Option<Option<Literal>> {
    if value.is_null() {
        return Some(None);
    }
    let literal = match kind {
        Kind::Text | Kind::Texts | Kind::Word(_) => {
            value.as_str().map(|text| Literal::Text(text.to_owned()))
        }
        Kind::Time => value
            .as_i64()
            .and_then(crate::Timestamp::from_micros)
            .map(Literal::Time),
        Kind::Bool => value.as_bool().map(Literal::Bool),
        Kind::Number => {
            let number: Option<f64> = value.as_str().and_then(|text| text.parse().ok());
            number
                .filter(|number| number.is_finite())
                .map(Literal::Number)
        }
    };
    literal.map(Some)
}

fn checksum(binding: &str, place: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut hash = Sha256::new();
    hash.update(binding.as_bytes());
    hash.update([0]);
    hash.update(place);
    let mut sum = [0; CHECKSUM_BYTES];
    sum.copy_from_slice(&hash.finalize()[..CHECKSUM_BYTES]);
    sum
}

#[cfg(test)]
mod tests {
    use super::PageToken;
    use crate::{Id, Timestamp, field::Literal, list::SCAN_FIELDS, order::OrderBy};

    #[test]
    fn page_token_is_valid_only_for_its_own_list() {
        let order =
            OrderBy::parse("createTime, post.title, value, match.score", SCAN_FIELDS).unwrap();
        let token = PageToken {
            values: vec![
                Some(Literal::Time(Timestamp::now())),
                None,
                Some(Literal::Bool(true)),
                Some(Literal::Number(0.1 + 0.2)),
            ],
            id: Id::generate(),
        };
        let text = token.encode("a list");
        assert_eq!(PageToken::parse(&text, "a list", &order).unwrap(), token);
        assert!(PageToken::parse(&text, "another", &order).is_err());
        assert!(PageToken::parse(&text, "a list", &OrderBy::newest_first()).is_err());
    }

    proptest::proptest! {
        #[test]
        fn damaged_page_token_is_refused(at in 0_usize..60, to in "[A-Za-z0-9_-]") {
            let order = OrderBy::newest_first();
            let token = PageToken { values: vec![Some(Literal::Time(Timestamp::UNIX_EPOCH))], id: Id::at(Timestamp::UNIX_EPOCH) };
            let text = token.encode("a list");
            let mut damaged = text.clone();
            damaged.replace_range(at % text.len()..=at % text.len(), &to);
            let parsed = PageToken::parse(&damaged, "a list", &order);
            proptest::prop_assert!(damaged == text || parsed.is_err() || parsed == Ok(token));
        }

        #[test]
        fn numbers_in_page_tokens_read_back_unchanged(number in proptest::num::f64::NORMAL) {
            let order = OrderBy::parse("match.score", SCAN_FIELDS).unwrap();
            let token = PageToken { values: vec![Some(Literal::Number(number))], id: Id::generate() };
            proptest::prop_assert_eq!(PageToken::parse(&token.encode(""), "", &order), Ok(token));
        }

        #[test]
        fn no_token_panics(text in ".{0,100}") {
            let _ = PageToken::parse(&text, "a list", &OrderBy::newest_first());
        }
    }
}
