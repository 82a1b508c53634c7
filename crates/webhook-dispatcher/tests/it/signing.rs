//! Signatures, verified by the standard's own libraries in two languages.

use std::{io::Write, process::Stdio};

use domain::{
    ConnectionName,
    connection::{CreateConnection, Format, Headers, Method, SigningSecret},
};
use serde_json::json;
use standardwebhooks::Webhook;
use store::connections;
use test_support::{Answer, Request, TestServer, skip};

use crate::support::{World, always, scripted};

const OLD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NEW: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const OTHER: &str = "whsec_ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";
const NAMES: [&str; 3] = ["webhook-id", "webhook-timestamp", "webhook-signature"];

async fn connect(
    world: &World,
    receiver: &TestServer,
    secrets: &[&str],
    format: Format,
) -> ConnectionName {
    let draft = CreateConnection {
        nickname: "hook".to_owned(),
        url: receiver.url("/hook"),
        method: Method::Post,
        // A header of the customer does not replace a signature.
        headers: Headers([("Webhook-Signature".to_owned(), "v1,none".to_owned())].into()),
        format,
        max_per_second: None,
        signing_secrets: secrets
            .iter()
            .map(|text| text.parse::<SigningSecret>().unwrap())
            .collect(),
        events: Vec::new(),
        digest: None,
    };
    let mut conn = world.database.connect().await;
    let fixture = &world.fixture;
    connections::insert(&mut conn, &fixture.sealer, fixture.namespace, &draft)
        .await
        .unwrap()
        .name
}

/// Requests of a delivery with a retry.
async fn requests(world: &World, secrets: &[&str], format: Format) -> Vec<Request> {
    let receiver = scripted(vec![Answer::Status(500)]).await;
    let connection = connect(world, &receiver, secrets, format).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "A \"kettle\" – ☕").await;
    world.until("SUCCEEDED", 1).await;
    replica.stop().await;
    receiver.requests()
}

fn verifies(request: &Request, secret: &str) -> bool {
    let webhook = Webhook::new(secret).unwrap();
    let mut headers = http::HeaderMap::new();
    for name in NAMES {
        let value = request.header(name).unwrap();
        headers.insert(name, value.parse().unwrap());
    }
    webhook.verify(&request.body, &headers).is_ok()
}

#[tokio::test]
async fn the_rust_library_verifies_either_secret() {
    let world = World::new().await;
    let requests = requests(&world, &[OLD, NEW], Format::Earshot).await;
    assert_eq!(requests.len(), 2);
    for request in &requests {
        assert!(verifies(request, OLD) && verifies(request, NEW));
        assert!(
            !verifies(request, OTHER),
            "another secret verifies the signature"
        );
        let mut forged = request.clone();
        forged.body.push(b' ');
        assert!(!verifies(&forged, NEW));
    }
    let id = |request: &Request| request.header("webhook-id").unwrap().to_owned();
    assert_eq!(
        id(&requests[0]),
        id(&requests[1]),
        "the same message at each attempt"
    );
}

#[tokio::test]
async fn chat_formats_are_signed_as_they_are_sent() {
    let world = World::new().await;
    let requests = requests(&world, &[NEW], Format::Slack).await;
    assert!(String::from_utf8_lossy(&requests[0].body).contains("\"blocks\""));
    assert!(verifies(&requests[0], NEW));
}

#[tokio::test]
async fn without_a_secret_no_header_is_added() {
    let world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "kettle").await;
    world.until("SUCCEEDED", 1).await;
    replica.stop().await;
    let request = receiver.requests().remove(0);
    assert!(NAMES.iter().all(|name| request.header(name).is_none()));
}

const SCRIPT: &str = "
import json, sys
from standardwebhooks.webhooks import Webhook, WebhookVerificationError
given = json.load(sys.stdin)
Webhook(given['secret']).verify(given['body'], given['headers'])
try:
    Webhook(given['other']).verify(given['body'], given['headers'])
except WebhookVerificationError:
    print('verified')
";

/// Needs `pip install standardwebhooks`, which CI has; elsewhere the test prints that it was skipped.
#[tokio::test]
async fn the_python_library_verifies_too() {
    let import = std::process::Command::new("python3")
        .args(["-c", "import standardwebhooks"])
        .stderr(Stdio::null())
        .status();
    if !import.is_ok_and(|status| status.success()) {
        skip("python3 has no module standardwebhooks (pip install standardwebhooks)");
        return;
    }
    let world = World::new().await;
    let requests = requests(&world, &[OLD, NEW], Format::Earshot).await;
    let request = &requests[1];
    let headers: serde_json::Map<_, _> = NAMES
        .iter()
        .map(|name| ((*name).to_owned(), request.header(name).unwrap().into()))
        .collect();
    let body = String::from_utf8(request.body.clone()).unwrap();
    let given = json!({"secret": NEW, "other": OTHER, "body": body, "headers": headers});
    let mut python = std::process::Command::new("python3")
        .args(["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = python.stdin.take().unwrap();
    stdin.write_all(given.to_string().as_bytes()).unwrap();
    drop(stdin);
    let output = python.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "verified");
}
