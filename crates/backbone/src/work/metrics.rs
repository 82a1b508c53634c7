//! Metrics of all kinds of work.

use std::time::Instant;

use runtime::metrics::{Histogram, IntCounter, IntGauge};

runtime::metrics! {
    static IN_HAND: IntGaugeVec = "earshot_work_in_hand",
        "Items of background work that the replica works on", ["kind"];
    static ENDED: IntCounterVec = "earshot_work_items_total",
        "Items of background work by outcome: done, failed (tried again), panicked, or set_aside after three panics, \
         after three processes died with it in hand, or because the database refuses the result", ["kind", "outcome"];
    static DURATION: HistogramVec = "earshot_work_duration_seconds",
        "Time that the replica works on an item of background work", ["kind"],
        buckets: &[0.01, 0.1, 1.0, 10.0, 60.0, 300.0];
}

/// The metrics of one kind. All begin at zero, so that alerts see the first increase.
#[derive(Clone)]
pub(super) struct Metrics {
    in_hand: IntGauge,
    duration: Histogram,
    done: IntCounter,
    failed: IntCounter,
    panicked: IntCounter,
    set_aside: IntCounter,
}

/// An item in hand, until it is dropped.
pub(super) struct InHand {
    metrics: Metrics,
    since: Instant,
}

impl Metrics {
    pub(super) fn of(kind: &str) -> Self {
        let ended = |outcome| ENDED.with_label_values(&[kind, outcome]);
        Self {
            in_hand: IN_HAND.with_label_values(&[kind]),
            duration: DURATION.with_label_values(&[kind]),
            done: ended("done"),
            failed: ended("failed"),
            panicked: ended("panicked"),
            set_aside: ended("set_aside"),
        }
    }

    pub(super) fn start(&self) -> InHand {
        self.in_hand.inc();
        InHand {
            metrics: self.clone(),
            since: Instant::now(),
        }
    }

    pub(super) fn done(&self) {
        self.done.inc();
    }

    pub(super) fn failed(&self) {
        self.failed.inc();
    }

    pub(super) fn panicked(&self) {
        self.panicked.inc();
    }

    pub(super) fn set_aside(&self, items: usize) {
        self.set_aside.inc_by(items as u64);
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.metrics.in_hand.dec();
        let seconds = self.since.elapsed().as_secs_f64();
        self.metrics.duration.observe(seconds);
    }
}
