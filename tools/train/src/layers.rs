//! The gate and the verdict of a focus.
//!
//! Both are trained on the benchmark's public-domain posts and on posts labelled at the natural rate. The gate is then
//! opened until nearly all posts pass that a person would keep. The verdict is fitted to be a probability.

use std::collections::{BTreeMap, BTreeSet};

use domain::Focus;
use matching::{
    EVIDENCE, Evidence, PostText, Signals,
    model_file::{Gate, Verdict},
};

use crate::{Error, bench::Bench, pooled::Pooled, scores::Scored, signs, solve};

/// Features of one post for one customer.
pub(crate) struct Row {
    pub(crate) customer: String,
    pub(crate) label: u8,
    pub(crate) weight: f64,
    /// Posts of the feed that it stands for.
    pub(crate) posts: f64,
    /// True for a post of the benchmark, false for one of the pool.
    pub(crate) is_bench: bool,
    /// May be used for training.
    is_free: bool,
    gate: [f64; Gate::SLOPES],
    pub(crate) evidence: [f64; EVIDENCE.len()],
}

/// Exponent of the weights: rows of rare draws represent hundreds of posts, and would outweigh the rest.
const WEIGHT_POWER: f64 = 0.3;
const MAX_WEIGHT: f64 = 50.0;
const MAX_CALIBRATION_WEIGHT: f64 = 10.0;
const CALIBRATION_RIDGE: f64 = 0.01;
/// Share of the posts worth keeping that pass the gate.
const GATE_RECALL: f64 = 0.97;
const GATE_RIDGE: f64 = 0.01;

pub(crate) fn rows(focus: Focus, bench: &Bench, pooled: &Pooled) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    for judged in bench.gold.iter().filter(|judged| judged.focus == focus) {
        let key = (judged.customer.clone(), focus);
        let plan = bench.plans.get(&key).ok_or("no such customer")?;
        let (title, text) = bench.posts.get(&judged.post).ok_or("no such post")?;
        let post = PostText::new(
            Some(title).filter(|t| !t.is_empty()).map(|t| t.as_str()),
            Some(text),
        );
        rows.extend(row(plan, &post).map(|(gate, evidence)| Row {
            customer: format!("bench/{}", judged.customer),
            label: judged.label,
            weight: bench_weight(focus),
            posts: 1.0,
            is_bench: true,
            is_free: bench.may_train(&judged.post),
            gate,
            evidence,
        }));
    }
    for judged in pooled.judged.iter().filter(|judged| judged.focus == focus) {
        let key = (judged.customer.clone(), focus);
        let plan = pooled.plans.get(&key).ok_or("no such customer")?;
        let Some(post) = pooled.post(&judged.post) else {
            continue;
        };
        rows.extend(row(plan, &post).map(|(gate, evidence)| Row {
            customer: judged.customer.clone(),
            label: judged.label,
            weight: judged.weight.min(MAX_WEIGHT).powf(WEIGHT_POWER),
            posts: judged.weight,
            is_bench: false,
            is_free: true,
            gate,
            evidence,
        }));
    }
    Ok(rows)
}

fn row(
    plan: &matching::Plan,
    post: &PostText,
) -> Option<([f64; Gate::SLOPES], [f64; EVIDENCE.len()])> {
    let signals = Signals::of(plan, post)?;
    Some((signals.slopes(), Evidence::weigh(plan, post)?.values()))
}

/// Trains the gate of a focus.
pub(crate) fn gate(rows: &[Row]) -> Gate {
    let free: Vec<_> = rows
        .iter()
        .filter(|row| row.is_free)
        .map(|row| (row.gate, row.label > 0, row.weight))
        .collect();
    let (bias, slopes) = solve::dense(&free, GATE_RIDGE);
    let gate = Gate::from_slopes(bias, slopes);
    let mut sums: Vec<f64> = rows
        .iter()
        .filter(|row| row.label > 0 && !row.is_bench)
        .map(|row| dot(&slopes, &row.gate))
        .collect();
    sums.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share of a small count"
    )]
    let lowest = sums[((1.0 - GATE_RECALL) * sums.len() as f64) as usize];
    // Below zero, so that intent alone never passes.
    Gate {
        bias: (-lowest).min(-1e-3),
        ..gate
    }
}

/// Trains the verdict of a focus, without the examples of one customer.
fn learned(focus: Focus, rows: &[Row], without: Option<&str>) -> Verdict {
    let free = rows
        .iter()
        .filter(|row| row.is_free && Some(row.customer.as_str()) != without);
    let free: Vec<_> = free
        .map(|row| (row.evidence, row.label > 0, row.weight))
        .collect();
    let (bias, weights) = solve::ridge(&free, strength(focus), &signs::bounds(focus));
    let fixed: &[(&str, f64)] = match focus {
        // The learned weight is half as large, because too few labels depend on it.
        Focus::Sales => &[("lacks_offer", -0.8)],
        Focus::Competitor | Focus::Crisis => &[],
    };
    with_fixed(Verdict { bias, weights }, fixed)
}

/// The verdict of a focus, whose score is a probability at the natural rate.
pub(crate) fn verdict(focus: Focus, rows: &[Row], scale: Scale) -> Verdict {
    by_hand(focus, scale.of(learned(focus, rows, None)))
}

/// Turns the sum of a verdict into the logit of a probability, by Platt's method.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    factor: f64,
    offset: f64,
}

impl Scale {
    /// Fits to sums of posts that are judged at the natural rate, by verdicts that have not seen the customer.
    fn fit<'a>(judged: impl Iterator<Item = (&'a Row, &'a f64)>) -> Self {
        let judged: Vec<_> = judged
            .map(|(row, sum)| ([*sum], row.label > 0, row.posts.min(MAX_CALIBRATION_WEIGHT)))
            .collect();
        let (offset, [factor]) = solve::dense(&judged, CALIBRATION_RIDGE);
        Self { factor, offset }
    }

    fn of(self, verdict: Verdict) -> Verdict {
        Verdict {
            bias: self.factor * verdict.bias + self.offset,
            weights: verdict.weights.map(|weight| self.factor * weight),
        }
    }
}

/// Weight of a post of the benchmark: those are selected, not drawn at random. Names decide COMPETITOR, and the natural
/// rate teaches most about them.
fn bench_weight(focus: Focus) -> f64 {
    match focus {
        Focus::Competitor => 0.2,
        Focus::Sales | Focus::Crisis => 1.6,
    }
}

/// Ridge strength: higher for a focus with fewer examples.
fn strength(focus: Focus) -> f64 {
    match focus {
        Focus::Sales => 33.0,
        Focus::Competitor => 150.0,
        Focus::Crisis => 100.0,
    }
}

/// Sets the weights of posts without a title by hand, in round numbers: posts of microblogs may only be used for
/// evaluation.
fn by_hand(focus: Focus, verdict: Verdict) -> Verdict {
    let fixed: &[(&str, f64)] = match focus {
        Focus::Sales => &[],
        Focus::Competitor => &[("untitled", 2.2)],
        Focus::Crisis => &[
            ("untitled", -2.8 - verdict.bias),
            ("untitled_complaint", 0.8),
            ("untitled_trouble", 2.0),
        ],
    };
    with_fixed(verdict, fixed)
}

fn with_fixed(mut verdict: Verdict, fixed: &[(&str, f64)]) -> Verdict {
    for (name, weight) in fixed {
        if let Some(at) = EVIDENCE.iter().position(|known| known == name) {
            verdict.weights[at] = *weight;
        }
    }
    verdict
}

/// Returns the score of every row from a verdict that was trained without its customer.
pub(crate) fn unseen(focus: Focus, rows: &[Row], gate: &Gate) -> (Vec<f64>, Scale) {
    let customers: BTreeSet<&str> = rows.iter().map(|row| row.customer.as_str()).collect();
    let verdicts: BTreeMap<&str, Verdict> = customers
        .into_iter()
        .map(|customer| (customer, learned(focus, rows, Some(customer))))
        .collect();
    let sum = |row: &Row, verdict: &Verdict| verdict.bias + dot(&verdict.weights, &row.evidence);
    let sums: Vec<f64> = rows
        .iter()
        .map(|row| sum(row, &verdicts[row.customer.as_str()]))
        .collect();
    let passes = |row: &Row| gate.bias + dot(&gate.slopes(), &row.gate) >= 0.0;
    let judged = rows.iter().zip(&sums);
    let scale = Scale::fit(judged.filter(|(row, _)| passes(row) && !row.is_bench));
    let score = |row: &Row| {
        if !passes(row) {
            return 0.0;
        }
        let verdict = by_hand(focus, scale.of(verdicts[row.customer.as_str()]));
        solve::sigmoid(sum(row, &verdict))
    };
    (rows.iter().map(score).collect(), scale)
}

/// Returns scores and labels on the benchmark, including labelled posts without a row (`judged`).
pub(crate) fn bench_scores(
    focus: Focus,
    bench: &Bench,
    rows: &[Row],
    scores: &[f64],
    threshold: f64,
) -> Vec<Scored> {
    let scored = |customer: &str, label, score: f64| Scored {
        customer: customer.to_owned(),
        label,
        score,
        value: score >= threshold,
    };
    let mut all: Vec<Scored> = rows
        .iter()
        .zip(scores)
        .filter(|(row, _)| row.is_bench)
        .map(|(row, score)| scored(&row.customer, row.label, *score))
        .collect();
    // Posts without a term or name have no row and are never delivered. Only their labels matter.
    let mut missing: Vec<u8> = Vec::new();
    for label in 0..=2 {
        let of = |count: usize, seen: usize| count - seen.min(count);
        let judged = bench
            .gold
            .iter()
            .filter(|j| j.focus == focus && j.label == label)
            .count();
        let seen = all.iter().filter(|scored| scored.label == label).count();
        missing.extend(std::iter::repeat_n(label, of(judged, seen)));
    }
    all.extend(
        missing
            .into_iter()
            .map(|label| scored("bench/without a term", label, 0.0)),
    );
    all
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
