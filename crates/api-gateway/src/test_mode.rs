//! The header `x-test`.

use actix_web::http::header::{HeaderMap, HeaderName};
use domain::{Issue, Issues};

pub(crate) const X_TEST: HeaderName = HeaderName::from_static("x-test");

/// Returns true if the request is a test: it runs in a transaction that is rolled back, and a deletion only reads.
///
/// # Errors
/// One issue on `x-test`.
pub(crate) fn parse(headers: &HeaderMap) -> Result<bool, Issues> {
    let mut values = headers.get_all(X_TEST);
    let Some(value) = values.next() else {
        return Ok(false);
    };
    if values.next().is_some() {
        return Err(Issues::one(X_TEST.as_str(), Issue::Duplicate));
    }
    let is = |words: [&str; 2]| {
        let value = value.as_bytes().trim_ascii();
        words
            .iter()
            .any(|word| value.eq_ignore_ascii_case(word.as_bytes()))
    };
    if is(["true", "yes"]) {
        Ok(true)
    } else if is(["false", "no"]) {
        Ok(false)
    } else {
        Err(Issues::one(X_TEST.as_str(), Issue::InvalidEnum))
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{HeaderMap, HeaderValue};

    use super::{X_TEST, parse};

    fn parsed(values: &[&'static str]) -> Option<bool> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(X_TEST, HeaderValue::from_static(value));
        }
        parse(&headers).ok()
    }

    #[test]
    fn value_of_x_test_is_case_insensitive() {
        assert_eq!(parsed(&[]), Some(false));
        for on in ["true", "YES", "True", " yes "] {
            assert_eq!(parsed(&[on]), Some(true), "{on}");
        }
        for off in ["false", "No"] {
            assert_eq!(parsed(&[off]), Some(false), "{off}");
        }
        for wrong in ["", "1", "on", "truee"] {
            assert_eq!(parsed(&[wrong]), None, "{wrong}");
        }
        assert_eq!(parsed(&["true", "true"]), None);
    }
}
