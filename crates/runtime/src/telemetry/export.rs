//! Passes finished spans to the exporter, on a separate thread.
//!
//! The SDK's batch processor runs an exporter without a tokio runtime, which our HTTP client needs, and does
//! not report dropped spans. This one has a runtime, a bounded queue, a count of lost spans, and a time limit
//! on shutdown that does not depend on the collector.
//!
//! Ending a span costs a lock and a push: the thread is woken for each [`BATCH`], not for each span.

use std::{
    mem,
    sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use opentelemetry::Context;
use opentelemetry_sdk::{
    error::{OTelSdkError, OTelSdkResult},
    trace::{Span, SpanData, SpanExporter, SpanProcessor},
};
use prometheus::{IntCounterVec, Opts};

const QUEUE: usize = 2_048;
const BATCH: usize = 512;
const INTERVAL: Duration = Duration::from_secs(2);
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);

static DROPPED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let options = Opts::new(
        "earshot_telemetry_dropped_total",
        "Telemetry that never reached the collector.",
    );
    let counter = IntCounterVec::new(options, &["signal"])
        .expect("the name and label are constants and valid");
    // Only in a test, another registration may have been first.
    let _ = prometheus::register(Box::new(counter.clone()));
    counter
});

#[derive(Debug)]
pub(super) struct Exporting {
    queue: Arc<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    /// Signals the thread that there is work.
    due: Condvar,
    /// Signals that the thread has finished a flush.
    flushed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    spans: Vec<SpanData>,
    /// Spans that are being exported.
    in_hand: usize,
    /// Number of requested flushes, and of finished ones.
    flushes: u64,
    flushed: u64,
    closed: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Exporting {
    /// Starts the thread. `make` creates the exporter on the thread's runtime.
    pub(super) fn start<E: SpanExporter + 'static>(
        make: impl FnOnce() -> Result<E, String>,
    ) -> Result<Self, String> {
        let queue = Arc::new(Queue::default());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let exporter = {
            let _within = runtime.enter();
            make()?
        };
        dropped(0);
        let of_thread = Arc::clone(&queue);
        thread::Builder::new()
            .name("traces".to_owned())
            .spawn(move || {
                // The exporter's own requests must not create traces.
                let _suppressed = Context::enter_telemetry_suppressed_scope();
                run(&of_thread, |batch| {
                    let lost = batch.len();
                    let export = async {
                        tokio::time::timeout(EXPORT_TIMEOUT, exporter.export(batch)).await
                    };
                    if !matches!(runtime.block_on(export), Ok(Ok(()))) {
                        dropped(lost);
                    }
                });
            })
            .map_err(|error| error.to_string())?;
        Ok(Self { queue })
    }

    fn flush(&self, timeout: Duration) -> OTelSdkResult {
        let mut waiting = self.queue.lock();
        waiting.flushes += 1;
        let own = waiting.flushes;
        self.queue.due.notify_one();
        let flushed = &self.queue.flushed;
        let ended = flushed.wait_timeout_while(waiting, timeout, |waiting| waiting.flushed < own);
        let (waiting, _) = ended.unwrap_or_else(PoisonError::into_inner);
        if waiting.flushed < own {
            return Err(OTelSdkError::Timeout(timeout));
        }
        Ok(())
    }
}

impl Drop for Exporting {
    fn drop(&mut self) {
        self.queue.lock().closed = true;
        self.queue.due.notify_one();
    }
}

impl SpanProcessor for Exporting {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        if !span.span_context.is_sampled() {
            return;
        }
        let mut waiting = self.queue.lock();
        if waiting.spans.len() + waiting.in_hand >= QUEUE {
            drop(waiting);
            return dropped(1);
        }
        waiting.spans.push(span);
        if waiting.spans.len() == BATCH {
            drop(waiting);
            self.queue.due.notify_one();
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.flush(EXPORT_TIMEOUT)
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.flush(timeout)
    }
}

/// Ends when the processor is gone.
fn run(queue: &Queue, mut export: impl FnMut(Vec<SpanData>)) {
    loop {
        let nothing = |waiting: &mut Waiting| {
            let asked = waiting.flushes > waiting.flushed || waiting.closed;
            waiting.spans.len() < BATCH && !asked
        };
        let woken = queue
            .due
            .wait_timeout_while(queue.lock(), INTERVAL, nothing);
        let (mut waiting, _) = woken.unwrap_or_else(PoisonError::into_inner);
        let mut spans = mem::take(&mut waiting.spans);
        waiting.in_hand = spans.len();
        let (flushes, closed) = (waiting.flushes, waiting.closed);
        drop(waiting);
        while !spans.is_empty() {
            let rest = spans.split_off(spans.len().min(BATCH));
            let left = rest.len();
            export(mem::replace(&mut spans, rest));
            queue.lock().in_hand = left;
        }
        queue.lock().flushed = flushes;
        queue.flushed.notify_all();
        if closed {
            return;
        }
    }
}

fn dropped(spans: usize) {
    DROPPED
        .with_label_values(&["traces"])
        .inc_by(u64::try_from(spans).unwrap_or(u64::MAX));
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

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
    fn a_stuck_collector_costs_spans_and_no_time() {
        let provider = SdkTracerProvider::builder()
            .with_span_processor(Exporting::start(|| Ok(Stuck)).unwrap())
            .with_sampler(Sampler::AlwaysOn)
            .build();
        let tracer = provider.tracer("test");
        let start = Instant::now();
        for _ in 0..2 * (QUEUE + BATCH) {
            drop(tracer.start("span"));
        }
        assert!(DROPPED.with_label_values(&["traces"]).get() >= QUEUE as u64);
        let shutdown = provider.shutdown_with_timeout(Duration::from_millis(200));
        assert!(shutdown.is_err());
        assert!(start.elapsed() < Duration::from_secs(5));
    }
}
