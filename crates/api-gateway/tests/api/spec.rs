//! General rules of the interface specification, and the table that says which test covers which sentence:
//! `docs/spec-coverage.md`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{
    app::TestApp,
    client::{connection_body, manager_body},
    contract,
};

#[test]
fn all_resource_paths_begin_with_the_version() {
    for (method, path, operation) in contract::operations() {
        // Feed readers read no resources.
        let is_resource = operation["security"] != json!([]) && !path.starts_with("/feeds/");
        assert_eq!(is_resource, path.starts_with("/v1/"), "{method} {path}");
    }
}

#[test]
fn creation_answers_201_and_other_operations_200() {
    for (method, path, operation) in contract::operations() {
        let creates = method == "POST" && !path.ends_with('}') && !path.contains(':');
        let answers = operation["responses"].as_object().unwrap();
        let good: Vec<&String> = answers
            .keys()
            .filter(|code| code.starts_with('2'))
            .collect();
        let expected = if creates { "201" } else { "200" };
        assert_eq!(good, [expected], "{method} {path}");
    }
}

/// Every value that the specification names for an enumeration.
#[test]
fn enumeration_values_of_the_specification_are_documented() {
    let schemas = &contract::document()["components"]["schemas"];
    let words = |pointer: &str| -> BTreeSet<&str> {
        let schema = schemas.pointer(pointer).unwrap();
        let schema = match schema["$ref"].as_str() {
            Some(reference) => contract::document().pointer(&reference[1..]).unwrap(),
            None => schema,
        };
        let words = schema["enum"].as_array().unwrap();
        words.iter().map(|word| word.as_str().unwrap()).collect()
    };
    for (pointer, named) in [
        ("/Manager/properties/type", &["FEED_MANAGER"][..]),
        ("/Manager/properties/mode", &["AUTOMATIC"]),
        ("/Manager/properties/state", &["PENDING_APPLY"]),
        ("/Source/properties/type", &["FORUM"]),
        ("/Input/properties/type", &["STRUCTURED"]),
        ("/Focus", &["SALES", "COMPETITOR", "CRISIS"]),
        ("/Notice/properties/type", &["HTTP_REQUEST"]),
        ("/Connection/properties/type", &["HTTP_CONNECTION"]),
        ("/Connection/properties/method", &["POST"]),
        (
            "/Post/properties/type",
            &["FORUM_LINK", "MICROBLOG_TWEET", "NETWORK_POST"],
        ),
        (
            "/namespace-feed-notice-request-body/properties/type",
            &["SCAN"],
        ),
        ("/Issue", &["too_short"]),
    ] {
        let documented = words(pointer);
        for word in named {
            assert!(documented.contains(word), "{pointer}: {word}");
        }
    }
}

#[tokio::test]
async fn enumeration_values_of_the_specification_are_accepted() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    for focus in ["SALES", "COMPETITOR", "CRISIS"] {
        let mut body = manager_body();
        body["input"]["focus"]["type"] = json!(focus);
        let made = acme.post(&format!("/v1/{namespace}/managers"), &body).await;
        assert_eq!(made.status, 201, "{}", made.body);
        // Responses also contain the defaults of omitted fields.
        body["input"]["sensitivity"] = json!("BALANCED");
        assert_eq!(made.body["input"], body["input"]);
        assert_eq!(made.body["source"], json!({"type": "FORUM"}));
    }
    let mut body = connection_body();
    body["method"] = json!("POST");
    let path = format!("/v1/{namespace}/connections");
    assert_eq!(acme.post(&path, &body).await.body["method"], "POST");
}

#[test]
fn event_body_has_only_type_name_and_post() {
    let schemas = &contract::document()["components"]["schemas"];
    let event = &schemas["namespace-feed-notice-request-body"];
    let fields: Vec<&String> = event["properties"].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["name", "post", "type"]);
    assert_eq!(event["required"], json!(["type", "name", "post"]));
    let post = &schemas["Scan"]["properties"]["post"];
    assert_eq!(&event["properties"]["post"], post, "the same Post");
}

#[test]
fn errors_have_the_fields_of_the_specification() {
    let error = &contract::document()["components"]["schemas"]["Error"];
    let fields: Vec<&String> = error["properties"].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["code", "details", "message"]);
    assert_eq!(error["required"], json!(["code", "message"]));
    let item = &error["properties"]["details"]["items"];
    assert_eq!(item["required"], json!(["field", "issue"]));
    for (method, path, operation) in contract::operations() {
        for (code, answer) in operation["responses"].as_object().unwrap() {
            if code.starts_with(['4', '5']) {
                let answer = contract::resolve(answer);
                let schema = &answer["content"]["application/json"]["schema"];
                let expected = "#/components/schemas/Error";
                assert_eq!(schema["$ref"], expected, "{method} {path} {code}");
            }
        }
    }
}

/// A row without a test, or with a missing one, would be a broken promise.
#[test]
fn every_sentence_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let table = fs::read_to_string(root.join("docs/spec-coverage.md")).unwrap();
    let mut sources = BTreeMap::new();
    let (mut rows, mut wrong) = (0, Vec::new());
    for row in table.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        let [_, held_by] = cells[..] else {
            wrong.push(format!("not two cells: {row}"));
            continue;
        };
        if ["Held by", "---"].contains(&held_by.trim()) {
            continue;
        }
        rows += 1;
        let names: Vec<&str> = held_by.split('`').skip(1).step_by(2).collect();
        if names.is_empty() {
            wrong.push(format!("held by nothing: {row}"));
        }
        for name in names {
            if !exists(&root, name, &mut sources) {
                wrong.push(format!("no such test: {name}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(rows > 100, "{rows} rows");
}

/// Returns true if `name`, `crate::module::test`, is a test. A name with two parts is a scenario.
fn exists(
    root: &Path,
    name: &str,
    sources: &mut BTreeMap<PathBuf, Vec<(PathBuf, String)>>,
) -> bool {
    let parts: Vec<&str> = name.split("::").collect();
    let (Some(package), Some(test)) = (parts.first(), parts.last()) else {
        return false;
    };
    let folder = [root.join("crates").join(package), root.join(package)];
    let Some(folder) = folder.into_iter().find(|folder| folder.is_dir()) else {
        return false;
    };
    let files = sources
        .entry(folder.clone())
        .or_insert_with(|| rust_files(&folder));
    if parts.len() == 2 {
        let scenario = format!("\"{test}\"");
        return files.iter().any(|(_, text)| text.contains(&scenario));
    }
    let modules = &parts[1..parts.len() - 1];
    files.iter().any(|(path, text)| {
        let path = path.with_extension("");
        let mut places = path.iter().map(|place| place.to_str().unwrap());
        modules
            .iter()
            .all(|module| places.any(|place| place == *module))
            && has_test(text, test)
    })
}

/// Returns true if there is a function of this name with a test attribute above it.
fn has_test(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.iter().enumerate().any(|(at, line)| {
        let line = line.trim_start_matches("async ");
        let is_it = line
            .strip_prefix("fn ")
            .and_then(|rest| rest.strip_prefix(name))
            .is_some_and(|rest| rest.starts_with('('));
        is_it
            && lines[..at]
                .iter()
                .rev()
                .take_while(|line| line.starts_with("#[") || line.starts_with("///"))
                .any(|line| line.contains("test"))
    })
}

fn rust_files(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    found
}

#[test]
fn coverage_check_detects_missing_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut sources = BTreeMap::new();
    let mut check = |name: &str| exists(&root, name, &mut sources);
    assert!(check(
        "api-gateway::spec::coverage_check_detects_missing_tests"
    ));
    assert!(check("tests-e2e::page_leads_to_scans_of_relevant_posts"));
    for wrong in [
        "api-gateway::spec::rust_files",
        "api-gateway::keys::coverage_check_detects_missing_tests",
        "api-gateway::spec::coverage_check_detects",
        "nowhere::spec::coverage_check_detects_missing_tests",
        "tests-e2e::no_such_scenario",
        "nonsense",
    ] {
        assert!(!check(wrong), "{wrong}");
    }
}

/// Next to the table, because readers of one want the other.
#[test]
fn the_document_is_openapi_3_0() {
    let document: &Value = contract::document();
    assert_eq!(document["openapi"], "3.0.3");
    assert!(!document["info"]["description"].as_str().unwrap().is_empty());
}
