//! Sets traces up by the standard `OTEL_*` variables.

use opentelemetry::KeyValue;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::{
    Resource,
    trace::{Sampler, SdkTracerProvider, SpanExporter as _},
};

use super::export::Exporting;
use crate::{build_info::VERSION, crypto, environment::variable};

/// The share of traces that is kept where `OTEL_TRACES_SAMPLER` says nothing.
const SAMPLED: f64 = 0.1;

/// Traces that nobody reads: spans get ids, for the logs, and pass on the context they were given.
pub(super) fn silent_provider() -> SdkTracerProvider {
    SdkTracerProvider::builder()
        .with_sampler(Sampler::ParentBased(Box::new(Sampler::AlwaysOff)))
        .build()
}

/// What the variables ask for, or why it cannot be had.
pub(super) fn provider(service: &'static str) -> Result<SdkTracerProvider, String> {
    if !is_wanted() {
        return Ok(silent_provider());
    }
    crypto::install();
    let resource = resource(service);
    let mut exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .build()
        .map_err(|error| error.to_string())?;
    exporter.set_resource(&resource);
    let exporting = Exporting::start(exporter).map_err(|error| error.to_string())?;
    let mut builder = SdkTracerProvider::builder()
        .with_resource(resource)
        .with_span_processor(exporting);
    if variable("OTEL_TRACES_SAMPLER").is_none() {
        let ratio = Sampler::TraceIdRatioBased(SAMPLED);
        builder = builder.with_sampler(Sampler::ParentBased(Box::new(ratio)));
    }
    Ok(builder.build())
}

fn is_wanted() -> bool {
    let disabled =
        variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let none = variable("OTEL_TRACES_EXPORTER").is_some_and(|value| value == "none");
    let endpoint = variable("OTEL_EXPORTER_OTLP_ENDPOINT")
        .or_else(|| variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"));
    !disabled && !none && endpoint.is_some()
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
