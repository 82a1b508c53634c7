//! The ops server over real HTTP.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
};

use runtime::{Health, ops};
use serde_json::Value;

fn get(address: SocketAddr, path: &str) -> (u16, String) {
    request(address, "GET", path)
}

fn request(address: SocketAddr, method: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: ops\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

fn start(health: &Health) -> ops::OpsServer {
    ops::start(SocketAddr::from(([127, 0, 0, 1], 0)), health.clone()).unwrap()
}

#[test]
fn readiness_follows_the_checks() {
    let health = Health::new();
    let server = start(&health);
    let check = health.check("database");

    let (status, body) = get(server.address(), "/readyz");
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &body["status"]), (503, &"unavailable".into()));
    assert_eq!(body["checks"][0]["detail"], "starting");

    check.ok();
    health.check("bus").degraded("reconnecting");
    let (status, body) = get(server.address(), "/readyz");
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &body["status"]), (200, &"degraded".into()));
    assert_eq!(body["checks"][0]["name"], "bus");
    assert_eq!(body["checks"][0]["ok"], false);
    assert_eq!(body["checks"][1]["ok"], true);
    assert!(body["checks"][1]["ageMs"].is_u64());
    assert!(body["checks"][1].get("detail").is_none());

    health.drain();
    assert_eq!(get(server.address(), "/readyz").0, 503);
    assert_eq!(
        get(server.address(), "/healthz"),
        (200, r#"{"status":"ok"}"#.to_owned())
    );
}

#[test]
fn metrics_contain_the_build_and_the_checks() {
    let health = Health::new();
    health.check("database").ok();
    let _ = health.check("bus");
    let server = start(&health);
    let (status, body) = get(server.address(), "/metrics");
    assert_eq!(status, 200);
    let version = env!("CARGO_PKG_VERSION");
    assert!(
        body.contains(&format!("version=\"{version}\"}} 1")),
        "{body}"
    );
    assert!(
        body.contains("earshot_ready{check=\"database\"} 1"),
        "{body}"
    );
    assert!(body.contains("earshot_ready{check=\"bus\"} 0"), "{body}");
}

#[test]
fn other_paths_and_methods_are_answered_in_json() {
    let server = start(&Health::new());
    let (status, body) = get(server.address(), "/");
    assert_eq!(status, 404);
    assert_eq!(
        serde_json::from_str::<Value>(&body).unwrap()["error"],
        "not found"
    );
    assert_eq!(request(server.address(), "POST", "/healthz").0, 405);
}

#[test]
fn port_in_use_is_named_with_its_setting() {
    let server = start(&Health::new());
    let error = ops::start(server.address(), Health::new()).unwrap_err();
    let said = format!("{:#}", anyhow::Error::from(error));
    let address = server.address();
    assert!(
        said.starts_with(&format!("ops.listen: cannot listen on {address}: ")),
        "{said}"
    );
}

#[test]
fn a_dropped_server_frees_its_port() {
    let server = start(&Health::new());
    let address = server.address();
    drop(server);
    let freed = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        TcpStream::connect(address).is_err()
    });
    assert!(freed);
}
