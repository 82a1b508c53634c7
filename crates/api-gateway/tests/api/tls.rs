//! TLS with a certificate that changes.

use std::{path::Path, time::Duration};

use rcgen::{CertificateParams, CertifiedKey, KeyPair, date_time_ymd, generate_simple_self_signed};
use reqwest::{Certificate, Client, StatusCode, Version};
use runtime::Config;
use test_support::{TIMEOUT, eventually};
use tokio::{io::AsyncReadExt, net::TcpStream, time::timeout};

use crate::app::TestApp;

pub(crate) struct Files(tempfile::TempDir);

impl Files {
    pub(crate) fn new() -> (Self, Certificate) {
        let files = Self(tempfile::tempdir().unwrap());
        let first = files.replace();
        (files, first)
    }

    pub(crate) fn at(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// Replaces the certificate and its key.
    fn replace(&self) -> Certificate {
        self.put(made())
    }

    /// Replaces them by an expired certificate.
    pub(crate) fn expire(&self) {
        let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        params.not_after = date_time_ymd(2020, 1, 1);
        let signing_key = KeyPair::generate().unwrap();
        let cert = params.self_signed(&signing_key).unwrap();
        self.put(CertifiedKey { cert, signing_key });
    }

    fn put(&self, made: CertifiedKey<KeyPair>) -> Certificate {
        let CertifiedKey { cert, signing_key } = made;
        put(self.0.path(), "tls.crt", &cert.pem());
        put(self.0.path(), "tls.key", &signing_key.serialize_pem());
        Certificate::from_pem(cert.pem().as_bytes()).unwrap()
    }

    pub(crate) async fn gateway(&self) -> TestApp {
        self.gateway_with(|_| ()).await
    }

    pub(crate) async fn gateway_with(&self, change: impl FnOnce(&mut Config)) -> TestApp {
        TestApp::start_with(|config| {
            config.gateway.tls_certificate_file = self.at("tls.crt");
            config.gateway.tls_key_file = self.at("tls.key");
            // Long enough for a handshake on a busy machine.
            config.gateway.head_timeout = Duration::from_secs(3);
            change(config);
        })
        .await
    }
}

fn made() -> CertifiedKey<KeyPair> {
    generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap()
}

fn put(folder: &Path, name: &str, content: &str) {
    std::fs::write(folder.join(name), content).unwrap();
}

fn trusting(certificate: &Certificate) -> Client {
    runtime::crypto::install();
    Client::builder()
        .tls_certs_only([certificate.clone()])
        .build()
        .unwrap()
}

#[tokio::test]
async fn tls_is_served_with_http_2_and_1() {
    let (files, certificate) = Files::new();
    let app = files.gateway().await;
    let url = format!("{}/v1/namespaces", app.base);
    let answer = trusting(&certificate).get(&url).send().await.unwrap();
    assert_eq!(
        (answer.status(), answer.version()),
        (StatusCode::UNAUTHORIZED, Version::HTTP_2)
    );
    assert_eq!(
        answer.headers()["strict-transport-security"],
        "max-age=31536000"
    );
    let body: serde_json::Value = answer.json().await.unwrap();
    assert_eq!(body["code"], 401);
    let older = Client::builder()
        .tls_certs_only([certificate.clone()])
        .http1_only()
        .build()
        .unwrap();
    let answer = older.get(&url).send().await.unwrap();
    assert_eq!(
        (answer.status(), answer.version()),
        (StatusCode::UNAUTHORIZED, Version::HTTP_11)
    );
    // Sends a body over HTTP/2, and one that is too large.
    let key = app.owner_key("acme").await;
    let post = |body: String| {
        trusting(&certificate)
            .post(&url)
            .bearer_auth(&key)
            .header("content-type", "application/json")
            .body(body)
            .send()
    };
    assert_eq!(
        post(r#"{"nickname": "x"}"#.to_owned())
            .await
            .unwrap()
            .status(),
        201
    );
    assert_eq!(post(" ".repeat(300_000)).await.unwrap().status(), 413);
    // A client that does not know the certificate does not connect.
    let (_, other) = Files::new();
    assert!(trusting(&other).get(&url).send().await.is_err());
}

#[tokio::test]
async fn connection_without_a_handshake_is_closed() {
    let (files, certificate) = Files::new();
    let app = files.gateway().await;
    let host = app.base.strip_prefix("https://").unwrap();
    let mut silent = TcpStream::connect(host).await.unwrap();
    let plain = reqwest::get(format!("http://{host}/v1/namespaces")).await;
    assert!(plain.is_err(), "{plain:?}");
    let read = timeout(TIMEOUT, silent.read(&mut [0; 9])).await;
    assert!(matches!(read.unwrap(), Ok(0) | Err(_)));
    let url = format!("{}/v1/namespaces", app.base);
    assert_eq!(
        trusting(&certificate)
            .get(&url)
            .send()
            .await
            .unwrap()
            .status(),
        401
    );
}

#[tokio::test]
async fn certificate_is_replaced_without_downtime() {
    let (files, first) = Files::new();
    let app = files.gateway().await;
    let url = format!("{}/v1/namespaces", app.base);
    let old = trusting(&first);
    assert_eq!(old.get(&url).send().await.unwrap().status(), 401);

    // A file that is invalid or does not fit the other changes nothing.
    for (name, content) in [
        ("tls.crt", "nonsense".to_owned()),
        ("tls.crt", made().cert.pem()),
        ("tls.key", String::new()),
    ] {
        put(files.0.path(), name, &content);
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        let answer = trusting(&first).get(&url).send().await;
        assert_eq!(answer.unwrap().status(), 401, "{name}");
    }
    let second = files.replace();
    eventually("the new certificate is served", async || {
        trusting(&second).get(&url).send().await.is_ok()
    })
    .await;
    assert!(trusting(&first).get(&url).send().await.is_err());
    // The connection that was open before still works.
    assert_eq!(old.get(&url).send().await.unwrap().status(), 401);
}

#[test]
fn invalid_certificate_is_named_at_start() {
    let (files, _) = Files::new();
    put(
        files.0.path(),
        "other.key",
        &made().signing_key.serialize_pem(),
    );
    for (certificate, key, expected) in [
        (
            "none.crt",
            "tls.key",
            "gateway.tls_certificate_file: cannot read",
        ),
        (
            "tls.key",
            "tls.key",
            "gateway.tls_certificate_file: holds no PEM certificate",
        ),
        (
            "tls.crt",
            "tls.crt",
            "gateway.tls_key_file: holds no PEM private key",
        ),
        (
            "tls.crt",
            "other.key",
            "gateway.tls_key_file: not the key of the certificate",
        ),
    ] {
        let mut config = crate::app::config("postgres://earshot@127.0.0.1:1/earshot");
        config.gateway.tls_certificate_file = files.at(certificate);
        config.gateway.tls_key_file = files.at(key);
        let backbone = backbone::Backbone::in_process(&config).unwrap();
        let listener = api_gateway::listen(&config).unwrap();
        let Err(error) = api_gateway::Gateway::new(listener, &config, &backbone) else {
            panic!("{certificate} and {key} are served");
        };
        assert!(format!("{error:#}").starts_with(expected), "{error:#}");
    }
}
