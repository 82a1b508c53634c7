//! A validated request to change a Manager.
//!
//! `input` and `instructions` are alternatives: setting one drops the other, and changes the mode. A client
//! that sends back everything it read sets both; then the one that differs counts.

use std::cell::RefCell;

use serde_json::Value;

use super::{Manager, Mode, NamedConnection, Notice, Origin, PATHS, Rules, SourceType, fields};
use crate::{
    Instructions, Issue, Issues,
    json::Object,
    namespace::nickname,
    patch::Patch,
    screen::{self, Duplicates, Kinds, Language, Mute},
};

/// A Manager before a change.
#[derive(Debug, Clone, PartialEq)]
pub struct Editable {
    pub manager: Manager,
    /// For a MANUAL Manager, the instructions that the client wrote last. The Manager shows them only while
    /// they are pending.
    pub submitted: Option<Instructions>,
    pub generation: i64,
}

/// A valid request to change a Manager: `None` means unchanged. The store checks that its Connections exist.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ManagerChange {
    pub nickname: Option<String>,
    pub enable: Option<bool>,
    pub source: Option<SourceType>,
    pub origin: Option<Origin>,
    pub notices: Option<Vec<Notice>>,
    pub mutes: Option<Vec<Mute>>,
    pub languages: Option<Vec<Language>>,
    /// `Some(None)` removes the limit.
    pub max_scans_per_day: Option<Option<u32>>,
    /// Set only if it differs.
    pub kinds: Option<Kinds>,
    pub duplicates: Option<Duplicates>,
}

impl ManagerChange {
    /// Returns the change that `patch` makes to the Manager, or every field that fails. Also returns the index
    /// and name of each notice that could be read, like [`CreateManager::parse_with_notices`].
    ///
    /// [`CreateManager::parse_with_notices`]: super::CreateManager::parse_with_notices
    pub fn parse(
        patch: &Patch,
        current: &Editable,
        rules: Rules<'_>,
    ) -> (Result<Self, Issues>, Vec<NamedConnection>) {
        let document = patch.apply(&current.document(), PATHS);
        let issues = RefCell::default();
        let mut named = Vec::new();
        let change = Object::root(&document, &issues).map(|fields| {
            fields.given("type", || fields::manager_type(&fields));
            let source = fields.given("source", || fields::source(&fields));
            let change = Self {
                nickname: fields.given("nickname", || nickname(&fields)),
                enable: fields.given("enable", || fields::enable(&fields)),
                source,
                origin: origin(&fields, current, source, rules),
                notices: fields.given("notices", || fields::notices(&fields, &mut named)),
                mutes: fields.given("mutes", || screen::mutes(&fields)),
                languages: fields.given("languages", || screen::languages(&fields)),
                max_scans_per_day: fields
                    .given("maxScansPerDay", || screen::max_scans_per_day(&fields)),
                kinds: fields
                    .given("kinds", || screen::kinds(&fields))
                    .filter(|new| *new != current.manager.screen.kinds),
                duplicates: fields.given("duplicates", || screen::duplicates(&fields)),
            };
            fields.ignore(PATHS.output_only);
            fields.finish();
            change
        });
        let parsed = issues.into_inner().or(change.unwrap_or_default());
        (parsed, named)
    }

    /// Returns true if the Manager must be compiled again.
    pub fn resubmits(&self) -> bool {
        self.source.is_some() || self.origin.is_some() || self.kinds.is_some()
    }
}

impl Editable {
    /// The instructions before the change.
    fn instructions(&self) -> Option<&Instructions> {
        self.manager
            .instructions
            .as_ref()
            .or(self.submitted.as_ref())
    }

    /// The document that a patch is merged into: the Manager as its client sees it.
    fn document(&self) -> Value {
        // Our Managers always have a JSON form.
        let mut document = serde_json::to_value(&self.manager).unwrap_or_default();
        if let (Some(fields), Some(instructions)) = (document.as_object_mut(), self.instructions())
        {
            let shown = serde_json::to_value(instructions).unwrap_or_default();
            fields.insert("instructions".to_owned(), shown);
        }
        document
    }
}

fn origin(
    fields: &Object<'_>,
    current: &Editable,
    new_source: Option<SourceType>,
    rules: Rules<'_>,
) -> Option<Origin> {
    let (input, instructions) = (fields.take("input"), fields.take("instructions"));
    let by_input = |value| {
        fields
            .object("input", Some(value))
            .and_then(|input| fields::input(input, rules))
            .map(Origin::Input)
    };
    let source = new_source.unwrap_or(current.manager.source.source_type);
    let by_instructions =
        |value| fields::instructions(fields, value, Some(source), rules).map(Origin::Instructions);
    match (input, instructions) {
        (Some(input), None) => by_input(input),
        (None, Some(instructions)) => by_instructions(instructions),
        (Some(input), Some(instructions)) => {
            let same_input = equals(input, current.manager.input.as_ref());
            match (same_input, equals(instructions, current.instructions())) {
                (_, true) => by_input(input),
                (true, false) => by_instructions(instructions),
                (false, false) => {
                    fields.report("instructions", Issue::Conflict);
                    None
                }
            }
        }
        (None, None) => {
            let own = match current.manager.mode {
                Mode::Automatic => "input",
                Mode::Manual => "instructions",
            };
            if fields.has(own) {
                fields.report(own, Issue::Required);
            } else if let Some(source) = new_source {
                foreign_feeds(fields, current, source, rules);
            }
            None
        }
    }
}

/// Returns true if `value` equals the current one; `1` equals `1.0`.
fn equals<T: serde::de::DeserializeOwned + PartialEq>(value: &Value, current: Option<&T>) -> bool {
    T::deserialize(value).is_ok_and(|value| current == Some(&value))
}

/// Notes the feeds of a MANUAL Manager that do not belong to its new source.
fn foreign_feeds(fields: &Object<'_>, current: &Editable, source: SourceType, rules: Rules<'_>) {
    let feeds = current.submitted.iter().flat_map(|own| &own.feeds);
    for (at, feed) in feeds.enumerate() {
        if rules.feeds.check(feed, Some(source)) == Err(Issue::Conflict) {
            fields.report(&format!("instructions.feeds[{at}]"), Issue::Conflict);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::{Editable, ManagerChange, Mode, Origin, SourceType};
    use crate::{
        Focus, Id, Instructions, Issue, Issues, ManagerName, Sensitivity, Timestamp,
        address::AddressPolicy,
        feed::OneForum,
        instructions::{Sells, Term},
        manager::{
            Input, InputFocus, InputType, Manager, ManagerState, ManagerType, PATHS, Rules, Source,
        },
        patch::Patch,
        screen::{Duplicates, Kinds, Screen},
    };

    fn automatic() -> Editable {
        let id = Id::from_uuid(Uuid::from_u128(1));
        Editable {
            manager: Manager {
                name: ManagerName {
                    namespace: id,
                    manager: id,
                },
                create_time: Timestamp::UNIX_EPOCH,
                update_time: Timestamp::UNIX_EPOCH,
                nickname: "ours".to_owned(),
                manager_type: ManagerType::FeedManager,
                enable: true,
                mode: Mode::Automatic,
                state: ManagerState::PendingApply,
                apply_time: None,
                apply_error: None,
                source: Source {
                    source_type: SourceType::Forum,
                },
                input: Some(Input {
                    input_type: InputType::Structured,
                    urls: vec!["https://example.com/".to_owned()],
                    focus: InputFocus {
                        focus_type: Focus::Sales,
                        names: Vec::new(),
                    },
                    sensitivity: Sensitivity::default(),
                    sells: None,
                }),
                instructions: None,
                notices: Vec::new(),
                screen: Screen::default(),
                health: None,
            },
            submitted: None,
            generation: 1,
        }
    }

    fn instructions() -> Instructions {
        Instructions {
            feeds: vec!["hackernews:newest".parse().unwrap()],
            include: vec![Term {
                text: "backup".to_owned(),
                weight: 1.0,
            }],
            threshold: Some(1.0),
            ..Instructions::default()
        }
    }

    fn applied() -> Editable {
        let mut editable = automatic();
        editable.manager.instructions = Some(instructions());
        editable
    }

    fn manual() -> Editable {
        let mut editable = applied();
        editable.manager.mode = Mode::Manual;
        editable.manager.input = None;
        editable.submitted = Some(instructions());
        editable
    }

    fn changed(
        current: &Editable,
        body: &Value,
        mask: Option<&str>,
    ) -> Result<ManagerChange, Vec<(String, Issue)>> {
        let rules = Rules {
            addresses: &AddressPolicy::default(),
            feeds: &OneForum,
        };
        let failed = |issues: Issues| -> Vec<_> {
            let all = issues.as_slice().iter();
            all.map(|one| (one.field.clone(), one.issue)).collect()
        };
        let patch = Patch::parse(body, mask, PATHS).map_err(failed)?;
        ManagerChange::parse(&patch, current, rules)
            .0
            .map_err(failed)
    }

    fn focus_of(change: &ManagerChange) -> String {
        match &change.origin {
            Some(Origin::Input(input)) => format!("{:?}", input.focus.focus_type),
            other => format!("{other:?}"),
        }
    }

    fn threshold_of(change: &ManagerChange) -> Option<f64> {
        match &change.origin {
            Some(Origin::Instructions(instructions)) => instructions.threshold,
            _ => None,
        }
    }

    #[test]
    fn unnamed_fields_stay_unchanged() {
        let change = changed(&applied(), &json!({"enable": false}), None).unwrap();
        let expected = ManagerChange {
            enable: Some(false),
            ..ManagerChange::default()
        };
        assert!(change == expected && !change.resubmits());
        let change = changed(&applied(), &json!({"notices": null, "enable": null}), None).unwrap();
        assert_eq!((change.notices, change.enable), (Some(vec![]), Some(true)));
    }

    #[test]
    fn exclusions_change_without_a_compile() {
        let mut current = applied();
        let body = json!({
            "mutes": [{"type": "AUTHOR", "value": "pat"}], "languages": ["en-GB"], "maxScansPerDay": 5
        });
        let change = changed(&current, &body, None).unwrap();
        assert!(!change.resubmits());
        assert_eq!(change.max_scans_per_day, Some(Some(5)));
        current.manager.screen.mutes = change.mutes.unwrap();
        current.manager.screen.languages = change.languages.unwrap();
        current.manager.screen.max_scans_per_day = Some(5);

        let untouched = changed(&current, &json!({"enable": true}), None).unwrap();
        assert_eq!((untouched.mutes, untouched.languages), (None, None));
        for (body, mask) in [
            (
                json!({"mutes": null, "languages": null, "maxScansPerDay": null}),
                None,
            ),
            (json!({}), Some("mutes,languages,maxScansPerDay")),
        ] {
            let cleared = changed(&current, &body, mask).unwrap();
            assert_eq!(cleared.mutes, Some(vec![]));
            assert_eq!(cleared.languages, Some(vec![]));
            assert_eq!(cleared.max_scans_per_day, Some(None));
        }
        let body = serde_json::to_value(&current.manager).unwrap();
        let same = changed(&current, &body, None).unwrap();
        assert_eq!(same.mutes, Some(current.manager.screen.mutes));
    }

    #[test]
    fn only_changed_kinds_are_compiled() {
        let mut current = applied();
        let with_comments = json!({"kinds": ["COMMENT", "POST"]});
        let change = changed(&current, &with_comments, None).unwrap();
        assert!(change.resubmits());
        current.manager.screen.kinds = change.kinds.unwrap();
        let shown = serde_json::to_value(&current.manager).unwrap();
        assert_eq!(shown["kinds"], json!(["POST", "COMMENT"]));
        let same = changed(&current, &with_comments, None).unwrap();
        assert!(same.kinds.is_none() && !same.resubmits());
        let cleared = changed(&current, &json!({"kinds": null}), None).unwrap();
        assert!(cleared.kinds == Some(Kinds::default()) && cleared.resubmits());

        let collapse = changed(&current, &json!({"duplicates": "COLLAPSE"}), None).unwrap();
        assert!(collapse.duplicates == Some(Duplicates::Collapse) && !collapse.resubmits());
        for (body, field, issue) in [
            (json!({"kinds": []}), "kinds", Issue::TooShort),
            (json!({"kinds": "POST"}), "kinds", Issue::InvalidType),
            (
                json!({"kinds": ["POST", "POST"]}),
                "kinds[1]",
                Issue::Duplicate,
            ),
            (
                json!({"kinds": ["POST", "LIKE"]}),
                "kinds[1]",
                Issue::InvalidEnum,
            ),
            (json!({"kinds": [5]}), "kinds[0]", Issue::InvalidType),
            (
                json!({"kinds": ["POST", "COMMENT", "POST"]}),
                "kinds",
                Issue::TooMany,
            ),
            (
                json!({"duplicates": "DROP"}),
                "duplicates",
                Issue::InvalidEnum,
            ),
        ] {
            let failed = changed(&current, &body, None).unwrap_err();
            assert_eq!(failed, [(field.to_owned(), issue)], "{body}");
        }
    }

    #[test]
    fn input_is_merged_or_replaced() {
        let body = json!({"input": {"focus": {"type": "CRISIS"}}});
        let change = changed(&applied(), &body, None).unwrap();
        assert!(change.resubmits());
        assert_eq!(focus_of(&change), "Crisis");
        let change = changed(&applied(), &body, Some("input.focus.type")).unwrap();
        assert_eq!(focus_of(&change), "Crisis");
        assert_eq!(
            changed(&applied(), &body, Some("input")).unwrap_err(),
            [
                ("input.type".to_owned(), Issue::Required),
                ("input.urls".to_owned(), Issue::Required)
            ]
        );
    }

    fn sensitivity_of(change: &ManagerChange) -> Option<Sensitivity> {
        match &change.origin {
            Some(Origin::Input(input)) => Some(input.sensitivity),
            _ => None,
        }
    }

    #[test]
    fn sensitivity_alone_changes_the_input() {
        let body = json!({"input": {"sensitivity": "PRECISE"}});
        for mask in [None, Some("input.sensitivity")] {
            let change = changed(&applied(), &body, mask).unwrap();
            assert!(change.resubmits());
            assert_eq!(sensitivity_of(&change), Some(Sensitivity::Precise));
            assert_eq!(focus_of(&change), "Sales");
        }
        let body = json!({"input": {"sensitivity": "LOUD"}});
        for mask in [None, Some("input.sensitivity")] {
            assert_eq!(
                changed(&applied(), &body, mask).unwrap_err(),
                [("input.sensitivity".to_owned(), Issue::InvalidEnum)]
            );
        }
    }

    #[test]
    fn sensitivity_stays_until_it_is_named() {
        let mut precise = applied();
        if let Some(input) = &mut precise.manager.input {
            input.sensitivity = Sensitivity::Precise;
        }
        let other_focus = json!({"input": {"focus": {"type": "CRISIS"}}});
        for (body, mask, expected) in [
            (&other_focus, None, Sensitivity::Precise),
            (&other_focus, Some("input.focus.type"), Sensitivity::Precise),
            (
                &json!({"input": {"sensitivity": null}}),
                None,
                Sensitivity::Balanced,
            ),
            (&json!({}), Some("input.sensitivity"), Sensitivity::Balanced),
        ] {
            let change = changed(&precise, body, mask).unwrap();
            assert_eq!(sensitivity_of(&change), Some(expected), "{body} {mask:?}");
        }
    }

    #[test]
    fn sells_of_the_input_is_merged_and_removed() {
        let sells = |offer: &str| Sells {
            summary: "Tea.".to_owned(),
            offers: vec![offer.to_owned()],
        };
        let mut current = applied();
        if let Some(input) = &mut current.manager.input {
            input.sells = Some(sells("tea"));
        }
        let offers = json!({"input": {"sells": {"offers": ["cups"]}}});
        let none = json!({"input": {"sells": null}});
        let urls = json!({"input": {"urls": ["https://example.com/tea"]}});
        for (body, mask, expected) in [
            (&offers, None, Some(sells("cups"))),
            (&offers, Some("input.sells.offers"), Some(sells("cups"))),
            (&urls, None, Some(sells("tea"))),
            (&none, None, None),
            (&json!({}), Some("input.sells"), None),
        ] {
            let change = changed(&current, body, mask).unwrap();
            match change.origin {
                Some(Origin::Input(input)) => {
                    assert_eq!(input.sells, expected, "{body} {mask:?}");
                }
                other => panic!("{body} {mask:?}: {other:?}"),
            }
        }
        let wrong = json!({"input": {"sells": {"offers": ["tea", "Tea"]}}});
        assert_eq!(
            changed(&current, &wrong, None).unwrap_err(),
            [("input.sells.offers[1]".to_owned(), Issue::Duplicate)]
        );
    }

    #[test]
    fn mode_can_change_in_both_directions() {
        let body = json!({"instructions": {"threshold": 2}});
        let taken_over = changed(&applied(), &body, None).unwrap();
        assert_eq!(threshold_of(&taken_over), Some(2.0));

        let input = serde_json::to_value(automatic().manager.input).unwrap();
        let given_back = changed(&manual(), &json!({ "input": input }), None).unwrap();
        assert_eq!(focus_of(&given_back), "Sales");
        let body = json!({"input": input, "instructions": null});
        assert_eq!(focus_of(&changed(&manual(), &body, None).unwrap()), "Sales");
    }

    #[test]
    fn sent_back_fields_count_only_if_they_differ() {
        let mut body = serde_json::to_value(&applied().manager).unwrap();
        // Clients print numbers like this.
        body["instructions"]["include"][0]["weight"] = json!(1);
        for mask in [None, Some("*")] {
            assert_eq!(
                focus_of(&changed(&applied(), &body, mask).unwrap()),
                "Sales"
            );
            let mut other = body.clone();
            other["input"]["focus"]["type"] = json!("CRISIS");
            assert_eq!(
                focus_of(&changed(&applied(), &other, mask).unwrap()),
                "Crisis"
            );
            let mut other = body.clone();
            other["instructions"]["threshold"] = json!(3);
            assert_eq!(
                threshold_of(&changed(&applied(), &other, mask).unwrap()),
                Some(3.0)
            );
            other["input"]["focus"]["type"] = json!("CRISIS");
            assert_eq!(
                changed(&applied(), &other, mask).unwrap_err(),
                [("instructions".to_owned(), Issue::Conflict)]
            );
        }
    }

    #[test]
    fn manager_has_either_input_or_instructions() {
        for (current, field) in [(applied(), "input"), (manual(), "instructions")] {
            let required = [(field.to_owned(), Issue::Required)];
            let body = json!({ field: null });
            assert_eq!(changed(&current, &body, None).unwrap_err(), required);
            assert_eq!(
                changed(&current, &json!({}), Some(field)).unwrap_err(),
                required
            );
        }
        // The service sets and clears the instructions of an AUTOMATIC one.
        let change = changed(&applied(), &json!({"instructions": null}), None).unwrap();
        assert!(!change.resubmits());
    }

    #[test]
    fn feeds_are_checked_against_the_new_source() {
        let body = json!({"source": {"type": "NETWORK"}});
        let conflict = [("instructions.feeds[0]".to_owned(), Issue::Conflict)];
        assert_eq!(changed(&manual(), &body, None).unwrap_err(), conflict);
        let change = changed(&applied(), &body, None).unwrap();
        assert_eq!(change.source, Some(SourceType::Network));
        let body = json!({"source": {"type": "NETWORK"}, "instructions": {"threshold": 2}});
        assert_eq!(changed(&manual(), &body, None).unwrap_err(), conflict);
        let body = json!({"source": {"type": "NETWORK"}, "instructions": {"feeds": null}});
        assert!(changed(&manual(), &body, None).unwrap().resubmits());
    }

    #[test]
    fn every_failing_field_is_named() {
        let body = json!({
            "nickname": " ", "type": "OTHER", "source": {}, "input": {"urls": []}, "enable": 1, "colour": 2,
            "notices": [{"type": "HTTP_REQUEST", "connection": "x"}], "mode": "SIDEWAYS"
        });
        let expected = [
            ("type", Issue::InvalidEnum),
            ("nickname", Issue::TooShort),
            ("enable", Issue::InvalidType),
            ("input.urls", Issue::TooShort),
            ("notices[0].connection", Issue::InvalidFormat),
            ("colour", Issue::UnknownField),
        ];
        assert_eq!(
            changed(&applied(), &body, None).unwrap_err(),
            expected.map(|(field, issue)| (field.to_owned(), issue))
        );
        assert_eq!(
            changed(&applied(), &json!({"nickname": null}), None).unwrap_err(),
            [("nickname".to_owned(), Issue::Required)]
        );
    }
}
