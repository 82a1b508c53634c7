//! Simulates the LLM filter with a model that makes a known share of errors. Nothing is sent over a network.
//!
//! `cargo run --release --manifest-path tools/train/Cargo.toml --bin llm_filter -- ROWS.jsonl [POSTS]`
//!
//! Each line of the file is one post for one customer and focus, in the order of the feed:
//! `{"customer": "acme", "focus": "SALES", "label": 2, "score": 0.41, "weight": 1.0}`. A `label` of 1 and above
//! is a relevant post. A row stands for `weight` posts of the feed. `POSTS` is the length of the feed; by default it
//! is the sum of a customer's weights for the focus.
//!
//! Each customer and focus is a Manager with the balanced threshold. A day is 10,000 posts of the feed. The
//! simulated model answers by the label and errs at random. [`Budget`] and the order of the questions are
//! those of the scanner. The table shows means over several seeds.

use std::{
    collections::BTreeMap,
    error::Error,
    fs::File,
    io::{BufRead, BufReader},
    time::Duration,
};

use domain::{Focus, Id, ManagerName, Sensitivity};
use rand::{Rng, SeedableRng, rngs::StdRng};
use scanner::{
    llm_filter::{Budget, Request, candidate_threshold, is_relevant},
    uncertainty,
};
use serde::Deserialize;
use tokio::time::Instant;

const ERRORS: [f64; 2] = [0.05, 0.15];
const BUDGETS: [u32; 4] = [0, 5, 20, 100];
const POSTS_PER_DAY: f64 = 10_000.0;
/// Posts that one poll of a feed brings.
const POSTS_PER_POLL: f64 = 10.0;
const SEEDS: u64 = 20;
/// Default of `scanner.judge.candidate_percent`.
const CANDIDATE_PERCENT: u32 = 33;
const DAY: Duration = Duration::from_secs(86_400);

#[derive(Deserialize)]
struct Row {
    customer: String,
    focus: Focus,
    label: i32,
    score: f64,
    weight: f64,
}

/// A customer with a focus, and its rows in the order of the feed.
struct Manager {
    name: ManagerName,
    focus: Focus,
    rows: Vec<Row>,
}

/// A candidate post with its position in the feed.
#[derive(Clone, Copy)]
struct Candidate {
    position: f64,
    relevant: bool,
    embedded: bool,
    uncertainty: f64,
}

/// Counts of posts over one simulation or several.
#[derive(Clone, Copy, Default)]
struct Totals {
    posts: f64,
    relevant: f64,
    delivered: f64,
    right: f64,
    questions: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments
        .next()
        .ok_or("usage: llm_filter ROWS.jsonl [POSTS]")?;
    let posts: Option<f64> = arguments.next().map(|posts| posts.parse()).transpose()?;
    let managers = read(&path)?;

    println!(
        "| Focus | Errors of the model | Budget | Precision | Recall | Questions per 1,000 posts |"
    );
    println!("|---|---|---|---|---|---|");
    for focus in Focus::ALL {
        for errors in ERRORS {
            for budget in BUDGETS {
                let mut totals = Totals::default();
                for seed in 0..SEEDS {
                    for manager in managers.iter().filter(|one| one.focus == focus) {
                        totals.add(&simulate(manager, posts, errors, budget, seed));
                    }
                }
                println!(
                    "| {} | {:.0} % | {budget} | {:.3} | {:.3} | {:.2} |",
                    focus.as_str(),
                    errors * 100.0,
                    totals.right / totals.delivered,
                    totals.right / totals.relevant,
                    1_000.0 * totals.questions / totals.posts,
                );
            }
        }
    }
    println!();
    for focus in Focus::ALL {
        let of_focus = managers.iter().filter(|one| one.focus == focus);
        let rows = of_focus.flat_map(|one| &one.rows);
        let (mut relevant, mut reachable) = (0.0, 0.0);
        for row in rows.filter(|row| row.label >= 1) {
            relevant += row.weight;
            reachable += row.weight * f64::from(u8::from(is_candidate(row)));
        }
        println!(
            "{}: {:.3} of the relevant posts are candidates.",
            focus.as_str(),
            reachable / relevant
        );
    }
    Ok(())
}

fn read(path: &str) -> Result<Vec<Manager>, Box<dyn Error>> {
    let mut managers: BTreeMap<(String, &'static str), Manager> = BTreeMap::new();
    for (nth, line) in BufReader::new(File::open(path)?).lines().enumerate() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let row: Row = serde_json::from_str(&line)
            .map_err(|error| format!("{path}, line {}: {error}", nth + 1))?;
        let key = (row.customer.clone(), row.focus.as_str());
        let manager = managers.entry(key).or_insert_with(|| Manager {
            name: ManagerName {
                namespace: Id::generate(),
                manager: Id::generate(),
            },
            focus: row.focus,
            rows: Vec::new(),
        });
        manager.rows.push(row);
    }
    Ok(managers.into_values().collect())
}

fn threshold(focus: Focus) -> f64 {
    matching::threshold(focus, Sensitivity::Balanced)
}

fn is_candidate(row: &Row) -> bool {
    row.score >= candidate_threshold(threshold(row.focus), CANDIDATE_PERCENT)
}

/// Runs one Manager over the feed.
fn simulate(manager: &Manager, posts: Option<f64>, errors: f64, budget: u32, seed: u64) -> Totals {
    let mut random = StdRng::seed_from_u64(seed);
    let weights: f64 = manager.rows.iter().map(|row| row.weight).sum();
    let posts = posts.unwrap_or(weights);
    let mut totals = Totals {
        posts,
        ..Totals::default()
    };
    let candidates = candidates(manager, posts / weights, &mut random, &mut totals);

    let begin = Instant::now();
    let mut budget = Budget::new(u32::MAX, budget);
    for poll in candidates.chunk_by(|a, b| poll_of(a) == poll_of(b)) {
        let now = begin + DAY.mul_f64(poll_of(&poll[0]) * POSTS_PER_POLL / POSTS_PER_DAY);
        let requests: Vec<Request> = poll
            .iter()
            .map(|candidate| Request {
                account: Id::NIL,
                manager: manager.name,
                uncertainty: candidate.uncertainty,
            })
            .collect();
        let mut answers = vec![None; poll.len()];
        for nth in budget.admit(&requests, now) {
            answers[nth] = Some(poll[nth].relevant != random.random_bool(errors));
            totals.questions += 1.0;
        }
        for (candidate, answer) in poll.iter().zip(answers) {
            if is_relevant(candidate.embedded, answer) {
                totals.delivered += 1.0;
                totals.right += f64::from(u8::from(candidate.relevant));
            }
        }
    }
    totals
}

/// Returns the candidates of the feed, and counts the relevant posts. A row is repeated as often as its weight says,
/// rounded at random.
fn candidates(
    manager: &Manager,
    posts_per_weight: f64,
    random: &mut StdRng,
    totals: &mut Totals,
) -> Vec<Candidate> {
    let threshold = threshold(manager.focus);
    let mut candidates = Vec::new();
    let mut position = 0.0;
    for row in &manager.rows {
        let relevant = row.label >= 1;
        if is_candidate(row) {
            let mut copies = row.weight;
            while random.random::<f64>() < copies {
                copies -= 1.0;
                candidates.push(Candidate {
                    position,
                    relevant,
                    embedded: row.score >= threshold,
                    uncertainty: uncertainty(row.score, threshold),
                });
                totals.relevant += f64::from(u8::from(relevant));
            }
        } else if relevant {
            totals.relevant += row.weight;
        }
        position += row.weight * posts_per_weight;
    }
    candidates
}

/// Returns the number of the poll that brings a candidate.
fn poll_of(candidate: &Candidate) -> f64 {
    (candidate.position / POSTS_PER_POLL).floor()
}

impl Totals {
    fn add(&mut self, other: &Self) {
        self.posts += other.posts;
        self.relevant += other.relevant;
        self.delivered += other.delivered;
        self.right += other.right;
        self.questions += other.questions;
    }
}
