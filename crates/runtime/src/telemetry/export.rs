//! Exports finished spans by the SDK's batch processor.
//!
//! The processor exports on its own thread, without a tokio runtime, which our HTTP client needs, and does not
//! report the spans that it drops. So the exporter brings a runtime, and spans are counted before and after the
//! processor. Ending a span never waits.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use opentelemetry::Context;
use opentelemetry_sdk::{
    Resource,
    error::{OTelSdkError, OTelSdkResult},
    trace::{BatchConfigBuilder, BatchSpanProcessor, Span, SpanData, SpanExporter, SpanProcessor},
};
use tokio::runtime::{Builder, Runtime};

const QUEUE: usize = 2_048;
const BATCH: usize = 512;
const INTERVAL: Duration = Duration::from_secs(2);
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);

crate::metrics! {
    static DROPPED: IntCounterVec = "earshot_telemetry_dropped_total",
        "Telemetry that never reached the collector.", ["signal"];
}

/// A batch processor with a limit on spans that wait or are being exported.
#[derive(Debug)]
pub(super) struct Exporting {
    batches: BatchSpanProcessor,
    waiting: Arc<AtomicUsize>,
}

impl Exporting {
    /// Starts the processor's thread. `make` creates the exporter on the runtime that it will have.
    pub(super) fn start<E: SpanExporter + 'static>(
        make: impl FnOnce() -> Result<E, String>,
    ) -> Result<Self, String> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let exporter = {
            let _within = runtime.enter();
            make()?
        };
        dropped(0);
        let waiting = Arc::new(AtomicUsize::new(0));
        let exporter = OnRuntime {
            exporter,
            runtime,
            waiting: Arc::clone(&waiting),
        };
        let config = BatchConfigBuilder::default()
            .with_max_queue_size(QUEUE)
            .with_max_export_batch_size(BATCH)
            .with_scheduled_delay(INTERVAL)
            .build();
        let batches = BatchSpanProcessor::new(exporter, config);
        Ok(Self { batches, waiting })
    }
}

impl SpanProcessor for Exporting {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        if !span.span_context.is_sampled() {
            return;
        }
        if self.waiting.fetch_add(1, Ordering::Relaxed) < QUEUE {
            self.batches.on_end(span);
        } else {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            dropped(1);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.batches.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.batches.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.batches.set_resource(resource);
    }
}

#[derive(Debug)]
struct OnRuntime<E> {
    exporter: E,
    runtime: Runtime,
    waiting: Arc<AtomicUsize>,
}

impl<E: SpanExporter> SpanExporter for OnRuntime<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let export =
            async { tokio::time::timeout(EXPORT_TIMEOUT, self.exporter.export(batch)).await };
        let exported = self.runtime.block_on(export);
        let exported = exported.unwrap_or(Err(OTelSdkError::Timeout(EXPORT_TIMEOUT)));
        self.waiting.fetch_sub(spans, Ordering::Relaxed);
        if exported.is_err() {
            dropped(spans);
        }
        exported
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

fn dropped(spans: usize) {
    DROPPED
        .with_label_values(&["traces"])
        .inc_by(u64::try_from(spans).unwrap_or(u64::MAX));
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use opentelemetry::trace::{Tracer, TracerProvider};
    use opentelemetry_sdk::{
        error::OTelSdkResult,
        trace::{Sampler, SdkTracerProvider, SpanData, SpanExporter},
    };

    use super::{BATCH, DROPPED, Exporting, QUEUE};

    /// Takes a batch and never returns.
    #[derive(Debug)]
    struct Stuck;

    impl SpanExporter for Stuck {
        async fn export(&self, _: Vec<SpanData>) -> OTelSdkResult {
            std::future::pending().await
        }
    }

    #[test]
    fn stuck_collector_drops_spans_without_delay() {
        let provider = SdkTracerProvider::builder()
            .with_span_processor(Exporting::start(|| Ok(Stuck)).unwrap())
            .with_sampler(Sampler::AlwaysOn)
            .build();
        let tracer = provider.tracer("test");
        for _ in 0..2 * (QUEUE + BATCH) {
            drop(tracer.start("span"));
        }
        assert!(DROPPED.with_label_values(&["traces"]).get() >= QUEUE as u64);
        let shutdown = provider.shutdown_with_timeout(Duration::from_millis(200));
        // A span that waits for the collector does not end within the runner's limit.
        assert!(shutdown.is_err());
    }
}
