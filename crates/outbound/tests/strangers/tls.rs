//! Endpoints behind TLS, with certificates of the fixtures.

use std::{convert::Infallible, future::pending, net::SocketAddr, sync::Arc, time::Duration};

use crate::{
    exchange::{LARGE, is_forgotten},
    support::{client_with_names, dev_policy, serve},
};
use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use outbound::{Client, Exchange, Method, Request};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

/// Speaks HTTP/2 if `h2`, else HTTP/1.1, and answers with the version of the request.
pub(crate) async fn serve_tls(h2: bool) -> SocketAddr {
    serve_tls_with(h2, None).await
}

/// Same as [`serve_tls`], but the path `/unread` gets its answer at once, and its body is never read; `/slow` waits for
/// `/release`. In HTTP/2, a request may
/// send at most `window` bytes before they are read.
async fn serve_tls_with(h2: bool, window: Option<u32>) -> SocketAddr {
    let leaf = CertificateDer::from(include_bytes!("fixtures/leaf.der").to_vec());
    let key = PrivatePkcs8KeyDer::from(include_bytes!("fixtures/leaf-key.der").to_vec());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf], PrivateKeyDer::from(key))
        .unwrap();
    if h2 {
        config.alpn_protocols = vec![b"h2".to_vec()];
    }
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let released = Arc::new(Notify::new());
    serve(move |stream| {
        let (acceptor, released) = (acceptor.clone(), Arc::clone(&released));
        async move {
            let Ok(stream) = acceptor.accept(stream).await else {
                return;
            };
            let service = service_fn(move |request: http::Request<Incoming>| {
                let released = Arc::clone(&released);
                async move {
                    let version = Bytes::from(format!("{:?}", request.version()));
                    match request.uri().path() {
                        "/slow" => released.notified().await,
                        "/release" => released.notify_one(),
                        "/unread" => {
                            tokio::spawn(async move {
                                let _held = request;
                                pending::<()>().await;
                            });
                        }
                        _ => {}
                    }
                    Ok::<_, Infallible>(Response::new(Full::new(version)))
                }
            });
            let io = TokioIo::new(stream);
            if h2 {
                let mut server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                server.initial_stream_window_size(window);
                let _ = server.serve_connection(io, service).await;
            } else {
                let server = hyper::server::conn::http1::Builder::new();
                let _ = server.serve_connection(io, service).await;
            }
        }
    })
    .await
}

async fn post(client: &Client, url: &str) -> Exchange {
    let request = Request {
        method: Method::POST,
        url,
        headers: &[],
        body: Bytes::from_static(b"{}"),
    };
    client.exchange(request, Duration::from_secs(60)).await
}

#[tokio::test]
async fn http_2_is_used_if_offered() {
    for (h2, version) in [(true, "HTTP/2.0"), (false, "HTTP/1.1")] {
        let address = serve_tls(h2).await;
        let client = client_with_names(dev_policy(), &[("hooks.acme.test", &["127.0.0.1"])]);
        let url = format!("https://hooks.acme.test:{}/", address.port());

        let first = post(&client, &url).await;
        let second = post(&client, &url).await;

        assert_eq!(first.status, Ok(200));
        assert_eq!(first.body.as_deref(), Some(version));
        assert!(first.phases.tls.is_some());
        assert_eq!(second.status, Ok(200));
        assert_eq!(second.phases.tls, None, "the connection is used again");
    }
}

#[tokio::test]
async fn a_connection_that_is_too_old_takes_no_new_request_in_either_version() {
    for h2 in [true, false] {
        let address = serve_tls(h2).await;
        let client = client_with_names(dev_policy(), &[("hooks.acme.test", &["127.0.0.1"])]);
        let client = client.with_connection_age(Duration::ZERO);
        let url = format!("https://hooks.acme.test:{}/", address.port());
        for _ in 0..3 {
            let exchange = post(&client, &url).await;
            assert_eq!(exchange.status, Ok(200));
            assert!(exchange.phases.tls.is_some(), "http/2: {h2}");
        }
    }
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let address = serve_tls(false).await;
    let client = client_with_names(dev_policy(), &[("other.acme.test", &["127.0.0.1"])]);
    for host in ["other.acme.test", "127.0.0.1"] {
        let exchange = post(&client, &format!("https://{host}:{}/", address.port())).await;
        assert_eq!(exchange.status.unwrap_err().word(), "tls_failure", "{host}");
    }
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_refused() {
    let address = serve_tls(false).await;
    let url = format!("https://localhost:{}/", address.port());
    let exchange = post(&Client::new(dev_policy(), "Earshot/test"), &url).await;
    assert_eq!(exchange.status.unwrap_err().word(), "tls_failure");
}

#[tokio::test]
async fn request_that_is_answered_and_not_read_costs_no_memory_and_ends_no_other() {
    // With the second window, the last piece of the body waits for room.
    for (window, bytes) in [(0, LARGE), (50_000, 60_000)] {
        let address = serve_tls_with(true, Some(window)).await;
        let client = client_with_names(dev_policy(), &[("hooks.acme.test", &["127.0.0.1"])]);
        let url = format!("https://hooks.acme.test:{}/", address.port());
        let first = post(&client, &url).await;
        assert!(first.phases.tls.is_some());
        let (unread, slow) = (format!("{url}unread"), format!("{url}slow"));
        let unread = async {
            let unread = is_forgotten(&client, &unread, bytes, Duration::from_secs(60)).await;
            // Further requests have another connection.
            let next = post(&client, &format!("{url}release")).await;
            assert!(next.is_success() && next.phases.tls.is_some());
            unread
        };
        let (unread, slow) = tokio::join!(unread, post(&client, &slow));
        assert!(unread.is_success());
        assert_eq!(unread.phases.tls, None, "others use the connection too");
        assert_eq!((slow.status, slow.phases.tls), (Ok(200), None));
    }
}
