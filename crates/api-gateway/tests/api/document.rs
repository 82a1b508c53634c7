//! `openapi.yaml` as a document for people and generators: it is complete, and its examples are valid.

use std::collections::BTreeSet;

use domain::ServiceEventType;
use runtime::config::Config;
use serde_json::{Value, json};

use crate::contract;

fn what(method: &str, path: &str) -> String {
    format!("{method} {path}")
}

#[test]
fn every_operation_is_described() {
    let tags: BTreeSet<&str> = contract::document()["tags"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tag| tag["name"].as_str().unwrap())
        .collect();
    let mut ids = BTreeSet::new();
    for (method, path, operation) in contract::operations() {
        let what = what(&method, &path);
        assert!(
            ids.insert(operation["operationId"].as_str().unwrap()),
            "{what}"
        );
        for field in ["summary", "description"] {
            assert!(
                operation[field].as_str().is_some_and(|text| text.len() > 8),
                "{what}: {field}"
            );
        }
        let its: Vec<&str> = operation["tags"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(Value::as_str)
            .collect();
        assert!(its.len() == 1 && tags.contains(its[0]), "{what}: {its:?}");
        for parameter in contract::parameters(&path, operation) {
            assert!(parameter["description"].is_string(), "{what}: {parameter}");
        }
    }
}

#[test]
fn every_refusal_is_documented() {
    for (method, path, operation) in contract::operations() {
        let what = what(&method, &path);
        let mut expected = vec!["408", "431"];
        if operation["security"] != json!([]) {
            expected.extend(["400", "401", "429", "500", "503"]);
            if path.contains('{') {
                expected.extend(["403", "404"]);
            }
            if operation["requestBody"].is_object() {
                expected.extend(["413", "415"]);
            }
        }
        for code in expected {
            let answer = contract::resolve(&operation["responses"][code]);
            assert!(answer["description"].is_string(), "{what}: {code}");
        }
        if operation["responses"]["429"].is_object() {
            let answer = contract::resolve(&operation["responses"]["429"]);
            assert!(answer["headers"]["Retry-After"].is_object(), "{what}");
        }
    }
}

#[test]
fn every_response_to_a_key_documents_the_rate_limit_headers() {
    for (method, path, operation) in contract::operations() {
        let secured = operation["security"] != json!([]);
        for (code, answer) in operation["responses"].as_object().unwrap() {
            // Requests without a key, and those with an unreadable head, have no points.
            let expected = secured && code != "401" && code != "431";
            let headers = &contract::resolve(answer)["headers"];
            for header in contract::RATE_HEADERS {
                let told = headers[header].is_object();
                // Shared refusals are documented for all operations.
                let shared = answer.get("$ref").is_some();
                let what = what(&method, &path);
                assert!(
                    told == expected || shared && told,
                    "{what} {code}: {header}"
                );
            }
        }
    }
}

/// Examples of a body, where a renderer finds them: next to the schema, or within it.
fn examples(media: &'static Value) -> Vec<&'static Value> {
    let several = media["examples"]
        .as_object()
        .into_iter()
        .flat_map(|all| all.values());
    let mut found: Vec<&Value> = several
        .map(|one| &contract::resolve(one)["value"])
        .collect();
    found.extend(media.get("example"));
    if found.is_empty() {
        found.extend(contract::resolve(&media["schema"]).get("example"));
    }
    found
}

#[test]
fn every_body_has_a_valid_example() {
    for (method, path, operation) in contract::operations() {
        let what = what(&method, &path);
        let mut bodies: Vec<(String, &'static Value)> = Vec::new();
        if operation["requestBody"].is_object() {
            bodies.push((
                "request".to_owned(),
                contract::resolve(&operation["requestBody"]),
            ));
        }
        for (code, answer) in operation["responses"].as_object().unwrap() {
            bodies.push((code.clone(), contract::resolve(answer)));
        }
        for (which, body) in bodies {
            for media in body["content"]
                .as_object()
                .into_iter()
                .flat_map(|types| types.values())
            {
                let found = examples(media);
                assert!(!found.is_empty(), "{what}: {which} has no example");
                for example in found {
                    if let Some(reference) = media["schema"]["$ref"].as_str() {
                        contract::assert_valid(&format!("{what}: {which}"), reference, example);
                    }
                }
            }
        }
    }
}

#[test]
fn examples_within_schemas_are_valid() {
    for (name, schema) in contract::document()["components"]["schemas"]
        .as_object()
        .unwrap()
    {
        if let Some(example) = schema.get("example") {
            contract::assert_valid(name, &format!("#/components/schemas/{name}"), example);
        }
    }
}

/// The API refuses unknown fields, so the schemas of requests must say so. Otherwise generators of clients and
/// tests would produce such fields.
#[test]
fn request_schemas_forbid_unknown_fields() {
    let document: Value = serde_yaml_ng::from_str(include_str!("../../openapi.yaml")).unwrap();
    let mut open = BTreeSet::new();
    for item in document["paths"].as_object().unwrap().values() {
        for method in ["post", "patch", "put"] {
            let mut visited = BTreeSet::new();
            find_open(
                &document,
                "a request",
                &item[method]["requestBody"],
                &mut visited,
                &mut open,
            );
        }
    }
    assert!(open.is_empty(), "without additionalProperties: {open:#?}");
}

fn find_open<'a>(
    document: &'a Value,
    within: &str,
    value: &'a Value,
    visited: &mut BTreeSet<&'a str>,
    open: &mut BTreeSet<String>,
) {
    match value {
        Value::Object(map) => {
            if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
                // Posts of a preview come from platforms and may have more fields.
                if visited.insert(reference) {
                    let target = document.pointer(&reference[1..]).unwrap();
                    find_open(document, reference, target, visited, open);
                }
                return;
            }
            let is_object = map.get("properties").is_some_and(Value::is_object);
            if is_object
                && map.get("type") == Some(&json!("object"))
                && !map.contains_key("additionalProperties")
            {
                open.insert(within.to_owned());
            }
            for (key, inner) in map {
                if !["example", "examples"].contains(&key.as_str()) {
                    find_open(document, within, inner, visited, open);
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                find_open(document, within, item, visited, open);
            }
        }
        _ => {}
    }
}

/// Tools that follow links must reach resources that only creation produces.
#[test]
fn links_name_existing_operations() {
    let ids: BTreeSet<&str> = contract::operations()
        .into_iter()
        .map(|(_, _, operation)| operation["operationId"].as_str().unwrap())
        .collect();
    let links = contract::document()["components"]["links"]
        .as_object()
        .unwrap();
    let mut reached = BTreeSet::new();
    for (name, link) in links {
        let id = link["operationId"].as_str().unwrap();
        assert!(ids.contains(id), "{name} leads to {id}");
        reached.insert(id);
    }
    for (method, path, operation) in contract::operations() {
        let id = operation["operationId"].as_str().unwrap();
        let by_id = path.contains("{managerId}") || path.contains("{connectionId}");
        assert!(
            !by_id || reached.contains(id),
            "{method} {path}: no link leads to it"
        );
    }
}

/// The document tells receivers what is sent to them, and when it is sent again.
#[test]
fn webhooks_are_described_with_signature_and_retries() {
    let document = contract::document();
    let create = &document["paths"]["/v1/namespaces/{namespaceId}/connections"]["post"];
    let webhook = &create["callbacks"]["scan"]["{$request.body#/url}"]["post"];
    let parameters = webhook["parameters"].as_array().unwrap();
    let headers: Vec<&str> = parameters
        .iter()
        .filter_map(|parameter| parameter["name"].as_str())
        .collect();
    assert_eq!(
        headers,
        ["webhook-id", "webhook-timestamp", "webhook-signature"]
    );
    let body = &webhook["requestBody"]["content"]["application/json"]["schema"]["$ref"];
    assert_eq!(
        body,
        "#/components/schemas/namespace-feed-notice-request-body"
    );
    let text = document["info"]["description"].as_str().unwrap();
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let waits: Vec<String> = Config::default()
        .dispatcher
        .retry_schedule
        .iter()
        .map(|wait| match wait.as_secs() {
            seconds if seconds >= 3_600 => format!("{} h", seconds / 3_600),
            seconds if seconds >= 60 => format!("{} min", seconds / 60),
            seconds => format!("{seconds} s"),
        })
        .collect();
    let (last, others) = waits.split_last().unwrap();
    let schedule = format!("repeated after {} and {last}", others.join(", "));
    assert!(text.contains(&schedule), "{schedule}");
}

#[test]
fn service_events_are_described() {
    let document = contract::document();
    let create = &document["paths"]["/v1/namespaces/{namespaceId}/connections"]["post"];
    let webhook = &create["callbacks"]["event"]["{$request.body#/url}"]["post"];
    let body = &webhook["requestBody"]["content"]["application/json"]["schema"]["$ref"];
    assert_eq!(body, "#/components/schemas/ServiceEvent");
    let types = &document["components"]["schemas"]["ServiceEventType"];
    let text = types["description"].as_str().unwrap();
    assert_eq!(types["enum"], json!(ServiceEventType::ALL));
    for one in ServiceEventType::ALL {
        assert!(text.contains(&format!("`{}`", one.as_str())), "{one:?}");
    }
}

/// Each value of an enumeration is explained where it is defined.
#[test]
fn every_issue_is_explained() {
    let issue = &contract::document()["components"]["schemas"]["Issue"];
    let text = issue["description"].as_str().unwrap();
    for word in issue["enum"].as_array().unwrap() {
        let word = word.as_str().unwrap();
        assert!(text.contains(&format!("`{word}`")), "{word}");
    }
}
