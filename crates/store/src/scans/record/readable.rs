//! A match, with numbers that are read again as they were written, by PostgreSQL and by us. It keeps those of JSON as
//! decimals of any length, and of long ones serde_json reads a neighbour, or none: a Scan with such a score would be
//! found by no filter, and one with an infinite score could not be read at all. What the engine gives is within these
//! bounds already.

use domain::Match;

pub(super) fn readable(matched: &Match) -> Match {
    let mut matched = matched.clone();
    matched.score = readable_number(matched.score);
    if let Some(signals) = &mut matched.signals {
        for signal in [
            &mut signals.buying,
            &mut signals.comparison,
            &mut signals.trouble,
        ] {
            *signal = readable_number(*signal);
        }
    }
    matched
}

/// Fifteen digits at most, which a `f64` represents exactly.
fn readable_number(number: f64) -> f64 {
    const DECIMALS: f64 = 1e9;
    const BOUND: f64 = 999_999.0;
    if number.is_nan() {
        return 0.0;
    }
    let rounded = (number.clamp(-BOUND, BOUND) * DECIMALS).round() / DECIMALS;
    // JSON has a zero with a sign, and decimals have not.
    rounded + 0.0
}

#[cfg(test)]
mod tests {
    use super::readable_number;

    #[test]
    fn numbers_are_read_as_they_are_written() {
        for (given, kept) in [
            (0.8, 0.8),
            (-1.5, -1.5),
            (0.123_456_789, 0.123_456_789),
            (0.300_000_000_000_000_04, 0.3),
            (5e-324, 0.0),
            (f64::MAX, 999_999.0),
            (f64::NEG_INFINITY, -999_999.0),
            (f64::NAN, 0.0),
        ] {
            let found = readable_number(given);
            assert_eq!(found, kept, "{given}");
            let text = serde_json::to_string(&found).unwrap();
            assert_eq!(serde_json::from_str::<f64>(&text).unwrap(), kept, "{given}");
        }
        assert!(readable_number(-0.0).is_sign_positive());
    }
}
