//! Logs and traces of a process.
//!
//! Logs are lines, JSON or text, and contain the id of their trace. Traces are sent as OTLP, over HTTP or gRPC,
//! if the standard variable `OTEL_EXPORTER_OTLP_ENDPOINT` is set. An unavailable collector costs traces, never
//! time: the queue is bounded, dropped spans are counted in `earshot_telemetry_dropped_total`, and
//! [`Telemetry::shutdown`] takes at most 3 s.

mod export;
mod json;
mod otlp;
mod text;

use std::time::Duration;

use opentelemetry::{global, trace::TracerProvider};
use opentelemetry_sdk::{propagation::TraceContextPropagator, trace::SdkTracerProvider};
use tracing_subscriber::{Layer, fmt::MakeWriter, layer::SubscriberExt, util::SubscriberInitExt};

use crate::config::{Log, LogFormat};

/// Time limit for sending the last traces.
const FLUSH: Duration = Duration::from_secs(3);

/// Target of the log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    Stdout,
    /// For commands that print a result to stdout, such as `earshot dev`.
    Stderr,
}

/// Flushes the traces at the end.
#[derive(Debug)]
#[must_use = "the last traces leave on shutdown"]
pub struct Telemetry {
    provider: Option<SdkTracerProvider>,
}

impl Telemetry {
    /// Sends the last traces; takes at most 3 s.
    pub fn shutdown(self) {
        if let Some(provider) = self.provider
            && let Err(error) = provider.shutdown_with_timeout(FLUSH)
        {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "the last traces were lost");
        }
    }
}

/// Starts logs and traces for `service`; does nothing if the process has them already.
pub fn init(service: &'static str, log: &Log, output: Output) -> Telemetry {
    let provider = otlp::provider(service);
    let (provider, problem) = match provider {
        Ok(provider) => (provider, None),
        Err(problem) => (otlp::silent_provider(), Some(problem)),
    };
    let tracer = provider.tracer("earshot");
    let subscriber = tracing_subscriber::registry()
        .with(log.filter.to_env_filter())
        .with(tracing_opentelemetry::layer().with_tracer(tracer));
    let initialised = match output {
        Output::Stdout => subscriber
            .with(lines(service, log.format, std::io::stdout))
            .try_init(),
        Output::Stderr => subscriber
            .with(lines(service, log.format, std::io::stderr))
            .try_init(),
    };
    if initialised.is_err() {
        return Telemetry { provider: None };
    }
    global::set_text_map_propagator(TraceContextPropagator::new());
    if let Some(problem) = problem {
        tracing::warn!("traces are off: {problem}");
    }
    Telemetry {
        provider: Some(provider),
    }
}

fn lines<S, W>(
    service: &'static str,
    format: LogFormat,
    writer: W,
) -> Box<dyn Layer<S> + Send + Sync>
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    match format {
        LogFormat::Json => json::Lines::new(service, writer).boxed(),
        LogFormat::Text => tracing_subscriber::fmt::layer()
            .with_writer(writer)
            .with_ansi(false)
            .event_format(text::Text)
            .boxed(),
    }
}
