//! The Model Context Protocol at `/mcp`: its revisions, and that a tool can do what its key can do.

use domain::{
    key::{ApiKey, Role},
    post::Post,
};
use reqwest::Method;
use serde_json::{Value, json};
use store::keys::NewKey;
use test_support::{eventually, post};

use crate::{app::TestApp, client::Client, scans::record};

const REVISIONS: [&str; 3] = ["2026-07-28", "2025-11-25", "2025-06-18"];
/// The first revision without a handshake.
const STATELESS: &str = REVISIONS[0];

struct Reply {
    status: u16,
    request_id: String,
    body: Value,
}

/// Sends a request of the protocol as a client of this revision does.
async fn ask(client: &Client, revision: &str, method: &str, params: &Value) -> Reply {
    ask_with(client, revision, method, params, |request| request).await
}

async fn ask_with(
    client: &Client,
    revision: &str,
    method: &str,
    params: &Value,
    shape: impl FnOnce(reqwest::RequestBuilder) -> reqwest::RequestBuilder,
) -> Reply {
    let mut params = params.clone();
    let mut request = client
        .request(Method::POST, "/mcp")
        .header("accept", "application/json, text/event-stream");
    if method != "initialize" {
        request = request.header("mcp-protocol-version", revision);
    }
    if revision == STATELESS {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": revision,
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        request = request.header("mcp-method", method);
        if let Some(name) = params["name"].as_str() {
            request = request.header("mcp-name", name);
        }
    }
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let answer = shape(request.json(&message)).send().await.unwrap();
    let id = answer.headers()["x-request-id"].to_str().unwrap();
    Reply {
        status: answer.status().as_u16(),
        request_id: id.to_owned(),
        body: answer.json().await.unwrap(),
    }
}

async fn call(client: &Client, tool: &str, arguments: &Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    let reply = ask(client, REVISIONS[1], "tools/call", &params).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.body["result"].clone()
}

fn names(tools: &Value) -> Vec<&str> {
    let tools = tools["result"]["tools"].as_array().unwrap();
    let names = tools.iter().map(|tool| tool["name"].as_str().unwrap());
    names.collect()
}

#[tokio::test]
async fn every_revision_lists_and_calls_tools_without_a_session() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    for revision in REVISIONS {
        if revision == STATELESS {
            let found = ask(&acme, revision, "server/discover", &json!({})).await;
            let supported = &found.body["result"]["supportedVersions"];
            assert_eq!(supported, &json!(REVISIONS), "{}", found.body);
        } else {
            let hello = json!({
                "protocolVersion": revision, "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            });
            let welcome = ask(&acme, revision, "initialize", &hello).await;
            let result = &welcome.body["result"];
            assert_eq!(result["protocolVersion"], revision, "{}", welcome.body);
            assert_eq!(result["serverInfo"]["name"], "earshot");
        }
        let tools = ask(&acme, revision, "tools/list", &json!({})).await;
        assert!(names(&tools.body).contains(&"list_scans"), "{}", tools.body);
        let params = json!({"name": "list_namespaces", "arguments": {}});
        let called = ask(&acme, revision, "tools/call", &params).await;
        let items = &called.body["result"]["structuredContent"]["items"];
        assert_eq!(items[0]["values"]["name"], namespace, "{}", called.body);
        assert_eq!(items[0]["untrusted"]["nickname"], "ours");
    }
    // A client of an older revision is offered the newest one that begins with a handshake.
    for older in ["2024-11-05", "2025-03-26"] {
        let hello = json!({
            "protocolVersion": older, "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let offered = ask(&acme, REVISIONS[1], "initialize", &hello).await;
        let version = &offered.body["result"]["protocolVersion"];
        assert_eq!(version, REVISIONS[1], "{}", offered.body);
    }
    let unknown = ask(&acme, "1999-01-01", "tools/list", &json!({})).await;
    assert_eq!(unknown.status, 400, "{}", unknown.body);
    assert!(
        unknown.body.to_string().contains("1999-01-01"),
        "{}",
        unknown.body
    );
}

#[tokio::test]
async fn lists_are_read_page_by_page() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespaces = [
        acme.namespace().await,
        acme.namespace().await,
        acme.namespace().await,
    ];
    let mut seen = Vec::new();
    let mut arguments = json!({"limit": 2});
    loop {
        let page = call(&acme, "list_namespaces", &arguments).await;
        let content = &page["structuredContent"];
        let items = content["items"].as_array().unwrap();
        assert!(items.len() <= 2, "{page}");
        let names = items
            .iter()
            .map(|item| item["values"]["name"].as_str().unwrap().to_owned());
        seen.extend(names);
        let token = &content["nextPageToken"];
        if token.is_null() {
            break;
        }
        let text = page["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(token.as_str().unwrap()), "{text}");
        arguments["pageToken"] = token.clone();
    }
    seen.sort_unstable();
    let mut expected = namespaces.to_vec();
    expected.sort_unstable();
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn the_key_decides_what_a_tool_reads_and_writes() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let manager = acme.manager(&namespace).await;
    record(&app, &manager, &[post("1", "backup")]).await;
    let scans = acme.get(&format!("/v1/{manager}/scans")).await;
    let scan = &scans.body["scans"][0]["name"];
    let judgement = json!({"scan": scan, "value": true});

    let viewer = app.key("acme", Role::Viewer, None).await;
    let tools = ask(&viewer, REVISIONS[1], "tools/list", &json!({})).await;
    assert!(!names(&tools.body).contains(&"judge_scan"));
    let params = json!({"name": "judge_scan", "arguments": judgement});
    let refused = ask(&viewer, REVISIONS[1], "tools/call", &params).await;
    assert_eq!(refused.body["error"]["code"], -32_602, "{}", refused.body);

    let globex = app.account("globex").await;
    for (tool, arguments) in [
        ("list_scans", json!({"parent": manager})),
        ("explain_scan", json!({"scan": scan})),
        ("judge_scan", judgement.clone()),
    ] {
        let refused = call(&globex, tool, &arguments).await;
        assert_eq!(refused["isError"], true, "{refused}");
        assert!(refused.to_string().contains("refused (403)"), "{refused}");
        assert_eq!(refused["structuredContent"], Value::Null);
    }

    let judged = call(&acme, "judge_scan", &judgement).await;
    let values = &judged["structuredContent"]["items"][0]["values"];
    assert_eq!(values["value"], true, "{judged}");
    let name = scan.as_str().unwrap();
    assert_eq!(acme.get(&format!("/v1/{name}")).await.body["value"], true);
}

#[tokio::test]
async fn the_requests_of_a_tool_are_checked_and_recorded_like_others() {
    let app = TestApp::start_with(|config| {
        config.gateway.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
    })
    .await;
    let owner = app.account("acme").await;
    let namespace = owner.namespace().await;
    let manager = owner.manager(&namespace).await;
    let key = ApiKey::generate();
    let networks = ["198.51.100.0/24".parse().unwrap()];
    app.store_limited_key("acme", |account| NewKey {
        networks: Some(&networks),
        ..NewKey::new(account, &key, Role::Editor)
    })
    .await;
    let client = Client::new(&app.base, Some(key.expose()));
    let params =
        json!({"name": "enable_manager", "arguments": {"manager": manager, "enable": false}});
    let ask = async |place: &str, test: bool| {
        let shape = |request: reqwest::RequestBuilder| {
            let request = request.header("x-forwarded-for", place);
            match test {
                true => request.header("x-test", "true"),
                false => request,
            }
        };
        ask_with(&client, REVISIONS[1], "tools/call", &params, shape).await
    };
    assert_eq!(ask("203.0.113.7", false).await.status, 403);
    let tried = ask("198.51.100.7", true).await;
    assert_eq!(tried.body["result"]["isError"], false, "{}", tried.body);
    let path = format!("/v1/{manager}");
    assert_eq!(owner.get(&path).await.body["enable"], true);
    let changed = ask("198.51.100.7", false).await;
    assert_eq!(changed.body["result"]["isError"], false, "{}", changed.body);
    assert_eq!(owner.get(&path).await.body["enable"], false);

    let events = owner.get(&format!("/v1/{namespace}/auditEvents")).await;
    let event = &events.body["auditEvents"][0];
    assert_eq!(event["resource"], json!(manager), "{}", events.body);
    assert_eq!(event["clientAddress"], "198.51.100.7");
    assert_eq!(event["requestId"], changed.request_id);
}

#[tokio::test]
async fn the_requests_of_a_tool_count_towards_the_rate_limit() {
    let app = TestApp::start_with(|config| config.gateway.rate_limit_per_minute = 1).await;
    let acme = app.account("acme").await;
    // The call itself spends the only point.
    let refused = call(&acme, "list_namespaces", &json!({})).await;
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(refused.to_string().contains("refused (429)"), "{refused}");
}

/// A lock on a row of `managers` keeps the tools running.
#[tokio::test]
async fn other_messages_do_not_wait_for_running_tools() {
    const WAITING: &str =
        "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let manager = acme.manager(&acme.namespace().await).await;
    let rows = app
        .database
        .begin(&["SELECT FROM managers FOR UPDATE"])
        .await;
    let arguments = json!({"manager": manager, "enable": false});
    // As many as an account may run at a time.
    let tools = futures::future::join_all([
        call(&acme, "enable_manager", &arguments),
        call(&acme, "enable_manager", &arguments),
    ]);
    let others = async {
        eventually("both run", async || app.database.count(WAITING).await == 2).await;
        for method in ["ping", "tools/list"] {
            let reply = ask(&acme, REVISIONS[1], method, &json!({})).await;
            assert_eq!(reply.status, 200, "{method}: {}", reply.body);
        }
        drop(rows);
    };
    let (tools, ()) = futures::join!(tools, others);
    for tool in tools {
        assert_eq!(tool["isError"], false, "{tool}");
    }
}

/// Every item is seen once, and each answer fits.
#[tokio::test]
async fn a_list_with_long_posts_is_read_in_answers_that_fit() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let manager = acme.manager(&acme.namespace().await).await;
    let text = |n: usize| format!("backup {n} ") + &"\"é\n".repeat(3_000);
    let posts: Vec<Post> = (0..12)
        .map(|n| Post {
            text: Some(text(n)),
            ..post(&n.to_string(), "backup")
        })
        .collect();
    record(&app, &manager, &posts).await;
    let mut arguments = json!({"parent": manager, "limit": 12});
    let mut seen = Vec::new();
    loop {
        let page = call(&acme, "list_scans", &arguments).await;
        assert!(page.to_string().chars().count() <= 100_000);
        let content = &page["structuredContent"];
        let items = content["items"].as_array().unwrap();
        assert!(!items.is_empty() && items.len() < 12, "{}", items.len());
        let texts = items
            .iter()
            .map(|item| item["untrusted"]["post"]["text"].clone());
        seen.extend(texts);
        let token = &content["nextPageToken"];
        if token.is_null() {
            break;
        }
        arguments["pageToken"] = token.clone();
    }
    let expected: Vec<Value> = (0..12).rev().map(|n| json!(text(n))).collect();
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_long_post_is_read_piece_by_piece() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let manager = acme.manager(&acme.namespace().await).await;
    let long = "backup é\n".repeat(9_000);
    let posts = [Post {
        text: Some(long.clone()),
        ..post("1", "backup")
    }];
    record(&app, &manager, &posts).await;
    let scans = acme.get(&format!("/v1/{manager}/scans")).await;
    let mut arguments = json!({"scan": scans.body["scans"][0]["name"]});
    let mut read = String::new();
    loop {
        let answer = call(&acme, "explain_scan", &arguments).await;
        assert!(answer.to_string().chars().count() <= 100_000);
        let content = &answer["structuredContent"];
        let piece = content["items"][1]["untrusted"]["post"]["text"].as_str();
        let piece = piece.unwrap_or_else(|| panic!("{answer}"));
        let next = &content["nextTextFrom"];
        read += match next.is_null() {
            true => piece,
            false => piece.strip_suffix('…').unwrap(),
        };
        if next.is_null() {
            break;
        }
        arguments["textFrom"] = next.clone();
    }
    assert!(read == long, "{} of {}", read.len(), long.len());
}

#[tokio::test]
async fn an_answer_that_is_too_long_for_a_tool_is_refused() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let manager = acme.manager(&acme.namespace().await).await;
    let long = "backup ".repeat(10_000);
    let posts: Vec<Post> = (0..40)
        .map(|n| Post {
            text: Some(long.clone()),
            ..post(&n.to_string(), "backup")
        })
        .collect();
    record(&app, &manager, &posts).await;
    let few = call(&acme, "list_scans", &json!({"parent": manager, "limit": 3})).await;
    assert_eq!(few["isError"], false, "{few}");
    let many = call(
        &acme,
        "list_scans",
        &json!({"parent": manager, "limit": 40}),
    )
    .await;
    assert_eq!(many["isError"], true);
    assert!(many.to_string().contains("ask for fewer items"), "{many}");
}

#[tokio::test]
async fn malformed_requests_are_refused_as_the_protocol_says() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let send = async |client: &Client, method: Method, accept: &str, body: &str| {
        let request = client.request(method, "/mcp").header("accept", accept);
        let request = request.header("content-type", "application/json");
        let answer = request.body(body.to_owned()).send().await.unwrap();
        (
            answer.status().as_u16(),
            answer.json::<Value>().await.unwrap(),
        )
    };
    let both = "application/json, text/event-stream";
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let stranger = app.stranger();
    assert_eq!(send(&stranger, Method::POST, both, ping).await.0, 401);
    assert_eq!(send(&acme, Method::POST, both, ping).await.0, 200);
    assert_eq!(send(&acme, Method::GET, both, "").await.0, 405);
    assert_eq!(send(&acme, Method::DELETE, both, "").await.0, 405);
    // Answers are JSON, so a client need not accept event streams.
    assert_eq!(send(&acme, Method::POST, "*/*", ping).await.0, 200);
    let (status, body) = send(&acme, Method::POST, both, "[]").await;
    let message = "body is not a json-rpc 2.0 message";
    assert_eq!((status, &body["message"]), (400, &json!(message)), "{body}");
    for params in [r#"{"name":"list_scans","arguments":"{}"}"#, "{}"] {
        let call = ping.replace("ping", "tools/call").replace('}', "");
        let call = format!(r#"{call},"params":{params}}}"#);
        let (_, body) = send(&acme, Method::POST, both, &call).await;
        assert_eq!(body["error"]["code"], -32_602, "{call}: {body}");
    }
    let (status, body) = send(&acme, Method::POST, both, "{").await;
    assert_eq!((status, &body["code"]), (400, &json!(400)), "{body}");
    let long = " ".repeat(300 * 1024) + ping;
    assert_eq!(send(&acme, Method::POST, both, &long).await.0, 413);
    let (_, body) = send(&acme, Method::POST, both, &ping.replace("ping", "nothing")).await;
    assert_eq!(body["error"]["code"], -32_601, "{body}");
}
