//! Precision, recall and calibration on posts judged at the natural rate.
//!
//! Each customer is scored by a verdict that has not seen it. A judged post stands for as many posts of the feed as its
//! weight says in precision and calibration; in recall each relevant post counts once. Weights are capped: a single
//! post that stands for thousands would be all that a figure shows.

use std::fmt::Write as _;

use domain::{Focus, Sensitivity};

use crate::{layers::Row, pooled::Pooled};

const MAX_WEIGHT: f64 = 10.0;
const BINS: usize = 10;
/// A bin of fewer posts says nothing.
const MIN_IN_BIN: usize = 10;

/// One table a focus.
pub(crate) fn report(focus: Focus, pooled: &Pooled, rows: &[Row], scores: &[f64]) -> String {
    let mut report = format!("\n{}\n\n", focus.as_str());
    report.push_str(
        "| Sensitivity | P | P, each post once | R | R of label 2 |\n|---|---|---|---|---|\n",
    );
    let judged: Vec<(&Row, f64)> = rows
        .iter()
        .zip(scores.iter().copied())
        .filter(|(row, _)| !row.is_bench)
        .collect();
    let relevant = |least: u8| {
        let of_focus = pooled.judged.iter().filter(|judged| judged.focus == focus);
        number(of_focus.filter(|judged| judged.label >= least).count())
    };
    for sensitivity in Sensitivity::ALL {
        let threshold = matching::threshold(focus, sensitivity);
        let delivered: Vec<&Row> = judged
            .iter()
            .filter(|(_, score)| *score >= threshold)
            .map(|(row, _)| *row)
            .collect();
        let weight = |rows: &mut dyn Iterator<Item = &&Row>| -> f64 {
            rows.map(|row| row.posts.min(MAX_WEIGHT)).sum()
        };
        let right = |least: u8| number(delivered.iter().filter(|row| row.label >= least).count());
        let precision = weight(&mut delivered.iter().filter(|row| row.label > 0))
            / weight(&mut delivered.iter()).max(1.0);
        let _ = writeln!(
            report,
            "| {} | {precision:.3} | {:.3} | {:.3} | {:.3} |",
            sensitivity.as_str(),
            right(1) / number(delivered.len()).max(1.0),
            right(1) / relevant(1).max(1.0),
            right(2) / relevant(2).max(1.0),
        );
    }
    report.push_str("\nThresholds: precision by weight, recall\n\n");
    for threshold in (2..17).map(|step| 0.05 * f64::from(step)) {
        let kept = judged.iter().filter(|(_, score)| *score >= threshold);
        let weight = |row: &Row| row.posts.min(MAX_WEIGHT);
        let all: f64 = kept.clone().map(|(row, _)| weight(row)).sum();
        let right = kept.filter(|(row, _)| row.label > 0);
        let hits: f64 = right.clone().map(|(row, _)| weight(row)).sum();
        let _ = write!(
            report,
            "{threshold:.2}: {:.2} {:.2}; ",
            hits / all.max(1.0),
            number(right.count()) / relevant(1)
        );
    }
    report.push_str("\n\n| Score | posts | mean score | relevant, by weight | relevant, each once |\n|---|---|---|---|---|\n");
    let (mut gaps, mut plain_gaps, mut bins) = (0.0, 0.0, 0.0);
    for bin in 0..BINS {
        let [low, high] = [bin, bin + 1].map(|edge| number(edge) / number(BINS));
        let inside: Vec<&(&Row, f64)> = judged
            .iter()
            .filter(|(_, score)| (low..high).contains(score))
            .collect();
        if inside.len() < MIN_IN_BIN {
            continue;
        }
        let weight: f64 = inside
            .iter()
            .map(|(row, _)| row.posts.min(MAX_WEIGHT))
            .sum();
        let hits = inside.iter().filter(|(row, _)| row.label > 0);
        let rate: f64 = hits
            .clone()
            .map(|(row, _)| row.posts.min(MAX_WEIGHT))
            .sum::<f64>()
            / weight;
        let plain_rate = number(hits.count()) / number(inside.len());
        let mean = inside.iter().map(|(_, score)| score).sum::<f64>() / number(inside.len());
        gaps += (rate - mean).abs();
        plain_gaps += (plain_rate - mean).abs();
        bins += 1.0;
        let _ = writeln!(
            report,
            "| {low:.1} to {high:.1} | {} | {mean:.2} | {rate:.2} | {plain_rate:.2} |",
            inside.len()
        );
    }
    let _ = writeln!(
        report,
        "\nMean gap: {:.3} by weight, {:.3} each once.",
        gaps / f64::max(bins, 1.0),
        plain_gaps / f64::max(bins, 1.0)
    );
    report
}

/// The judged posts with their scores, a JSON object per line: the input of the program `llm_filter`.
pub(crate) fn lines(focus: Focus, rows: &[Row], scores: &[f64]) -> String {
    let judged = rows.iter().zip(scores).filter(|(row, _)| !row.is_bench);
    judged
        .map(|(row, score)| {
            let line = serde_json::json!({
                "customer": row.customer,
                "focus": focus.as_str(),
                "label": row.label,
                "score": score,
                "weight": row.posts,
            });
            format!("{line}\n")
        })
        .collect()
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
