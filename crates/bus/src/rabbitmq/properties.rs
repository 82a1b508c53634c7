//! Properties and headers of a message.

use domain::Timestamp;
use events::TraceContext;
use lapin::{
    BasicProperties,
    types::{AMQPValue, FieldTable},
};

use crate::transport::Outgoing;

/// The broker does not write the message to its disk.
const TRANSIENT: u8 = 1;
const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";

pub(super) fn of(outgoing: &Outgoing) -> BasicProperties {
    let mut headers = FieldTable::default();
    let trace = &outgoing.trace;
    for (name, value) in [
        (TRACEPARENT, &trace.traceparent),
        (TRACESTATE, &trace.tracestate),
    ] {
        if let Some(value) = value {
            headers.insert(name.into(), AMQPValue::LongString(value.as_str().into()));
        }
    }
    let properties = BasicProperties::default()
        .with_content_type("application/x-protobuf".into())
        .with_delivery_mode(TRANSIENT)
        .with_message_id(outgoing.message.id.to_string().into())
        .with_timestamp(seconds(outgoing.create_time))
        .with_headers(headers);
    match events::event::type_name(&outgoing.message.key) {
        Some(name) => properties.with_type(name.into()),
        None => properties,
    }
}

pub(super) fn trace(properties: &BasicProperties) -> TraceContext {
    TraceContext {
        traceparent: header(properties, TRACEPARENT),
        tracestate: header(properties, TRACESTATE),
    }
}

/// The value of a text header.
fn header(properties: &BasicProperties, name: &str) -> Option<String> {
    let value = properties.headers().as_ref()?.inner().get(name)?;
    match value {
        AMQPValue::LongString(text) => Some(String::from_utf8_lossy(text.as_bytes()).into_owned()),
        AMQPValue::ShortString(text) => Some(text.to_string()),
        _ => None,
    }
}

fn seconds(time: Timestamp) -> u64 {
    u64::try_from(time.micros() / 1_000_000).unwrap_or(0)
}
