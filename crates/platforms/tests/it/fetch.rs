//! The client for addresses from the operator.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use domain::egress::{Egress, Proxy};
use outbound::large;
use platforms::{Direct, Fetch, FetchError, FetchLimits, Fetched};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::Semaphore,
};
use url::Url;

/// Answers every request with `answer`; `{port}` in it is the server's port.
async fn serve(answer: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = answer.replace("{port}", &port.to_string());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    port
}

async fn get(url: String) -> Result<Fetched, FetchError> {
    get_within(Duration::from_secs(60), url).await
}

async fn get_within(timeout: Duration, url: String) -> Result<Fetched, FetchError> {
    let limits = FetchLimits {
        max_bytes: 100,
        timeout,
    };
    let client = Direct::new(None).unwrap();
    client.get(&url.parse().unwrap(), &[], &limits).await
}

/// A firewall may say a day, for one request.
#[tokio::test]
async fn requested_pause_is_limited() {
    let answer = "HTTP/1.1 429 Wait\r\nRetry-After: 86400\r\nConnection: close\r\n\r\n";
    let port = serve(answer).await;
    let fetched = get(format!("http://127.0.0.1:{port}/")).await.unwrap();
    assert_eq!(fetched.retry_after(), Some(Duration::from_mins(15)));
}

#[tokio::test]
async fn platforms_are_reached_through_the_operators_proxy() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, mut seen) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = vec![0; 4096];
            let length = stream.read(&mut head).await.unwrap();
            let head = String::from_utf8_lossy(&head[..length]).to_ascii_lowercase();
            let line = head.lines().next().unwrap_or_default().to_owned();
            let is_known = head.contains("proxy-authorization: basic bwu6cyb0");
            sender.send((line, is_known)).unwrap();
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    let exceptions = vec!["direct.example".parse().unwrap()];
    let proxy = Proxy::parse(&format!("http://me:s%20t@{address}"), exceptions).unwrap();
    let egress = Egress {
        proxy: Some(proxy),
        authorities: Vec::new(),
    };
    let client = Direct::leaving_by(&egress, None).unwrap();
    let limits = FetchLimits {
        max_bytes: 100,
        timeout: Duration::from_secs(60),
    };
    let get = async |url: &str| client.get(&url.parse().unwrap(), &[], &limits).await;
    let answer = get("http://forum.example/latest.json").await.unwrap();
    assert_eq!(answer.body, b"ok");
    let expected = "get http://forum.example/latest.json http/1.1".to_owned();
    assert_eq!(seen.recv().await.unwrap(), (expected, true));
    // The tunnel leads to no TLS server.
    assert!(get("https://forum.example/latest.json").await.is_err());
    let expected = "connect forum.example:443 http/1.1".to_owned();
    assert_eq!(seen.recv().await.unwrap(), (expected, true));
    assert!(get("http://direct.example/").await.is_err());
    assert!(get("http://[::1]:1/").await.is_err());
    assert!(seen.try_recv().is_err());
}

#[tokio::test]
async fn redirects_are_followed_within_their_origin_up_to_a_limit() {
    let there = serve("HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 2\r\n\r\nok").await;
    let answer = get(format!("http://127.0.0.1:{there}/")).await.unwrap();
    assert_eq!((answer.status, answer.header("x-a")), (200, Some("b")));

    let inward =
        serve("HTTP/1.1 302 F\r\nLocation: http://localhost:{port}/\r\nContent-Length: 0\r\n\r\n")
            .await;
    let metadata =
        serve("HTTP/1.1 302 F\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n")
            .await;
    let round = serve("HTTP/1.1 302 F\r\nLocation: /\r\nContent-Length: 0\r\n\r\n").await;
    for port in [inward, metadata, round] {
        let answer = get(format!("http://127.0.0.1:{port}/")).await;
        assert!(matches!(answer, Err(FetchError::Failed(_))), "{answer:?}");
    }
}

/// Records the requested addresses, and answers.
#[derive(Default)]
struct Guard(Mutex<Vec<String>>);

#[async_trait]
impl Fetch for Guard {
    async fn get(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        _limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        self.0.lock().unwrap().push(format!("{url} {headers:?}"));
        Ok(Fetched {
            status: 200,
            headers: Vec::new(),
            body: Vec::new(),
            final_url: url.clone(),
        })
    }
}

/// Another scheme, port or name is another origin, regardless of its owner.
#[tokio::test]
async fn credentials_stay_within_their_origin() {
    let inside = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let other_port = inside.local_addr().unwrap().port();
    for target in [
        format!("http://127.0.0.1:{other_port}/"),
        "http://localhost:{port}/".to_owned(),
        "https://127.0.0.1:{port}/".to_owned(),
        "//evil.example/".to_owned(),
    ] {
        let answer = format!("HTTP/1.1 302 F\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n");
        let port = serve(answer.leak()).await;
        let url: Url = format!("http://127.0.0.1:{port}/").parse().unwrap();
        let headers = [
            ("api-key", "canary"),
            ("api-username", "canary"),
            ("authorization", "Bearer canary"),
            ("cookie", "canary"),
            ("x-anything", "canary"),
            ("accept", "text/xml"),
        ];
        let limits = FetchLimits::default();
        let alone = Direct::new(None).unwrap();
        let refused = alone.get(&url, &headers, &limits).await;
        assert!(matches!(refused, Err(FetchError::Failed(_))), "{refused:?}");

        let guard = Arc::new(Guard::default());
        let direct = alone.with_redirects(Arc::clone(&guard) as Arc<dyn Fetch>);
        let form = direct
            .post_form(&url, &headers, &[("a", "canary")], &limits)
            .await;
        assert_eq!(form.unwrap().status, 302, "{target}");
        assert!(guard.0.lock().unwrap().is_empty());

        assert_eq!(
            direct.get(&url, &headers, &limits).await.unwrap().status,
            200
        );
        let target = target.replace("{port}", &port.to_string());
        let target = url.join(&target).unwrap();
        let asked = format!("{target} [(\"accept\", \"text/xml\")]");
        assert_eq!(*guard.0.lock().unwrap(), [asked]);
    }
    let knocked = tokio::time::timeout(Duration::ZERO, inside.accept()).await;
    assert!(knocked.is_err(), "the other port was asked");
}

#[tokio::test]
async fn sizes_and_times_are_bounded() {
    let declared = serve("HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n").await;
    let answer = get(format!("http://127.0.0.1:{declared}/")).await;
    assert!(matches!(
        answer,
        Err(FetchError::TooLarge { limit_bytes: 100 })
    ));

    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/");
    let answer = get_within(Duration::from_millis(500), url).await;
    assert!(matches!(answer, Err(FetchError::Timeout)), "{answer:?}");
}

#[tokio::test]
async fn tls_needs_no_provider_of_the_process() {
    let plain = serve("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let answer = get(format!("https://127.0.0.1:{plain}/")).await;
    assert!(matches!(answer, Err(FetchError::Failed(_))), "{answer:?}");
}

#[tokio::test]
async fn compressed_responses_are_measured_after_decompression() {
    // Twenty thousand letters, compressed with gzip.
    const BOMB: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xed\xc1\x31\x01\x00\x00\x00\xc2\xa0\xac\xeb\x5f\xc2\x1a\x1e\x40\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xf0\x60\x31\x87\xbd\xca\x20\x4e\x00\x00";
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 4096]).await;
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
            BOMB.len()
        );
        stream
            .write_all(&[head.as_bytes(), BOMB].concat())
            .await
            .unwrap();
        let _ = stream.shutdown().await;
    });
    assert!(BOMB.len() < 100, "the compressed size is within the limit");
    let answer = get(format!("http://127.0.0.1:{port}/")).await;
    assert!(
        matches!(answer, Err(FetchError::TooLarge { limit_bytes: 100 })),
        "{answer:?}"
    );
}

#[tokio::test]
async fn post_request_sends_its_headers_and_follows_no_redirect() {
    let elsewhere =
        serve("HTTP/1.1 307 Go\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")
            .await;
    let long = serve("HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n").await;
    let post = async |port: u16, timeout: Duration| {
        let url = format!("http://localhost:{port}/ask").parse().unwrap();
        let limits = FetchLimits {
            max_bytes: 100,
            timeout,
        };
        let headers = [("authorization", "Bearer secret")];
        let client = Direct::new(None).unwrap();
        client.post(&url, &headers, "{}".to_owned(), &limits).await
    };
    let generous = Duration::from_secs(60);
    assert_eq!(post(elsewhere, generous).await.unwrap().status, 307);
    let answer = post(long, generous).await;
    assert!(matches!(answer, Err(FetchError::TooLarge { .. })));

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let read = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n{}") {
            stream.read_buf(&mut request).await.unwrap();
        }
        // A response that never ends.
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx")
            .await
            .unwrap();
        (stream, String::from_utf8(request).unwrap())
    });
    let answer = post(port, Duration::from_secs(2)).await;
    assert!(matches!(answer, Err(FetchError::Timeout)), "{answer:?}");
    let (_stream, request) = read.await.unwrap();
    assert!(request.starts_with("POST /ask HTTP/1.1\r\n"), "{request}");
    assert!(
        request.contains("authorization: Bearer secret\r\n"),
        "{request}"
    );
}

#[tokio::test]
async fn large_answers_wait_for_a_place_before_they_are_read() {
    const SMALL_BYTES: usize = 1 << 20;
    let places = Arc::new(Semaphore::new(1));
    // Returns the length of the body, and how many places are left once it was read.
    let read = async |bytes: usize| {
        let body = "x".repeat(bytes);
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n{body}");
        let port = serve(answer.leak()).await;
        let url: Url = format!("http://127.0.0.1:{port}/").parse().unwrap();
        let (client, limits) = (Direct::new(None).unwrap(), FetchLimits::default());
        let work = async {
            let fetched = client.get(&url, &[], &limits).await.unwrap();
            (fetched.body.len(), places.available_permits())
        };
        let places = Arc::clone(&places);
        large::in_turn(move || Arc::clone(&places).acquire_owned(), work).await
    };

    assert_eq!(read(SMALL_BYTES).await, (SMALL_BYTES, 1));
    assert_eq!(read(SMALL_BYTES + 1).await, (SMALL_BYTES + 1, 0));
}
