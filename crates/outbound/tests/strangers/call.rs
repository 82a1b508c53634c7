//! Requests to services that the operator configures.

use std::time::{Duration, Instant};

use bytes::Bytes;
use outbound::{Client, Error, Limits, Method, Page, Request};
use tokio::io::AsyncWriteExt;

use crate::support::{USER_AGENT, answer, ok, read_request, serve};

const LIMITS: Limits = Limits {
    total: Duration::from_millis(700),
    max_redirects: 5,
    max_wire_bytes: 1_000,
    max_body_bytes: 1_000,
};

async fn call(client: &Client, url: &str) -> Result<Page, Error> {
    let headers = [("authorization".to_owned(), "Bearer secret".to_owned())];
    let request = Request {
        method: Method::POST,
        url,
        headers: &headers,
        body: Bytes::from_static(b"{}"),
    };
    client.call(request, LIMITS).await
}

#[tokio::test]
async fn an_operators_service_may_stand_on_this_machine() {
    let address = serve(|mut stream| async move {
        let request = read_request(&mut stream).await;
        assert!(request.starts_with("POST /ask HTTP/1.1\r\n"), "{request}");
        assert!(
            request
                .to_lowercase()
                .contains("authorization: bearer secret")
        );
        assert!(request.ends_with("\r\n\r\n{}"), "{request}");
        let _ = stream.write_all(ok("yes").as_bytes()).await;
    })
    .await;
    for host in ["127.0.0.1", "localhost"] {
        let url = format!("http://{host}:{}/ask", address.port());
        let page = call(&Client::for_operator(USER_AGENT), &url).await.unwrap();
        assert_eq!((page.status, &page.body[..]), (200, &b"yes"[..]));
        // For customers the same address stays forbidden.
        let guarded = Client::new(domain::address::AddressPolicy::default(), USER_AGENT);
        assert_eq!(
            call(&guarded, &url).await.unwrap_err().word(),
            "forbidden_address"
        );
    }
}

#[tokio::test]
async fn redirects_are_answers_and_everything_is_bounded() {
    let client = Client::for_operator(USER_AGENT);
    let url = |address: std::net::SocketAddr| format!("http://{address}/");
    let elsewhere =
        answer("HTTP/1.1 307 Go\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n")
            .await;
    assert_eq!(call(&client, &url(elsewhere)).await.unwrap().status, 307);
    let long = answer(ok(&"x".repeat(1_001))).await;
    assert_eq!(
        call(&client, &url(long)).await.unwrap_err().word(),
        "too_large"
    );
    let begin = Instant::now();
    let slow = serve(|mut stream| async move {
        read_request(&mut stream).await;
        let _ = stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx")
            .await;
        tokio::time::sleep(Duration::from_secs(9)).await;
    })
    .await;
    assert_eq!(
        call(&client, &url(slow)).await.unwrap_err().word(),
        "timeout"
    );
    assert!(begin.elapsed() < Duration::from_secs(3));
    assert_eq!(
        call(&client, "file:///etc/passwd")
            .await
            .unwrap_err()
            .word(),
        "invalid_url"
    );
}
