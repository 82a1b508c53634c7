//! Log lines as JSON objects.
//!
//! `timestamp, level, target, message, service, version, trace_id, span_id` come first, then the fields of the
//! spans around the event, outermost first, and the event's own. If names repeat, the innermost wins.

use std::{fmt, io::Write};

use opentelemetry::trace::TraceContextExt;
use serde::ser::{SerializeMap, Serializer};
use serde_json::Value;
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{Layer, fmt::MakeWriter, layer::Context, registry::LookupSpan};

use crate::build_info::VERSION;

/// Longer text is cut, so that no input makes a line too long for a collector.
const MAX_TEXT_BYTES: usize = 8_192;

const FIRST: [&str; 8] = [
    "timestamp",
    "level",
    "target",
    "message",
    "service",
    "version",
    "trace_id",
    "span_id",
];

#[derive(Debug)]
pub(super) struct Lines<W> {
    service: &'static str,
    writer: W,
}

impl<W> Lines<W> {
    pub(super) fn new(service: &'static str, writer: W) -> Self {
        Self { service, writer }
    }
}

impl<S, W> Layer<S> for Lines<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'w> MakeWriter<'w> + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut own = Fields::default();
        event.record(&mut own);
        let spans: Vec<_> = context.event_scope(event).into_iter().flatten().collect();
        let outer: Vec<_> = spans.iter().rev().map(|span| span.extensions()).collect();
        let mut fields: Vec<(&'static str, &Value)> = Vec::with_capacity(24);
        let known = outer
            .iter()
            .filter_map(|extensions| extensions.get::<Fields>())
            .flat_map(|fields| &fields.0)
            .filter(|(name, _)| *name != "message");
        for (name, value) in known.chain(&own.0) {
            match fields.iter_mut().find(|(known, _)| known == name) {
                Some((_, slot)) => *slot = value,
                None => fields.push((name, value)),
            }
        }

        let mut line = Vec::with_capacity(512);
        if self.write(&mut line, event, &fields).is_ok() {
            line.push(b'\n');
            // If the log cannot be written, the failure cannot be logged.
            let _ = self.writer.make_writer().write_all(&line);
        }
    }
}

impl<W> Lines<W> {
    fn write(
        &self,
        line: &mut Vec<u8>,
        event: &Event<'_>,
        fields: &[(&'static str, &Value)],
    ) -> serde_json::Result<()> {
        let message = fields.iter().find(|(name, _)| *name == "message");
        let metadata = event.metadata();
        let mut serializer = serde_json::Serializer::new(line);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("timestamp", &domain::Timestamp::now())?;
        map.serialize_entry("level", metadata.level().as_str())?;
        map.serialize_entry("target", metadata.target())?;
        map.serialize_entry("message", message.map_or(&Value::Null, |(_, value)| value))?;
        map.serialize_entry("service", self.service)?;
        map.serialize_entry("version", VERSION)?;
        let current = opentelemetry::Context::current();
        let span = current.span();
        let span = span.span_context();
        if span.is_valid() {
            map.serialize_entry("trace_id", &span.trace_id().to_string())?;
            map.serialize_entry("span_id", &span.span_id().to_string())?;
        }
        for (name, value) in fields {
            if !FIRST.contains(name) {
                map.serialize_entry(name, value)?;
            }
        }
        map.end()
    }
}

/// Recorded fields, in the order of their first record.
#[derive(Debug, Default)]
struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    fn put(&mut self, name: &'static str, value: Value) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, slot)) => *slot = value,
            None => self.0.push((name, value)),
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field.name(), text(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field.name(), text(value.to_owned()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field.name(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field.name(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field.name(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field.name(), value.into());
    }

    /// Includes the causes, which `Display` leaves out.
    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.put(field.name(), text(domain::error_chain(value)));
    }
}

fn text(mut text: String) -> Value {
    if text.len() > MAX_TEXT_BYTES {
        text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
        text.push('…');
    }
    Value::String(text)
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use opentelemetry::trace::TracerProvider;
    use serde_json::Value;
    use tracing_subscriber::layer::SubscriberExt;

    use super::{Lines, MAX_TEXT_BYTES};

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(log: impl FnOnce()) -> String {
        let written = Written::default();
        let writer = written.clone();
        let provider = super::super::otlp::silent_provider();
        let subscriber = tracing_subscriber::registry()
            .with(tracing_opentelemetry::layer().with_tracer(provider.tracer("test")))
            .with(Lines::new("scanner", move || writer.clone()));
        tracing::subscriber::with_default(subscriber, log);
        String::from_utf8(written.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn a_line_carries_the_fields_of_its_spans() {
        let line = logged(|| {
            let outer = tracing::info_span!(
                "poll",
                feed = "hn:newest",
                page = 1,
                late = tracing::field::Empty
            );
            let _outer = outer.enter();
            outer.record("late", true);
            let _inner = tracing::info_span!("page", page = 2).entered();
            tracing::info!(posts = 30, "polled");
        });
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["message"], "polled");
        assert_eq!(value["service"], "scanner");
        assert_eq!(value["level"], "INFO");
        assert_eq!(value["feed"], "hn:newest");
        assert_eq!(value["late"], true);
        assert_eq!(value["page"], 2);
        assert_eq!(value["posts"], 30);
        assert_eq!(value["trace_id"].as_str().unwrap().len(), 32);
        assert_eq!(value["span_id"].as_str().unwrap().len(), 16);
        assert!(line.starts_with("{\"timestamp\":\""), "{line}");
    }

    #[test]
    fn fields_cannot_replace_the_standard_ones() {
        let line = logged(|| tracing::info!(level = "fake", service = "fake", "line\nbreak"));
        assert_eq!(line.matches('\n').count(), 1);
        assert!(!line.contains("fake"), "{line}");
    }

    #[test]
    fn an_error_is_logged_with_its_causes() {
        let line = logged(|| {
            let error = crate::ops::Error::Start(io::Error::other("no threads"));
            tracing::error!(error = &error as &dyn std::error::Error, "failed");
        });
        assert!(
            line.contains("cannot start the ops server: no threads"),
            "{line}"
        );
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        let line = logged(|| tracing::info!(text = "ü".repeat(MAX_TEXT_BYTES), "long"));
        assert!(line.len() < MAX_TEXT_BYTES + 500);
    }
}
