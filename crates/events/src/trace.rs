//! The W3C trace context of a message, which connects its spans.
//!
//! It is text, because it travels in a broker's headers, and waits in database rows. Without a configured
//! propagator, for example when telemetry is off, it is empty and costs nothing.

use opentelemetry::{
    Context, global,
    propagation::{Extractor, Injector},
    trace::TraceContextExt,
};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";

/// <https://www.w3.org/TR/trace-context/>
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceContext {
    pub traceparent: Option<String>,
    pub tracestate: Option<String>,
}

impl TraceContext {
    /// The context of the caller's current span.
    pub fn current() -> Self {
        Self::of(&Span::current())
    }

    /// The context of `span`; empty if the span is not traced.
    pub fn of(span: &Span) -> Self {
        let mut context = Self::default();
        global::get_text_map_propagator(|propagator| {
            propagator.inject_context(&span.context(), &mut context);
        });
        context
    }

    pub fn is_empty(&self) -> bool {
        self.traceparent.is_none()
    }

    /// Restores a context from the result of [`TraceContext::sampled`].
    pub fn of_traceparent(traceparent: Option<String>) -> Self {
        Self {
            traceparent,
            tracestate: None,
        }
    }

    /// Returns true if the caller's current trace is exported.
    pub fn is_sampled_now() -> bool {
        let context = Span::current().context();
        context.span().span_context().is_sampled()
    }

    /// The part to store with waiting work; `None` if the trace is not exported.
    pub fn sampled(&self) -> Option<&str> {
        let traceparent = self.traceparent.as_deref()?;
        let sampled = self.extract()?.span().span_context().is_sampled();
        sampled.then_some(traceparent)
    }

    /// Makes the span of this context the parent of `span`, which must not be entered yet.
    pub fn set_as_parent_of(&self, span: &Span) {
        if let Some(context) = self.extract() {
            // This fails without an OpenTelemetry layer; then the parent is not needed.
            let _ = span.set_parent(context);
        }
    }

    /// Links `span` to the span of this context.
    pub fn link_to(&self, span: &Span) {
        if let Some(context) = self.extract() {
            span.add_link(context.span().span_context().clone());
        }
    }

    fn extract(&self) -> Option<Context> {
        let context = global::get_text_map_propagator(|propagator| {
            propagator.extract_with_context(&Context::new(), self)
        });
        context.span().span_context().is_valid().then_some(context)
    }
}

impl Injector for TraceContext {
    fn set(&mut self, key: &str, value: String) {
        match key {
            TRACEPARENT => self.traceparent = Some(value),
            TRACESTATE => self.tracestate = Some(value).filter(|value| !value.is_empty()),
            _ => {}
        }
    }
}

impl Extractor for TraceContext {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            TRACEPARENT => self.traceparent.as_deref(),
            TRACESTATE => self.tracestate.as_deref(),
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec![TRACEPARENT, TRACESTATE]
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::TracerProvider;
    use opentelemetry_sdk::{propagation::TraceContextPropagator, trace::SdkTracerProvider};
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[test]
    fn trace_context_round_trips_through_text() {
        global::set_text_map_propagator(TraceContextPropagator::new());
        let provider = SdkTracerProvider::builder().build();
        let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
        let subscriber = tracing_subscriber::registry().with(layer);

        tracing::subscriber::with_default(subscriber, || {
            let sender = TraceContext::of(&tracing::info_span!("sender"));
            let receiver = tracing::info_span!("receiver");
            sender.set_as_parent_of(&receiver);

            let trace_id =
                |context: &TraceContext| context.traceparent.as_ref().unwrap()[3..35].to_owned();
            assert_eq!(trace_id(&TraceContext::of(&receiver)), trace_id(&sender));
        });
    }

    #[test]
    fn malformed_traceparent_is_ignored() {
        let context = TraceContext {
            traceparent: Some("00-nonsense".into()),
            tracestate: None,
        };
        assert!(context.extract().is_none());
    }
}
