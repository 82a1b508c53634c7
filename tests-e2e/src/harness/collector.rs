//! A collector of traces: accepts OTLP over HTTP, and records every span.

use std::sync::{Arc, Mutex};

use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{AnyValue, KeyValue, any_value::Value},
    trace::v1::{Span as Exported, span::SpanKind},
};
use prost::Message;

use super::server::{AsyncHandler, Body, Server, answer};

/// A span as it was received, with its service.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(crate) service: String,
    pub(crate) name: String,
    pub(crate) kind: SpanKind,
    pub(crate) trace: Vec<u8>,
    pub(crate) id: Vec<u8>,
    /// Empty for the first span of a trace.
    pub(crate) parent: Vec<u8>,
    pub(crate) attributes: Vec<(String, String)>,
    /// The linked traces and spans.
    pub(crate) links: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Span {
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        let mut all = self.attributes.iter();
        all.find_map(|(own, value)| (own == name).then_some(value.as_str()))
    }
}

pub(crate) struct Collector {
    server: Server,
    spans: Arc<Mutex<Vec<Span>>>,
}

impl Collector {
    pub(crate) async fn start() -> Self {
        let spans = Arc::default();
        let server = Server::start(Handler(Arc::clone(&spans))).await;
        Self { server, spans }
    }

    /// Returns the value for `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub(crate) fn url(&self) -> String {
        self.server.url("")
    }

    /// Returns all spans so far.
    pub(crate) fn spans(&self) -> Vec<Span> {
        self.spans.lock().unwrap().clone()
    }
}

struct Handler(Arc<Mutex<Vec<Span>>>);

impl AsyncHandler for Handler {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        assert_eq!(request.uri().path(), "/v1/traces");
        let Ok(body) = request.into_body().collect().await else {
            return answer(400, "text/plain", "the body broke off");
        };
        let request = ExportTraceServiceRequest::decode(body.to_bytes()).unwrap();
        let mut spans = self.0.lock().unwrap();
        for of_resource in request.resource_spans {
            let resource = of_resource.resource.unwrap_or_default();
            let service = attributes(resource.attributes)
                .into_iter()
                .find_map(|(name, value)| (name == "service.name").then_some(value));
            let service = service.expect("each resource names its service");
            let all = of_resource.scope_spans.into_iter();
            spans.extend(
                all.flat_map(|scope| scope.spans)
                    .map(|span| read(&service, span)),
            );
        }
        answer(200, "application/x-protobuf", "")
    }
}

fn read(service: &str, span: Exported) -> Span {
    Span {
        service: service.to_owned(),
        kind: span.kind(),
        name: span.name,
        trace: span.trace_id,
        id: span.span_id,
        parent: span.parent_span_id,
        attributes: attributes(span.attributes),
        links: span
            .links
            .into_iter()
            .map(|link| (link.trace_id, link.span_id))
            .collect(),
    }
}

fn attributes(given: Vec<KeyValue>) -> Vec<(String, String)> {
    let text = |value: Option<AnyValue>| match value.and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::BoolValue(set)) => set.to_string(),
        other => format!("{other:?}"),
    };
    given
        .into_iter()
        .map(|pair| (pair.key, text(pair.value)))
        .collect()
}
