//! Expected result for each behaviour of a receiver: the outcome in the log, the time of the next attempt, and the
//! state.

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use domain::{ConnectionName, address::AddressPolicy};
use futures::future::{BoxFuture, FutureExt, ready};
use outbound::{Client, Resolve, RootCertStore};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

use crate::support::World;

const HOUR: u64 = 3_600;
/// The name in the certificate of the fixtures.
const HOST: &str = "hooks.acme.test";

#[derive(Clone)]
enum Behaviour {
    /// Sends these bytes, and closes the connection.
    Says(String),
    /// Sends these bytes, and then nothing.
    SaysAndHangs(&'static str),
    /// Sends these bytes, and then one every 50 ms.
    SaysAndDrips(&'static str),
    /// Sends these bytes, and then more and more.
    SaysAndFloods(&'static str),
    /// Reads the request, and resets the connection.
    Resets,
    /// Closes the connection before it receives a request.
    Closes,
    /// Sends these bytes before it receives a request, and then nothing.
    Greets(&'static str),
    /// Ends an HTTP/2 connection with GOAWAY: before or after its response.
    GoesAway { answers: bool },
}

/// Expected log: status, error, state, and the seconds to the next attempt.
struct Expected {
    status: Option<u16>,
    error: Option<&'static str>,
    state: &'static str,
    wait: Option<std::ops::RangeInclusive<u64>>,
}

fn answered(status: u16, state: &'static str) -> Expected {
    Expected {
        status: Some(status),
        error: None,
        state,
        wait: None,
    }
}

/// Retried by the schedule, whose first wait is an hour here.
fn retried(status: u16) -> Expected {
    retried_after(status, HOUR * 8 / 10 - 10..=HOUR * 12 / 10)
}

fn retried_after(status: u16, wait: std::ops::RangeInclusive<u64>) -> Expected {
    Expected {
        status: Some(status),
        wait: Some(wait),
        ..answered(status, "RETRYING")
    }
}

fn failed(error: &'static str) -> Expected {
    Expected {
        status: None,
        error: Some(error),
        ..retried(0)
    }
}

fn says(status: u16, headers: &str) -> Behaviour {
    Behaviour::Says(format!(
        "HTTP/1.1 {status} X\r\ncontent-length: 0\r\n{headers}\r\n"
    ))
}

fn table() -> Vec<(&'static str, Behaviour, Expected)> {
    use Behaviour::{Closes, GoesAway, Resets, SaysAndDrips, SaysAndFloods, SaysAndHangs};
    const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n";
    let succeeded = |status| answered(status, "SUCCEEDED");
    vec![
        ("200", says(200, ""), succeeded(200)),
        ("201", says(201, ""), succeeded(201)),
        ("204", Behaviour::Says("HTTP/1.1 204 X\r\n\r\n".to_owned()), succeeded(204)),
        ("299", says(299, ""), succeeded(299)),
        ("301", says(301, "location: http://127.0.0.1:1/\r\n"), retried(301)),
        ("302", says(302, "location: /elsewhere\r\n"), retried(302)),
        ("304", Behaviour::Says("HTTP/1.1 304 X\r\n\r\n".to_owned()), retried(304)),
        ("307", says(307, "location: /elsewhere\r\n"), retried(307)),
        ("400", says(400, ""), retried(400)),
        ("401", says(401, ""), retried(401)),
        ("404", says(404, ""), retried(404)),
        ("410", says(410, ""), answered(410, "EXHAUSTED")),
        ("429", says(429, ""), retried(429)),
        ("429 for longer", says(429, "retry-after: 7200\r\n"), retried_after(429, 7_190..=7_200)),
        ("429 for less", says(429, "retry-after: 10\r\n"), retried(429)),
        ("429 for ever", says(429, "retry-after: 99999999\r\n"), retried_after(429, 86_390..=86_400)),
        ("429 in words", says(429, "retry-after: soon\r\n"), retried(429)),
        ("500", says(500, ""), retried(500)),
        ("500 for longer", says(500, "retry-after: 7200\r\n"), retried(500)),
        ("502", says(502, ""), retried(502)),
        ("503 for longer", says(503, "retry-after: 7200\r\n"), retried_after(503, 7_190..=7_200)),
        ("599", says(599, ""), retried(599)),
        ("reset", Resets, failed("reset")),
        ("closed", Closes, failed("reset")),
        ("half a head", Behaviour::Says("HTTP/1.1 200 OK\r\nx: ".to_owned()), failed("reset")),
        ("no http", Behaviour::Says("220 smtp ready\r\n".to_owned()), failed("protocol_error")),
        ("slow headers", SaysAndHangs(""), failed("timeout")),
        // A status line alone is not a response: the head must be complete.
        ("dripping headers", SaysAndDrips("HTTP/1.1 200 OK\r\nx: "), failed("timeout")),
        ("endless headers", SaysAndFloods("HTTP/1.1 200 OK\r\nx: "), failed("protocol_error")),
        ("slow body", SaysAndHangs(OK), succeeded(200)),
        ("dripping body", SaysAndDrips(OK), succeeded(200)),
        ("endless body", SaysAndFloods("HTTP/1.1 200 OK\r\n\r\n"), succeeded(200)),
        ("half a body", Behaviour::Says(OK.to_owned()), succeeded(200)),
        (
            "103 and 200",
            Behaviour::Says("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned()),
            succeeded(200),
        ),
        ("100 and no more", SaysAndHangs("HTTP/1.1 100 Continue\r\n\r\n"), failed("timeout")),
        ("goaway before", GoesAway { answers: false }, failed("reset")),
        ("goaway after", GoesAway { answers: true }, succeeded(200)),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn each_receiver_behaviour_sets_outcome_time_and_state() {
    let mut world = World::new().await;
    world.config.dispatcher.timeout = Duration::from_secs(10);
    world.config.dispatcher.retry_schedule = vec![Duration::from_secs(HOUR); 3];

    let mut cases: Vec<(&str, ConnectionName, Expected)> = Vec::new();
    for (what, behaviour, expected) in table() {
        let tls = matches!(behaviour, Behaviour::GoesAway { .. });
        let address = serve(behaviour).await;
        let url = if tls {
            format!("https://{HOST}:{}/hook", address.port())
        } else {
            format!("http://{address}/hook")
        };
        cases.push((what, connect(&world, &url).await, expected));
    }
    // Answer of a server without TLS to a handshake: plain text, or nothing.
    let plain = serve(Behaviour::Greets("HTTP/1.1 400 Bad Request\r\n\r\n")).await;
    let silent = serve(Behaviour::Greets("")).await;
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for (what, url, word) in [
        ("refused", format!("http://{closed}/"), "connect_refused"),
        (
            "no such name",
            "http://missing.acme.test/".to_owned(),
            "dns_failure",
        ),
        (
            "a name without addresses",
            "http://empty.acme.test/".to_owned(),
            "dns_failure",
        ),
        ("no tls", format!("https://{plain}/"), "tls_failure"),
        (
            "no tls, and silent",
            format!("https://{silent}/"),
            "timeout",
        ),
        (
            "a private address",
            "http://10.0.0.1/".to_owned(),
            "forbidden_address",
        ),
        (
            "a name of a private address",
            "http://inside.acme.test/".to_owned(),
            "forbidden_address",
        ),
    ] {
        cases.push((what, connect(&world, &url).await, failed(word)));
    }

    let connections: Vec<ConnectionName> = cases.iter().map(|(_, name, _)| *name).collect();
    let manager = world.manager(&connections).await;
    let replica = world.dispatcher_with(client());
    world.publish_scan(manager, "kettle").await;
    let waiting = "deliveries WHERE attempt_count = 0";
    test_support::eventually("each was tried", async || {
        world.database.count("deliveries").await == i64::try_from(cases.len()).unwrap()
            && world.database.count(waiting).await == 0
    })
    .await;
    replica.stop().await;

    let mut wrong = Vec::new();
    for (what, connection, expected) in &cases {
        let row = world
            .database
            .texts(
                "concat_ws(' ', state, attempt_count, coalesce(last_status_code::text, '-'), coalesce(last_error, '-'), \
                     coalesce(extract(epoch FROM next_attempt_time - last_attempt_time)::integer::text, '-'))",
                &format!("deliveries WHERE connection_id = '{}'", connection.connection.to_uuid()),
            )
            .await
            .remove(0);
        let (start, wait) = row.rsplit_once(' ').unwrap();
        let status = expected
            .status
            .map_or("-".to_owned(), |status| status.to_string());
        let line = format!(
            "{} 1 {status} {}",
            expected.state,
            expected.error.unwrap_or("-")
        );
        let in_time = match &expected.wait {
            None => wait == "-",
            // The request itself is part of the wait, and a busy machine may need a while for it.
            Some(range) => wait
                .parse()
                .is_ok_and(|wait: u64| (*range.start()..=range.end() + 60).contains(&wait)),
        };
        println!("{what:28} {row}");
        if start != line || !in_time {
            wrong.push(format!(
                "{what}: `{row}`, not `{line}` and {:?}",
                expected.wait
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let disabled = world
        .database
        .texts("c.id", "connections AS c JOIN deliveries AS d ON d.connection_id = c.id WHERE c.state = 'DISABLED'")
        .await;
    assert_eq!(disabled.len(), 1, "that which said 410");
}

async fn connect(world: &World, url: &str) -> ConnectionName {
    let mut conn = world.database.connect().await;
    world.fixture.connection(&mut conn, url).await
}

struct Names(HashMap<&'static str, Vec<IpAddr>>);

impl Resolve for Names {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, String>> {
        let answer = self.0.get(host).cloned();
        ready(answer.ok_or_else(|| "no such name".to_owned())).boxed()
    }
}

/// A client that trusts the fixtures' authority and resolves some names.
fn client() -> Client {
    let policy = AddressPolicy {
        allow_cidrs: vec!["127.0.0.0/8".parse().unwrap()],
        allow_http: true,
        ..AddressPolicy::default()
    };
    let names = HashMap::from([
        (HOST, vec![[127, 0, 0, 1].into()]),
        ("inside.acme.test", vec![[192, 168, 0, 1].into()]),
        ("empty.acme.test", Vec::new()),
    ]);
    let mut roots = RootCertStore::empty();
    let ca = include_bytes!("../../../outbound/tests/strangers/fixtures/ca.der");
    roots.add(ca.to_vec().into()).unwrap();
    Client::with_parts(policy, outbound::USER_AGENT, Arc::new(Names(names)), roots)
}

async fn serve(behaviour: Behaviour) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(act(stream, behaviour.clone()));
        }
    });
    address
}

async fn act(mut stream: TcpStream, behaviour: Behaviour) {
    match behaviour {
        Behaviour::Closes => {}
        Behaviour::Greets(text) => {
            let _ = stream.write_all(text.as_bytes()).await;
            std::future::pending().await
        }
        Behaviour::Resets => {
            read_head(&mut stream).await;
            // With zero linger time, closing resets the connection.
            let _ = stream.set_zero_linger();
        }
        Behaviour::Says(text) => {
            read_head(&mut stream).await;
            let _ = stream.write_all(text.as_bytes()).await;
        }
        Behaviour::SaysAndHangs(text) => {
            read_head(&mut stream).await;
            let _ = stream.write_all(text.as_bytes()).await;
            std::future::pending().await
        }
        Behaviour::SaysAndDrips(text) => {
            read_head(&mut stream).await;
            let mut alive = stream.write_all(text.as_bytes()).await.is_ok();
            while alive {
                tokio::time::sleep(Duration::from_millis(50)).await;
                alive = stream.write_all(b".").await.is_ok();
            }
        }
        Behaviour::SaysAndFloods(text) => {
            read_head(&mut stream).await;
            let mut alive = stream.write_all(text.as_bytes()).await.is_ok();
            while alive {
                alive = stream.write_all(&[b'y'; 16 * 1_024]).await.is_ok();
            }
        }
        Behaviour::GoesAway { answers } => {
            if let Ok(mut stream) = acceptor().accept(stream).await {
                let _ = go_away(&mut stream, answers).await;
            }
        }
    }
}

/// Reads the request's head and its body, which is small and arrives in one piece.
async fn read_head(stream: &mut TcpStream) {
    let mut bytes = Vec::new();
    while !bytes.windows(4).any(|window| window == b"\r\n\r\n") {
        let mut chunk = [0; 4_096];
        match stream.read(&mut chunk).await {
            Ok(read @ 1..) => bytes.extend_from_slice(&chunk[..read]),
            _ => return,
        }
    }
}

fn acceptor() -> TlsAcceptor {
    let leaf = include_bytes!("../../../outbound/tests/strangers/fixtures/leaf.der");
    let key = include_bytes!("../../../outbound/tests/strangers/fixtures/leaf-key.der");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from(leaf.to_vec())],
            PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.to_vec())),
        )
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

/// Hand-written frames of RFC 9113: SETTINGS; optionally HEADERS of stream 1 with `:status 200`; and GOAWAY.
async fn go_away<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    answers: bool,
) -> std::io::Result<()> {
    const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    const HEADERS: &[u8] = &[0, 0, 1, 1, 5, 0, 0, 0, 1, 0x88];
    let last_stream = u8::from(answers);
    let goaway = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, last_stream, 0, 0, 0, 0];
    stream.write_all(SETTINGS).await?;
    // The preface, the client's settings, and the request's head.
    let mut seen = Vec::new();
    while !seen
        .windows(5)
        .any(|window| window[3] == 1 && window[0] == 0 && window[4] & 4 != 0)
    {
        let mut chunk = [0; 4_096];
        match stream.read(&mut chunk).await? {
            0 => return Ok(()),
            read => seen.extend_from_slice(&chunk[..read]),
        }
    }
    if answers {
        stream.write_all(HEADERS).await?;
    }
    stream.write_all(&goaway).await?;
    stream.flush().await?;
    // The rest is not read.
    let mut rest = [0; 4_096];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}
