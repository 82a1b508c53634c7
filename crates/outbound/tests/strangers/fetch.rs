//! Pages from well-behaved and misbehaving servers.

use std::{io::Write, net::SocketAddr, sync::Arc, time::Duration};

use crate::support::{answer, client_with_names, dev_client, dev_policy, ok, read_request, serve};
use domain::{Issue, address::AddressPolicy};
use flate2::{Compression, write::GzEncoder};
use outbound::{
    Client, Error, Failure, Limits, Page,
    large::{self, SMALL_BYTES},
};
use tokio::{io::AsyncWriteExt, sync::Semaphore};

fn limits() -> Limits {
    Limits {
        total: Duration::from_secs(60),
        max_redirects: 3,
        max_wire_bytes: 1 << 20,
        max_body_bytes: 2 << 20,
    }
}

async fn fetch(client: &Client, address: SocketAddr) -> Result<Page, Error> {
    let url = format!("http://{address}/page?q=1#part");
    client.fetch(&url, limits(), &[]).await
}

fn word(outcome: Result<Page, Error>) -> &'static str {
    outcome.unwrap_err().word()
}

/// Returns an answer with a compressed body.
fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(body).unwrap();
    let packed = encoder.finish().unwrap();
    let mut bytes = format!(
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
        packed.len()
    )
    .into_bytes();
    bytes.extend(packed);
    bytes
}

#[tokio::test]
async fn page_contains_the_data_of_its_headers() {
    let address = answer(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=UTF-8\r\netag: \"v1\"\r\n\
         last-modified: Sun, 06 Nov 1994 08:49:37 GMT\r\ncontent-length: 5\r\n\r\nhello",
    )
    .await;

    let page = fetch(&dev_client(), address).await.unwrap();

    assert_eq!((page.status, page.text().as_str()), (200, "hello"));
    assert_eq!(page.content_type.as_deref(), Some("text/html"));
    assert_eq!(page.charset.as_deref(), Some("utf-8"));
    assert_eq!(page.etag.as_deref(), Some("\"v1\""));
    assert!(page.last_modified.is_some());
}

#[tokio::test]
async fn request_contains_our_user_agent_and_the_callers_headers() {
    let address = serve(|mut stream| async move {
        let request = read_request(&mut stream).await;
        let _ = stream.write_all(ok(&request).as_bytes()).await;
    })
    .await;
    let headers = [("If-None-Match".to_owned(), "\"v1\"".to_owned())];

    let url = format!("http://{address}/page?q=1#part");
    let page = dev_client().fetch(&url, limits(), &headers).await.unwrap();

    let request = page.text().to_ascii_lowercase();
    assert!(
        request.starts_with("get /page?q=1 http/1.1\r\n"),
        "{request}"
    );
    for line in [
        "if-none-match: \"v1\"\r\n",
        "user-agent: earshot/test\r\n",
        "accept-encoding: gzip, br, deflate\r\n",
    ] {
        assert!(request.contains(line), "{request}");
    }
    assert!(
        request.contains(&format!("host: {address}\r\n")),
        "{request}"
    );
    assert!(!request.contains("referer"), "{request}");
}

#[tokio::test]
async fn not_modified_is_an_answer() {
    let address =
        answer("HTTP/1.1 304 Not Modified\r\netag: \"v1\"\r\ncontent-encoding: gzip\r\n\r\n").await;
    let page = fetch(&dev_client(), address).await.unwrap();
    assert_eq!((page.status, page.body.len()), (304, 0));
}

#[tokio::test]
async fn redirects_are_followed_to_the_end() {
    let target = answer(ok("there")).await;
    let address = answer(format!(
        "HTTP/1.1 302 Found\r\nlocation: http://localhost:{}/there\r\ncontent-length: 0\r\n\r\n",
        target.port()
    ))
    .await;

    let page = fetch(&dev_client(), address).await.unwrap();

    assert_eq!(page.text(), "there");
    assert_eq!(page.url.path(), "/there");
}

#[tokio::test]
async fn a_redirect_loop_ends() {
    let address =
        answer("HTTP/1.1 301 Moved\r\nlocation: /page\r\ncontent-length: 0\r\n\r\n").await;
    let outcome = fetch(&dev_client(), address).await;
    assert_eq!(outcome.unwrap_err(), Error::TooManyRedirects { limit: 3 });
}

#[tokio::test]
async fn redirects_to_internal_addresses_are_refused() {
    for target in [
        "http://169.254.169.254/latest/meta-data",
        "http://2852039166/",
        "//169.254.169.254/",
        "http://[::ffff:10.0.0.1]/",
        "https://metadata.google.internal/",
        "http://10.0.0.1:80/",
    ] {
        let address = answer(format!(
            "HTTP/1.1 302 Found\r\nlocation: {target}\r\ncontent-length: 0\r\n\r\n"
        ))
        .await;
        let outcome = fetch(&dev_client(), address).await;
        assert_eq!(word(outcome), "forbidden_address", "{target}");
    }
    for target in [
        "file:///etc/passwd",
        "ftp://acme.com/",
        "http://a:b@acme.com/",
    ] {
        let address = answer(format!(
            "HTTP/1.1 302 Found\r\nlocation: {target}\r\ncontent-length: 0\r\n\r\n"
        ))
        .await;
        let expected = Error::Url {
            issue: Issue::InvalidFormat,
            redirected: true,
        };
        assert_eq!(fetch(&dev_client(), address).await.unwrap_err(), expected);
    }
}

/// A page may have as many links as it has room for, each as long as its address.
#[tokio::test]
async fn redirects_to_long_addresses_are_refused() {
    let path = "a".repeat(2_048);
    let head = format!("HTTP/1.1 302 Found\r\nlocation: /{path}\r\ncontent-length: 0\r\n\r\n");
    let outcome = fetch(&dev_client(), answer(head).await).await;
    let expected = Error::Url {
        issue: Issue::TooLong,
        redirected: true,
    };
    assert_eq!(outcome.unwrap_err(), expected);
}

#[tokio::test]
async fn the_error_of_a_refused_redirect_names_the_address() {
    let address = answer("HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\n\r\n").await;
    let error = fetch(&dev_client(), address).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "`169.254.169.254` is not a permitted address"
    );
}

/// Names are covered too, which only the connection can check; the error does not show their addresses.
#[tokio::test]
async fn denied_networks_and_ports_of_other_protocols_are_not_reached() {
    let address = answer(ok("secret")).await;
    let names: &[(&'static str, &[&str])] = &[("inside.test", &["127.0.0.1"])];
    let url = format!("http://inside.test:{}/", address.port());
    let get = async |policy: AddressPolicy, url: &str| {
        let client = client_with_names(policy, names);
        client.fetch(url, Limits::default(), &[]).await
    };
    assert_eq!(get(dev_policy(), &url).await.unwrap().status, 200);

    let denied = AddressPolicy {
        deny_cidrs: vec!["127.0.0.0/30".parse().unwrap()],
        ..dev_policy()
    };
    let error = get(denied, &url).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "`inside.test` is not a permitted address"
    );
    let other_ports = AddressPolicy {
        allow_ports: vec![443],
        ..dev_policy()
    };
    assert_eq!(word(get(other_ports, &url).await), "forbidden_address");
    let mail = "http://inside.test:25/";
    assert_eq!(word(get(dev_policy(), mail).await), "forbidden_address");
}

#[tokio::test]
async fn loopback_is_refused_by_default_in_every_spelling() {
    let address = answer(ok("secret")).await;
    let port = address.port();
    let client = client_with_names(
        AddressPolicy::default(),
        &[
            ("rebound.acme.com", &["127.0.0.1"]),
            ("mixed.acme.com", &["93.184.215.14", "127.0.0.1"]),
            ("mapped.acme.com", &["::ffff:127.0.0.1"]),
        ],
    );
    for host in [
        "127.0.0.1",
        "127.1",
        "0x7f.1",
        "2130706433",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "localhost",
        "rebound.acme.com",
        "rebound.acme.com.",
        "mixed.acme.com",
        "mapped.acme.com",
    ] {
        let url = format!("http://{host}:{port}/");
        let outcome = client.fetch(&url, limits(), &[]).await;
        assert_eq!(word(outcome), "forbidden_address", "{host}");
    }
}

#[tokio::test]
async fn name_with_an_allowed_internal_address_is_fetched() {
    let address = answer(ok("hello")).await;
    let client = client_with_names(dev_policy(), &[("acme.com", &["127.0.0.1"])]);
    let url = format!("http://acme.com:{}/", address.port());
    let page = client.fetch(&url, limits(), &[]).await.unwrap();
    assert_eq!(page.text(), "hello");
}

#[tokio::test]
async fn internal_name_is_reached_only_at_an_allowed_address() {
    let address = answer(ok("hello")).await;
    let names: &[(&'static str, &[&str])] =
        &[("receiver", &["127.0.0.1"]), ("database", &["10.0.0.5"])];
    let get = async |policy: AddressPolicy, host: &str| {
        let url = format!("http://{host}:{}/", address.port());
        let client = client_with_names(policy, names);
        client.fetch(&url, limits(), &[]).await
    };
    let named = AddressPolicy {
        allow_hosts: vec!["receiver".parse().unwrap(), "database".parse().unwrap()],
        ..dev_policy()
    };
    let page = get(named.clone(), "receiver").await.unwrap();
    assert_eq!(page.text(), "hello");
    for refused in ["database", "cache"] {
        let outcome = get(named.clone(), refused).await;
        assert_eq!(word(outcome), "forbidden_address", "{refused}");
    }
}

#[tokio::test]
async fn a_name_without_addresses_is_a_dns_failure() {
    let client = client_with_names(dev_policy(), &[("empty.acme.com", &[])]);
    for host in ["missing.acme.com", "empty.acme.com"] {
        let outcome = client
            .fetch(&format!("http://{host}/"), limits(), &[])
            .await;
        assert_eq!(word(outcome), "dns_failure");
    }
}

#[tokio::test]
async fn silent_server_is_given_up_at_the_deadline() {
    let address = serve(|mut stream| async move {
        read_request(&mut stream).await;
        std::future::pending().await
    })
    .await;
    let short = Limits {
        total: Duration::from_millis(200),
        ..limits()
    };

    let outcome = dev_client()
        .fetch(&format!("http://{address}/"), short, &[])
        .await;

    assert_eq!(
        outcome.unwrap_err().to_string(),
        "timed out after 200ms waiting for the answer"
    );
}

#[tokio::test]
async fn slow_body_is_given_up_at_the_deadline() {
    let address = serve(|mut stream| async move {
        read_request(&mut stream).await;
        let head = "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n";
        let mut alive = stream.write_all(head.as_bytes()).await.is_ok();
        while alive {
            tokio::time::sleep(Duration::from_millis(20)).await;
            alive = stream.write_all(b".").await.is_ok();
        }
    })
    .await;
    let url = format!("http://{address}/");
    // On a busy machine, a short time may end before the head is read.
    let mut told = Vec::new();
    for total in [300, 1_200, 4_800, 19_200].map(Duration::from_millis) {
        let short = Limits { total, ..limits() };
        let error = dev_client().fetch(&url, short, &[]).await.unwrap_err();
        let expected = Failure::Timeout {
            after: total,
            activity: "reading the body",
        };
        if error == Error::Exchange(expected) {
            return;
        }
        told.push(error);
    }
    panic!("{told:?}");
}

/// A page without an end, with and without a declared length.
#[tokio::test]
async fn a_huge_page_is_cut_at_the_limit() {
    for length in ["content-length: 104857600\r\n", ""] {
        let address = serve(move |mut stream| async move {
            read_request(&mut stream).await;
            let head = format!("HTTP/1.1 200 OK\r\n{length}\r\n");
            let mut alive = stream.write_all(head.as_bytes()).await.is_ok();
            let chunk = vec![b'x'; 64 * 1_024];
            while alive {
                alive = stream.write_all(&chunk).await.is_ok();
            }
        })
        .await;

        let outcome = fetch(&dev_client(), address).await;

        let error = outcome.unwrap_err();
        assert_eq!(error.to_string(), "larger than 1048576 bytes");
    }
}

#[tokio::test]
async fn a_gzip_bomb_is_cut_at_the_limit() {
    let bomb = gzip(&vec![0; 100 << 20]);
    assert!(bomb.len() < limits().max_wire_bytes);
    let address = answer(bomb).await;

    let outcome = fetch(&dev_client(), address).await;

    let expected = Error::TooLarge {
        limit_bytes: limits().max_body_bytes,
        wire: false,
    };
    assert_eq!(outcome.unwrap_err(), expected);
}

#[tokio::test]
async fn refused_cut_and_garbled_connections_have_different_errors() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = listener.local_addr().unwrap();
    drop(listener);
    assert_eq!(word(fetch(&dev_client(), closed).await), "connect_refused");

    let cut = answer("").await;
    assert_eq!(word(fetch(&dev_client(), cut).await), "reset");

    let cut_body = answer("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf").await;
    assert_eq!(word(fetch(&dev_client(), cut_body).await), "reset");

    let reset = serve(|mut stream| async move {
        read_request(&mut stream).await;
        let _ = stream.set_zero_linger();
    })
    .await;
    assert_eq!(word(fetch(&dev_client(), reset).await), "reset");

    let garbled = answer("SSH-2.0-OpenSSH_9.2\r\n").await;
    assert_eq!(word(fetch(&dev_client(), garbled).await), "protocol_error");

    let endless_head = serve(|mut stream| async move {
        read_request(&mut stream).await;
        let mut alive = stream.write_all(b"HTTP/1.1 200 OK\r\n").await.is_ok();
        while alive {
            alive = stream.write_all(&[b'a'; 4_096]).await.is_ok();
        }
    })
    .await;
    let outcome = fetch(&dev_client(), endless_head).await;
    assert_eq!(word(outcome), "protocol_error");
}

#[tokio::test]
async fn credentials_do_not_follow_a_redirect_to_another_origin() {
    let target = serve(|mut stream| async move {
        let request = read_request(&mut stream).await;
        let _ = stream.write_all(ok(&request).as_bytes()).await;
    })
    .await;
    let address = answer(format!(
        "HTTP/1.1 307 There\r\nlocation: http://{target}/\r\ncontent-length: 0\r\n\r\n"
    ))
    .await;
    let headers = [("Authorization".to_owned(), "Bearer s3cret".to_owned())];

    let url = format!("http://{address}/");
    let page = dev_client().fetch(&url, limits(), &headers).await.unwrap();

    assert!(!page.text().contains("s3cret"));
}

#[tokio::test]
async fn urls_with_odd_characters_can_be_requested() {
    let address = serve(|mut stream| async move {
        let request = read_request(&mut stream).await;
        let line = request.lines().next().unwrap_or_default();
        let _ = stream.write_all(ok(line).as_bytes()).await;
    })
    .await;
    for (path, expected) in [
        ("?q", "/?q"),
        ("/a//b/../c", "/a//c"),
        ("/%zz%", "/%zz%"),
        ("/größe?q=ü", "/gr%C3%B6%C3%9Fe?q=%C3%BC"),
        (
            "/a|b^c{d}[e]\"<f>?x={y}|[z]\"<>",
            "/a|b^c%7Bd%7D[e]%22%3Cf%3E?x={y}|[z]%22%3C%3E",
        ),
    ] {
        let url = format!("http://{address}{path}");
        let page = dev_client().fetch(&url, limits(), &[]).await.unwrap();
        assert_eq!(page.text(), format!("GET {expected} HTTP/1.1"));
    }
}

#[tokio::test]
async fn large_bodies_wait_for_a_place_before_they_are_read() {
    let places = Arc::new(Semaphore::new(1));
    // Returns the length of the body, and how many places are left once it was read.
    let read = async |body: Vec<u8>| {
        let (client, address) = (dev_client(), answer(body).await);
        let work = async {
            let page = fetch(&client, address).await.unwrap();
            (page.body.len(), places.available_permits())
        };
        let places = Arc::clone(&places);
        large::in_turn(move || Arc::clone(&places).acquire_owned(), work).await
    };
    let (small, large) = ("x".repeat(SMALL_BYTES), "x".repeat(SMALL_BYTES + 1));

    assert_eq!(read(ok(&small).into_bytes()).await, (SMALL_BYTES, 1));
    for body in [ok(&large).into_bytes(), gzip(large.as_bytes())] {
        assert_eq!(read(body).await, (SMALL_BYTES + 1, 0));
    }
}
