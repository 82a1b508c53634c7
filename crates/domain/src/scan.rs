//! Scans: posts that a Manager found worth the customer's attention.

use std::cell::RefCell;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::{
    Focus, Issue, Issues, Post, ScanName, Subforum, Timestamp, json::Object, patch::Paths,
};

pub const MAX_LABELS: usize = 10;
/// Maximum number of places of one Scan; further ones are not recorded.
pub const MAX_PLACES: usize = 50;
const LABEL_CHARS: std::ops::RangeInclusive<usize> = 1..=50;

/// The paths that a PATCH may name.
pub const PATHS: Paths = Paths {
    settable: &["value", "labels"],
    output_only: &[
        "name",
        "createTime",
        "updateTime",
        "post",
        "match",
        "places",
    ],
};

/// A matched post, as clients see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scan {
    pub name: ScanName,
    pub create_time: Timestamp,
    pub update_time: Timestamp,
    pub post: Post,
    /// The verdict: true at creation, then the customer's once they set it.
    pub value: bool,
    /// The customer's labels, in the order given.
    #[serde(default)]
    pub labels: Vec<String>,
    #[serde(rename = "match")]
    pub matched: Match,
    /// Other places with the same content, in the order of discovery, for a Manager that collapses duplicates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Place>,
}

/// The place of a post with the same content as another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    pub url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subforum: Option<Subforum>,
    /// Creation time of the post.
    pub time: Timestamp,
}

impl Place {
    pub fn of(post: &Post) -> Self {
        Self {
            url: post.url.clone(),
            subforum: post.subforum.clone(),
            time: post.time,
        }
    }
}

/// Reason why a post matched.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Match {
    /// With a focus: the probability that a person would keep the post, 0 if the gate excluded it. Without: the
    /// sum of the weights of the terms that occur.
    pub score: f64,
    /// The terms and names that counted, strongest first; at most 50.
    pub terms: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<Focus>,
    /// Positions of the terms, in the order of the post; the list is limited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spans: Vec<Span>,
    /// With a focus: the kind of post.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signals: Option<Signals>,
    /// True if the LLM filter decided. The score can then be below the threshold.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub judged: bool,
    /// With a focus and a reader: whether the score is the reader's, or why not. `None` for an outcome of a later release.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "known_outcome"
    )]
    pub reader: Option<ReaderOutcome>,
}

/// During an upgrade, a scanner may write words that a gateway does not know yet. Its lists must not fail for them.
fn known_outcome<'de, D: Deserializer<'de>>(from: D) -> Result<Option<ReaderOutcome>, D::Error> {
    let value = Value::deserialize(from)?;
    Ok(ReaderOutcome::deserialize(value).ok())
}

/// Says what the reader, a small transformer that understands posts, did about a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ReaderOutcome {
    /// The score is the reader's.
    Judged,
    /// The Manager's budget of the day is spent.
    OverBudget,
    /// No turn came in time.
    Busy,
    /// Its files cannot be used, or it failed.
    Unavailable,
    /// The instructions do not say what the customer sells.
    NoOffers,
    /// The post is not in English.
    OtherLanguage,
    /// The post has no title.
    Untitled,
}

impl ReaderOutcome {
    /// Returns the name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Judged => "JUDGED",
            Self::OverBudget => "OVER_BUDGET",
            Self::Busy => "BUSY",
            Self::Unavailable => "UNAVAILABLE",
            Self::NoOffers => "NO_OFFERS",
            Self::OtherLanguage => "OTHER_LANGUAGE",
            Self::Untitled => "UNTITLED",
        }
    }
}

/// A term in a post, in code points of the field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    pub field: SpanField,
    pub start: usize,
    /// The first code point after it.
    pub end: usize,
    pub term: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpanField {
    Title,
    Text,
}

/// How strongly a post is of each kind, regardless of its topic: 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Signals {
    /// Someone wants to choose, buy or hire.
    pub buying: f64,
    /// Products or services are compared.
    pub comparison: f64,
    /// Someone complains or needs help.
    pub trouble: f64,
}

/// A valid request to change a Scan: `None` means unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScanChange {
    pub value: Option<bool>,
    pub labels: Option<Vec<String>>,
}

impl ScanChange {
    /// Parses the result of [`Patch::apply`].
    ///
    /// # Errors
    /// Every field that fails.
    ///
    /// [`Patch::apply`]: crate::patch::Patch::apply
    pub fn parse(document: &Value) -> Result<Self, Issues> {
        let issues = RefCell::default();
        let change = Object::root(document, &issues).map(|fields| {
            let change = Self {
                value: fields.given("value", || fields.boolean("value", fields.require("value"))),
                labels: fields.given("labels", || labels(&fields)),
            };
            fields.ignore(PATHS.output_only);
            fields.finish();
            change
        });
        issues.into_inner().or(change.unwrap_or_default())
    }
}

fn labels(fields: &Object<'_>) -> Option<Vec<String>> {
    let Some(value) = fields.take("labels") else {
        return Some(Vec::new());
    };
    let items = fields.array("labels", Some(value))?;
    if items.len() > MAX_LABELS {
        fields.report("labels", Issue::TooMany);
        return None;
    }
    let mut labels: Vec<String> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        match label(item) {
            Ok(label) if labels.contains(&label) => {
                fields.report(&format!("labels[{at}]"), Issue::Duplicate);
            }
            Ok(label) => labels.push(label),
            Err(issue) => fields.report(&format!("labels[{at}]"), issue),
        }
    }
    (labels.len() == items.len()).then_some(labels)
}

fn label(item: &Value) -> Result<String, Issue> {
    let text = item.as_str().ok_or(Issue::InvalidType)?.trim();
    match text.chars().count() {
        count if count < *LABEL_CHARS.start() => Err(Issue::TooShort),
        count if count > *LABEL_CHARS.end() => Err(Issue::TooLong),
        _ => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Match, PATHS, ReaderOutcome, ScanChange};
    use crate::{Issue, patch::Patch};

    fn changed(body: &Value) -> Result<ScanChange, Vec<(String, Issue)>> {
        let current = json!({"value": true, "labels": ["a"]});
        let document = Patch::parse(body, None, PATHS)
            .unwrap()
            .apply(&current, PATHS);
        ScanChange::parse(&document).map_err(|issues| {
            let all = issues.as_slice().iter();
            all.map(|one| (one.field.clone(), one.issue)).collect()
        })
    }

    #[test]
    fn a_match_with_an_outcome_of_a_later_release_is_read() {
        for (reader, expected) in [
            (json!("JUDGED"), Some(ReaderOutcome::Judged)),
            (json!("OVER_BUDGET"), Some(ReaderOutcome::OverBudget)),
            (json!("A_WORD_OF_LATER"), None),
            (json!({"later": true}), None),
            (json!(null), None),
        ] {
            let text = json!({"score": 0.5, "terms": [], "reader": reader}).to_string();
            let matched: Match = serde_json::from_str(&text).unwrap();
            assert_eq!(matched.reader, expected, "{text}");
        }
        let without: Match = serde_json::from_value(json!({"score": 0.5, "terms": []})).unwrap();
        assert_eq!(without.reader, None);
    }

    #[test]
    fn a_change_holds_what_was_named() {
        let change = changed(&json!({"value": false, "post": {"id": 1}})).unwrap();
        assert_eq!((change.value, change.labels), (Some(false), None));
        let change = changed(&json!({"labels": [" b ", "a"]})).unwrap();
        assert_eq!(change.labels, Some(vec!["b".to_owned(), "a".to_owned()]));
        let change = changed(&json!({"labels": null})).unwrap();
        assert_eq!((change.value, change.labels), (None, Some(vec![])));
    }

    #[test]
    fn every_failing_field_is_named() {
        let body = json!({"value": null, "labels": ["a", " ", "x".repeat(51), 7, "a"], "score": 1});
        let expected = [
            ("value", Issue::Required),
            ("labels[1]", Issue::TooShort),
            ("labels[2]", Issue::TooLong),
            ("labels[3]", Issue::InvalidType),
            ("labels[4]", Issue::Duplicate),
            ("score", Issue::UnknownField),
        ];
        let expected = expected.map(|(field, issue)| (field.to_owned(), issue));
        assert_eq!(changed(&body).unwrap_err(), expected);
        let many: Vec<String> = (0..11).map(|n| n.to_string()).collect();
        let expected = [("labels".to_owned(), Issue::TooMany)];
        assert_eq!(changed(&json!({ "labels": many })).unwrap_err(), expected);
    }
}
