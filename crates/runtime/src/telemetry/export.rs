//! Hands finished spans to the exporter, on a thread of its own.
//!
//! The SDK's batch processor drives an exporter without a tokio runtime, which our HTTP client
//! needs, and does not tell what it dropped. This one has a runtime, a bounded queue, a count of
//! what was lost, and a bound on its shutdown that holds whatever the collector does.

use std::{
    sync::{
        LazyLock,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    thread,
    time::{Duration, Instant},
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
    // Another registry's owner may have been faster only in a test.
    let _ = prometheus::register(Box::new(counter.clone()));
    counter
});

#[derive(Debug)]
pub(super) struct Exporting {
    sender: SyncSender<Message>,
}

enum Message {
    Span(Box<SpanData>),
    Flush(SyncSender<()>),
}

impl Exporting {
    /// With the exporter that `make` makes on the thread's runtime.
    pub(super) fn start<E: SpanExporter + 'static>(
        make: impl FnOnce() -> Result<E, String>,
    ) -> Result<Self, String> {
        let (sender, receiver) = sync_channel(QUEUE);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let exporter = {
            let _within = runtime.enter();
            make()?
        };
        dropped(0);
        thread::Builder::new()
            .name("traces".to_owned())
            .spawn(move || {
                // What the exporter does is not itself a trace.
                let _suppressed = Context::enter_telemetry_suppressed_scope();
                run(&receiver, |batch| {
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
        Ok(Self { sender })
    }

    fn flush(&self, timeout: Duration) -> OTelSdkResult {
        let deadline = Instant::now() + timeout;
        let (done, finished) = sync_channel(1);
        let mut message = Message::Flush(done);
        loop {
            match self.sender.try_send(message) {
                Ok(()) => break,
                Err(TrySendError::Full(unsent)) if Instant::now() < deadline => {
                    message = unsent;
                    thread::sleep(Duration::from_millis(10));
                }
                Err(_) => return Err(OTelSdkError::Timeout(timeout)),
            }
        }
        finished
            .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            .ok()
            .ok_or(OTelSdkError::Timeout(timeout))
    }
}

impl SpanProcessor for Exporting {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        if !span.span_context.is_sampled() {
            return;
        }
        if self.sender.try_send(Message::Span(Box::new(span))).is_err() {
            dropped(1);
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
fn run(receiver: &Receiver<Message>, mut export: impl FnMut(Vec<SpanData>)) {
    let mut batch = Vec::new();
    let mut due = Instant::now() + INTERVAL;
    loop {
        let wait = due.saturating_duration_since(Instant::now());
        let message = receiver.recv_timeout(wait);
        let (done, ends) = match message {
            Ok(Message::Span(span)) => {
                batch.push(*span);
                if batch.len() < BATCH {
                    continue;
                }
                (None, false)
            }
            Ok(Message::Flush(done)) => (Some(done), false),
            Err(RecvTimeoutError::Timeout) => (None, false),
            Err(RecvTimeoutError::Disconnected) => (None, true),
        };
        if !batch.is_empty() {
            export(std::mem::take(&mut batch));
        }
        if let Some(done) = done {
            let _ = done.try_send(());
        }
        if ends {
            return;
        }
        due = Instant::now() + INTERVAL;
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

    /// Takes a batch and never comes back.
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
