//! Many malformed requests. The gateway is a separate process, so that its memory and log can be checked.

use std::{
    fs::{self, File},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use domain::{
    Timestamp,
    key::{ApiKey, Role},
};
use store::keys::{self, NewKey};
use test_support::{TestDatabase, eventually};
use tokio::{io::AsyncWriteExt, net::TcpStream};

use crate::hostile::{MALFORMED, read_answer};

/// Rounds before the first look at memory, while buffers and caches reach their size.
const WARM_UP: usize = 60;
const ROUNDS: usize = 300;
/// Allowance for the allocator. A leak of a kilobyte per request would cost nine megabytes.
const MAX_GROWTH_KB: u64 = 6 * 1_024;

#[tokio::test]
async fn many_malformed_requests_need_no_more_memory_and_log_no_error() {
    let database = TestDatabase::create().await;
    let key = ApiKey::generate();
    let mut conn = database.connect().await;
    let now = Timestamp::now();
    let account = keys::ensure_account(&mut conn, "acme", now).await.unwrap();
    let new = NewKey::new(account, &key, Role::Owner);
    keys::insert(&mut conn, new, now).await.unwrap();
    let gateway = Gateway::start(database.url()).await;

    let head = format!(
        "POST /v1/namespaces HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n",
        key.expose()
    );
    let large = "x".repeat(200_000);
    let mut requests = vec![
        format!("GET / HTTP/1.1\r\nx: {large}\r\n\r\n"),
        format!("{head}content-length: 9\r\n\r\n{{\"zzz\":1}}"),
        format!("{head}content-length: 20000\r\n\r\n{}", "[".repeat(20_000)),
        format!("{head}transfer-encoding: chunked\r\n\r\nzz\r\n\r\n"),
    ];
    requests.extend(MALFORMED.map(str::to_owned));
    gateway.refuses(&requests, WARM_UP).await;
    let warm = gateway.resident_kb();
    gateway.refuses(&requests, ROUNDS).await;
    let after = gateway.resident_kb();
    assert!(
        after < warm + MAX_GROWTH_KB,
        "memory grew from {warm} kB to {after} kB"
    );
    gateway.assert_calm();
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
            let text = fs::read_to_string(&gateway.log).unwrap();
            let ended = gateway.process.try_wait().unwrap();
            assert!(ended.is_none(), "it ended: {text}");
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

    /// Sends all requests in so many rounds.
    async fn refuses(&self, requests: &[String], rounds: usize) {
        for request in requests.iter().cycle().take(rounds * requests.len()) {
            let mut stream = TcpStream::connect(&self.address).await.unwrap();
            // The server may answer and close before it has read everything.
            let _ = stream.write_all(request.as_bytes()).await;
            let (status, _, body) = read_answer(&mut stream).await;
            // A busy machine may not reach the database in time.
            assert!(matches!(status, 400..500 | 503), "{status}: {body}");
        }
    }

    fn resident_kb(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let mut lines = status.lines();
        let resident = lines.find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        resident.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Checks that the log has no panic and no error that an operator would have to investigate.
    fn assert_calm(&self) {
        let log = fs::read_to_string(&self.log).unwrap();
        assert!(log.contains("no request could be read"), "{log}");
        let alarms: Vec<&str> = log
            .lines()
            .filter(|line| line.contains("panick") || line.contains("ERROR"))
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
