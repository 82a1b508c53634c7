//! Checks responses against `openapi.yaml`.
//!
//! Its schemas are nearly JSON Schema: they use no `nullable` and no boolean `exclusiveMinimum`, which only OpenAPI
//! 3.0 has, so draft 7 reads them, including `$ref`. This check is stricter than the public document in one point:
//! an object may have no property that the document does not name.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex},
};

use jsonschema::Validator;
use serde_json::{Map, Value, json};

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let mut document =
        serde_yaml_ng::from_str(include_str!("../../openapi.yaml")).expect("openapi.yaml is YAML");
    close_objects(&mut document);
    document
});

static VALIDATORS: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);

/// Rate-limit state of the request's key.
pub(crate) const RATE_HEADERS: [&str; 3] = [
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
];

/// The parts of a response that the contract covers.
pub(crate) struct Observed<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) status: u16,
    pub(crate) headers: &'a reqwest::header::HeaderMap,
    pub(crate) body: &'a Value,
}

pub(crate) fn document() -> &'static Value {
    &DOCUMENT
}

/// Every documented operation: method, path template, and its description.
pub(crate) fn operations() -> Vec<(String, String, &'static Value)> {
    let paths = DOCUMENT["paths"].as_object().expect("paths is an object");
    let mut operations = Vec::new();
    for (path, item) in paths {
        for method in ["get", "post", "put", "patch", "delete"] {
            if let Some(operation) = item.get(method) {
                operations.push((method.to_uppercase(), path.clone(), operation));
            }
        }
    }
    operations
}

/// # Panics
/// If the document does not allow the response.
pub(crate) fn check(seen: &Observed<'_>) {
    let what = format!("{} {} -> {}", seen.method, seen.path, seen.status);
    assert!(
        seen.headers.contains_key("x-request-id"),
        "{what}: no x-request-id"
    );
    let Some(operation) = operation(seen.method, seen.path) else {
        assert!(
            seen.status >= 400,
            "{what}: an undocumented operation succeeds"
        );
        assert_valid(&what, "#/components/schemas/Error", seen.body);
        assert_eq!(seen.body["code"], seen.status, "{what}");
        return;
    };
    let answer = resolve(&operation["responses"][seen.status.to_string()]);
    assert!(!answer.is_null(), "{what}: undocumented, {}", seen.body);
    // A 400 or 408 may answer a request without a key, and a 5xx may mean that the database could not count points.
    let points_are_known = !matches!(seen.status, 400 | 401 | 408 | 431 | 500..);
    if operation["security"] != json!([]) && points_are_known {
        for name in RATE_HEADERS {
            assert!(seen.headers.contains_key(name), "{what}: no {name}");
        }
    }
    for (name, header) in answer["headers"].as_object().into_iter().flatten() {
        check_header(&what, name, resolve(header), seen);
    }
    let Some(content) = answer["content"].as_object() else {
        assert_eq!(seen.body, "", "{what}: an undocumented body");
        return;
    };
    let (media_type, media) = content.iter().next().expect("of one type");
    let given = seen.headers["content-type"].to_str().unwrap();
    assert_eq!(given.split(';').next(), Some(media_type.as_str()), "{what}");
    if media_type != "application/json" || seen.method == "HEAD" {
        return;
    }
    match media["schema"]["$ref"].as_str() {
        Some(reference) => assert_valid(&what, reference, seen.body),
        None => assert!(seen.body.is_object(), "{what}"),
    }
    if seen.status >= 400 {
        assert_eq!(seen.body["code"], seen.status, "{what}");
        let message = seen.body["message"].as_str().unwrap();
        let is_lower = !message.starts_with(char::is_uppercase);
        assert!(is_lower && !message.ends_with('.'), "{what}: {message}");
    }
}

/// # Panics
/// If `value` does not match the schema `reference`.
pub(crate) fn assert_valid(what: &str, reference: &str, value: &Value) {
    let errors: Vec<String> = validator(reference)
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{what}: {errors:#?}\nin {value:#}");
}

fn check_header(what: &str, name: &str, header: &Value, seen: &Observed<'_>) {
    let Some(value) = seen.headers.get(name) else {
        assert_ne!(header["required"], true, "{what}: {name} is missing");
        return;
    };
    let text = value.to_str().unwrap();
    let value = match header["schema"]["type"].as_str() {
        Some("integer") => json!(text.parse::<i64>().unwrap()),
        _ => json!(text),
    };
    let schema = jsonschema::draft7::new(&header["schema"]).expect("a sound schema");
    assert!(schema.is_valid(&value), "{what}: {name}: {value}");
}

/// Returns the documented operation of `path`. HEAD is documented by GET, without the body.
fn operation(method: &str, path: &str) -> Option<&'static Value> {
    let method = if method == "HEAD" { "GET" } else { method };
    operations()
        .into_iter()
        .find(|(its, template, _)| its == method && fits(template, path))
        .map(|(_, _, operation)| operation)
}

fn fits(template: &str, path: &str) -> bool {
    let (template, path) = (template.split('/'), path.split('/'));
    template.clone().count() == path.clone().count()
        && template
            .zip(path)
            .all(|(part, given)| part == given || part_fits(part, given))
}

/// Matches a path with a template: `{managerId}` matches an id, and `{managerId}:apply` an id with that verb.
fn part_fits(part: &str, given: &str) -> bool {
    part.strip_prefix('{')
        .and_then(|part| part.split_once('}'))
        .and_then(|(_, verb)| given.strip_suffix(verb))
        .is_some_and(|id| !id.is_empty() && !id.contains(':'))
}

pub(crate) fn resolve(value: &'static Value) -> &'static Value {
    match value["$ref"].as_str() {
        Some(reference) => DOCUMENT
            .pointer(&reference[1..])
            .unwrap_or_else(|| panic!("{reference} leads nowhere")),
        None => value,
    }
}

fn validator(reference: &str) -> Arc<Validator> {
    let mut validators = VALIDATORS.lock().unwrap();
    let validator = validators.entry(reference.to_owned()).or_insert_with(|| {
        let root = json!({"$ref": reference, "components": DOCUMENT["components"]});
        let validator = jsonschema::draft7::options()
            .should_validate_formats(true)
            .build(&root)
            .unwrap_or_else(|error| panic!("{reference}: {error}"));
        Arc::new(validator)
    });
    Arc::clone(validator)
}

/// Forbids unnamed properties in every schema that names some.
fn close_objects(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if map.get("type") == Some(&json!("object"))
                && map.get("properties").is_some_and(Value::is_object)
            {
                map.entry("additionalProperties").or_insert(json!(false));
            }
            map.values_mut().for_each(close_objects);
        }
        Value::Array(items) => items.iter_mut().for_each(close_objects),
        _ => {}
    }
}

/// Parameters of an operation, including those of its path.
pub(crate) fn parameters(path: &str, operation: &'static Value) -> Vec<&'static Value> {
    let shared = &DOCUMENT["paths"][path]["parameters"];
    [shared, &operation["parameters"]]
        .into_iter()
        .filter_map(Value::as_array)
        .flatten()
        .map(resolve)
        .collect()
}

/// Examples of an operation's request body.
pub(crate) fn examples(operation: &Value) -> Vec<Value> {
    let media = &operation["requestBody"]["content"]["application/json"];
    let several = media["examples"]
        .as_object()
        .into_iter()
        .flat_map(Map::values);
    several
        .map(|example| example["value"].clone())
        .chain(media.get("example").cloned())
        .collect()
}
