//! Declares metrics, in the default registry.

use prometheus::core::Collector;
pub use prometheus::{
    Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec,
};

/// Declares metrics as statics of type `LazyLock`: name, help text, then the labels of a vector, then the buckets of a
/// histogram if the default ones do not fit. A metric is exported from its first use on.
///
/// ```text
/// runtime::metrics! {
///     static DURATION: HistogramVec = "earshot_work_duration_seconds",
///         "Time of an item of work", ["kind"], buckets: &[0.1, 1.0, 10.0];
/// }
/// ```
#[macro_export]
macro_rules! metrics {
    ($(
        $(#[$attribute:meta])*
        $visibility:vis static $metric:ident: $kind:ident = $name:literal,
            $help:literal $(, [$($label:literal),+])? $(, buckets: $buckets:expr)?;
    )+) => {$(
        $(#[$attribute])*
        $visibility static $metric: ::std::sync::LazyLock<$crate::metrics::$kind> =
            ::std::sync::LazyLock::new(|| {
                let options = $crate::metrics::HistogramOpts::new($name, $help);
                $(let options = options.buckets($buckets.to_vec());)?
                $crate::metrics::register(options, &[$($($label),+)?])
            });
    )+};
}

/// A kind of metric. All get the options of a histogram, which include those of the others.
pub trait Metric: Collector + Clone + 'static {
    fn create(options: HistogramOpts, labels: &[&str]) -> prometheus::Result<Self>;
}

macro_rules! kinds {
    ($($single:ident, $vector:ident, $options:ident => $of_kind:expr;)+) => {$(
        impl Metric for $single {
            fn create($options: HistogramOpts, _: &[&str]) -> prometheus::Result<Self> {
                Self::with_opts($of_kind)
            }
        }

        impl Metric for $vector {
            fn create($options: HistogramOpts, labels: &[&str]) -> prometheus::Result<Self> {
                Self::new($of_kind, labels)
            }
        }
    )+};
}

kinds! {
    IntCounter, IntCounterVec, options => options.common_opts;
    IntGauge, IntGaugeVec, options => options.common_opts;
    Gauge, GaugeVec, options => options.common_opts;
    Histogram, HistogramVec, options => options;
}

/// Creates and registers a metric. If its name is taken, it still counts but is not exported.
pub fn register<M: Metric>(options: HistogramOpts, labels: &[&str]) -> M {
    let metric = M::create(options, labels).expect("names and labels are valid");
    register_collector(metric.clone());
    metric
}

/// Registers a collector, for example one that reads its values only when they are collected.
pub fn register_collector(collector: impl Collector + 'static) {
    if let Err(error) = prometheus::default_registry().register(Box::new(collector)) {
        tracing::error!(%error, "a metric will be missing");
    }
}

#[cfg(test)]
mod tests {
    crate::metrics! {
        static SINGLE: IntCounter = "test_single_total",
            "Help of a counter";
        static FIRST: IntGauge = "test_taken",
            "Help of a gauge";
        static SECOND: IntCounter = "test_taken",
            "Help of a counter";
        static VECTOR: HistogramVec = "test_vector_seconds",
            "Help of a vector", ["kind", "outcome"], buckets: &[0.5, 2.0];
    }

    #[test]
    fn declared_metrics_are_exported() {
        SINGLE.inc();
        VECTOR.with_label_values(&["a", "b"]).observe(1.0);
        let text = prometheus::TextEncoder::new().encode_to_string(&prometheus::gather());
        let text = text.unwrap();
        for line in [
            "# HELP test_single_total Help of a counter",
            "test_single_total 1",
            "# HELP test_vector_seconds Help of a vector",
            "test_vector_seconds_bucket{kind=\"a\",outcome=\"b\",le=\"0.5\"} 0",
            "test_vector_seconds_bucket{kind=\"a\",outcome=\"b\",le=\"2\"} 1",
        ] {
            assert!(text.lines().any(|exported| exported == line), "{line}");
        }
    }

    #[test]
    fn metric_with_a_taken_name_still_counts() {
        FIRST.set(1);
        SECOND.inc();
        assert_eq!(SECOND.get(), 1);
    }
}
