//! `service_main` as a process: exit codes, signals, logs, and traces without a collector.
//!
//! The test runs itself: with a mode in the environment it is a service, else the test of a service.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::{
    convert::Infallible,
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    process::{Child, Command, ExitCode, Output, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http_body_util::{BodyExt, StreamBody};
use hyper::{
    body::{Frame, Incoming},
    server::conn::http2,
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use libtest_mimic::{Arguments, Trial};
use serde_json::Value;

const MODE: &str = "TEST_SERVICE_MODE";
/// More than enough, even on a busy machine.
const SOON: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let mode = runtime::environment::variables()
        .into_iter()
        .find(|(name, _)| name == MODE);
    if let Some((_, mode)) = mode {
        return serve(mode);
    }
    let tests: [(&str, fn()); 12] = [
        ("help_and_version_exit_0_and_wrong_usage_2", usage),
        ("a_wrong_configuration_exits_1", wrong_configuration),
        ("check_config_touches_nothing", check_config),
        ("sigterm_drains_and_exits_0", drains),
        ("work_that_does_not_finish_is_cut", cuts_what_hangs),
        ("the_second_signal_ends_at_once", second_signal),
        (
            "signals_count_while_every_thread_is_busy",
            signal_to_the_stuck,
        ),
        ("a_failed_service_exits_1", fails),
        ("a_busy_port_is_named", busy_port),
        ("traces_reach_the_collector", traces),
        ("traces_reach_the_collector_by_grpc", traces_by_grpc),
        (
            "a_collector_that_hangs_does_not_hold_the_end",
            dead_collector,
        ),
    ];
    let trials = tests.map(|(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit_code()
}

fn serve(mode: String) -> ExitCode {
    runtime::service_main("scanner", |config, context| async move {
        let span = tracing::info_span!("work", feed = "hn:newest");
        span.in_scope(|| tracing::info!(backfill = ?config.scanner.backfill, "working"));
        drop(span);
        match mode.as_str() {
            "fail" => anyhow::bail!("no luck"),
            "hang" => std::future::pending().await,
            "stuck" => {
                for _ in 0..tokio::runtime::Handle::current().metrics().num_workers() {
                    tokio::spawn(async { thread::sleep(Duration::from_secs(60)) });
                }
                std::future::pending().await
            }
            _ => context.shutdown.cancelled().await,
        }
        Ok(())
    })
}

fn command(mode: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .env_clear()
        .env(MODE, mode)
        .env(
            "EARSHOT_DATABASE__URL",
            "postgres://nobody@127.0.0.1:1/none",
        )
        .env("EARSHOT_BUS__URL", "amqp://127.0.0.1:1")
        .env("EARSHOT_OPS__LISTEN", "127.0.0.1:0")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    let status = Command::new("kill").args(["-s", name, &pid]).status();
    assert!(status.unwrap().success());
}

/// A process that does not outlive its test.
struct Running {
    child: Child,
    /// Its stdout since it started to work.
    log: mpsc::Receiver<Value>,
}

impl Running {
    /// Returns the exit code. A process that does not end fails the test, with a description of its threads.
    fn code(&mut self) -> Option<i32> {
        let deadline = Instant::now() + SOON;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            thread::sleep(Duration::from_millis(5));
        }
        let log: Vec<_> = self.log.try_iter().collect();
        panic!("still running: {}\nlog: {log:#?}", threads(&self.child));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The kernel function that each thread of the process waits in, if known.
fn threads(child: &Child) -> String {
    let mut told = String::new();
    let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id()));
    for task in tasks.into_iter().flatten().flatten() {
        for file in ["comm", "wchan", "syscall", "stack"] {
            let text = std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
            told += &format!("\n{file}: {}", text.trim());
        }
    }
    told
}

/// The process, and its log lines up to the first with `message`.
fn started(command: &mut Command, message: &str) -> (Running, Vec<Value>) {
    let mut child = command.spawn().unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let (sender, log) = mpsc::channel();
    // Reads to the end even without a receiver: a full pipe would block the process.
    thread::spawn(move || {
        for line in stdout.lines() {
            let _ = sender.send(serde_json::from_str(&line.unwrap()).unwrap());
        }
    });
    let running = Running { child, log };
    let mut lines: Vec<Value> = Vec::new();
    while lines.last().is_none_or(|line| line["message"] != message) {
        match running.log.recv_timeout(SOON) {
            Ok(line) => lines.push(line),
            Err(error) => panic!(
                "no `{message}`: {error}, after {lines:#?}{}",
                threads(&running.child)
            ),
        }
    }
    (running, lines)
}

fn usage() {
    let run = |argument: &str| command("work").arg(argument).output().unwrap();
    let version = run("--version");
    assert!(version.status.success());
    let printed = String::from_utf8(version.stdout).unwrap();
    assert!(printed.starts_with(&format!("scanner {}", env!("CARGO_PKG_VERSION"))));
    let help = run("--help");
    assert!(help.status.success());
    assert!(
        String::from_utf8(help.stdout)
            .unwrap()
            .contains("--check-config")
    );
    assert_eq!(run("--nonsense").status.code(), Some(2));
}

fn wrong_configuration() {
    let output = command("work")
        .env("EARSHOT_SCANNER__BACKFIL", "1h")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("scanner.backfil: unknown key"),
        "{}",
        stderr(&output)
    );

    let output = command("work")
        .env_remove("EARSHOT_DATABASE__URL")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("database.url: is required"));

    let output = command("work")
        .env("EARSHOT_BUS__URL", "in-process:")
        .output()
        .unwrap();
    assert!(stderr(&output).contains("bus.url: `in-process:` works in `earshot dev` only"));
}

fn check_config() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let output = command("work")
        .env(
            "EARSHOT_OPS__LISTEN",
            taken.local_addr().unwrap().to_string(),
        )
        .arg("--check-config")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(output.stdout.is_empty() && output.stderr.is_empty());
}

fn drains() {
    let (mut running, lines) = started(&mut command("work"), "working");
    let working = lines.last().unwrap();
    assert_eq!(working["service"], "scanner");
    assert_eq!(working["feed"], "hn:newest");
    assert_eq!(working["backfill"], "86400s");
    assert_eq!(working["trace_id"].as_str().unwrap().len(), 32);
    signal(&running.child, "TERM");
    assert_eq!(running.code(), Some(0));
}

fn cuts_what_hangs() {
    let mut command = command("hang");
    command.env("EARSHOT_OPS__GRACE_PERIOD", "1s");
    let (mut running, _) = started(&mut command, "working");
    signal(&running.child, "INT");
    assert_eq!(running.code(), Some(1));
}

fn second_signal() {
    let (mut running, _) = started(&mut command("hang"), "working");
    signal(&running.child, "TERM");
    until_told(&running);
    signal(&running.child, "TERM");
    assert_eq!(running.code(), Some(143));

    let (mut running, _) = started(&mut command("hang"), "working");
    signal(&running.child, "TERM");
    until_told(&running);
    signal(&running.child, "INT");
    assert_eq!(running.code(), Some(130));
}

fn signal_to_the_stuck() {
    let (mut running, _) = started(&mut command("stuck"), "working");
    signal(&running.child, "TERM");
    until_told(&running);
    signal(&running.child, "TERM");
    assert_eq!(running.code(), Some(143));
}

/// The first signal has been handled: a second one of the same kind is not merged with it.
fn until_told(running: &Running) {
    loop {
        let line = running.log.recv_timeout(SOON).expect("the signal is seen");
        if line["message"] == "shutting down" {
            return;
        }
    }
}

fn fails() {
    let output = command("fail").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains("stopped: no luck")
    );
}

fn busy_port() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = command("work")
        .env("EARSHOT_OPS__LISTEN", &address)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        said.contains(&format!("ops.listen: cannot listen on {address}")),
        "{said}"
    );
}

fn traces() {
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", collector.local_addr().unwrap());
    let (sender, requests) = mpsc::channel();
    thread::spawn(move || {
        for stream in collector.incoming() {
            let mut stream = stream.unwrap();
            let mut bytes = vec![0; 65_536];
            let read = stream.read(&mut bytes).unwrap();
            sender
                .send(String::from_utf8_lossy(&bytes[..read]).into_owned())
                .unwrap();
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                .unwrap();
        }
    });
    let mut command = command("work");
    command
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        .env("OTEL_TRACES_SAMPLER", "always_on");
    let (mut running, _) = started(&mut command, "working");
    signal(&running.child, "TERM");
    assert_eq!(running.code(), Some(0));
    let request = requests.recv_timeout(SOON).unwrap();
    assert!(request.starts_with("POST /v1/traces "), "{request}");
    assert!(request.contains("application/x-protobuf"), "{request}");
    assert!(request.contains("earshot-scanner"), "{request}");
}

/// A request to a gRPC server: path and message.
type Asked = (String, Vec<u8>);

/// Answers each call like a collector that accepted everything: an empty message, followed by status 0.
async fn serve_grpc(listener: TcpListener, asked: mpsc::Sender<Asked>) {
    listener.set_nonblocking(true).unwrap();
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let asked = asked.clone();
        let service = service_fn(move |request: http::Request<Incoming>| {
            let asked = asked.clone();
            async move {
                let path = request.uri().path().to_owned();
                let message = request.into_body().collect().await?.to_bytes().to_vec();
                asked.send((path, message)).unwrap();
                let mut status = http::HeaderMap::new();
                status.insert("grpc-status", http::HeaderValue::from_static("0"));
                let frames = [
                    Frame::data(Bytes::from_static(&[0; 5])),
                    Frame::trailers(status),
                ];
                let frames = frames.into_iter().map(Ok::<_, Infallible>);
                http::Response::builder()
                    .header("content-type", "application/grpc")
                    .body(StreamBody::new(futures::stream::iter(frames)))
                    .map_err(anyhow::Error::from)
            }
        });
        let serving = http2::Builder::new(TokioExecutor::new());
        tokio::spawn(serving.serve_connection(TokioIo::new(stream), service));
    }
}

fn traces_by_grpc() {
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", collector.local_addr().unwrap());
    let (sender, asked) = mpsc::channel();
    thread::spawn(move || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(serve_grpc(collector, sender));
    });
    let mut command = command("work");
    command
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        .env("OTEL_TRACES_SAMPLER", "always_on");
    let (mut running, _) = started(&mut command, "working");
    signal(&running.child, "TERM");
    assert_eq!(running.code(), Some(0));
    let (path, message) = asked.recv_timeout(SOON).unwrap();
    assert_eq!(
        path,
        "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
    );
    let message = String::from_utf8_lossy(&message);
    assert!(message.contains("earshot-scanner"), "{message}");
}

fn dead_collector() {
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut command = command("work");
    command
        .env(
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            format!("http://{}", collector.local_addr().unwrap()),
        )
        .env("OTEL_TRACES_SAMPLER", "always_on");
    let (mut running, _) = started(&mut command, "working");
    signal(&running.child, "TERM");
    assert_eq!(running.code(), Some(0));
}
