//! Headers for browsers and caches, and compression.

use reqwest::{Method, Response, header::HeaderMap};

use crate::app::TestApp;

const PAGE: &str = "https://app.example.com";

async fn raw(method: Method, url: &str, headers: &[(&'static str, &str)]) -> Response {
    runtime::crypto::install();
    let client = reqwest::Client::builder()
        .no_gzip()
        .no_brotli()
        .no_deflate()
        .build()
        .unwrap();
    let request = client.request(method, url);
    let request = headers.iter().fold(request, |request, (name, value)| {
        request.header(*name, *value)
    });
    request.send().await.unwrap()
}

fn allowed(headers: &HeaderMap) -> Option<&str> {
    headers
        .get("access-control-allow-origin")
        .map(|value| value.to_str().unwrap())
}

#[tokio::test]
async fn only_configured_origins_may_call_the_api() {
    let app = TestApp::start().await;
    let url = format!("{}/v1/namespaces", app.base);
    let preflight = [("origin", PAGE), ("access-control-request-method", "POST")];
    let answer = raw(Method::OPTIONS, &url, &preflight).await;
    assert_eq!(answer.status(), 401);
    assert_eq!(allowed(answer.headers()), None);

    let app = TestApp::start_with(|config| {
        config.gateway.cors_allowed_origins =
            vec![PAGE.to_owned(), "http://localhost:3000".to_owned()];
    })
    .await;
    let url = format!("{}/v1/namespaces", app.base);
    // Browsers send no key with a preflight.
    for method in ["GET", "POST", "PATCH", "DELETE"] {
        let preflight = [
            ("origin", PAGE),
            ("access-control-request-method", method),
            (
                "access-control-request-headers",
                "authorization,content-type,x-test,idempotency-key",
            ),
        ];
        let answer = raw(Method::OPTIONS, &url, &preflight).await;
        assert_eq!(answer.status(), 200, "{method}");
        let headers = answer.headers();
        assert_eq!(allowed(headers), Some(PAGE));
        assert!(
            headers["access-control-allow-methods"]
                .to_str()
                .unwrap()
                .contains(method)
        );
        let allowed = headers["access-control-allow-headers"]
            .to_str()
            .unwrap()
            .to_lowercase();
        assert!(
            allowed.contains("authorization") && allowed.contains("idempotency-key"),
            "{allowed}"
        );
        assert!(headers.contains_key("x-request-id"));
    }
    let foreign = [
        ("origin", "https://evil.example"),
        ("access-control-request-method", "POST"),
    ];
    let answer = raw(Method::OPTIONS, &url, &foreign).await;
    assert_eq!(answer.status(), 400);
    assert_eq!(allowed(answer.headers()), None);
    let body: serde_json::Value = answer.json().await.unwrap();
    assert_eq!(body["code"], 400);

    // Responses are readable, including errors and our headers.
    let answer = raw(Method::GET, &url, &[("origin", PAGE)]).await;
    assert_eq!(answer.status(), 401);
    assert_eq!(allowed(answer.headers()), Some(PAGE));
    let exposed = answer.headers()["access-control-expose-headers"]
        .to_str()
        .unwrap();
    for name in [
        "x-request-id",
        "x-ratelimit-remaining",
        "retry-after",
        "idempotency-replayed",
    ] {
        assert!(exposed.contains(name), "{name}: {exposed}");
    }
    let answer = raw(Method::GET, &url, &[("origin", "https://evil.example")]).await;
    assert_eq!(answer.status(), 401);
    assert_eq!(allowed(answer.headers()), None);
    // OPTIONS that is no preflight is a method that no path supports.
    assert_eq!(raw(Method::OPTIONS, &url, &[]).await.status(), 401);

    let app = TestApp::start_with(|config| {
        config.gateway.cors_allowed_origins = vec!["*".to_owned()];
    })
    .await;
    let url = format!("{}/openapi.json", app.base);
    let answer = raw(Method::GET, &url, &[("origin", "https://anybody.example")]).await;
    assert_eq!(allowed(answer.headers()), Some("*"));
}

#[tokio::test]
async fn responses_restrict_browsers() {
    let app = TestApp::start().await;
    let acme = app.account("acme").await;
    for answer in [
        acme.get("/v1/namespaces").await,
        acme.get("/v1/nowhere").await,
        app.stranger().get("/v1/namespaces").await,
    ] {
        let headers = &answer.headers;
        assert_eq!(headers["cache-control"], "no-store");
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(headers["referrer-policy"], "no-referrer");
        let policy = "default-src 'none'; frame-ancestors 'none'";
        assert_eq!(headers["content-security-policy"], policy);
        // HSTS would be a promise that plain HTTP cannot keep.
        assert!(!headers.contains_key("strict-transport-security"));
    }
}

#[tokio::test]
async fn only_long_responses_are_compressed_and_only_on_request() {
    let app = TestApp::start().await;
    let url = format!("{}/openapi.json", app.base);
    let plain = raw(Method::GET, &url, &[]).await;
    assert!(!plain.headers().contains_key("content-encoding"));
    let plain = plain.bytes().await.unwrap();
    for (accepted, coding) in [("gzip", "gzip"), ("gzip, deflate, br", "br")] {
        let answer = raw(Method::GET, &url, &[("accept-encoding", accepted)]).await;
        assert_eq!(answer.headers()["content-encoding"], coding);
        assert!(
            answer.headers()["vary"]
                .to_str()
                .unwrap()
                .to_lowercase()
                .contains("accept-encoding")
        );
        let length = answer.bytes().await.unwrap().len();
        assert!(
            length * 3 < plain.len(),
            "{coding}: {length} of {}",
            plain.len()
        );
        let decoded = reqwest::get(&url).await.unwrap().bytes().await.unwrap();
        assert_eq!(decoded, plain);
    }
    let url = format!("{}/v1/namespaces", app.base);
    let answer = raw(Method::GET, &url, &[("accept-encoding", "br, gzip")]).await;
    assert_eq!(answer.status(), 401);
    assert!(!answer.headers().contains_key("content-encoding"));
}
