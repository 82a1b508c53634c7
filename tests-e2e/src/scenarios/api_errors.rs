//! Requests that are refused, each with the body of SPEC.md part 7, or that leave nothing behind.

use http::Method;
use serde_json::json;

use super::support::{Customer, name};
use crate::harness::{Stack, api, receiver::Receiver, shape};

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

pub(crate) async fn malformed(stack: &Stack) {
    for body in [
        "{\"nickname\": \"Acme\"",
        "",
        "null",
        "[]",
        "{\"a\":1,\"a\":2}",
        "\u{0}",
    ] {
        let body = Some(body.to_owned());
        let answer = stack
            .api
            .request(Method::POST, "/v1/namespaces", &JSON, body)
            .await;
        assert_eq!(answer.status, 400, "{}", answer.json());
    }
    let plain = [("content-type", "text/plain")];
    let body = Some("{\"nickname\": \"Acme\"}".to_owned());
    let answer = stack
        .api
        .request(Method::POST, "/v1/namespaces", &plain, body)
        .await;
    assert_eq!(answer.status, 415);
    let long = Some(format!("{{\"nickname\": \"{}\"}}", "a".repeat(300 * 1024)));
    let answer = stack
        .api
        .request(Method::POST, "/v1/namespaces", &JSON, long)
        .await;
    assert_eq!(answer.status, 413);

    let answer = stack
        .api
        .post("/v1/namespaces", &json!({"nickname": ""}))
        .await;
    let details = json!([{"field": "nickname", "issue": "too_short"}]);
    assert_eq!((answer.status, &answer.json()["details"]), (400, &details));

    let namespace = stack.api.create_namespace("Malformed").await;
    let manager = json!({
        "nickname": "x", "type": "FEED_MANAGER", "source": {"type": "BULLETIN"}, "mood": "good",
        "input": {"type": "STRUCTURED", "urls": ["http://10.1.2.3/", 7], "focus": {}},
        "notices": [{"type": "HTTP_REQUEST", "connection": format!("{namespace}/connections/01arz3ndektsv4rrffq69g5fav")}],
    });
    let path = format!("/v1/{namespace}/managers");
    let answer = stack.api.post(&path, &manager).await;
    let mut found: Vec<String> = answer.json()["details"]
        .as_array()
        .unwrap()
        .iter()
        .map(|detail| {
            format!(
                "{} {}",
                detail["field"].as_str().unwrap(),
                detail["issue"].as_str().unwrap()
            )
        })
        .collect();
    found.sort();
    let expected = [
        "input.focus.type required",
        "input.urls[0] forbidden_address",
        "input.urls[1] invalid_type",
        "mood unknown_field",
        "notices[0].connection not_found",
        "source.type invalid_enum",
    ];
    assert_eq!(
        (answer.status, found),
        (400, expected.map(str::to_owned).to_vec())
    );

    for query in [
        "pageSize=-1",
        "pageSize=x",
        "pageToken=zzz",
        "filter=createTime%20%3E",
        "orderBy=mood",
        "size=3",
    ] {
        let answer = stack.api.get(&format!("{path}?{query}")).await;
        assert_eq!(answer.status, 400, "{query}: {}", answer.json());
    }
    let listed = stack.api.get(&path).await;
    assert_eq!(
        (listed.status, listed.json()),
        (200, json!({"managers": []}))
    );
}

pub(crate) async fn strangers(stack: &Stack) {
    let customer = Customer::new(stack, "Private", Receiver::start().await).await;
    let [manager, _] = customer.watch_word("larkmoss").await;
    let mine = [
        format!("/v1/{}", customer.namespace),
        format!("/v1/{}", customer.connection),
        format!("/v1/{}", name(&manager)),
        format!("/v1/{}/scans", name(&manager)),
    ];

    // Without a key, with an unknown key, and with a wrong secret.
    let key = stack.key("stranger", "OWNER");
    let last = if key.ends_with('A') { "B" } else { "A" };
    let forged = format!("Bearer {}{last}", &key[..key.len() - 1]);
    let client = api::client();
    for header in ["", "Bearer", "Bearer nonsense", "Basic YTpi", &forged] {
        let headers: &[_] = if header.is_empty() {
            &[]
        } else {
            &[("authorization", header)]
        };
        for path in &mine {
            let url = format!("{}{path}", stack.api_url);
            let answer = api::send(&client, Method::GET, &url, headers, None).await;
            shape::assert_error(401, &answer.json());
            assert_eq!(
                (answer.status, answer.header("www-authenticate")),
                (401, "Bearer")
            );
        }
    }

    // Another account's key can neither read nor create anything.
    let stranger = stack.client(&key);
    for path in &mine {
        assert_eq!(stranger.get(path).await.status, 403, "{path}");
    }
    let connections = format!("{}/connections", mine[0]);
    assert_eq!(stranger.post(&connections, &json!({})).await.status, 403);
    let list = stranger.get("/v1/namespaces").await;
    assert_eq!(list.json(), json!({"namespaces": []}));

    // A viewer of another account, who has no write access even there.
    let viewer = stack.client(&stack.key("stranger", "VIEWER"));
    let answer = viewer
        .post("/v1/namespaces", &json!({"nickname": "Mine"}))
        .await;
    assert_eq!(answer.status, 403);

    let nobody = "01arz3ndektsv4rrffq69g5fav";
    for path in [
        "/nowhere".to_owned(),
        "/v1/nowhere".to_owned(),
        format!("/v1/namespaces/{nobody}"),
        "/v1/namespaces/NOT-AN-ID".to_owned(),
        format!("{}/managers/{nobody}", mine[0]),
        format!("{}/managers/{nobody}/scans", mine[0]),
        format!("{}/{nobody}", mine[3]),
    ] {
        assert_eq!(stack.api.get(&path).await.status, 404, "{path}");
    }
    for method in [Method::PUT, Method::DELETE] {
        let answer = stack.api.request(method, &mine[3], &[], None).await;
        assert_eq!(answer.status, 405);
        assert!(
            answer.header("allow").contains("GET"),
            "{}",
            answer.header("allow")
        );
    }
}

/// `x-test` returns the answer of the real call, and stores nothing.
pub(crate) async fn test_mode(stack: &Stack) {
    let namespace = stack.api.create_namespace("Only a test").await;
    let path = format!("/v1/{namespace}/connections");
    let body = json!({"nickname": "x", "type": "HTTP_CONNECTION", "url": "http://127.0.0.1:2/"});
    for value in ["true", "YES"] {
        let headers = [JSON[0], ("x-test", value)];
        let body = Some(body.to_string());
        let answer = stack.api.request(Method::POST, &path, &headers, body).await;
        assert_eq!((answer.status, answer.header("x-test")), (201, "true"));
        let made = format!("/v1/{}", name(&answer.json()));
        assert_eq!(stack.api.get(&made).await.status, 404);
    }
    let headers = [("x-test", "perhaps")];
    let answer = stack.api.request(Method::GET, &path, &headers, None).await;
    assert_eq!(answer.status, 400);
    let listed = stack.api.get(&path).await;
    assert_eq!(listed.json(), json!({"connections": []}));
}
