//! A validated request to create a Manager.

use std::cell::RefCell;

use serde_json::Value;

use super::{
    Input, Notice, PATHS, SourceType,
    fields::{self, NamedConnection},
    rules::Rules,
};
use crate::{
    Instructions, Issue, Issues,
    json::Object,
    namespace::nickname,
    screen::{self, Screen},
};

/// Source of the instructions.
#[derive(Debug, Clone, PartialEq)]
pub enum Origin {
    Input(Input),
    Instructions(Instructions),
}

/// A valid request to create a Manager. The store checks that its Connections exist.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateManager {
    pub nickname: String,
    pub enable: bool,
    pub source: SourceType,
    pub origin: Origin,
    pub notices: Vec<Notice>,
    pub screen: Screen,
}

impl CreateManager {
    /// # Errors
    /// Every field that fails.
    pub fn parse(body: &Value, rules: Rules<'_>) -> Result<Self, Issues> {
        Self::parse_with_notices(body, rules).0
    }

    /// Like [`CreateManager::parse`], but also returns the index and name of each notice that could be read,
    /// even if other fields fail, so that missing Connections can be reported together with the other fields.
    pub fn parse_with_notices(
        body: &Value,
        rules: Rules<'_>,
    ) -> (Result<Self, Issues>, Vec<NamedConnection>) {
        let issues = RefCell::default();
        let mut named = Vec::new();
        let draft = Object::root(body, &issues).and_then(|fields| {
            let draft = draft(&fields, rules, &mut named);
            fields.ignore(PATHS.output_only);
            fields.finish();
            draft
        });
        // `None` only after an issue was reported.
        let parsed = issues
            .into_inner()
            .or(())
            .and_then(|()| draft.ok_or_else(|| Issues::one("body", Issue::InvalidFormat)));
        (parsed, named)
    }
}

fn draft(
    fields: &Object<'_>,
    rules: Rules<'_>,
    named: &mut Vec<NamedConnection>,
) -> Option<CreateManager> {
    let nickname = nickname(fields);
    let manager_type = fields::manager_type(fields);
    let enable = fields::enable(fields);
    let source = fields::source(fields);
    let origin = match (fields.take("input"), fields.take("instructions")) {
        (Some(_), Some(_)) => {
            fields.report("instructions", Issue::Conflict);
            None
        }
        (None, None) => {
            fields.report("input", Issue::Required);
            None
        }
        (Some(value), None) => fields
            .object("input", Some(value))
            .and_then(|input| fields::input(input, rules))
            .map(Origin::Input),
        (None, Some(value)) => {
            fields::instructions(fields, value, source, rules).map(Origin::Instructions)
        }
    };
    let notices = fields::notices(fields, named);
    let screen = screen::screen(fields);
    manager_type?;
    Some(CreateManager {
        nickname: nickname?,
        enable: enable?,
        source: source?,
        origin: origin?,
        notices: notices?,
        screen: screen?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::{CreateManager, Origin, Rules};
    use crate::{ConnectionName, Id, Issue, Sensitivity, address::AddressPolicy, feed::OneForum};

    fn parse(body: &Value) -> Result<CreateManager, Vec<(String, Issue)>> {
        let rules = Rules {
            addresses: &AddressPolicy::default(),
            feeds: &OneForum,
        };
        CreateManager::parse(body, rules).map_err(|issues| {
            issues
                .as_slice()
                .iter()
                .map(|one| (one.field.clone(), one.issue))
                .collect()
        })
    }

    fn automatic() -> Value {
        json!({
            "nickname": "ours", "type": "FEED_MANAGER", "source": {"type": "FORUM"},
            "input": {"type": "STRUCTURED", "urls": ["https://example.com/"], "focus": {"type": "SALES"}}
        })
    }

    #[test]
    fn input_creates_an_enabled_manager() {
        let draft = parse(&automatic()).unwrap();
        assert!(draft.enable && matches!(draft.origin, Origin::Input(_)));
    }

    #[test]
    fn sensitivity_is_balanced_unless_given() {
        let sensitivity_of = |body: &Value| match parse(body).unwrap().origin {
            Origin::Input(input) => input.sensitivity,
            Origin::Instructions(_) => panic!("the body has an input"),
        };
        let mut body = automatic();
        assert_eq!(sensitivity_of(&body), Sensitivity::Balanced);
        body["input"]["sensitivity"] = Value::Null;
        assert_eq!(sensitivity_of(&body), Sensitivity::Balanced);
        for sensitivity in Sensitivity::ALL {
            body["input"]["sensitivity"] = json!(sensitivity.as_str());
            assert_eq!(sensitivity_of(&body), sensitivity);
        }
    }

    #[test]
    fn sensitivity_rejects_unknown_values() {
        for (value, issue) in [
            (json!("HIGH"), Issue::InvalidEnum),
            (json!("precise"), Issue::InvalidEnum),
            (json!(""), Issue::InvalidEnum),
            (json!(0.5), Issue::InvalidType),
        ] {
            let mut body = automatic();
            body["input"]["sensitivity"] = value;
            let expected = [("input.sensitivity".to_owned(), issue)];
            assert_eq!(parse(&body).unwrap_err(), expected, "{body}");
        }
    }

    #[test]
    fn either_input_or_instructions_is_required() {
        let mut body = automatic();
        body["instructions"] = json!({"include": [{"text": "backup", "weight": 1}]});
        assert_eq!(
            parse(&body).unwrap_err(),
            [("instructions".to_owned(), Issue::Conflict)]
        );
        body.as_object_mut().unwrap().remove("input");
        assert!(matches!(
            parse(&body).unwrap().origin,
            Origin::Instructions(_)
        ));
        body.as_object_mut().unwrap().remove("instructions");
        assert_eq!(
            parse(&body).unwrap_err(),
            [("input".to_owned(), Issue::Required)]
        );
    }

    #[test]
    fn every_failing_field_is_named() {
        let body = json!({
            "nickname": "x".repeat(121), "type": "OTHER", "enable": "yes", "source": {"type": "PRESS", "id": 1},
            "input": {"type": "STRUCTURED", "urls": ["ftp://example.com", 7, "http://10.0.0.1/"], "focus": {}},
            "notices": [{"type": "HTTP_REQUEST", "connection": "nowhere", "filter": "match.score >"}, 5],
            "surprise": true
        });
        let expected = [
            ("nickname", Issue::TooLong),
            ("type", Issue::InvalidEnum),
            ("enable", Issue::InvalidType),
            ("source.type", Issue::InvalidEnum),
            ("source.id", Issue::UnknownField),
            ("input.urls[0]", Issue::InvalidFormat),
            ("input.urls[1]", Issue::InvalidType),
            ("input.urls[2]", Issue::ForbiddenAddress),
            ("input.focus.type", Issue::Required),
            ("notices[0].connection", Issue::InvalidFormat),
            ("notices[0].filter", Issue::InvalidFormat),
            ("notices[1]", Issue::InvalidType),
            ("surprise", Issue::UnknownField),
        ];
        assert_eq!(
            parse(&body).unwrap_err(),
            expected.map(|(field, issue)| (field.to_owned(), issue))
        );
    }

    #[test]
    fn connections_are_read_even_if_other_fields_fail() {
        let rules = Rules {
            addresses: &AddressPolicy::default(),
            feeds: &OneForum,
        };
        let name = |n: u128| ConnectionName {
            namespace: Id::from_uuid(Uuid::from_u128(1)),
            connection: Id::from_uuid(Uuid::from_u128(n)),
        };
        let notice = |n| json!({"type": "HTTP_REQUEST", "connection": name(n).to_string()});
        let mut notices = vec![json!(5), notice(1), notice(1), notice(2)];
        notices.extend((3..20).map(notice));
        let body = json!({"nickname": "", "notices": notices});
        let (parsed, named) = CreateManager::parse_with_notices(&body, rules);
        let failing = parsed.unwrap_err();
        let issue_of = |field: &str| {
            let mut all = failing.as_slice().iter();
            all.find(|one| one.field == field).map(|one| one.issue)
        };
        assert_eq!(issue_of("nickname"), Some(Issue::TooShort));
        assert_eq!(issue_of("notices"), Some(Issue::TooMany));
        assert_eq!(issue_of("notices[2].connection"), Some(Issue::Duplicate));
        let expected: Vec<_> = [(1, 1)].into_iter().chain((3..10).zip(2..)).collect();
        assert_eq!(
            named,
            expected
                .iter()
                .map(|&(at, n)| (at, name(n)))
                .collect::<Vec<_>>()
        );
    }

    #[test]
    fn empty_instructions_are_refused() {
        let mut body = automatic();
        body.as_object_mut().unwrap().remove("input");
        body["instructions"] = json!({"include": [], "names": null, "threshold": -1, "colour": 1});
        let expected = [
            ("instructions.include", Issue::Required),
            ("instructions.colour", Issue::UnknownField),
        ];
        assert_eq!(
            parse(&body).unwrap_err(),
            expected.map(|(field, issue)| (field.to_owned(), issue))
        );
    }

    #[test]
    fn terms_are_limited_over_all_lists() {
        let mut body = automatic();
        body.as_object_mut().unwrap().remove("input");
        let aliases: Vec<String> = (0..500).map(|number| format!("alias {number}")).collect();
        body["instructions"] =
            json!({"names": [{"text": "acme", "kind": "OWN", "aliases": aliases}]});
        assert_eq!(
            parse(&body).unwrap_err(),
            [("instructions".to_owned(), Issue::TooMany)]
        );
    }

    #[test]
    fn instructions_outside_their_bounds_are_refused() {
        let mut body = automatic();
        body.as_object_mut().unwrap().remove("input");
        body["instructions"] = json!({
            "feeds": ["hackernews:newest", "nowhere:newest", "hackernews", "hackernews:oldest"],
            "include": [{"text": "", "weight": 1}, {"text": "x", "weight": "y"}, {"text": "?!", "weight": 1e300}],
            "require": [[], ["x"]],
            "focus": "SALES", "threshold": 1.5
        });
        let expected = [
            ("instructions.feeds[1]", Issue::NotFound),
            ("instructions.feeds[2]", Issue::InvalidFormat),
            ("instructions.feeds[3]", Issue::InvalidFormat),
            ("instructions.require[0]", Issue::TooShort),
            ("instructions.include[0].text", Issue::TooShort),
            ("instructions.include[1].weight", Issue::InvalidType),
            ("instructions.include[2].text", Issue::InvalidFormat),
            ("instructions.include[2].weight", Issue::OutOfRange),
            ("instructions.threshold", Issue::OutOfRange),
        ];
        assert_eq!(
            parse(&body).unwrap_err(),
            expected.map(|(field, issue)| (field.to_owned(), issue))
        );
    }

    #[test]
    fn feeds_of_another_source_are_refused() {
        let mut body = automatic();
        body.as_object_mut().unwrap().remove("input");
        body["instructions"] = json!({
            "feeds": ["hackernews:newest"], "include": [{"text": "backup", "weight": 1}]
        });
        assert!(parse(&body).is_ok());
        body["source"]["type"] = json!("NETWORK");
        assert_eq!(
            parse(&body).unwrap_err(),
            [("instructions.feeds[0]".to_owned(), Issue::Conflict)]
        );
    }
}
