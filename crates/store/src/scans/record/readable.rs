//! Rounds a match's numbers so that PostgreSQL and we read them back unchanged. JSON numbers are stored as decimals
//! of any length, and serde_json may read a long one as a neighbouring value or not at all. No filter would find a
//! Scan with such a score, and one with an infinite score could not be read. The engine's own numbers are already
//! within these limits.

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

/// Rounds to fifteen digits, which a `f64` represents exactly.
fn readable_number(number: f64) -> f64 {
    const DECIMALS: f64 = 1e9;
    const BOUND: f64 = 999_999.0;
    if number.is_nan() {
        return 0.0;
    }
    let rounded = (number.clamp(-BOUND, BOUND) * DECIMALS).round() / DECIMALS;
    // JSON has a negative zero, and decimals do not.
    rounded + 0.0
}

#[cfg(test)]
mod tests {
    use super::readable_number;

    #[test]
    fn numbers_read_back_unchanged() {
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
