//! Untrusted servers, scripted on loopback, and clients that may connect to them.

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use domain::address::AddressPolicy;
use futures::future::{BoxFuture, FutureExt, ready};
use outbound::{Client, Resolve, RootCertStore};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

pub(crate) const USER_AGENT: &str = "Earshot/test";

/// Accepts connections and runs `script` on each.
pub(crate) async fn serve<F, Fut>(script: F) -> SocketAddr
where
    F: Fn(TcpStream) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(script(stream));
        }
    });
    address
}

/// Answers every request on every connection with these bytes, then closes.
pub(crate) async fn answer(bytes: impl Into<Vec<u8>>) -> SocketAddr {
    let bytes = Arc::new(bytes.into());
    serve(move |mut stream| {
        let bytes = Arc::clone(&bytes);
        async move {
            read_request(&mut stream).await;
            let _ = stream.write_all(&bytes).await;
        }
    })
    .await
}

/// Reads a request with its body and returns its text; empty if the peer is gone.
pub(crate) async fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4_096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .filter_map(|line| line.split_once(':'))
                .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
                .map_or(0, |(_, value)| value.trim().parse().unwrap());
            if body.len() >= length {
                return text;
            }
        }
        match stream.read(&mut chunk).await {
            Ok(read @ 1..) => bytes.extend_from_slice(&chunk[..read]),
            _ => return String::new(),
        }
    }
}

pub(crate) fn ok(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Same as in `earshot dev`.
pub(crate) fn dev_policy() -> AddressPolicy {
    AddressPolicy {
        allow_cidrs: vec!["127.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()],
        allow_http: true,
        ..AddressPolicy::default()
    }
}

pub(crate) fn dev_client() -> Client {
    Client::new(dev_policy(), USER_AGENT)
}

/// Names with the addresses that the test sets.
struct Names(HashMap<&'static str, Vec<IpAddr>>);

impl Resolve for Names {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, String>> {
        let answer = self.0.get(host).cloned();
        ready(answer.ok_or_else(|| "no such name".to_owned())).boxed()
    }
}

pub(crate) fn client_with_names(
    policy: AddressPolicy,
    names: &[(&'static str, &[&str])],
) -> Client {
    let parse = |ips: &[&str]| ips.iter().map(|ip| ip.parse().unwrap()).collect();
    let names = names
        .iter()
        .map(|(name, ips)| (*name, parse(ips)))
        .collect();
    let resolver = Arc::new(Names(names));
    Client::with_parts(policy, USER_AGENT, resolver, roots())
}

/// Trusts the authority of the fixtures.
pub(crate) fn roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let ca = include_bytes!("fixtures/ca.der");
    roots.add(ca.to_vec().into()).unwrap();
    roots
}
