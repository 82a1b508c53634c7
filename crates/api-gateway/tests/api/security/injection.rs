//! Line breaks and markup in any value that a client can write: they appear in no response header, and only in the
//! value itself.

use serde_json::json;
use test_support::post;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{app::TestApp, hostile::read_answer, scans::record};

#[tokio::test]
async fn connection_headers_with_line_breaks_are_refused() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    for (name, value) in [
        ("x-a", "a\r\nx-injected: 1"),
        ("x-a", "a\nx-injected: 1"),
        ("x-a", "a\rx-injected: 1"),
        ("x-a", "a\u{0}b"),
        ("x-a\r\nx-injected", "1"),
        ("x-a: 1\r\nx-injected", "1"),
        ("x-a ", "1"),
        ("x-a:", "1"),
        ("", "1"),
        ("x-\u{fc}", "1"),
        ("host", "inside.example"),
        ("Content-Length", "0"),
        ("transfer-encoding", "chunked"),
        ("Connection", "upgrade"),
    ] {
        let mut body = crate::client::connection_body();
        body["headers"] = json!({ name: value });
        let answer = acme
            .post(&format!("/v1/{namespace}/connections"), &body)
            .await;
        assert_eq!(answer.status, 400, "{name:?}: {value:?}");
        let told = answer.body["message"].as_str().unwrap();
        assert!(!told.contains(['\r', '\n', '\0']), "{told:?}");
    }
}

#[tokio::test]
async fn repeated_input_cannot_inject_a_header() {
    let app = TestApp::start().await;
    let key = app.owner_key("raw").await;
    let injected = "%0d%0aset-cookie:%20a=b%0d%0a%0d%0a<html>";
    for (target, header) in [
        (
            "/v1/namespaces".to_owned(),
            "x-request-id: a\rset-cookie: a=b",
        ),
        ("/v1/namespaces".to_owned(), "x-request-id: a\tb"),
        (
            "/v1/namespaces".to_owned(),
            "x-request-id: a\r\n set-cookie: a=b",
        ),
        ("/v1/namespaces".to_owned(), "x-request-id: \u{fc}"),
        ("/v1/namespaces".to_owned(), "x-test: \rset-cookie: a=b"),
        (
            "/v1/namespaces".to_owned(),
            "origin: https://a.example\rset-cookie: a=b",
        ),
        (format!("/v1/{injected}"), "x-a: b"),
        (format!("/v1/namespaces/{injected}"), "x-a: b"),
        (format!("/v1/namespaces?{injected}=1"), "x-a: b"),
        (format!("/v1/namespaces?filter={injected}"), "x-a: b"),
        (format!("/console?{injected}"), "x-a: b"),
        (format!("/docs/{injected}"), "x-a: b"),
    ] {
        let mut stream = app.connect().await;
        let request = format!(
            "GET {target} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n{header}\r\n\
             connection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let answer = String::from_utf8(answer).unwrap().to_lowercase();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(!head.contains("set-cookie"), "{target} {header:?}: {head}");
        assert!(!head.replace("\r\n", "").contains(['\r', '\n']), "{head:?}");
        assert!(head.contains("x-content-type-options: nosniff"), "{head}");
        // Each response contains it once, so no second response follows.
        assert!(!body.contains("http/1.1"), "{target}: {body}");
        if !target.starts_with("/console") {
            assert!(
                head.contains("content-type: application/json"),
                "{target}: {head}"
            );
        }
    }
}

#[tokio::test]
async fn markup_is_returned_as_text() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    let namespace = acme.namespace().await;
    let manager = acme.manager(&namespace).await;
    let markup = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u{202e}";
    let mut one = post("1", markup);
    one.text = Some(markup.to_owned());
    one.user.name = markup.to_owned();
    record(&app, &manager, &[one]).await;
    let list = format!("/v1/{manager}/scans");
    let page = acme.get(&list).await;
    let scan = &page.body["scans"][0];
    assert_eq!(scan["post"]["text"], markup);
    let name = scan["name"].as_str().unwrap().to_owned();
    let renamed = acme
        .patch(&format!("/v1/{namespace}"), &json!({"nickname": markup}))
        .await;
    assert_eq!(renamed.body["nickname"], markup);
    let refused = acme.get_with(&list, &[("<script>", "1")]).await;
    assert_eq!(refused.status, 400);
    for answer in [
        page,
        acme.get(&format!("/v1/{name}")).await,
        renamed,
        refused,
    ] {
        assert_eq!(answer.headers["content-type"], "application/json");
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("default-src 'none'"), "{policy}");
    }
}

#[tokio::test]
async fn request_smuggled_in_a_body_is_ignored() {
    let app = TestApp::start().await;
    let inner = "GET /openapi.yaml HTTP/1.1\r\nhost: x\r\n\r\n";
    let both = format!(
        "POST /v1/namespaces HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\
         transfer-encoding: chunked\r\n\r\n0\r\n\r\n{inner}",
        inner.len() + 5
    );
    let mut stream = app.connect().await;
    stream.write_all(both.as_bytes()).await.unwrap();
    let (status, _, body) = read_answer(&mut stream).await;
    assert!((400..500).contains(&status), "{status} {body}");
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    let rest = String::from_utf8_lossy(&rest);
    assert!(!rest.contains("openapi: 3.0.3"), "smuggled: {rest}");
}
