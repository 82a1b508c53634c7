//! Adjusts weights and the threshold according to the customer's verdicts on earlier matches.
//!
//! Applied to freshly compiled instructions each time, from the verdicts of the last weeks: nothing drifts, and a
//! withdrawn verdict has no effect. Both changes are limited, and described in the `brief`.
//!
//! Scores are probabilities for customers in general. For one customer, all matches can be more or less often relevant
//! than their scores say. The verdicts show by how much ([`offset`]), and the threshold moves by that.

use domain::Instructions;
use store::feedback::Verdict;

use crate::compile::tell;

/// Minimum number of verdicts; fewer change nothing.
const MIN_VERDICTS: usize = 3;
/// Standard deviation of offsets among customers, as log odds.
const SPREAD: f64 = 1.0;
/// Largest offset, as log odds: odds of 2.7 to 1.
const LARGEST_OFFSET: f64 = 1.0;
/// Verdicts on surer matches than these would count without limit.
const SCORE_RANGE: (f64, f64) = (1e-3, 1.0 - 1e-3);
/// Feedback never moves a threshold out of this range.
const THRESHOLD_RANGE: (f64, f64) = (0.05, 0.95);
/// Lowest and highest factor that feedback applies to a term's weight.
const FACTORS: (f64, f64) = (0.4, 1.5);
/// Minimum number of judged matches that contain a term before its weight changes.
const MIN_OCCURRENCES: u32 = 2;
const MAX_NAMED: usize = 5;

/// Rocchio's method, applied to the terms that led to the matches: those of good matches gain weight, those of bad ones
/// lose it.
pub(crate) fn apply(instructions: &mut Instructions, verdicts: &[Verdict]) {
    let Some(before) = instructions.threshold else {
        return;
    };
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
    let after = sigmoid(logit(before) - offset(verdicts));
    let after = (after.clamp(THRESHOLD_RANGE.0, THRESHOLD_RANGE.1) * 1e3).round() / 1e3;
    instructions.threshold = Some(after);
    let mut told = format!(
        "Of {} judged matches, {bad} were not relevant: the threshold is {after} instead of {before}",
        verdicts.len()
    );
    for (word, terms) in [("more", &up), ("less", &down)] {
        if !terms.is_empty() {
            let named: Vec<&str> = terms.iter().take(MAX_NAMED).map(String::as_str).collect();
            told.push_str(&format!("; {word} weight on {}", named.join(", ")));
        }
    }
    told.push('.');
    tell(instructions, &told);
}

/// Returns by how much the matches of this customer are more often relevant than their scores say, as log odds: the mean
/// of the posterior distribution, with a normal prior.
fn offset(verdicts: &[Verdict]) -> f64 {
    const STEPS: i32 = 160;
    let likelihood = |offset: f64| {
        let of_each = verdicts.iter().map(|verdict| {
            let score = verdict.matched.score.clamp(SCORE_RANGE.0, SCORE_RANGE.1);
            let probability = sigmoid(logit(score) + offset);
            let right = if verdict.value {
                probability
            } else {
                1.0 - probability
            };
            right.ln()
        });
        of_each.sum::<f64>() - 0.5 * (offset / SPREAD).powi(2)
    };
    let found: Vec<(f64, f64)> = (-STEPS / 2..=STEPS / 2)
        .map(|step| 8.0 * SPREAD * f64::from(step) / f64::from(STEPS))
        .map(|offset| (offset, likelihood(offset)))
        .collect();
    let most = found.iter().fold(f64::MIN, |most, (_, one)| most.max(*one));
    let (sum, total) = found
        .iter()
        .fold((0.0, 0.0), |(sum, total), (offset, one)| {
            let weight = (one - most).exp();
            (sum + weight * offset, total + weight)
        });
    (sum / total).clamp(-LARGEST_OFFSET, LARGEST_OFFSET)
}

fn logit(probability: f64) -> f64 {
    (probability / (1.0 - probability)).ln()
}

fn sigmoid(log_odds: f64) -> f64 {
    1.0 / (1.0 + (-log_odds).exp())
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use domain::{Focus, Instructions, Match, Sensitivity, instructions::MAX_BRIEF_CHARS};
    use store::feedback::Verdict;

    use super::{LARGEST_OFFSET, apply, logit, offset, sigmoid};

    fn instructions() -> Instructions {
        serde_json::from_value(serde_json::json!({
            "focus": "SALES", "brief": "Posts about coffee.",
            "threshold": matching::threshold(Focus::Sales, Sensitivity::Balanced),
            "include": [{"text": "espresso", "weight": 1.0}, {"text": "grinder", "weight": 0.9},
                        {"text": "steam", "weight": 0.8}]
        }))
        .unwrap()
    }

    fn verdicts(value: bool, terms: &[&str], count: usize) -> Vec<Verdict> {
        scored(0.6, value, terms, count)
    }

    fn scored(score: f64, value: bool, terms: &[&str], count: usize) -> Vec<Verdict> {
        let json = serde_json::json!({"score": score, "terms": terms, "focus": "SALES"});
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
        let before = instructions().threshold.unwrap();
        let after = changed.threshold.unwrap();
        assert!(before < after && after < 2.0 * before, "{after}");
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
            let least_or_most = if value {
                -LARGEST_OFFSET
            } else {
                LARGEST_OFFSET
            };
            let before = instructions().threshold.unwrap();
            let expected = sigmoid(logit(before) + least_or_most);
            let threshold = changed.threshold.unwrap();
            assert!((threshold - expected).abs() < 1e-3, "{threshold}");
            let weight = weight(&changed, "steam");
            assert!((0.8 * 0.39..=0.8 * 1.51).contains(&weight), "{weight}");
            assert_eq!(changed.brief.chars().count(), MAX_BRIEF_CHARS);
            assert!(changed.brief.ends_with('.'));
        }
    }

    #[test]
    fn verdicts_as_the_scores_say_move_nothing() {
        let said = [
            scored(0.6, true, &["steam"], 60),
            scored(0.6, false, &["steam"], 40),
        ];
        let found = offset(&said.concat());
        assert!(found.abs() < 0.05, "{found}");
    }

    #[test]
    fn surer_mistakes_count_for_more() {
        let said = [0.9, 0.6, 0.3].map(|score| offset(&scored(score, false, &["steam"], 3)));
        assert!(said.is_sorted() && said[2] < -0.1, "{said:?}");
        for score in [0.0, 1.0, 5.0, -1.0] {
            assert!(offset(&scored(score, false, &["steam"], 3)).is_finite());
        }
    }

    #[test]
    fn a_stricter_sensitivity_stays_stricter() {
        for focus in Focus::ALL {
            for value in [true, false] {
                let moved = Sensitivity::ALL.map(|sensitivity| {
                    let mut changed = instructions();
                    changed.threshold = Some(matching::threshold(focus, sensitivity));
                    apply(&mut changed, &verdicts(value, &["steam"], 5_000));
                    changed.threshold.unwrap()
                });
                assert!(moved.iter().rev().is_sorted(), "{moved:?}");
                assert!(
                    moved
                        .iter()
                        .all(|threshold| (0.05..=0.95).contains(threshold))
                );
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
