//! Adjusts weights and the threshold according to the customer's verdicts on earlier matches.
//!
//! Applied to freshly compiled instructions each time, from the verdicts of the last weeks: nothing drifts, and a
//! withdrawn verdict has no effect. Both changes are limited, and described in the `brief`.
//!
//! The threshold stays within the chosen sensitivity. It moves at most half of the way to the threshold
//! of the neighbouring setting, so feedback never turns one setting into another. PRECISE has no stricter
//! neighbour and BROAD has no wider one: in that direction it moves at most [`OUTER_SHIFT`].

use compiling::compile::add_to_brief;
use domain::{Focus, Instructions, Sensitivity};
use store::feedback::Verdict;

/// Minimum number of verdicts; fewer change nothing.
const MIN_VERDICTS: usize = 3;
/// Number of neutral matches that are added to the judged ones as a prior.
const DOUBT: f64 = 6.0;
const MAX_RISE: f64 = 0.2;
const MAX_FALL: f64 = 0.1;
/// Largest shift of the threshold away from all other settings.
const OUTER_SHIFT: f64 = 0.1;
/// Feedback never moves a threshold out of this range.
const THRESHOLD_RANGE: (f64, f64) = (0.05, 0.95);
/// Lowest and highest factor that feedback applies to a term's weight.
const FACTORS: (f64, f64) = (0.4, 1.5);
/// Minimum number of judged matches that contain a term before its weight changes.
const MIN_OCCURRENCES: u32 = 2;
const MAX_NAMED: usize = 5;

/// Rocchio's method, applied to the terms that led to the matches: those of good matches gain weight, those of bad ones
/// lose it.
///
/// `focus` and `sensitivity` are those that the instructions were compiled with.
pub(crate) fn apply(
    instructions: &mut Instructions,
    focus: Focus,
    sensitivity: Sensitivity,
    verdicts: &[Verdict],
) {
    if verdicts.len() < MIN_VERDICTS {
        return;
    }
    let good = number(verdicts.iter().filter(|verdict| verdict.value).count());
    let bad = number(verdicts.len()) - good;
    let (mut up, mut down) = (Vec::new(), Vec::new());
    for term in &mut instructions.include {
        let hits = |value: bool| {
            let of = verdicts.iter().filter(|verdict| verdict.value == value);
            number(
                of.filter(|verdict| verdict.matched.terms.contains(&term.text))
                    .count(),
            )
        };
        let (in_good, in_bad) = (hits(true), hits(false));
        if in_good + in_bad < f64::from(MIN_OCCURRENCES) {
            continue;
        }
        let share_of_good = (in_good + 1.0) / (good + 2.0);
        let share_of_bad = (in_bad + 1.0) / (bad + 2.0);
        let factor = (share_of_good / share_of_bad)
            .sqrt()
            .clamp(FACTORS.0, FACTORS.1);
        term.weight = (term.weight * factor * 1e3).round() / 1e3;
        if factor > 1.05 {
            up.push(term.text.clone());
        } else if factor < 0.95 {
            down.push(term.text.clone());
        }
    }
    instructions.include.sort_by(|a, b| {
        b.weight
            .total_cmp(&a.weight)
            .then_with(|| a.text.cmp(&b.text))
    });
    let chosen = matching::threshold(focus, sensitivity);
    let before = instructions.threshold.unwrap_or(chosen);
    let shift = (bad - good) / (bad + good + DOUBT) * MAX_RISE;
    let shift = (shift.clamp(-MAX_FALL, MAX_RISE) * 1e2).round() / 1e2;
    let (lowest, highest) = bounds(focus, sensitivity);
    let after = round((before + shift).clamp(lowest, highest));
    instructions.threshold = Some(after);
    let mut sentence = format!(
        "Of {} judged matches, {bad} were not relevant: the threshold is {after} instead of {before}",
        verdicts.len()
    );
    for (word, terms) in [("more", &up), ("less", &down)] {
        if !terms.is_empty() {
            let named: Vec<&str> = terms.iter().take(MAX_NAMED).map(String::as_str).collect();
            sentence.push_str(&format!("; {word} weight on {}", named.join(", ")));
        }
    }
    sentence.push('.');
    add_to_brief(instructions, &sentence);
}

/// Returns the lowest and the highest threshold that feedback may set.
fn bounds(focus: Focus, sensitivity: Sensitivity) -> (f64, f64) {
    let chosen = matching::threshold(focus, sensitivity);
    let (wider, stricter) = match sensitivity {
        Sensitivity::Precise => (Some(Sensitivity::Balanced), None),
        Sensitivity::Balanced => (Some(Sensitivity::Broad), Some(Sensitivity::Precise)),
        Sensitivity::Broad => (None, Some(Sensitivity::Balanced)),
    };
    let bound = |neighbour: Option<Sensitivity>, outer_shift: f64| {
        let bound = neighbour.map_or(chosen + outer_shift, |neighbour| {
            f64::midpoint(chosen, matching::threshold(focus, neighbour))
        });
        round(bound.clamp(THRESHOLD_RANGE.0, THRESHOLD_RANGE.1))
    };
    (bound(wider, -OUTER_SHIFT), bound(stricter, OUTER_SHIFT))
}

/// Rounds to four digits, which is exact for the midpoint of two thresholds of three.
fn round(threshold: f64) -> f64 {
    (threshold * 1e4).round() / 1e4
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use domain::{Focus, Instructions, Match, Sensitivity, instructions::MAX_BRIEF_CHARS};
    use store::feedback::Verdict;

    use super::{bounds, round};

    fn instructions() -> Instructions {
        serde_json::from_value(serde_json::json!({
            "focus": "SALES", "brief": "Posts about coffee.",
            "threshold": matching::threshold(Focus::Sales, Sensitivity::Balanced),
            "include": [{"text": "espresso", "weight": 1.0}, {"text": "grinder", "weight": 0.9},
                        {"text": "steam", "weight": 0.8}]
        }))
        .unwrap()
    }

    fn apply(instructions: &mut Instructions, verdicts: &[Verdict]) {
        super::apply(instructions, Focus::Sales, Sensitivity::Balanced, verdicts);
    }

    fn verdicts(value: bool, terms: &[&str], count: usize) -> Vec<Verdict> {
        let json = serde_json::json!({"score": 0.6, "terms": terms, "focus": "SALES"});
        let matched: Match = serde_json::from_value(json).unwrap();
        vec![Verdict { value, matched }; count]
    }

    fn weight(instructions: &Instructions, text: &str) -> f64 {
        let mut terms = instructions.include.iter();
        terms.find(|term| term.text == text).unwrap().weight
    }

    #[test]
    fn bad_matches_lower_their_terms_and_raise_the_threshold() {
        let mut changed = instructions();
        let said = [
            verdicts(false, &["steam"], 8),
            verdicts(true, &["espresso"], 3),
        ]
        .concat();
        apply(&mut changed, &said);
        assert!(weight(&changed, "steam") < 0.5, "{changed:?}");
        assert!(weight(&changed, "espresso") > 1.0);
        assert_eq!(weight(&changed, "grinder"), 0.9);
        // Raised by 0.06, or by what the sensitivity allows.
        let before = instructions().threshold.unwrap();
        let after = round((before + 0.06).min(bounds(Focus::Sales, Sensitivity::Balanced).1));
        assert_eq!(changed.threshold, Some(after));
        assert_eq!(
            changed.brief,
            format!(
                "Posts about coffee. Of 11 judged matches, 8 were not relevant: the \
                 threshold is {after} instead of {before}; more weight on espresso; less weight on steam."
            )
        );
        let mut again = instructions();
        apply(&mut again, &said);
        assert_eq!(again, changed);
    }

    #[test]
    fn all_changes_are_bounded() {
        for value in [true, false] {
            let mut changed = instructions();
            changed.brief = "x".repeat(MAX_BRIEF_CHARS);
            apply(&mut changed, &verdicts(value, &["steam"], 5_000));
            let (lowest, highest) = bounds(Focus::Sales, Sensitivity::Balanced);
            let threshold = changed.threshold.unwrap();
            assert!((lowest..=highest).contains(&threshold), "{threshold}");
            let weight = weight(&changed, "steam");
            assert!((0.8 * 0.39..=0.8 * 1.51).contains(&weight), "{weight}");
            assert_eq!(changed.brief.chars().count(), MAX_BRIEF_CHARS);
            assert!(changed.brief.ends_with('.'));
        }
    }

    #[test]
    fn thresholds_stay_within_the_chosen_sensitivity() {
        for focus in Focus::ALL {
            let mut lowest_of_stricter = None;
            for sensitivity in Sensitivity::ALL {
                let chosen = matching::threshold(focus, sensitivity);
                let shifted = [true, false].map(|value| {
                    let mut changed = instructions();
                    changed.threshold = Some(chosen);
                    let said = verdicts(value, &["steam"], 5_000);
                    super::apply(&mut changed, focus, sensitivity, &said);
                    changed.threshold.unwrap()
                });
                let [lowest, highest] = shifted;
                assert!(lowest <= chosen && chosen <= highest && lowest < highest);
                assert!(lowest >= 0.05 && highest <= 0.95, "{shifted:?}");
                // The ranges of two settings meet halfway, and never cross.
                assert!(lowest_of_stricter.is_none_or(|stricter| highest <= stricter));
                lowest_of_stricter = Some(lowest);
            }
        }
    }

    #[test]
    fn bounds_are_half_of_the_way_to_the_neighbours() {
        for focus in Focus::ALL {
            let at = |sensitivity| matching::threshold(focus, sensitivity);
            let [precise, balanced, broad] = Sensitivity::ALL.map(at);
            let expected = [
                (f64::midpoint(precise, balanced), precise + 0.1),
                (
                    f64::midpoint(balanced, broad),
                    f64::midpoint(precise, balanced),
                ),
                (broad - 0.1, f64::midpoint(balanced, broad)),
            ];
            for (sensitivity, (lowest, highest)) in Sensitivity::ALL.into_iter().zip(expected) {
                let bounds = bounds(focus, sensitivity);
                assert!((bounds.0 - lowest.max(0.05)).abs() < 1e-4, "{bounds:?}");
                assert!((bounds.1 - highest.min(0.95)).abs() < 1e-4, "{bounds:?}");
            }
        }
    }

    #[test]
    fn a_few_words_change_nothing() {
        let mut changed = instructions();
        apply(&mut changed, &verdicts(false, &["steam"], 2));
        assert_eq!(changed, instructions());
    }
}
