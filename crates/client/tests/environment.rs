//! Proxies and authorities that the environment names.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    path::Path,
    process::Stdio,
    sync::{Arc, Mutex},
};

use client::{Client, Retries};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use serde_json::Value;
use test_support::certificates::Authority;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    process::Command,
};
use tokio_rustls::TlsAcceptor;

const NAMESPACES: &str = r#"{"namespaces":[{"name":"namespaces/x"}]}"#;

/// Run by the other tests in a separate process, with variables.
#[tokio::test]
#[ignore = "takes a proxy"]
async fn child() {
    list_namespaces("http://earshot.test/v1").await;
}

/// Same as [`child`].
#[tokio::test]
#[ignore = "takes a proxy"]
async fn child_over_tls() {
    list_namespaces("https://earshot.test/v1").await;
}

/// Same as [`child`].
#[tokio::test]
#[ignore = "takes a machine without certificates"]
async fn child_on_loopback() {
    Client::new("http://localhost".parse().unwrap(), "".into()).unwrap();
}

async fn list_namespaces(base: &str) {
    let client = Client::new(base.parse().unwrap(), "esk_hush\n".into()).unwrap();
    let client = client.with_retries(Retries::NONE);
    let found: Value = client.get("namespaces").await.unwrap();
    assert_eq!(found["namespaces"][0]["name"], "namespaces/x");
}

/// Returns whether the test `child` passes with these variables.
async fn run(child: &str, variables: &[(&str, &str)]) -> bool {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", child, "--ignored"])
        .env_remove("SSL_CERT_FILE")
        .env_remove("SSL_CERT_DIR")
        .envs(variables.iter().copied())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    child.await.unwrap().success()
}

/// Starts a SOCKS proxy that answers in place of every server, on port 443 by TLS. Returns its address, and the
/// servers that it was asked for.
async fn start(acceptor: TlsAcceptor) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let target = socks(&mut stream).await;
            let is_tls = target.ends_with(":443");
            log.lock().unwrap().push(target);
            if !is_tls {
                answer(&mut stream).await;
            } else if let Ok(mut stream) = acceptor.accept(stream).await {
                answer(&mut stream).await;
                // A client that gets no end of TLS takes the answer for cut off.
                let _ = stream.shutdown().await;
            }
        }
    });
    (format!("socks5h://{address}"), seen)
}

/// A server of `earshot.test` whose authority is in the file.
fn certified(file: &Path) -> TlsAcceptor {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let authority = Authority::new();
    std::fs::write(file, authority.pem()).unwrap();
    let (certificate, key) = authority.certify("earshot.test");
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let config = rustls::ServerConfig::builder().with_no_client_auth();
    let config = config.with_single_cert(vec![certificate], key).unwrap();
    TlsAcceptor::from(Arc::new(config))
}

#[tokio::test]
async fn proxies_of_the_environment_are_used() {
    let folder = tempfile::tempdir().unwrap();
    let (proxy, seen) = start(certified(&folder.path().join("ca.pem"))).await;
    assert!(run("child", &[("ALL_PROXY", &proxy)]).await);
    assert!(run("child", &[("HTTP_PROXY", &proxy)]).await);
    assert_eq!(*seen.lock().unwrap(), ["earshot.test:80"; 2]);
    let exception = [("ALL_PROXY", proxy.as_str()), ("NO_PROXY", "earshot.test")];
    assert!(!run("child", &exception).await);
    assert_eq!(seen.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn authority_of_the_environment_verifies_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    let (proxy, seen) = start(certified(&file)).await;
    let file = file.to_str().unwrap();
    for proxy_variable in ["HTTPS_PROXY", "ALL_PROXY"] {
        let proxy = (proxy_variable, proxy.as_str());
        assert!(run("child_over_tls", &[proxy, ("SSL_CERT_FILE", file)]).await);
        assert!(!run("child_over_tls", &[proxy]).await);
    }
    assert_eq!(*seen.lock().unwrap(), ["earshot.test:443"; 4]);
}

#[tokio::test]
async fn machine_without_authorities_has_a_client_for_its_loopback() {
    let none = [("SSL_CERT_FILE", "/nowhere"), ("SSL_CERT_DIR", "/nowhere")];
    assert!(run("child_on_loopback", &none).await);
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

async fn answer(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    assert!(head.contains("authorization: bearer esk_hush\r\n"));
    let length = NAMESPACES.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{NAMESPACES}"
    );
    stream.write_all(answer.as_bytes()).await.unwrap();
}
