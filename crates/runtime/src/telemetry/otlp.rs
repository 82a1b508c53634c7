//! Sets up traces according to the standard `OTEL_*` variables.

use opentelemetry::KeyValue;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    trace::{Sampler, SdkTracerProvider},
};

use super::export::Exporting;
use crate::{build_info::VERSION, crypto, environment::variable};

/// Share of sampled traces unless `OTEL_TRACES_SAMPLER` is set.
const SAMPLED: f64 = 0.1;

/// Traces without an exporter: spans get ids, for the logs, and pass on their trace context.
pub(super) fn silent_provider() -> SdkTracerProvider {
    SdkTracerProvider::builder()
        .with_sampler(Sampler::ParentBased(Box::new(Sampler::AlwaysOff)))
        .build()
}

/// The provider that the variables configure, or why it cannot be created.
pub(super) fn provider(service: &'static str) -> Result<SdkTracerProvider, String> {
    if !is_wanted() {
        return Ok(silent_provider());
    }
    crypto::install();
    let resource = resource(service);
    let uses_grpc = uses_grpc()?;
    let exporting = Exporting::start(move || {
        let builder = SpanExporter::builder();
        let exporter = if uses_grpc {
            builder.with_tonic().build()
        } else {
            builder
                .with_http()
                .with_http_client(client()?)
                .with_protocol(Protocol::HttpBinary)
                .build()
        };
        exporter.map_err(|error| error.to_string())
    })?;
    let mut builder = SdkTracerProvider::builder()
        .with_resource(resource)
        .with_span_processor(exporting);
    if variable("OTEL_TRACES_SAMPLER").is_none() {
        let ratio = Sampler::TraceIdRatioBased(SAMPLED);
        builder = builder.with_sampler(Sampler::ParentBased(Box::new(ratio)));
    }
    Ok(builder.build())
}

/// Trusts the system's authorities. Without any, as in a small image, only `http:` works.
fn client() -> Result<reqwest::Client, String> {
    let client = reqwest::Client::builder().build();
    client
        .or_else(|_| reqwest::Client::builder().tls_certs_only([]).build())
        .map_err(|error| error.to_string())
}

fn is_wanted() -> bool {
    let disabled =
        variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let none = variable("OTEL_TRACES_EXPORTER").is_some_and(|value| value == "none");
    let endpoint = variable("OTEL_EXPORTER_OTLP_ENDPOINT")
        .or_else(|| variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"));
    !disabled && !none && endpoint.is_some()
}

/// Returns true if spans are sent over gRPC, else over HTTP.
fn uses_grpc() -> Result<bool, String> {
    let protocol = variable("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
        .or_else(|| variable("OTEL_EXPORTER_OTLP_PROTOCOL"));
    match protocol.as_deref() {
        Some("grpc") => Ok(true),
        Some("http/protobuf") | None => Ok(false),
        Some(other) => Err(format!(
            "OTEL_EXPORTER_OTLP_PROTOCOL must be `grpc` or `http/protobuf`, not `{other}`"
        )),
    }
}

fn resource(service: &'static str) -> Resource {
    let mut resource = Resource::builder().with_attributes([
        KeyValue::new("service.namespace", "earshot"),
        KeyValue::new("service.version", VERSION),
        KeyValue::new("service.instance.id", domain::Id::generate().to_string()),
    ]);
    if variable("OTEL_SERVICE_NAME").is_none() {
        let name = match service {
            "earshot" => service.to_owned(),
            service => format!("earshot-{service}"),
        };
        resource = resource.with_service_name(name);
    }
    resource.build()
}
