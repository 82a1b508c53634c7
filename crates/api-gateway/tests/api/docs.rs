//! `/docs` and the documents: their headers for browsers.

use std::collections::BTreeSet;

use reqwest::{Method, Response};

use crate::app::TestApp;

/// Large files, which are sent compressed.
const PACKED: [&[u8]; 2] = [
    include_bytes!("../../src/docs/swagger-ui/swagger-ui-bundle.js.br"),
    include_bytes!("../../src/docs/swagger-ui/swagger-ui.css.br"),
];

/// Files that the page loads, by the names it uses.
fn addresses(page: &str) -> BTreeSet<&str> {
    ["src=\"", "href=\""]
        .into_iter()
        .flat_map(|attribute| page.split(attribute).skip(1))
        .filter_map(|rest| rest.split('"').next())
        .filter(|address| *address != "data:,")
        .collect()
}

async fn fetch(app: &TestApp, path: &str, coding: &str) -> Response {
    runtime::crypto::install();
    let client = reqwest::Client::builder()
        .no_gzip()
        .no_brotli()
        .no_deflate();
    let request = client.build().unwrap().get(format!("{}/{path}", app.base));
    request
        .header("accept-encoding", coding)
        .send()
        .await
        .unwrap()
}

#[tokio::test]
async fn docs_page_loads_only_our_own_files() {
    let app = TestApp::start().await;
    let page = fetch(&app, "docs", "identity").await;
    let policy = page.headers()["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none';"), "{policy}");
    for source in policy
        .split(';')
        .flat_map(|rule| rule.split_whitespace().skip(1))
    {
        assert!(["'none'", "'self'", "data:"].contains(&source), "{policy}");
    }
    assert_eq!(page.headers()["x-content-type-options"], "nosniff");
    assert_eq!(page.headers()["referrer-policy"], "no-referrer");

    let page = page.text().await.unwrap();
    let addresses = addresses(&page);
    assert_eq!(addresses.len(), 6, "{addresses:?}");
    for address in addresses {
        // The address is relative, so that it works below a path prefix too.
        assert!(!address.starts_with('/') && !address.contains(':'));
        let plain = fetch(&app, address, "identity").await;
        assert_eq!(plain.status(), 200, "{address}");
        assert!(!plain.headers().contains_key("content-encoding"));
        let caching = plain.headers()["cache-control"].to_str().unwrap();
        let lasts = address.starts_with("docs/");
        assert_eq!(caching.contains("immutable"), lasts, "{address}");
        let plain = plain.bytes().await.unwrap();

        if plain.len() < 4096 {
            continue; // Too short.
        }
        let packed = fetch(&app, address, "gzip").await;
        assert_eq!(packed.headers()["content-encoding"], "gzip", "{address}");
        assert!(packed.headers().contains_key("vary"), "{address}");
        if lasts {
            let both = fetch(&app, address, "gzip, deflate, br").await;
            assert_eq!(both.headers()["content-encoding"], "br", "{address}");
            let both = both.bytes().await.unwrap();
            assert!(both.len() <= plain.len() / 2);
            // Large files are not compressed again for each request.
            let is_ours = |packed: &&[u8]| both == **packed;
            assert!(
                plain.len() < 100_000 || PACKED.iter().any(is_ours),
                "{address}"
            );
        }
        let packed = packed.bytes().await.unwrap();
        let mut unpacked = Vec::new();
        std::io::Read::read_to_end(
            &mut flate2::read::GzDecoder::new(&packed[..]),
            &mut unpacked,
        )
        .unwrap();
        assert!(unpacked == plain, "{address}");
    }
}

#[tokio::test]
async fn unchanged_document_answers_304() {
    let app = TestApp::start().await;
    let stranger = app.stranger();
    for path in ["/openapi.json", "/openapi.yaml"] {
        let first = stranger.get(path).await;
        let tag = first.headers["etag"].to_str().unwrap();
        assert_eq!(first.headers["cache-control"], "no-cache");
        let asked = async |tag: &str| {
            let ask = |request: reqwest::RequestBuilder| request.header("if-none-match", tag);
            stranger.send(Method::GET, path, ask).await
        };
        let several = format!("\"other\", {tag}");
        for known in [tag, &several, "*"] {
            let answer = asked(known).await;
            assert_eq!(answer.status, 304, "{known}");
            assert_eq!(answer.headers["etag"], tag);
        }
        for unknown in ["\"other\"", "nonsense", ""] {
            assert_eq!(asked(unknown).await.status, 200, "{unknown}");
        }
    }
}
