//! The whole API: documented operations exist, existing operations are documented, and all of them authenticate the
//! caller.

use std::collections::BTreeSet;

use domain::Id;
use reqwest::Method;
use serde_json::json;

use crate::{
    app::TestApp,
    client::{Answer, Client},
    contract,
    estate::Estate,
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

/// Builds a path from this template, below `namespace` if the template has one.
fn path(template: &str, namespace: &str) -> String {
    let id = namespace.trim_start_matches("namespaces/");
    let mut path = template.replace("{namespaceId}", id);
    for parameter in ["{managerId}", "{connectionId}", "{scanId}"] {
        path = path.replace(parameter, &Id::generate().to_string());
    }
    path
}

/// Sends a body that is not JSON.
pub(crate) async fn call(client: &Client, method: &str, path: &str) -> Answer {
    let method: Method = method.parse().unwrap();
    client
        .send(method, path, |request| {
            request.header("content-type", "application/json").body("{")
        })
        .await
}

#[tokio::test]
async fn request_without_a_key_reveals_nothing() {
    let app = TestApp::start().await;
    let namespace = app.account("acme").await.namespace().await;
    for (method, template, operation) in contract::operations() {
        let answer = call(&app.stranger(), &method, &path(&template, &namespace)).await;
        let open = operation["security"] == json!([]);
        assert_eq!(answer.status, if open { 200 } else { 401 }, "{template}");
    }
    // Nor does it reveal whether a path exists.
    for path in ["/v1/nowhere", "/v1", "/v1/namespaces/"] {
        let answer = app.stranger().get(path).await;
        assert_eq!(answer.status, 401, "{path}");
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
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
async fn request_examples_are_accepted() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let estate = Estate::make(&app, &acme).await;
    let mut seen = 0;
    for (method, template, operation) in contract::operations() {
        let media = &operation["requestBody"]["content"]["application/json"];
        for example in contract::examples(operation) {
            let reference = media["schema"]["$ref"].as_str().unwrap();
            contract::assert_valid(&template, reference, &example);
            // A test of a Connection waits for a dispatcher, and none runs here.
            let path = estate.existing(&template);
            if path.ends_with(":test") {
                continue;
            }
            let method: Method = method.parse().unwrap();
            let answer = acme
                .send(method, &path, |request| request.json(&example))
                .await;
            let taken = matches!(answer.status, 200 | 201);
            assert!(taken, "{template}: {}", answer.body);
            seen += 1;
        }
    }
    assert!(seen >= 8);
}

#[test]
fn response_examples_are_valid() {
    let answers = contract::document()["components"]["responses"]
        .as_object()
        .unwrap();
    for (name, answer) in answers {
        let media = &answer["content"]["application/json"];
        if media.is_null() {
            continue;
        }
        contract::assert_valid(name, "#/components/schemas/Error", &media["example"]);
    }
}

#[tokio::test]
async fn unsupported_method_gets_405_with_allow() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    for (method, path, allow) in [
        ("DELETE", "/v1/namespaces".to_owned(), "GET, HEAD, POST"),
        ("OPTIONS", "/v1/namespaces".to_owned(), "GET, HEAD, POST"),
        (
            "PUT",
            format!("/v1/{namespace}"),
            "GET, HEAD, PATCH, DELETE",
        ),
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
        "/docs/".to_owned(),
        "/docs/nowhere.js".to_owned(),
    ] {
        let answer = acme.get(&path).await;
        assert_eq!(answer.status, 404, "{path}");
        assert_eq!(answer.body["code"], 404);
    }
}

#[tokio::test]
async fn yaml_and_json_documents_are_equal() {
    let app = TestApp::start().await;
    let json = app.stranger().get("/openapi.json").await.body;
    let yaml = app.stranger().get("/openapi.yaml").await.body;
    let yaml: serde_json::Value = serde_yaml_ng::from_str(yaml.as_str().unwrap()).unwrap();
    assert_eq!(json, yaml);
    assert_eq!(json["openapi"], "3.0.3");
}

#[tokio::test]
async fn valid_request_ids_are_repeated() {
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

/// 2.1 of the specification: a resource's name is its path.
#[tokio::test]
async fn resource_names_are_their_paths() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let estate = Estate::make(&app, &acme).await;
    let mut seen = 0;
    for (method, template, operation) in contract::operations() {
        let resource = contract::resolve(&operation["responses"]["200"]);
        let schema = &resource["content"]["application/json"]["schema"]["$ref"];
        let named = ["Namespace", "Manager", "Connection", "Scan"]
            .iter()
            .any(|kind| *schema == format!("#/components/schemas/{kind}"));
        if !named || method != "GET" {
            continue;
        }
        let path = estate.existing(&template);
        let answer = acme.get(&path).await;
        let name = answer.body["name"].as_str().unwrap();
        assert_eq!(format!("/v1/{name}"), path, "{template}");
        seen += 1;
    }
    assert!(seen >= 4);
}

/// 4.1 of the specification.
#[tokio::test]
async fn every_list_takes_the_same_parameters() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let estate = Estate::make(&app, &acme).await;
    let mut seen = 0;
    for (method, template, operation) in contract::operations() {
        if method != "GET"
            || !operation["operationId"]
                .as_str()
                .unwrap()
                .starts_with("list")
        {
            continue;
        }
        let parameters = contract::parameters(&template, operation);
        for name in ["pageSize", "pageToken", "filter", "orderBy"] {
            assert!(
                parameters.iter().any(|one| one["name"] == name),
                "{template}: {name}"
            );
        }
        let path = estate.existing(&template);
        let filter = "createTime > \"2020-01-01T00:00:00Z\" AND name != \"x\"";
        let query = [
            ("pageSize", "1"),
            ("filter", filter),
            ("orderBy", "createTime asc, name desc"),
        ];
        let answer = acme.get_with(&path, &query).await;
        assert_eq!(answer.status, 200, "{template}: {}", answer.body);
        for (name, value, issue) in [
            ("pageSize", "-1", "out_of_range"),
            ("pageToken", "x", "invalid_format"),
            ("filter", "createTime >", "invalid_format"),
            ("orderBy", "mood", "unknown_field"),
        ] {
            let answer = acme.get_with(&path, &[(name, value)]).await;
            assert_eq!(answer.details(), [(name, issue)], "{template}");
        }
        seen += 1;
    }
    assert!(seen >= 4);
}

#[tokio::test]
async fn unknown_parameters_are_named_by_every_operation() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let estate = Estate::make(&app, &acme).await;
    for (method, template, operation) in contract::operations() {
        if !template.starts_with("/v1/") {
            continue;
        }
        let path = estate.existing(&template);
        let body = contract::examples(operation).into_iter().next();
        let method: Method = method.parse().unwrap();
        let answer = acme
            .send(method, &path, |request| {
                let request = request.query(&[("colour", "red")]);
                match &body {
                    Some(body) => request.json(body),
                    None => request,
                }
            })
            .await;
        assert_eq!(answer.status, 400, "{template}");
        let named = answer.details().contains(&("colour", "unknown_field"));
        assert!(named, "{template}: {}", answer.body);
    }
}

#[tokio::test]
async fn every_get_answers_head() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let estate = Estate::make(&app, &acme).await;
    for (method, template, operation) in contract::operations() {
        if method != "GET" {
            continue;
        }
        let path = estate.existing(&template);
        let parameters = contract::parameters(&template, operation);
        if parameters
            .iter()
            .any(|one| one["in"] == "query" && one["required"] == true)
        {
            continue;
        }
        // Compressed, the GET would have no length.
        let plain =
            |request: reqwest::RequestBuilder| request.header("accept-encoding", "identity");
        let head = acme.send(Method::HEAD, &path, plain).await;
        let get = acme.send(Method::GET, &path, plain).await;
        assert_eq!(
            (head.status, head.body),
            (get.status, json!("")),
            "{template}"
        );
        for name in ["content-type", "content-length"] {
            let both = [&head.headers, &get.headers].map(|headers| headers.get(name));
            assert_eq!(both[0], both[1], "{template}: {name}");
        }
    }
}
