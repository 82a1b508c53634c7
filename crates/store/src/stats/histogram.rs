//! Delays as counts in buckets: mergeable, small, and accurate to an eighth.
//!
//! Below 16 ms each millisecond has a separate bucket; above, each doubling is divided into eight.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

/// Below this value, each millisecond has a bucket.
const EXACT: u64 = 16;
/// About thirty years, because a platform may claim any creation time for a post.
const MAX_MILLIS: u64 = (1 << 40) - 1;

/// Number of values in each bucket; empty buckets are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Histogram(BTreeMap<u16, u64>);

impl Histogram {
    pub(crate) fn record(&mut self, delay: Duration) {
        let millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        *self.0.entry(bucket(millis.min(MAX_MILLIS))).or_default() += 1;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (bucket, count) in &other.0 {
            let sum = self.0.entry(*bucket).or_default();
            *sum = sum.saturating_add(*count);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the milliseconds that `percent` of the values do not exceed: the upper end of a bucket, or 0 if
    /// there are no values.
    pub(crate) fn quantile(&self, percent: u64) -> u64 {
        let total: u128 = self.0.values().map(|count| u128::from(*count)).sum();
        let wanted = (total * u128::from(percent)).div_ceil(100);
        let mut seen = 0;
        for (bucket, count) in &self.0 {
            seen += u128::from(*count);
            if seen >= wanted {
                return upper_end(*bucket);
            }
        }
        0
    }
}

fn bucket(millis: u64) -> u16 {
    let place = if millis < EXACT {
        millis
    } else {
        let octave = u64::from(millis.ilog2());
        // The three bits below the uppermost.
        EXACT + (octave - 4) * 8 + ((millis >> (octave - 3)) & 7)
    };
    u16::try_from(place).unwrap_or(u16::MAX)
}

fn upper_end(bucket: u16) -> u64 {
    let bucket = u64::from(bucket);
    if bucket < EXACT {
        return bucket;
    }
    let (octave, eighth) = ((bucket - EXACT) / 8 + 4, (bucket - EXACT) % 8);
    // Stored data may contain a bucket that this version cannot have created; it counts as the last bucket.
    let unit = 1_u64.checked_shl(u32::try_from(octave - 3).unwrap_or(u32::MAX));
    unit.and_then(|unit| unit.checked_mul(8 + eighth + 1))
        .map_or(MAX_MILLIS, |end| (end - 1).min(MAX_MILLIS))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::{Histogram, MAX_MILLIS, bucket, upper_end};

    #[test]
    fn buckets_join_without_a_gap() {
        for bucket_before in 0..bucket(MAX_MILLIS) {
            let end = upper_end(bucket_before);
            assert_eq!(bucket(end), bucket_before);
            assert_eq!(bucket(end + 1), bucket_before + 1);
        }
        assert_eq!(upper_end(u16::MAX), MAX_MILLIS);
    }

    #[test]
    fn empty_histogram_has_quantile_zero() {
        assert_eq!(Histogram::default().quantile(50), 0);
    }

    #[test]
    fn the_longest_delay_counts() {
        let mut histogram = Histogram::default();
        histogram.record(Duration::MAX);
        assert_eq!(histogram.quantile(99), MAX_MILLIS);
    }

    proptest! {
        #[test]
        fn quantiles_are_within_an_eighth(mut millis in prop::collection::vec(0_u64..10_000_000, 1..300), percent in 1_u64..=100) {
            let (mut left, mut right) = (Histogram::default(), Histogram::default());
            for (at, one) in millis.iter().enumerate() {
                let half = if at % 2 == 0 { &mut left } else { &mut right };
                half.record(Duration::from_millis(*one));
            }
            left.add(&right);
            millis.sort_unstable();
            let rank = (millis.len() * usize::try_from(percent).unwrap()).div_ceil(100);
            let exact = millis[rank - 1];
            let told = left.quantile(percent);
            prop_assert!(told >= exact && told <= exact + exact / 8, "{told} for {exact}");
        }
    }
}
