//! Names whose addresses change, served by a real name server on loopback.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use domain::address::AddressPolicy;
use outbound::{Client, Exchange, Method, Request, Resolve as _, SystemResolver};
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, UdpSocket},
};

use crate::support::{USER_AGENT, ok, read_request, roots};

/// Answers every address query with the test's addresses, for `ttl` seconds.
struct NameServer {
    address: SocketAddr,
    answer: Arc<Mutex<Vec<IpAddr>>>,
    /// Number of answered queries.
    questions: Arc<AtomicUsize>,
}

impl NameServer {
    async fn start(ttl: u32) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: socket.local_addr().unwrap(),
            answer: Arc::default(),
            questions: Arc::default(),
        };
        let (answer, questions) = (Arc::clone(&server.answer), Arc::clone(&server.questions));
        tokio::spawn(async move {
            let mut packet = [0; 1_500];
            while let Ok((length, peer)) = socket.recv_from(&mut packet).await {
                let addresses = answer.lock().unwrap().clone();
                let reply = reply(&packet[..length], &addresses, ttl);
                // An empty answer is cached only if an SOA says for how long.
                if reply[7] > 0 {
                    questions.fetch_add(1, Ordering::Relaxed);
                }
                let _ = socket.send_to(&reply, peer).await;
            }
        });
        server
    }

    fn says(&self, addresses: &[&str]) {
        let parsed = addresses.iter().map(|text| text.parse().unwrap()).collect();
        *self.answer.lock().unwrap() = parsed;
    }
}

/// RFC 1035 section 4: the question, and the addresses of its type.
fn reply(question: &[u8], addresses: &[IpAddr], ttl: u32) -> Vec<u8> {
    // Names in questions are never compressed.
    let mut end = 12;
    while question[end] != 0 {
        end += usize::from(question[end]) + 1;
    }
    let asked = u16::from_be_bytes([question[end + 1], question[end + 2]]);
    let end = end + 5;
    let records: Vec<Vec<u8>> = addresses
        .iter()
        .filter_map(|address| match (address, asked) {
            (IpAddr::V4(v4), 1) => Some(v4.octets().to_vec()),
            (IpAddr::V6(v6), 28) => Some(v6.octets().to_vec()),
            _ => None,
        })
        .collect();
    let mut reply = question[..2].to_vec();
    reply.extend([
        0x81,
        0x80,
        0,
        1,
        0,
        u8::try_from(records.len()).unwrap(),
        0,
        0,
        0,
        0,
    ]);
    reply.extend(&question[12..end]);
    for data in records {
        reply.extend([0xc0, 12]);
        reply.extend(asked.to_be_bytes());
        reply.extend([0, 1]);
        reply.extend(ttl.to_be_bytes());
        reply.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
        reply.extend(data);
    }
    reply
}

/// A server on two loopback addresses, at the same port, and the number of connections to each.
async fn twins(keep_alive: bool) -> (u16, [Arc<AtomicUsize>; 2]) {
    let first = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = first.local_addr().unwrap().port();
    let second = TcpListener::bind((Ipv4Addr::new(127, 0, 0, 2), port))
        .await
        .unwrap();
    let counts = [Arc::default(), Arc::default()];
    for (listener, count) in [first, second].into_iter().zip(&counts) {
        let count: Arc<AtomicUsize> = Arc::clone(count);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(async move {
                    while !read_request(&mut stream).await.is_empty() {
                        let _ = stream.write_all(ok("fine").as_bytes()).await;
                        if !keep_alive {
                            return;
                        }
                    }
                });
            }
        });
    }
    (port, counts)
}

/// 127.0.0.1 is the permitted network, and the rest of loopback is internal.
fn client(server: &NameServer) -> Client {
    let policy = AddressPolicy {
        allow_cidrs: vec!["127.0.0.1/32".parse().unwrap()],
        allow_http: true,
        ..AddressPolicy::default()
    };
    let resolver = Arc::new(SystemResolver::with_name_servers(&[server.address]));
    Client::with_parts(policy, USER_AGENT, resolver, roots())
}

async fn post(client: &Client, port: u16) -> Exchange {
    let request = Request {
        method: Method::POST,
        url: &format!("http://rebound.acme.com:{port}/hook"),
        headers: &[],
        body: Bytes::from_static(b"{}"),
    };
    client.exchange(request, Duration::from_secs(60)).await
}

fn count(count: &AtomicUsize) -> usize {
    count.load(Ordering::Relaxed)
}

#[tokio::test]
async fn name_that_changes_to_an_internal_address_is_refused() {
    let server = NameServer::start(0).await;
    let (port, [outside, inside]) = twins(false).await;
    let client = client(&server);
    server.says(&["127.0.0.1"]);
    let first = post(&client, port).await;
    assert!(first.is_success(), "{first:?}");
    assert_eq!(count(&outside), 1);

    // Every position of a forbidden address: alone, next to a good one in either order, and in the other
    // family.
    for answer in [
        &["127.0.0.2"][..],
        &["127.0.0.1", "127.0.0.2"],
        &["127.0.0.2", "127.0.0.1"],
        &["127.0.0.1", "::1"],
        &["::ffff:127.0.0.2"],
        &["169.254.169.254"],
        &["127.0.0.1", "fd00:ec2::254"],
        &["64:ff9b::7f00:2"],
    ] {
        server.says(answer);
        let exchange = post(&client, port).await;
        assert_eq!(
            exchange.status.unwrap_err().word(),
            "forbidden_address",
            "{answer:?}"
        );
    }
    assert_eq!((count(&outside), count(&inside)), (1, 0));
}

#[tokio::test]
async fn kept_connection_stays_with_the_checked_peer() {
    let server = NameServer::start(0).await;
    let (port, [outside, inside]) = twins(true).await;
    let client = client(&server);
    server.says(&["127.0.0.1"]);
    assert!(post(&client, port).await.is_success());
    server.says(&["127.0.0.2"]);
    let second = post(&client, port).await;
    assert!(second.is_success());
    assert_eq!(second.address, Some("127.0.0.1".parse().unwrap()));
    assert_eq!((count(&outside), count(&inside)), (1, 0));
}

#[tokio::test]
async fn busy_connection_is_replaced_after_its_maximum_age() {
    let server = NameServer::start(0).await;
    let (port, [old, new]) = twins(true).await;
    let policy = AddressPolicy {
        allow_cidrs: vec!["127.0.0.0/8".parse().unwrap()],
        allow_http: true,
        ..AddressPolicy::default()
    };
    let resolver = Arc::new(SystemResolver::with_name_servers(&[server.address]));
    let client = Client::with_parts(policy, USER_AGENT, resolver, roots());
    let client = client.with_connection_age(Duration::from_secs(1));
    server.says(&["127.0.0.1"]);
    let begin = Instant::now();
    let first = post(&client, port).await;
    assert!(first.is_success());
    server.says(&["127.0.0.2"]);
    let moved = loop {
        let next = post(&client, port).await;
        assert!(next.is_success());
        if next.address != first.address {
            break next;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(moved.address, Some("127.0.0.2".parse().unwrap()));
    assert!(begin.elapsed() >= Duration::from_millis(800), "too early");
    assert_eq!((count(&old), count(&new)), (1, 1));
}

#[tokio::test]
async fn dns_responses_are_cached_for_their_ttl() {
    let server = NameServer::start(60).await;
    let (port, _) = twins(false).await;
    let client = client(&server);
    server.says(&["127.0.0.1"]);
    for _ in 0..5 {
        assert!(post(&client, port).await.is_success());
    }
    let asked = server.questions.load(Ordering::Relaxed);
    assert_eq!(asked, 1);
}

#[tokio::test]
async fn name_servers_are_asked_in_their_order() {
    let (first, second) = (NameServer::start(60).await, NameServer::start(60).await);
    first.says(&["127.0.0.1"]);
    second.says(&["127.0.0.9"]);
    let resolver = SystemResolver::with_name_servers(&[first.address, second.address]);
    for number in 0..20 {
        let found = resolver.resolve(&format!("n{number}.test")).await.unwrap();
        assert_eq!(found, [IpAddr::from([127, 0, 0, 1])]);
    }
    assert_eq!(second.questions.load(Ordering::Relaxed), 0);
}

/// Each address that is known of a name takes memory, and the check must see all of them.
#[tokio::test]
async fn name_with_too_many_addresses_is_refused() {
    let server = NameServer::start(60).await;
    let resolver = SystemResolver::with_name_servers(&[server.address]);
    let addresses: Vec<String> = (0..65).map(|n| format!("203.0.113.{n}")).collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    server.says(&addresses[..64]);
    assert_eq!(resolver.resolve("many.test").await.unwrap().len(), 64);
    server.says(&addresses);
    let refused = resolver.resolve("too-many.test").await.unwrap_err();
    assert_eq!(refused, "the name has more than 64 addresses");
}
