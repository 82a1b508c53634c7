//! Properties and headers of a message.

use domain::Timestamp;
use events::TraceContext;
use lapin::{
    BasicProperties,
    types::{AMQPValue, FieldTable},
};

use crate::transport::Outgoing;

const PERSISTENT: u8 = 2;
const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";
/// The consumer's reason for setting the message aside.
pub(super) const REASON: &str = "x-earshot-reason";
/// Longer reasons are cut; the log has the full text.
const REASON_BYTES: usize = 1024;

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
        .with_delivery_mode(PERSISTENT)
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
pub(super) fn header(properties: &BasicProperties, name: &str) -> Option<String> {
    let value = properties.headers().as_ref()?.inner().get(name)?;
    match value {
        AMQPValue::LongString(text) => Some(String::from_utf8_lossy(text.as_bytes()).into_owned()),
        AMQPValue::ShortString(text) => Some(text.to_string()),
        _ => None,
    }
}

pub(super) fn with_reason(properties: BasicProperties, reason: &str) -> BasicProperties {
    let reason = &reason[..reason.floor_char_boundary(REASON_BYTES)];
    with_headers(properties, |headers| {
        headers.insert(REASON.into(), AMQPValue::LongString(reason.into()));
    })
}

/// The original properties: without the counts and the history of deliveries.
pub(super) fn as_new(properties: BasicProperties) -> BasicProperties {
    let mut headers = FieldTable::default();
    for (name, value) in properties.headers().iter().flat_map(FieldTable::inner) {
        if !name.as_str().starts_with("x-") {
            headers.insert(name.clone(), value.clone());
        }
    }
    properties.with_headers(headers)
}

fn with_headers(
    properties: BasicProperties,
    change: impl FnOnce(&mut FieldTable),
) -> BasicProperties {
    let mut headers = properties.headers().clone().unwrap_or_default();
    change(&mut headers);
    properties.with_headers(headers)
}

fn seconds(time: Timestamp) -> u64 {
    u64::try_from(time.micros() / 1_000_000).unwrap_or(0)
}
