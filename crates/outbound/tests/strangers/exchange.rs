//! Webhooks to well-behaved and misbehaving endpoints.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use crate::support::{
    USER_AGENT, answer, client_with_names, dev_client, dev_policy, ok, read_request, serve,
};
use bytes::Bytes;
use domain::address::AddressPolicy;
use outbound::{Client, Exchange, Failure, Method, Request};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::{Notify, oneshot},
};

const DEADLINE: Duration = Duration::from_millis(500);
/// More than enough for a head, even on a busy machine.
const MAX_DEADLINE: Duration = Duration::from_secs(30);

async fn post(client: &Client, url: &str, headers: &[(&str, &str)]) -> Exchange {
    post_within(Duration::from_secs(60), client, url, headers).await
}

async fn post_within(
    deadline: Duration,
    client: &Client,
    url: &str,
    headers: &[(&str, &str)],
) -> Exchange {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let headers: Vec<_> = headers.iter().map(own).collect();
    let request = Request {
        method: Method::POST,
        url,
        headers: &headers,
        body: Bytes::from_static(b"{\"type\":\"SCAN\"}"),
    };
    client.exchange(request, deadline).await
}

async fn post_to(address: SocketAddr) -> Exchange {
    post(&dev_client(), &format!("http://{address}/hook"), &[]).await
}

/// Only for what never ends: a busy machine may not answer in time.
async fn post_briefly(url: &str) -> Exchange {
    post_within(DEADLINE, &dev_client(), url, &[]).await
}

fn word(exchange: &Exchange) -> &'static str {
    exchange.status.as_ref().unwrap_err().word()
}

#[tokio::test]
async fn endpoint_receives_exactly_the_request() {
    let address = serve(|mut stream| async move {
        let request = read_request(&mut stream).await;
        let _ = stream.write_all(ok(&request).as_bytes()).await;
    })
    .await;
    let headers = [
        ("content-type", "application/json"),
        ("x-secret", "old"),
        ("X-Secret", "s3cret"),
    ];

    let url = format!("http://localhost:{}/hook?a=b", address.port());
    let exchange = post(&dev_client(), &url, &headers).await;

    assert!(exchange.is_success());
    let seen = exchange.body.unwrap();
    let (head, body) = seen.split_once("\r\n\r\n").unwrap();
    assert_eq!(body, "{\"type\":\"SCAN\"}");
    let mut lines: Vec<&str> = head.lines().collect();
    lines.sort_unstable();
    let host = format!("host: localhost:{}", address.port());
    let mut expected = vec![
        "POST /hook?a=b HTTP/1.1",
        "content-length: 15",
        "content-type: application/json",
        host.as_str(),
        "user-agent: Earshot/test",
        "x-secret: s3cret",
    ];
    expected.sort_unstable();
    assert_eq!(lines, expected);
    assert_eq!(exchange.address, Some(address.ip()));
}

#[tokio::test]
async fn any_status_is_a_response_and_redirects_are_not_followed() {
    let inside = answer(ok("secret")).await;
    for (status, success) in [(204, true), (302, false), (410, false), (500, false)] {
        let address = answer(format!(
            "HTTP/1.1 {status} X\r\nlocation: http://{inside}/\r\ncontent-length: 0\r\n\r\n"
        ))
        .await;
        let exchange = post_to(address).await;
        assert_eq!(exchange.status, Ok(status));
        assert_eq!(exchange.is_success(), success);
        assert_eq!(exchange.body, None);
    }
}

#[tokio::test]
async fn retry_after_is_reported() {
    let address =
        answer("HTTP/1.1 429 Slow\r\nretry-after: 120\r\ncontent-length: 0\r\n\r\n").await;
    let exchange = post_to(address).await;
    assert_eq!(exchange.retry_after, Some(Duration::from_secs(120)));
}

#[tokio::test]
async fn hanging_endpoint_is_cut_off_at_the_deadline() {
    let address = serve(|mut stream| async move {
        read_request(&mut stream).await;
        std::future::pending().await
    })
    .await;
    let started = Instant::now();

    let exchange = post_briefly(&format!("http://{address}/hook")).await;

    assert_eq!(word(&exchange), "timeout");
    assert!(started.elapsed() >= DEADLINE);
    assert_eq!(exchange.address, Some(address.ip()));
    assert!(exchange.phases.connect.is_some());
    assert_eq!(exchange.phases.first_byte, None);
}

#[tokio::test]
async fn body_does_not_change_a_success() {
    let dripping = serve(|mut stream| async move {
        read_request(&mut stream).await;
        let head = "HTTP/1.1 200 OK\r\ncontent-length: 4000\r\n\r\n";
        let mut alive = stream.write_all(head.as_bytes()).await.is_ok();
        while alive {
            alive = stream.write_all(b".").await.is_ok();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    // It ends at the deadline, before which a busy machine may not read the head.
    let url = format!("http://{dripping}/hook");
    let mut deadline = DEADLINE;
    let exchange = loop {
        let exchange = post_within(deadline, &dev_client(), &url, &[]).await;
        if exchange.is_success() || deadline > MAX_DEADLINE {
            break exchange;
        }
        deadline *= 4;
    };
    assert!(exchange.is_success());
    assert!(exchange.phases.first_byte.unwrap() < exchange.phases.total);

    let endless = serve(|mut stream| async move {
        read_request(&mut stream).await;
        let mut alive = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.is_ok();
        while alive {
            alive = stream.write_all(&[b'y'; 16 * 1_024]).await.is_ok();
        }
    })
    .await;
    let exchange = post_to(endless).await;
    assert!(exchange.is_success());
    assert_eq!(exchange.body.unwrap().len(), 4_096);

    let cut = answer("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nhalf").await;
    let exchange = post_to(cut).await;
    assert!(exchange.is_success());
    assert_eq!(exchange.body.as_deref(), Some("half"));
}

#[tokio::test]
async fn failures_have_stable_names() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = listener.local_addr().unwrap();
    drop(listener);
    assert_eq!(word(&post_to(closed).await), "connect_refused");

    let cut = answer("").await;
    assert_eq!(word(&post_to(cut).await), "reset");

    let garbled = answer("220 smtp ready\r\n").await;
    assert_eq!(word(&post_to(garbled).await), "protocol_error");

    let plain = serve(|mut stream| async move {
        let _ = stream.write_all(b"220 smtp ready\r\n").await;
    })
    .await;
    let url = format!("https://{plain}/");
    assert_eq!(word(&post(&dev_client(), &url, &[]).await), "tls_failure");

    let client = client_with_names(dev_policy(), &[]);
    let exchange = post(&client, "http://missing.acme.com/", &[]).await;
    assert_eq!(word(&exchange), "dns_failure");

    let exchange = post(&client, "http://acme.com/", &[("x y", "z")]).await;
    assert_eq!(word(&exchange), "invalid_request");
}

#[tokio::test]
async fn hanging_handshake_is_cut_off_at_the_deadline() {
    let address = serve(|stream| async move {
        let _held = stream;
        std::future::pending().await
    })
    .await;
    let exchange = post_briefly(&format!("https://{address}/")).await;
    let expected = Failure::Timeout {
        after: DEADLINE,
        activity: "in the tls handshake",
    };
    assert_eq!(exchange.status, Err(expected));
}

#[tokio::test]
async fn current_policy_applies_to_stored_urls() {
    let address = answer(ok("secret")).await;
    let client = client_with_names(
        AddressPolicy::default(),
        &[("rebound.acme.com", &["127.0.0.1"])],
    );
    for (url, expected) in [
        (format!("https://{address}/"), "forbidden_address"),
        (
            format!("https://rebound.acme.com:{}/", address.port()),
            "forbidden_address",
        ),
        ("http://acme.com/".to_owned(), "invalid_request"),
        ("nonsense".to_owned(), "invalid_request"),
    ] {
        assert_eq!(word(&post(&client, &url, &[]).await), expected, "{url}");
    }
}

#[tokio::test]
async fn reused_connections_report_their_phases() {
    let connections = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&connections);
    let address = serve(move |mut stream| {
        counter.fetch_add(1, Ordering::Relaxed);
        async move {
            while !read_request(&mut stream).await.is_empty() {
                let _ = stream.write_all(ok("fine").as_bytes()).await;
            }
        }
    })
    .await;
    let client = client_with_names(dev_policy(), &[("acme.com", &["127.0.0.1"])]);
    let url = format!("http://acme.com:{}/hook", address.port());

    let first = post(&client, &url, &[]).await;
    let second = post(&client, &url, &[]).await;

    assert!(first.phases.dns.is_some() && first.phases.connect.is_some());
    assert_eq!(first.phases.tls, None);
    assert!(second.is_success());
    assert_eq!((second.phases.dns, second.phases.connect), (None, None));
    assert!(second.phases.first_byte.is_some());
    assert_eq!(second.address, Some(address.ip()));
    assert_eq!(connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn dead_address_does_not_hide_a_reachable_one() {
    let address = answer(ok("fine")).await;
    // Nothing listens on 127.0.0.2, so the client moves on to the next address at once.
    let client = client_with_names(dev_policy(), &[("acme.com", &["127.0.0.2", "127.0.0.1"])]);
    let url = format!("http://acme.com:{}/", address.port());
    let exchange = post(&client, &url, &[]).await;
    assert!(exchange.is_success());
    assert_eq!(exchange.address, Some(address.ip()));
}

/// More than the buffers of sockets.
pub(crate) const LARGE: usize = 32 << 20;

/// Asserts that a server that never reads the body of a request costs no memory in the end.
pub(crate) async fn is_forgotten(
    client: &Client,
    url: &str,
    bytes: usize,
    deadline: Duration,
) -> Exchange {
    let body = Arc::new(vec![b'x'; bytes]);
    let request = Request {
        method: Method::POST,
        url,
        headers: &[],
        body: Bytes::from_owner(Shared(Arc::clone(&body))),
    };
    let exchange = client.exchange(request, deadline).await;
    let forgotten = tokio::time::timeout(MAX_DEADLINE, async {
        while Arc::strong_count(&body) > 1 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    forgotten.await.expect("the body is not in memory");
    exchange
}

struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

#[tokio::test]
async fn body_that_is_not_read_is_forgotten() {
    for is_answered in [true, false] {
        let (reads, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (read, end) = (Arc::clone(&reads), Arc::clone(&ended));
        let address = serve(move |mut stream| {
            let (reads, ended) = (Arc::clone(&read), Arc::clone(&end));
            async move {
                let _ = stream.read(&mut [0; 64]).await;
                if is_answered {
                    let _ = stream.write_all(ok("").as_bytes()).await;
                }
                reads.notified().await;
                // Not only the request ends, but also its connection.
                let mut rest = Vec::new();
                let _ = stream.read_to_end(&mut rest).await;
                ended.notify_one();
            }
        })
        .await;
        let url = format!("http://{address}/hook");
        let deadline = if is_answered { MAX_DEADLINE } else { DEADLINE };
        let client = dev_client().with_max_stall(2 * MAX_DEADLINE);
        let exchange = is_forgotten(&client, &url, LARGE, deadline).await;
        assert_eq!(exchange.is_success(), is_answered);
        reads.notify_one();
        ended.notified().await;
    }
}

#[tokio::test]
async fn server_may_read_on_after_its_response() {
    let (all, whole) = oneshot::channel();
    let all = Mutex::new(Some(all));
    let address = serve(move |mut stream| {
        let all = all.lock().unwrap().take();
        async move {
            let _ = stream.read(&mut [0; 64]).await;
            let _ = stream.write_all(ok("").as_bytes()).await;
            let mut bytes = 0;
            while bytes < LARGE {
                bytes += stream.read(&mut vec![0; 1 << 20]).await.unwrap();
            }
            all.unwrap().send(()).unwrap();
        }
    })
    .await;
    let request = Request {
        method: Method::POST,
        url: &format!("http://{address}/hook"),
        headers: &[],
        body: vec![b'x'; LARGE].into(),
    };
    assert!(
        dev_client()
            .exchange(request, MAX_DEADLINE)
            .await
            .is_success()
    );
    whole.await.unwrap();
}

#[test]
fn a_user_agent_that_cannot_be_sent_is_replaced() {
    let _ = Client::new(AddressPolicy::default(), &format!("{USER_AGENT}\n"));
}
