//! The surface as a whole: what is documented is there, what is there is documented, and all of it asks
//! who calls.

use std::collections::BTreeSet;

use domain::{Id, key::Role};
use reqwest::Method;
use serde_json::json;

use crate::{
    app::TestApp,
    client::{Answer, Client},
    contract,
};

#[test]
fn every_operation_is_documented_and_every_documented_one_is_routed() {
    let routed: BTreeSet<(String, String)> = api_gateway::operations().into_iter().collect();
    let documented: BTreeSet<(String, String)> = contract::operations()
        .into_iter()
        .map(|(method, path, _)| (method, path))
        .collect();
    assert_eq!(routed, documented);
}

/// A path of this template, below `namespace` where it is below one.
fn path(template: &str, namespace: &str) -> String {
    let mut path = template.replace("namespaces/{namespaceId}", namespace);
    for parameter in ["{managerId}", "{connectionId}", "{scanId}"] {
        path = path.replace(parameter, &Id::generate().to_string());
    }
    path
}

async fn call(client: &Client, method: &str, path: &str) -> Answer {
    let method: Method = method.parse().unwrap();
    client
        .send(method, path, |request| {
            request.header("content-type", "application/json").body("{")
        })
        .await
}

#[tokio::test]
async fn without_a_key_nothing_is_told() {
    let app = TestApp::start().await;
    let namespace = app.account("acme").await.namespace().await;
    for (method, template, operation) in contract::operations() {
        let answer = call(&app.stranger(), &method, &path(&template, &namespace)).await;
        let open = operation["security"] == json!([]);
        assert_eq!(answer.status, if open { 200 } else { 401 }, "{template}");
    }
    // Nor whether a path exists.
    for path in ["/v1/nowhere", "/v1", "/v1/namespaces/"] {
        let answer = app.stranger().get(path).await;
        assert_eq!(answer.status, 401, "{path}");
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
    }
}

#[tokio::test]
async fn a_namespace_of_another_account_is_forbidden() {
    let app = TestApp::start().await;
    let namespace = app.account("acme").await.namespace().await;
    let globex = app.account("globex").await;
    let own = globex.namespace().await;
    let narrowed = app.key("acme", Role::Owner, Some(&[&own])).await;
    for (method, template, _) in contract::operations() {
        if !template.contains("{namespaceId}") {
            continue;
        }
        let path = path(&template, &namespace);
        // Before the body is looked at, and whatever the query says.
        for client in [&globex, &narrowed] {
            let answer = call(client, &method, &format!("{path}?colour=red")).await;
            assert_eq!(answer.status, 403, "{template}");
        }
    }
}

#[tokio::test]
async fn a_namespace_that_does_not_exist_is_not_found() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    for (method, template, _) in contract::operations() {
        if !template.contains("{namespaceId}") {
            continue;
        }
        let missing = format!("namespaces/{}", Id::generate());
        for namespace in [
            missing.as_str(),
            "namespaces/nonsense",
            "namespaces/%zz%ff%00",
        ] {
            let answer = call(&acme, &method, &path(&template, namespace)).await;
            assert_eq!(answer.status, 404, "{template} {namespace}");
            assert_eq!(answer.body["message"], "namespace not found");
        }
    }
}

#[tokio::test]
async fn a_viewer_reads_and_does_not_write() {
    let app = TestApp::start().await;
    let namespace = app.account("acme").await.namespace().await;
    let viewer = app.key("acme", Role::Viewer, None).await;
    for (method, template, _) in contract::operations() {
        let answer = call(&viewer, &method, &path(&template, &namespace)).await;
        if method == "GET" {
            assert_ne!(answer.status, 403, "{template}");
        } else {
            assert_eq!(answer.status, 403, "{method} {template}");
        }
    }
}

#[tokio::test]
async fn the_examples_of_requests_are_taken() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let mut seen = 0;
    for (method, template, operation) in contract::operations() {
        let media = &operation["requestBody"]["content"]["application/json"];
        for example in contract::examples(operation) {
            let reference = media["schema"]["$ref"].as_str().unwrap();
            contract::assert_valid(&template, reference, &example);
            assert_eq!(method, "POST");
            let answer = acme.post(&path(&template, &namespace), &example).await;
            assert_eq!(answer.status, 201, "{template}: {}", answer.body);
            seen += 1;
        }
    }
    assert!(seen >= 4);
}

#[test]
fn the_examples_of_answers_are_valid() {
    let answers = contract::document()["components"]["responses"]
        .as_object()
        .unwrap();
    for (name, answer) in answers {
        let media = &answer["content"]["application/json"];
        contract::assert_valid(name, "#/components/schemas/Error", &media["example"]);
    }
}

#[tokio::test]
async fn methods_that_a_path_lacks_are_named_by_allow() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    for (method, path, allow) in [
        ("DELETE", "/v1/namespaces".to_owned(), "GET, HEAD, POST"),
        ("OPTIONS", "/v1/namespaces".to_owned(), "GET, HEAD, POST"),
        ("PATCH", format!("/v1/{namespace}"), "GET, HEAD"),
        (
            "BREW",
            format!("/v1/{namespace}/managers"),
            "GET, HEAD, POST",
        ),
        ("POST", "/openapi.json".to_owned(), "GET, HEAD"),
    ] {
        let answer = call(&acme, method, &path).await;
        assert_eq!(answer.status, 405, "{method} {path}");
        assert_eq!(answer.headers["allow"], allow, "{method} {path}");
        assert_eq!(
            answer.body,
            json!({"code": 405, "message": "method not allowed"})
        );
    }
}

#[tokio::test]
async fn unknown_paths_are_not_found() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    for path in [
        "/".to_owned(),
        "/v2/namespaces".to_owned(),
        "/v1".to_owned(),
        "/v1/".to_owned(),
        "/v1/nowhere".to_owned(),
        "/v1/namespaces/".to_owned(),
        "/v1//namespaces".to_owned(),
        format!("/v1/{namespace}/"),
        format!("/v1/{namespace}/managers/"),
        format!("/v1/{namespace}/nowhere"),
        format!("/v1/{namespace}/managers/x/scans/y/z"),
        "/docs".to_owned(),
    ] {
        let answer = acme.get(&path).await;
        assert_eq!(answer.status, 404, "{path}");
        assert_eq!(answer.body["code"], 404);
    }
}

#[tokio::test]
async fn head_is_get_without_the_body() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    for path in ["/v1/namespaces".to_owned(), format!("/v1/{namespace}")] {
        let answer = acme.send(Method::HEAD, &path, |request| request).await;
        assert_eq!((answer.status, answer.body), (200, json!("")), "{path}");
    }
}

#[tokio::test]
async fn both_documents_say_the_same() {
    let app = TestApp::start().await;
    let json = app.stranger().get("/openapi.json").await.body;
    let yaml = app.stranger().get("/openapi.yaml").await.body;
    let yaml: serde_json::Value = serde_yaml_ng::from_str(yaml.as_str().unwrap()).unwrap();
    assert_eq!(json, yaml);
    assert_eq!(json["openapi"], "3.0.3");
}

#[tokio::test]
async fn sane_request_ids_are_repeated() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let longest = "x".repeat(128);
    let longer = "x".repeat(129);
    for (id, repeated) in [
        ("abc-123", true),
        (longest.as_str(), true),
        (longer.as_str(), false),
        ("with space", false),
        ("", false),
    ] {
        let answer = acme
            .send(Method::GET, "/v1/namespaces", |request| {
                request.header("x-request-id", id)
            })
            .await;
        assert_eq!(answer.headers["x-request-id"] == id, repeated, "{id}");
    }
}
