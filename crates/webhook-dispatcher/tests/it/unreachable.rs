//! A receiver whose name does not resolve, and whose certificate expired, until someone corrects both.

use std::{
    net::IpAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use domain::address::AddressPolicy;
use futures::future::{BoxFuture, FutureExt, ready};
use outbound::{Client, Resolve, RootCertStore};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use test_support::{certificates::Authority, eventually};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

use crate::support::World;

const HOST: &str = "hooks.acme.test";

#[tokio::test]
async fn names_and_certificates_that_fail_for_a_while_only_delay_deliveries() {
    let mut world = World::new().await;
    world.config.dispatcher.retry_schedule = vec![Duration::from_millis(100); 100];
    let authority = Authority::new();
    let served = Arc::new(Mutex::new(acceptor(&authority.certify_expired(HOST))));
    let port = serve(Arc::clone(&served)).await;
    let name = Arc::new(Name::default());
    let mut conn = world.database.connect().await;
    let url = format!("https://{HOST}:{port}/hook");
    let connection = world.fixture.connection(&mut conn, &url).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.dispatcher_with(client(&authority, Arc::clone(&name)));

    world.publish_scan(manager, "kettle").await;
    failed_with(&world, "dns_failure").await;
    name.resolves.store(true, Ordering::SeqCst);
    failed_with(&world, "tls_failure").await;
    *served.lock().unwrap() = acceptor(&authority.certify(HOST));
    world.until("SUCCEEDED", 1).await;

    let attempts = world.attempts().await;
    let mut results: Vec<&str> = attempts
        .iter()
        .map(|attempt| attempt.split_once(' ').unwrap().1)
        .collect();
    results.dedup();
    assert_eq!(results, ["- dns_failure", "- tls_failure", "200 -"]);
    replica.stop().await;
}

async fn failed_with(world: &World, error: &str) {
    eventually(error, async || {
        let attempts = world.attempts().await;
        attempts.iter().any(|attempt| attempt.ends_with(error))
    })
    .await;
}

/// A name that resolves when the test allows it.
#[derive(Default)]
struct Name {
    resolves: AtomicBool,
}

impl Resolve for Name {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, String>> {
        let found = self.resolves.load(Ordering::SeqCst);
        let answer = found.then(|| vec![IpAddr::from([127, 0, 0, 1])]);
        ready(answer.ok_or_else(|| "no name server answers".to_owned())).boxed()
    }
}

fn client(authority: &Authority, name: Arc<Name>) -> Client {
    let policy = AddressPolicy {
        allow_cidrs: vec!["127.0.0.0/8".parse().unwrap()],
        ..AddressPolicy::default()
    };
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().into()).unwrap();
    Client::with_parts(policy, outbound::USER_AGENT, name, roots)
}

fn acceptor((certificate, key): &(String, String)) -> TlsAcceptor {
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// Answers 200 to every request, with the current certificate. Returns the port.
async fn serve(acceptor: Arc<Mutex<TlsAcceptor>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.lock().unwrap().clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                let _ = stream.read(&mut [0; 65_536]).await;
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                let _ = stream.write_all(answer).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    port
}
