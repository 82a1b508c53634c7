//! `earshot dev` with everything that an operator reads of it: log, traces and metrics.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use http::{Method, Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    trace::v1::{ResourceSpans, ScopeSpans, Span},
};
use private_servers::{Postgres, postgres::Options};
use prost::Message;
use tempfile::TempDir;
use tokio::task::block_in_place;

use super::{
    api, eventually, free_address,
    process::Process,
    programs,
    server::{AsyncHandler, Body, Server, answer},
    server_directory,
    simulator::Simulator,
    sql,
};

const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Service {
    pub(crate) api_url: String,
    pub(crate) simulator: Simulator,
    ops_url: String,
    // Stops before the server that it uses.
    process: Process,
    postgres: Postgres,
    /// Bytes of the log that were read.
    log_read: AtomicU64,
    collector: Server,
    spans: Spans,
    directory: TempDir,
}

type Spans = Arc<Mutex<Vec<String>>>;

impl Service {
    /// Starts the service with the configuration that `settings` returns for the simulator's address.
    pub(crate) async fn start(settings: impl FnOnce(&str) -> String) -> Self {
        let directory = server_directory();
        let home = directory.path();
        let simulator = Simulator::start(home).await;
        let options = Options::throwaway();
        let postgres =
            block_in_place(|| Postgres::start(&home.join("postgres"), &options)).unwrap();
        let spans = Spans::default();
        let collector = Server::start(Collector(Arc::clone(&spans))).await;
        let database = format!("[database]\nurl = \"{}\"\n", postgres.url());
        let settings = settings(simulator.url()) + &database;
        std::fs::write(home.join("earshot.toml"), settings).unwrap();
        let (listen, ops) = (free_address(), free_address());
        let mut command = programs::command("earshot");
        command.args(["dev", "--listen", &listen, "--ops-listen", &ops]);
        command.arg("--data-dir").arg(home.join("data"));
        command.arg("--config").arg(home.join("earshot.toml"));
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url(""));
        command.env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf");
        command.env("OTEL_TRACES_SAMPLER", "always_on");
        command.env("OTEL_BSP_SCHEDULE_DELAY", "500");
        let mut process = Process::spawn("earshot", &mut command, home);
        process.line("earshot ready ", PATIENCE).await;
        Self {
            api_url: format!("http://{listen}"),
            simulator,
            ops_url: format!("http://{ops}"),
            process,
            postgres,
            log_read: AtomicU64::new(0),
            collector,
            spans,
            directory,
        }
    }

    /// Returns a new key of an account.
    pub(crate) fn key(&self, account: &str, role: &str) -> String {
        let mut command = programs::command("earshot");
        command.args(["keys", "create", "--account", account, "--role", role]);
        let config = self.directory.path().join("earshot.toml");
        command.arg("--config").arg(config);
        let created = block_in_place(|| programs::finish(&mut command, PATIENCE));
        assert_eq!(created.code, Some(0), "{created:?}");
        created.stdout.trim().to_owned()
    }

    /// Runs SQL on the service's database.
    pub(crate) fn query(&self, sql: &str) -> String {
        sql::query(&self.postgres, sql)
    }

    /// Returns the complete lines that were logged since the last call.
    pub(crate) fn log(&self) -> String {
        let mut log = self
            .process
            .output_after(self.log_read.load(Ordering::Relaxed));
        let end = log.iter().rposition(|byte| *byte == b'\n');
        log.truncate(end.map_or(0, |end| end + 1));
        let read = u64::try_from(log.len()).unwrap();
        self.log_read.fetch_add(read, Ordering::Relaxed);
        String::from_utf8_lossy(&log).into_owned()
    }

    /// Writes a line to the log, as the service would.
    pub(crate) fn write_to_log(&self, line: &str) {
        self.process.write_to_log(line);
    }

    /// Returns the spans that arrived since the last call.
    pub(crate) fn spans(&self) -> Vec<String> {
        std::mem::take(&mut self.spans.lock().unwrap())
    }

    /// Sends a span to the collector, as the service would.
    pub(crate) async fn export_span(&self, name: &str) {
        let span = Span {
            name: name.to_owned(),
            ..Span::default()
        };
        let scope_spans = vec![ScopeSpans {
            spans: vec![span],
            ..ScopeSpans::default()
        }];
        let request = ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                scope_spans,
                ..ResourceSpans::default()
            }],
        };
        // Short texts in ASCII and their lengths are UTF-8.
        let body = String::from_utf8(request.encode_to_vec()).unwrap();
        let url = self.collector.url("/v1/traces");
        let answer = api::send(&api::client(), Method::POST, &url, &[], Some(body)).await;
        assert_eq!(answer.status, 200);
    }

    pub(crate) async fn metrics(&self) -> String {
        let url = format!("{}/metrics", self.ops_url);
        let answer = api::send(&api::client(), Method::GET, &url, &[], None).await;
        assert_eq!(answer.status, 200);
        String::from_utf8(answer.body.to_vec()).unwrap()
    }

    /// Returns the description of the API that the service serves.
    pub(crate) async fn document(&self) -> serde_json::Value {
        let url = format!("{}/openapi.json", self.api_url);
        eventually("the document is served", PATIENCE, async || {
            let client = api::client();
            let answer = api::try_send(&client, Method::GET, &url, &[], None).await;
            answer.ok().map(|answer| answer.json())
        })
        .await
    }

    pub(crate) fn print_log(&self) {
        self.process.print_log();
    }
}

/// Accepts traces, and keeps each span as text.
struct Collector(Spans);

impl AsyncHandler for Collector {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let Ok(body) = request.into_body().collect().await else {
            return answer(400, "text/plain", "the body broke off");
        };
        let request = ExportTraceServiceRequest::decode(body.to_bytes()).unwrap();
        let scopes = request
            .resource_spans
            .into_iter()
            .flat_map(|one| one.scope_spans);
        let spans = scopes.flat_map(|scope| scope.spans);
        let texts = spans.map(|span| format!("{span:?}"));
        self.0.lock().unwrap().extend(texts);
        answer(200, "application/x-protobuf", "")
    }
}
