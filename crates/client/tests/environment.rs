//! Proxies that the environment names.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    process::Stdio,
    sync::{Arc, Mutex},
};

use client::{Client, Retries};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    process::Command,
};

const NAMESPACES: &str = r#"{"namespaces":[{"name":"namespaces/x"}]}"#;

/// Run by the other test in a separate process, with variables.
#[tokio::test]
#[ignore = "takes a proxy"]
async fn child() {
    let base = "http://earshot.test/v1".parse().unwrap();
    let client = Client::new(base, "esk_hush\n".into()).unwrap();
    let client = client.with_retries(Retries::NONE);
    let found: Value = client.get("namespaces").await.unwrap();
    assert_eq!(found["namespaces"][0]["name"], "namespaces/x");
}

#[tokio::test]
async fn proxies_of_the_environment_are_used() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let target = socks(&mut stream).await;
            let request = answer(&mut stream).await;
            assert!(request.contains("authorization: bearer esk_hush\r\n"));
            log.lock().unwrap().push(target);
        }
    });
    let run = async |variables: &[(&str, &str)]| {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--ignored"])
            .envs(variables.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        child.await.unwrap().success()
    };
    let proxy = format!("socks5h://{address}");
    assert!(run(&[("ALL_PROXY", &proxy)]).await);
    assert!(run(&[("HTTP_PROXY", &proxy)]).await);
    assert_eq!(*seen.lock().unwrap(), ["earshot.test:80"; 2]);
    assert!(!run(&[("ALL_PROXY", &proxy), ("NO_PROXY", "earshot.test")]).await);
    assert_eq!(seen.lock().unwrap().len(), 2);
}

/// RFC 1928: no authentication, and a connection to a name. Returns it with its port.
async fn socks(stream: &mut TcpStream) -> String {
    let mut greeting = [0; 2];
    stream.read_exact(&mut greeting).await.unwrap();
    let mut methods = vec![0; usize::from(greeting[1])];
    stream.read_exact(&mut methods).await.unwrap();
    stream.write_all(&[5, 0]).await.unwrap();
    let mut head = [0; 5];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(head[..4], [5, 1, 0, 3]);
    let mut name = vec![0; usize::from(head[4])];
    stream.read_exact(&mut name).await.unwrap();
    let port = stream.read_u16().await.unwrap();
    let done = [5, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    stream.write_all(&done).await.unwrap();
    format!("{}:{port}", String::from_utf8(name).unwrap())
}

async fn answer(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let length = NAMESPACES.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{NAMESPACES}"
    );
    stream.write_all(answer.as_bytes()).await.unwrap();
    String::from_utf8(head).unwrap().to_lowercase()
}
