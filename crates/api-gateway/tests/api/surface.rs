//! The whole API: documented operations exist, existing operations are documented, and all of them authenticate the
//! caller.

use std::collections::BTreeSet;

use domain::{Id, key::Role};
use reqwest::Method;
use serde_json::json;
use test_support::post;

use crate::{
    app::TestApp,
    client::{Answer, Client},
    contract,
    scans::record,
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

async fn call(client: &Client, method: &str, path: &str) -> Answer {
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
        // Permissions are checked before the body is parsed, and regardless of the query.
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
async fn viewer_may_read_and_not_write() {
    let app = TestApp::start().await;
    let namespace = app.account("acme").await.namespace().await;
    let viewer = app.key("acme", Role::Viewer, None).await;
    for (method, template, _) in contract::operations() {
        let answer = call(&viewer, &method, &path(&template, &namespace)).await;
        // A preview stores nothing, and the audit log is for owners.
        let is_read = method == "GET" || template.ends_with(":preview");
        if is_read && !template.ends_with("/auditEvents") {
            assert_ne!(answer.status, 403, "{template}");
        } else {
            assert_eq!(answer.status, 403, "{method} {template}");
        }
    }
}

#[tokio::test]
async fn request_examples_are_accepted() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let world = World::make(&app, &acme).await;
    let mut seen = 0;
    for (method, template, operation) in contract::operations() {
        let media = &operation["requestBody"]["content"]["application/json"];
        for example in contract::examples(operation) {
            let reference = media["schema"]["$ref"].as_str().unwrap();
            contract::assert_valid(&template, reference, &example);
            // A test of a Connection waits for a dispatcher, and none runs here.
            let Some(path) = world
                .path(&template)
                .filter(|path| !path.ends_with(":test"))
            else {
                continue;
            };
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

/// One of each resource that an operation's path may name.
struct World {
    namespace: String,
    manager: String,
    connection: String,
    scan: String,
}

impl World {
    async fn make(app: &TestApp, client: &Client) -> Self {
        let namespace = client.namespace().await;
        let manager = client.manager(&namespace).await;
        let connection = client.connection(&namespace).await;
        record(app, &manager, &[post("1", "first")]).await;
        let scans = client.get(&format!("/v1/{manager}/scans")).await;
        let scan = scans.body["scans"][0]["name"].as_str().unwrap().to_owned();
        Self {
            namespace,
            manager,
            connection,
            scan,
        }
    }

    /// Returns an existing path for this template; `None` if the test cannot create the resource.
    fn path(&self, template: &str) -> Option<String> {
        let path = [
            (
                format!("{NAMESPACE}/managers/{{managerId}}/scans/{{scanId}}"),
                &self.scan,
            ),
            (format!("{NAMESPACE}/managers/{{managerId}}"), &self.manager),
            (
                format!("{NAMESPACE}/connections/{{connectionId}}"),
                &self.connection,
            ),
            (NAMESPACE.to_owned(), &self.namespace),
        ]
        .into_iter()
        .fold(template.to_owned(), |path, (part, name)| {
            path.replace(&part, name)
        });
        (!path.contains('{')).then_some(path)
    }
}

const NAMESPACE: &str = "namespaces/{namespaceId}";

/// 2.1 of the specification: a resource's name is its path.
#[tokio::test]
async fn resource_names_are_their_paths() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let world = World::make(&app, &acme).await;
    let mut seen = 0;
    for (method, template, operation) in contract::operations() {
        let resource = contract::resolve(&operation["responses"]["200"]);
        let schema = &resource["content"]["application/json"]["schema"]["$ref"];
        let named = ["Namespace", "Manager", "Connection", "Scan"]
            .iter()
            .any(|kind| *schema == format!("#/components/schemas/{kind}"));
        let Some(path) = world.path(&template).filter(|_| named && method == "GET") else {
            continue;
        };
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
    let world = World::make(&app, &acme).await;
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
        let Some(path) = world.path(&template) else {
            continue;
        };
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
async fn a_resource_that_does_not_exist_is_not_found() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let world = World::make(&app, &acme).await;
    for (method, template, operation) in contract::operations() {
        if operation["responses"]["404"].is_null() || !template.replace(NAMESPACE, "").contains('{')
        {
            continue;
        }
        // A well-formed body, so that the resource is looked up.
        let body = contract::examples(operation).into_iter().next();
        let required: Vec<(&str, &str)> = contract::parameters(&template, operation)
            .into_iter()
            .filter(|one| one["in"] == "query" && one["required"] == true)
            .map(|one| {
                let example = one.get("example").unwrap_or(&one["schema"]["example"]);
                (one["name"].as_str().unwrap(), example.as_str().unwrap())
            })
            .collect();
        let missing = path(&template, &world.namespace);
        let malformed = template
            .replace(NAMESPACE, &world.namespace)
            .replace('{', "-")
            .replace('}', "");
        for path in [missing, malformed] {
            let method: Method = method.parse().unwrap();
            let answer = acme
                .send(method, &path, |request| {
                    let request = request.query(&required);
                    match &body {
                        Some(body) => request.json(body),
                        None => request,
                    }
                })
                .await;
            assert_eq!(answer.status, 404, "{template}: {}", answer.body);
        }
    }
}

#[tokio::test]
async fn unknown_parameters_are_named_by_every_operation() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let world = World::make(&app, &acme).await;
    for (method, template, operation) in contract::operations() {
        let Some(path) = world
            .path(&template)
            .filter(|path| path.starts_with("/v1/"))
        else {
            continue;
        };
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
    let world = World::make(&app, &acme).await;
    for (method, template, operation) in contract::operations() {
        let Some(path) = world.path(&template).filter(|_| method == "GET") else {
            continue;
        };
        let parameters = contract::parameters(&template, operation);
        if parameters
            .iter()
            .any(|one| one["in"] == "query" && one["required"] == true)
        {
            continue;
        }
        let (head, get) = (
            acme.send(Method::HEAD, &path, |request| request).await,
            acme.get(&path).await,
        );
        assert_eq!(
            (head.status, head.body),
            (get.status, json!("")),
            "{template}"
        );
        assert_eq!(
            head.headers["content-type"], get.headers["content-type"],
            "{template}"
        );
    }
}
