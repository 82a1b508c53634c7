use std::cell::RefCell;

use serde_json::{Value, json};

use super::{Language, ParseLanguageError, Screen, screen, stored_mutes};
use crate::{Issue, json::Object};

fn parse(body: &Value) -> Result<Screen, Vec<(String, Issue)>> {
    let issues = RefCell::default();
    let parsed = Object::root(body, &issues).and_then(|fields| {
        let parsed = screen(&fields);
        fields.finish();
        parsed
    });
    let issues = issues.into_inner();
    let failed: Vec<_> = issues
        .as_slice()
        .iter()
        .map(|one| (one.field.clone(), one.issue))
        .collect();
    assert_eq!(parsed.is_none(), !failed.is_empty(), "{failed:?}");
    parsed.ok_or(failed)
}

#[test]
fn screen_reads_back_unchanged() {
    let body = json!({
        "mutes": [
            {"type": "AUTHOR", "value": "pat"},
            {"type": "SITE", "value": "example.com", "expireTime": "2026-11-21T01:02:03.000000Z"},
            {"type": "TERM", "value": "hiring"}
        ],
        "languages": ["en", "pt"],
        "maxScansPerDay": 50
    });
    let screen = parse(&body).unwrap();
    assert_eq!(serde_json::to_value(&screen).unwrap(), body);
    assert_eq!(parse(&json!({})).unwrap(), Screen::default());
    let nothing = json!({"mutes": null, "languages": null, "maxScansPerDay": null});
    assert_eq!(parse(&nothing).unwrap(), Screen::default());
}

#[test]
fn every_failing_field_is_named() {
    let body = json!({
        "mutes": [
            {"type": "AUTHOR", "value": " "}, {"type": "NOBODY", "value": "x"}, {"value": 1}, 5,
            {"type": "TERM", "value": "?!"}, {"type": "SITE", "value": "http://a.example/"},
            {"type": "AUTHOR", "value": "pat", "expireTime": "tomorrow", "why": "x"},
            {"type": "AUTHOR", "value": "kim"}, {"type": "AUTHOR", "value": "kim"},
            {"type": "SUBFORUM", "value": "x".repeat(201)}
        ],
        "languages": ["en", "en-GB", "english", 5, "xx"],
        "maxScansPerDay": 0
    });
    let expected = [
        ("mutes[0].value", Issue::TooShort),
        ("mutes[1].type", Issue::InvalidEnum),
        ("mutes[2].type", Issue::Required),
        ("mutes[2].value", Issue::InvalidType),
        ("mutes[3]", Issue::InvalidType),
        ("mutes[4].value", Issue::InvalidFormat),
        ("mutes[5].value", Issue::InvalidFormat),
        ("mutes[6].expireTime", Issue::InvalidFormat),
        ("mutes[6].why", Issue::UnknownField),
        ("mutes[8]", Issue::Duplicate),
        ("mutes[9].value", Issue::TooLong),
        ("languages[1]", Issue::Duplicate),
        ("languages[2]", Issue::InvalidFormat),
        ("languages[3]", Issue::InvalidType),
        ("languages[4]", Issue::InvalidEnum),
        ("maxScansPerDay", Issue::OutOfRange),
    ];
    assert_eq!(
        parse(&body).unwrap_err(),
        expected.map(|(field, issue)| (field.to_owned(), issue))
    );
    let many: Vec<Value> = (0..201)
        .map(|n| json!({"type": "AUTHOR", "value": n.to_string()}))
        .collect();
    assert_eq!(
        parse(&json!({ "mutes": many })).unwrap_err(),
        [("mutes".to_owned(), Issue::TooMany)]
    );
}

#[test]
fn muted_sites_are_hosts_in_their_canonical_form() {
    let site = |value: &str| {
        let body = json!({"mutes": [{"type": "SITE", "value": value}]});
        parse(&body).map(|screen| screen.mutes[0].value.clone())
    };
    assert_eq!(site("Example.COM").unwrap(), "example.com");
    assert_eq!(site("bücher.example").unwrap(), "xn--bcher-kva.example");
    for odd in ["a b", "x/y", "user@host", "", "[::1]"] {
        assert!(site(odd).is_err(), "{odd}");
    }
}

#[test]
fn language_tags_are_reduced_to_the_language() {
    assert!(Language::CODES.is_sorted());
    for (tag, code) in [
        ("en", "en"),
        ("PT-br", "pt"),
        ("nb", "no"),
        ("zh-Hant-TW", "zh"),
    ] {
        assert_eq!(tag.parse::<Language>().unwrap().as_str(), code, "{tag}");
    }
    for (tag, error) in [
        ("", ParseLanguageError::Malformed),
        ("e", ParseLanguageError::Malformed),
        ("en-", ParseLanguageError::Malformed),
        ("en_GB", ParseLanguageError::Malformed),
        ("tlh", ParseLanguageError::Unknown),
    ] {
        assert_eq!(tag.parse::<Language>(), Err(error), "{tag}");
    }
}

#[test]
fn only_values_of_a_newer_version_are_left_out() {
    let json = json!([{"type": "MOOD", "value": "x"}, {"type": "AUTHOR", "value": "pat"}]);
    let (mutes, unknown) = stored_mutes(&json);
    assert_eq!((mutes.len(), unknown), (1, 1));
}
