//! Requests through the operator's proxy.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use domain::{
    address::AddressPolicy,
    egress::{Egress, Exception, Proxy},
};
use outbound::{Client, Exchange, Limits, Method, Request};
use tokio::{io::AsyncWriteExt, net::TcpStream};

use crate::{
    support::{USER_AGENT, answer, client_with_names, dev_policy, ok, read_request, serve},
    tls::serve_tls,
};

/// Heads of the requests that a proxy got.
type Seen = Arc<Mutex<Vec<String>>>;

/// A proxy that leads every tunnel to `target`, and answers forwarded requests itself.
async fn proxy(target: Option<std::net::SocketAddr>) -> (String, Seen) {
    let seen = Seen::default();
    let log = Arc::clone(&seen);
    let address = serve(move |mut stream| {
        let log = Arc::clone(&log);
        async move {
            let request = read_request(&mut stream).await;
            log.lock().unwrap().push(request.clone());
            if !request.starts_with("CONNECT ") {
                let _ = stream.write_all(ok("forwarded").as_bytes()).await;
                return;
            }
            let Some(target) = target else {
                let refused = "HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n";
                let _ = stream.write_all(refused.as_bytes()).await;
                return;
            };
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
            let mut target = TcpStream::connect(target).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut stream, &mut target).await;
        }
    })
    .await;
    (format!("http://me:s%20t@{address}"), seen)
}

fn through(client: Client, proxy: &str, exceptions: &[&str]) -> Client {
    let exceptions = exceptions.iter().map(|text| text.parse().unwrap());
    let exceptions: Vec<Exception> = exceptions.collect();
    client.with_proxy(Some(Proxy::parse(proxy, exceptions).unwrap()))
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

/// The first line of the only request, and whether it had the credentials.
fn only(seen: &Seen) -> (String, bool) {
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 1, "{seen:?}");
    let line = seen[0].lines().next().unwrap_or_default().to_owned();
    let head = seen[0].to_ascii_lowercase();
    (
        line,
        head.contains("\r\nproxy-authorization: basic bwu6cyb0\r\n"),
    )
}

/// Only the proxy knows the names of the outside.
#[tokio::test]
async fn plain_requests_are_forwarded_with_their_whole_address() {
    let (address, seen) = proxy(None).await;
    let policy = AddressPolicy {
        allow_http: true,
        ..AddressPolicy::default()
    };
    let client = through(client_with_names(policy, &[]), &address, &[]);
    let exchange = post(&client, "http://hooks.receiver.example/x?y=1").await;
    assert_eq!(exchange.status, Ok(200));
    assert_eq!(exchange.address, None);
    let expected = "POST http://hooks.receiver.example/x?y=1 HTTP/1.1";
    assert_eq!(only(&seen), (expected.to_owned(), true));
}

#[tokio::test]
async fn https_goes_through_a_tunnel_and_the_server_is_verified() {
    for (h2, version) in [(true, "HTTP/2.0"), (false, "HTTP/1.1")] {
        let (address, seen) = proxy(Some(serve_tls(h2).await)).await;
        let client = client_with_names(AddressPolicy::default(), &[]);
        let client = through(client, &address, &[]);
        let exchange = post(&client, "https://hooks.acme.test/x").await;
        assert_eq!(exchange.status, Ok(200));
        assert_eq!(exchange.body.as_deref(), Some(version));
        let expected = "CONNECT hooks.acme.test:443 HTTP/1.1";
        assert_eq!(only(&seen), (expected.to_owned(), true));
        let other = post(&client, "https://other.example/x").await;
        assert_eq!(other.status.unwrap_err().word(), "tls_failure");
    }
}

#[tokio::test]
async fn servers_of_the_operators_authority_are_verified() {
    let (address, _) = proxy(Some(serve_tls(false).await)).await;
    let mut egress = Egress {
        proxy: Some(Proxy::parse(&address, Vec::new()).unwrap()),
        authorities: Vec::new(),
    };
    let post = async |egress: &Egress| {
        let client = Client::leaving_by(egress, AddressPolicy::default(), USER_AGENT);
        post(&client.unwrap(), "https://hooks.acme.test/").await
    };
    let word = post(&egress).await.status.unwrap_err().word();
    assert_eq!(word, "tls_failure");
    // A bundle may have a certificate that cannot be used.
    egress.authorities = vec![b"?".to_vec(), include_bytes!("fixtures/ca.der").to_vec()];
    assert_eq!(post(&egress).await.status, Ok(200));
    egress.authorities.truncate(1);
    assert!(Client::leaving_by(&egress, AddressPolicy::default(), USER_AGENT).is_err());
}

#[tokio::test]
async fn proxy_that_refuses_or_is_away_is_a_proxy_failure() {
    let (refusing, _) = proxy(None).await;
    let silent = answer("SSH-2.0-OpenSSH\r\n\r\n").await;
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gone_at = gone.local_addr().unwrap();
    drop(gone);
    for address in [
        refusing,
        format!("http://{silent}"),
        format!("http://{gone_at}"),
        "http://proxy.missing.example:3128".to_owned(),
    ] {
        let client = client_with_names(AddressPolicy::default(), &[]);
        let exchange = post(&through(client, &address, &[]), "https://acme.com/x").await;
        assert_eq!(exchange.status.unwrap_err().word(), "proxy_failure");
        assert_eq!(exchange.address, None);
    }
}

/// The proxy sees nothing of what the guard refuses by what is known here.
#[tokio::test]
async fn guard_refuses_before_the_proxy_is_asked() {
    let (address, seen) = proxy(None).await;
    let names: &[(&'static str, &[&str])] = &[
        ("inside.example", &["10.0.0.5"]),
        ("mixed.example", &["93.184.215.14", "169.254.169.254"]),
    ];
    let client = through(
        client_with_names(AddressPolicy::default(), names),
        &address,
        &[],
    );
    for url in [
        "https://inside.example/",
        "https://mixed.example/",
        "https://10.0.0.5/",
        "https://169.254.169.254/latest/meta-data",
        "https://127.0.0.1/",
        "https://localhost/",
        "https://database/",
        "https://metadata.google.internal/",
        "https://acme.com:25/",
    ] {
        let exchange = post(&client, url).await;
        let word = exchange.status.unwrap_err().word();
        assert_eq!(word, "forbidden_address", "{url}");
    }
    assert_eq!(*seen.lock().unwrap(), [""; 0]);
}

#[tokio::test]
async fn exceptions_and_this_machine_are_reached_without_the_proxy() {
    let (address, seen) = proxy(None).await;
    let receiver = answer(ok("direct")).await;
    let names: &[(&'static str, &[&str])] = &[("n8n.corp.example", &["127.0.0.1"])];
    let client = client_with_names(dev_policy(), names);
    let client = through(client, &address, &["corp.example"]);
    for host in ["n8n.corp.example", "127.0.0.1", "localhost"] {
        let url = format!("http://{host}:{}/", receiver.port());
        let page = client.fetch(&url, Limits::default(), &[]).await.unwrap();
        assert_eq!(page.text(), "direct");
    }
    assert_eq!(*seen.lock().unwrap(), [""; 0]);
}
