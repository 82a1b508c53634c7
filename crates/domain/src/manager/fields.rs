//! One parser for each field, for requests that create and that change a Manager.

use serde_json::Value;

use super::{
    Input, InputFocus, InputType, ManagerType, Notice, NoticeType, Rules, Sensitivity, SourceType,
};
use crate::{
    ConnectionName, Instructions, Issue,
    filter::Filter,
    instructions,
    json::Object,
    list::SCAN_FIELDS,
    web_url::{self, WebUrl},
};

const MAX_URLS: usize = 20;
const MAX_NAMES: usize = 50;
const MAX_NOTICES: usize = 10;

/// A Connection in a request: its index in `notices`, and its name.
pub type NamedConnection = (usize, ConnectionName);

pub(super) fn manager_type(fields: &Object<'_>) -> Option<ManagerType> {
    fields.word("type", fields.require("type"))
}

pub(super) fn enable(fields: &Object<'_>) -> Option<bool> {
    match fields.take("enable") {
        None => Some(true),
        given => fields.boolean("enable", given),
    }
}

pub(crate) fn source(fields: &Object<'_>) -> Option<SourceType> {
    let source = fields.object("source", fields.require("source"))?;
    let word = source.word("type", source.require("type"));
    source.finish();
    word
}

/// Parses `instructions` for the Manager's `source`, if that could be read.
pub(super) fn instructions(
    fields: &Object<'_>,
    value: &Value,
    source: Option<SourceType>,
    rules: Rules<'_>,
) -> Option<Instructions> {
    let object = fields.object("instructions", Some(value))?;
    instructions::parse(object, source, rules.feeds)
}

pub(super) fn input(input: Object<'_>, rules: Rules<'_>) -> Option<Input> {
    let input_type = input.word::<InputType>("type", input.require("type"));
    let urls = input
        .array("urls", input.require("urls"))
        .and_then(|items| {
            if items.is_empty() {
                input.report("urls", Issue::TooShort);
            } else if items.len() > MAX_URLS {
                input.report("urls", Issue::TooMany);
            }
            let urls = items.iter().take(MAX_URLS).enumerate().map(|(at, item)| {
                let field = format!("urls[{at}]");
                let text = item.as_str().ok_or(Issue::InvalidType);
                text.and_then(|text| {
                    WebUrl::parse(text, rules.addresses, web_url::Kind::Seed)
                        .map(|_| text.to_owned())
                })
                .map_err(|issue| input.report(&field, issue))
                .ok()
            });
            // All are parsed, so that each failing one is reported.
            let urls: Vec<Option<String>> = urls.collect();
            urls.into_iter().collect::<Option<Vec<String>>>()
        });
    let focus = input
        .object("focus", input.require("focus"))
        .and_then(|focus| {
            let focus_type = focus.word("type", focus.require("type"));
            let names = texts(&focus, "names", MAX_NAMES);
            focus.finish();
            Some(InputFocus {
                focus_type: focus_type?,
                names: names?,
            })
        });
    let sensitivity = match input.take("sensitivity") {
        None => Some(Sensitivity::default()),
        given => input.word("sensitivity", given),
    };
    let sells = instructions::parse_sells(&input);
    input.finish();
    Some(Input {
        input_type: input_type?,
        urls: urls?,
        focus: focus?,
        sensitivity: sensitivity?,
        sells,
    })
}

/// An optional list of at most `max` texts of 1 to 100 characters each, trimmed.
fn texts(object: &Object<'_>, field: &'static str, max: usize) -> Option<Vec<String>> {
    let Some(value) = object.take(field) else {
        return Some(Vec::new());
    };
    let items = object.array(field, Some(value))?;
    if items.len() > max {
        object.report(field, Issue::TooMany);
    }
    let texts: Vec<Option<String>> = items
        .iter()
        .take(max)
        .enumerate()
        .map(|(at, item)| {
            instructions::term(item)
                .map_err(|issue| object.report(&format!("{field}[{at}]"), issue))
                .ok()
        })
        .collect();
    texts.into_iter().collect()
}

/// Parses `notices`, and adds every readable Connection to `named`, once.
pub(super) fn notices(
    fields: &Object<'_>,
    named: &mut Vec<NamedConnection>,
) -> Option<Vec<Notice>> {
    let Some(value) = fields.take("notices") else {
        return Some(Vec::new());
    };
    let items = fields.array("notices", Some(value))?;
    if items.len() > MAX_NOTICES {
        fields.report("notices", Issue::TooMany);
    }
    let notices: Vec<Option<Notice>> = items
        .iter()
        .take(MAX_NOTICES)
        .enumerate()
        .map(|(at, item)| {
            let object = Object::at(item, format!("notices[{at}]"), fields.issues())?;
            let notice = notice(&object, at, named);
            object.finish();
            notice
        })
        .collect();
    notices.into_iter().collect()
}

fn notice(object: &Object<'_>, at: usize, named: &mut Vec<NamedConnection>) -> Option<Notice> {
    let notice_type = object.word::<NoticeType>("type", object.require("type"));
    let connection = object
        .text("connection", object.require("connection"))
        .and_then(|text| {
            let name: Option<ConnectionName> = text.parse().ok();
            if name.is_none() {
                object.report("connection", Issue::InvalidFormat);
            }
            name
        })
        .filter(|name| {
            let is_new = named.iter().all(|(_, other)| other != name);
            if is_new {
                named.push((at, *name));
            } else {
                object.report("connection", Issue::Duplicate);
            }
            is_new
        });
    let filter = scan_filter(object);
    Some(Notice {
        notice_type: notice_type?,
        connection: connection?,
        filter: filter?,
    })
}

/// Parses the filter of a notice as that of a list of Scans. A blank filter counts as absent.
fn scan_filter(object: &Object<'_>) -> Option<Option<String>> {
    let Some(value) = object.take("filter") else {
        return Some(None);
    };
    let text = object.text("filter", Some(value))?.trim();
    match Filter::parse(text, SCAN_FIELDS) {
        Ok(_) => Some(Some(text.to_owned()).filter(|text| !text.is_empty())),
        Err(issues) => {
            for one in issues.as_slice() {
                let hint = one.hint.clone().unwrap_or_default();
                let mut reported = object.issues().borrow_mut();
                reported.add_with_hint(object.path("filter"), one.issue, hint);
            }
            None
        }
    }
}
