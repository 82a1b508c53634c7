//! Query parameters and the header `x-test`, whose errors are reported together.

use actix_web::{FromRequest, HttpRequest, dev::Payload};
use domain::{
    Issue, Issues, Timestamp,
    field::{Field, Literal},
    list::{self, ListQuery},
    stats::StatsQuery,
};
use futures::future::{Ready, ready};

use crate::{ApiError, test_mode};

/// Maximum length of a parameter name that an error repeats.
const MAX_NAME_CHARS: usize = 80;

/// The decoded query of a request, and its errors so far.
pub(crate) struct Parameters {
    given: Vec<(String, String)>,
    issues: Issues,
}

impl Parameters {
    pub(crate) fn of(request: &HttpRequest) -> Self {
        let mut issues = test_mode::parse(request.headers())
            .err()
            .unwrap_or_default();
        let given = parse(request.query_string(), &mut issues);
        Self { given, issues }
    }

    /// Checks an operation that takes no parameters.
    pub(crate) fn none(mut self) -> Result<(), Issues> {
        self.refuse_unknown(&[]);
        self.issues.or(())
    }

    /// Returns the update mask of a change, and the query's errors.
    pub(crate) fn update_mask(mut self) -> (Option<String>, Issues) {
        self.refuse_unknown(&["updateMask"]);
        let mut given = self.given.into_iter();
        let mask = given.find(|(name, _)| name == "updateMask");
        (mask.map(|(_, mask)| mask), self.issues)
    }

    /// Returns true if `force` is set on a deletion.
    pub(crate) fn force(mut self) -> Result<bool, Issues> {
        self.refuse_unknown(&["force"]);
        let given = self.given.iter().find(|(name, _)| name == "force");
        let force = match given.map(|(_, value)| value.as_str()) {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => {
                let hint = "true or false";
                self.issues
                    .add_with_hint("force", Issue::InvalidFormat, hint);
                false
            }
        };
        self.issues.or(force)
    }

    /// Parses the parameters that all lists take.
    pub(crate) fn list(
        mut self,
        parent: &str,
        fields: &'static [Field],
    ) -> Result<ListQuery, ApiError> {
        self.refuse_unknown(&["pageSize", "pageToken", "filter", "orderBy"]);
        let value = |name: &str| {
            let mut values = self.given.iter().filter(|(given, _)| given == name);
            values.next().map(|(_, value)| value.as_str())
        };
        let parsed = ListQuery::parse(
            parent,
            fields,
            value("pageSize"),
            value("pageToken"),
            value("filter"),
            value("orderBy"),
        );
        match parsed {
            Ok(list) if is_storable(&list) => Ok(self.issues.or(list)?),
            Ok(_) => {
                self.issues.extend(list::foreign_token());
                Err(self.issues.into())
            }
            Err(found) => {
                self.issues.extend(found);
                Err(self.issues.into())
            }
        }
    }

    /// Parses the parameters that all statistics take.
    pub(crate) fn stats(mut self, now: Timestamp) -> Result<StatsQuery, ApiError> {
        self.refuse_unknown(&["startTime", "endTime", "interval"]);
        let value = |name: &str| {
            let mut values = self.given.iter().filter(|(given, _)| given == name);
            values.next().map(|(_, value)| value.as_str())
        };
        let parsed =
            StatsQuery::parse(value("startTime"), value("endTime"), value("interval"), now);
        match parsed {
            Ok(stats) => Ok(self.issues.or(stats)?),
            Err(found) => {
                self.issues.extend(found);
                Err(self.issues.into())
            }
        }
    }

    fn refuse_unknown(&mut self, known: &[&str]) {
        for (name, _) in &self.given {
            if !known.contains(&name.as_str()) {
                self.issues.add(shown(name), Issue::UnknownField);
            }
        }
    }
}

impl FromRequest for Parameters {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Ok(Self::of(request)))
    }
}

/// Splits and decodes a query. A parameter that cannot be decoded, is repeated, or contains a NUL is reported and
/// left out.
fn parse(query: &str, issues: &mut Issues) -> Vec<(String, String)> {
    let mut given: Vec<(String, String)> = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let Some(name) = decode(name) else {
            issues.add("query", Issue::InvalidFormat);
            continue;
        };
        if given.iter().any(|(other, _)| *other == name) {
            issues.add(shown(&name), Issue::Duplicate);
            continue;
        }
        match decode(value) {
            Some(value) => given.push((name, value)),
            None => issues.add(shown(&name), Issue::InvalidFormat),
        }
    }
    given
}

/// Percent-decodes `text`, with `+` as a space. Returns `None` for invalid escapes, invalid UTF-8 and NUL
/// characters.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            b'+' => b' ',
            other => other,
        });
    }
    String::from_utf8(bytes)
        .ok()
        .filter(|text| !text.contains('\0'))
}

/// Returns true if the database can store the position in a page token. A forged token may contain one that it
/// cannot.
fn is_storable(list: &ListQuery) -> bool {
    let years = |year: &str| format!("{year}-01-01T00:00:00Z").parse::<Timestamp>();
    let (Ok(first), Ok(last)) = (years("0001"), years("9999")) else {
        return false;
    };
    let values = list.after.iter().flat_map(|token| &token.values).flatten();
    values.into_iter().all(|value| match value {
        Literal::Text(text) => !text.contains('\0'),
        Literal::Time(time) => (first..=last).contains(time),
        Literal::Bool(_) | Literal::Number(_) => true,
    })
}

/// A parameter name, shortened for an error message.
fn shown(name: &str) -> String {
    if name.is_empty() {
        return r#""""#.to_owned();
    }
    name.chars()
        .take(MAX_NAME_CHARS)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use domain::Issues;

    use super::{decode, parse, shown};

    #[test]
    fn valid_escapes_are_decoded_and_others_are_refused() {
        assert_eq!(decode("a%20b+c%C3%BC").unwrap(), "a b cü");
        for wrong in ["%", "%2", "%zz", "%+1", "%C3", "%ff", "a%00"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn empty_parameter_name_is_shown_as_quotes() {
        assert_eq!((shown("").as_str(), shown("a").as_str()), (r#""""#, "a"));
    }

    #[test]
    fn invalid_parameters_are_named() {
        let mut issues = Issues::default();
        let given = parse("a=1&b&&a=2&c=%zz&%=3", &mut issues);
        assert_eq!(
            given,
            [("a".into(), "1".into()), ("b".into(), String::new())]
        );
        let found: Vec<_> = issues
            .as_slice()
            .iter()
            .map(|one| (one.field.as_str(), serde_json::to_value(one.issue).unwrap()))
            .collect();
        let expected = [
            ("a", "duplicate"),
            ("c", "invalid_format"),
            ("query", "invalid_format"),
        ];
        assert_eq!(found, expected.map(|(field, issue)| (field, issue.into())));
    }
}
