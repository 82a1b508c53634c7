//! Ten thousand malformed requests to the whole API, generated from a seed.
//!
//! The gateway is a separate process, so that its memory and log can be checked. Requests use raw sockets, because
//! client libraries do not send malformed requests. Each must be answered with a 4xx and the error body.

mod generator;

use std::{
    fs::File,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use domain::key::{ApiKey, Role};
use serde_json::Value;
use store::AsyncPgConnection;
use test_support::{TIMEOUT, TestDatabase, eventually};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::client::{Client, connection_body, manager_body};
use generator::{Case, Generator, Names};

const REQUESTS: usize = 10_000;
/// Requests before the first look at memory, while buffers and caches reach their size.
const WARM_UP: usize = 2_000;
const SEED: u64 = 0x0ea5_5407;
const AT_ONCE: usize = 8;
/// Allowance for the allocator. A leak of a hundred bytes per request would cost a megabyte.
const MAX_GROWTH_KB: u64 = 6 * 1_024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_malformed_requests_are_refused_without_side_effects() {
    let database = TestDatabase::create().await;
    let gateway = Gateway::start(database.url()).await;
    let key = store_key(&mut database.connect().await).await;
    let client = Client::new(&format!("http://{}", gateway.address), Some(key.clone()));
    let namespace = client.namespace().await;
    let made = async |collection: &str, body: Value| {
        let answer = reqwest::Client::new()
            .post(format!(
                "http://{}/v1/{namespace}/{collection}",
                gateway.address
            ))
            .bearer_auth(&key)
            .json(&body);
        let answer: Value = answer.send().await.unwrap().json().await.unwrap();
        answer["name"].as_str().unwrap().to_owned()
    };
    let names = Names {
        manager: made("managers", manager_body()).await,
        connection: made("connections", connection_body()).await,
        namespace: namespace.clone(),
    };
    let before = client.get("/v1/namespaces").await.body;

    let generator = Arc::new(Generator::new(SEED, key, names));
    let begin = Instant::now();
    throw(&gateway.address, &generator, 0..WARM_UP).await;
    let warm = gateway.resident_kb();
    throw(&gateway.address, &generator, WARM_UP..WARM_UP + REQUESTS).await;
    let after = gateway.resident_kb();
    println!(
        "{} malformed requests in {:?}; {warm} kB, then {after} kB",
        WARM_UP + REQUESTS,
        begin.elapsed()
    );
    assert!(
        after < warm + MAX_GROWTH_KB,
        "memory grew from {warm} kB to {after} kB"
    );
    // No request created or changed anything.
    assert_eq!(client.get("/v1/namespaces").await.body, before);
    gateway.assert_calm();
}

/// Sends the cases of these numbers, checks the responses, and reports all that fail.
async fn throw(address: &str, generator: &Arc<Generator>, numbers: std::ops::Range<usize>) {
    let next = Arc::new(AtomicUsize::new(numbers.start));
    let tasks = (0..AT_ONCE).map(|_| {
        let (address, generator, next) =
            (address.to_owned(), Arc::clone(generator), Arc::clone(&next));
        tokio::spawn(async move {
            let mut failures = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= numbers.end {
                    return failures;
                }
                let case = generator.case(number);
                if let Err(why) = Box::pin(judge(&address, &case)).await {
                    let head = String::from_utf8_lossy(&case.bytes[..case.bytes.len().min(600)])
                        .into_owned();
                    failures.push(format!("#{number} {}: {why}\n{head}", case.kind));
                }
            }
        })
    });
    let mut failures = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        failures.extend(task.await.unwrap());
    }
    let shown = failures
        .iter()
        .take(12)
        .cloned()
        .collect::<Vec<_>>()
        .join("\n----\n");
    assert!(failures.is_empty(), "{} failed:\n{shown}", failures.len());
}

async fn judge(address: &str, case: &Case) -> Result<(), String> {
    let begin = Instant::now();
    let answer = loop {
        let answered = timeout(TIMEOUT, Box::pin(exchange(address, &case.bytes))).await;
        let answer = answered
            .map_err(|_elapsed| "no answer in time".to_owned())?
            .map_err(|error| format!("no answer: {error}"))?;
        // A busy machine may not reach the database in time, and then clients ask again.
        if !answer.starts_with("HTTP/1.1 503 ") || begin.elapsed() > TIMEOUT {
            break answer;
        }
    };
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("no head")?;
    let status: u16 = head
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .ok_or_else(|| format!("no status in {head}"))?;
    if !(400..500).contains(&status) {
        return Err(format!("{status}: {body}"));
    }
    if !head
        .to_lowercase()
        .contains("\r\ncontent-type: application/json")
    {
        return Err(format!("{status} is no JSON: {head}"));
    }
    let body: Value =
        serde_json::from_str(body).map_err(|error| format!("{status}: {error}: {body}"))?;
    if body["code"] != status || !body["message"].is_string() {
        return Err(format!("{status}: {body}"));
    }
    Ok(())
}

/// Reads the first response, up to its declared length.
async fn exchange(address: &str, request: &[u8]) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let (mut read, mut write) = stream.split();
    let mut bytes = Vec::new();
    let answered = async {
        let mut buffer = [0; 16_384];
        loop {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let length = head
                    .to_lowercase()
                    .lines()
                    .find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
                if length.is_some_and(|length| body.len() >= length) {
                    return Ok(text);
                }
            }
            match read.read(&mut buffer).await? {
                0 => return Err(std::io::Error::other(format!("closed after {text:?}"))),
                count => bytes.extend_from_slice(&buffer[..count]),
            }
        }
    };
    // The gateway may have answered and closed before it has read everything.
    let sent = async {
        let _ = write.write_all(request).await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        answer = answered => answer,
        () = sent => unreachable!("it never ends"),
    }
}

async fn store_key(conn: &mut AsyncPgConnection) -> String {
    let key = ApiKey::generate();
    let now = domain::Timestamp::now();
    let account = store::keys::ensure_account(conn, "acme", now)
        .await
        .unwrap();
    let new = store::keys::NewKey::new(account, &key, Role::Owner);
    store::keys::insert(conn, new, now).await.unwrap();
    key.expose()
}

/// The gateway as a process.
struct Gateway {
    process: Child,
    address: String,
    log: PathBuf,
    _folder: tempfile::TempDir,
}

impl Gateway {
    async fn start(database_url: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let out = File::create(&log).unwrap();
        let process = Command::new(env!("CARGO_BIN_EXE_api-gateway"))
            .env_clear()
            .env("EARSHOT_DATABASE__URL", database_url)
            // Nothing listens there; the gateway works without a broker.
            .env("EARSHOT_BUS__URL", "amqp://127.0.0.1:1/%2f")
            .env("EARSHOT_GATEWAY__LISTEN", "127.0.0.1:0")
            .env("EARSHOT_GATEWAY__RATE_LIMIT_PER_MINUTE", "1000000")
            .env("EARSHOT_OPS__LISTEN", "127.0.0.1:0")
            .env(
                "EARSHOT_SECRETS__ENCRYPTION_KEYS",
                "test:BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=",
            )
            .stdin(Stdio::null())
            .stderr(out.try_clone().unwrap())
            .stdout(out)
            .spawn()
            .unwrap();
        let mut gateway = Self {
            process,
            address: String::new(),
            log,
            _folder: folder,
        };
        eventually("the gateway serves", async || {
            let text = std::fs::read_to_string(&gateway.log).unwrap();
            assert!(
                gateway.process.try_wait().unwrap().is_none(),
                "it ended: {text}"
            );
            let line = text.lines().find(|line| line.contains("serving the API"));
            let address = line.and_then(|line| {
                let start = line.find("127.0.0.1:")?;
                line[start..].split(['"', ' ']).next()
            });
            gateway.address = address.unwrap_or_default().to_owned();
            !gateway.address.is_empty()
        })
        .await;
        gateway
    }

    fn resident_kb(&self) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Checks that the log has no panic and no error that an operator would have to investigate.
    fn assert_calm(&self) {
        let log = std::fs::read_to_string(&self.log).unwrap();
        assert!(
            log.lines().count() > REQUESTS / 2,
            "the log has too few lines"
        );
        let alarms: Vec<&str> = log
            .lines()
            .filter(|line| {
                line.contains("panick")
                    || line.contains(r#""level":"ERROR""#)
                    || line.contains(r#""level":"error""#)
            })
            .filter(|line| !line.contains("amqp") && !line.contains("broker"))
            .collect();
        assert!(alarms.is_empty(), "{alarms:#?}");
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
