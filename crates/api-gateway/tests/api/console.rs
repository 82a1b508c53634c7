//! `/console/`: its headers for browsers, and how to turn it off.

use reqwest::{Response, redirect};

use crate::app::TestApp;

async fn fetch(app: &TestApp, path: &str, coding: &str) -> Response {
    runtime::crypto::install();
    let client = reqwest::Client::builder()
        .no_gzip()
        .no_brotli()
        .no_deflate()
        .redirect(redirect::Policy::none());
    let request = client.build().unwrap().get(format!("{}{path}", app.base));
    request
        .header("accept-encoding", coding)
        .send()
        .await
        .unwrap()
}

/// Name of the script that the page loads.
async fn script(app: &TestApp) -> String {
    let page = fetch(app, "/console/", "identity").await;
    let page = page.text().await.unwrap();
    let (_, rest) = page.split_once("src=\"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn console_sends_a_strict_content_security_policy() {
    let app = TestApp::start().await;
    let script = format!("/console/{}", script(&app).await);
    for path in ["/console/", script.as_str()] {
        let answer = fetch(&app, path, "identity").await;
        assert_eq!(answer.status(), 200, "{path}");
        let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(
            header("content-security-policy"),
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; \
             connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
             require-trusted-types-for 'script'; trusted-types 'none'",
        );
        assert_eq!(header("referrer-policy"), "no-referrer");
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("cross-origin-opener-policy"), "same-origin");
        let lasts = header("cache-control").contains("immutable");
        assert_eq!(lasts, path != "/console/", "{path}");
        assert_eq!(header("cache-control") == "no-store", !lasts, "{path}");
    }
}

#[tokio::test]
async fn redirect_to_the_console_keeps_a_path_prefix() {
    let app = TestApp::start().await;
    let answer = fetch(&app, "/console", "identity").await;
    assert_eq!(answer.status(), 308);
    assert_eq!(answer.headers()["location"], "console/");
    for path in [
        "/console/nothing.js",
        "/console/index.html",
        "/console/../Cargo.toml",
        "/console/%2e%2e",
    ] {
        assert_eq!(fetch(&app, path, "identity").await.status(), 404, "{path}");
    }
}

#[tokio::test]
async fn console_files_are_compressed_for_clients_that_accept_it() {
    let app = TestApp::start().await;
    let path = format!("/console/{}", script(&app).await);
    let plain = fetch(&app, &path, "identity").await;
    assert!(!plain.headers().contains_key("content-encoding"));
    let plain = plain.bytes().await.unwrap();
    for (accepted, coding) in [("gzip", "gzip"), ("gzip, deflate, br", "br")] {
        let packed = fetch(&app, &path, accepted).await;
        assert_eq!(packed.headers()["content-encoding"], coding);
        assert!(packed.headers().contains_key("vary"));
        let packed = packed.bytes().await.unwrap();
        assert!(packed.len() * 2 < plain.len(), "{coding}: {}", packed.len());
    }
}

#[tokio::test]
async fn disabled_console_answers_404() {
    let app = TestApp::start_with(|config| config.gateway.console = false).await;
    for path in ["/console", "/console/", "/console/index.html"] {
        let answer = fetch(&app, path, "identity").await;
        assert_eq!(answer.status(), 404, "{path}");
        let body: serde_json::Value = answer.json().await.unwrap();
        assert_eq!(body["code"], 404);
    }
}
