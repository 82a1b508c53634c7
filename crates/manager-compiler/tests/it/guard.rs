//! URLs of customers and of the model's operator never reach a forbidden address.

use std::collections::BTreeMap;

use domain::manager::ApplyErrorCode;
use runtime::config::Model;
use test_support::{Answer, TestServer};

use crate::support::{ESPRESSO, World};

/// A server that must not be reached.
async fn inside() -> TestServer {
    TestServer::start(|_, _| Answer::page("<h1>Secrets of the operator</h1><p>All of them.")).await
}

fn port_of(server: &TestServer) -> u16 {
    let url: url::Url = server.url("/").parse().unwrap();
    url.port().unwrap()
}

#[tokio::test]
async fn internal_addresses_are_refused_in_every_spelling() {
    let mut world = World::new().await;
    world.config.outbound.allow_cidrs.clear();
    let server = inside().await;
    let port = port_of(&server);
    let compiler = world.compiler();
    let hosts = [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0.0.0.0",
        "localhost",
        "LOCALHOST.",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "10.0.0.1",
        "100.64.0.1",
        "192.168.0.1",
        "[fe80::1]",
        "metadata.google.internal",
    ];
    let mut waiting = BTreeMap::new();
    for host in hosts {
        // Stored directly, as by an older version that checked less.
        let name = world.automatic(&[format!("http://{host}:{port}/")]).await;
        world.publish_submitted(name, 1).await;
        waiting.insert(host, name);
    }
    for (host, name) in waiting {
        let manager = world.until(name, "APPLY_FAILED").await;
        let error = manager.apply_error.unwrap();
        assert_eq!(
            error.code,
            ApplyErrorCode::ForbiddenAddress,
            "{host}: {}",
            error.message
        );
        assert!(manager.instructions.is_none());
    }
    assert_eq!(server.count(), 0);
    compiler.stop().await;
}

/// Each step of a redirect is checked like the first address.
#[tokio::test]
async fn redirects_to_internal_addresses_are_not_followed() {
    let world = World::new().await;
    let server = TestServer::start(|_, request| match &*request.path {
        "/private" => Answer::redirect("http://10.0.0.1/"),
        "/mapped" => Answer::redirect("http://[::ffff:169.254.169.254]/latest/"),
        "/relative" => Answer::redirect("/private"),
        "/scheme" => Answer::redirect("file:///etc/passwd"),
        _ => Answer::redirect("//192.168.0.1/"),
    })
    .await;
    let compiler = world.compiler();
    for path in ["/private", "/mapped", "/relative", "/other", "/scheme"] {
        let name = world.automatic(&[server.url(path)]).await;
        world.publish_submitted(name, 1).await;
        let error = world.until(name, "APPLY_FAILED").await.apply_error.unwrap();
        // A URL that is not a web address is not a forbidden one.
        let expected = match path {
            "/scheme" => ApplyErrorCode::NoReachableUrl,
            _ => ApplyErrorCode::ForbiddenAddress,
        };
        assert_eq!(error.code, expected, "{path}: {}", error.message);
    }
    compiler.stop().await;
}

/// The operator chose the endpoint, so it may be anywhere; a redirect target was not chosen.
#[tokio::test]
async fn model_endpoint_key_is_not_sent_to_redirects() {
    let mut world = World::new().await;
    let elsewhere = inside().await;
    let target = elsewhere.url("/v1/chat/completions");
    let endpoint = TestServer::start(move |_, _| Answer::redirect(&target)).await;
    let site = TestServer::start(|_, _| Answer::page(ESPRESSO)).await;
    world.config.compiler.model = Some(Model {
        base_url: endpoint.url("/v1").parse().unwrap(),
        model: "small".to_owned(),
        api_key: Some("hush".into()),
        timeout: std::time::Duration::from_secs(5),
        max_tokens: 100,
    });
    let compiler = world.compiler();
    let name = world.automatic(&[site.url("/")]).await;
    world.publish_submitted(name, 1).await;
    world.until(name, "APPLIED").await;
    let asked = endpoint.requests();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].header("authorization"), Some("Bearer hush"));
    assert_eq!(elsewhere.count(), 0);
    compiler.stop().await;
}
