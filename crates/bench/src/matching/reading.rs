//! Measures what the reader of doubtful posts costs: the CPU time of a thousand posts, with and without it.
//!
//! As in the scanner, the index then has lower thresholds, and a post is read once for all Managers that it may concern.
//! What customers sell was read before; a row says what that costs.

use std::{collections::HashMap, path::Path};

use anyhow::{Context, Result};
use domain::{
    Focus, Instructions, ManagerName, PlanVersion,
    instructions::{Sells, WatchedName},
};
use matching::{Index, PostText};
use nix::time::ClockId;
use reader::{Customer, Reader, candidate_threshold};

use super::{load, plans_of, seconds};
use crate::report::{Report, Row};

const POSTS: u64 = 1_000;
/// Posts of a thousand that are judged for a Manager, at most.
const JUDGED: u32 = 5;
/// A reading takes long enough for a stable figure.
const MAX_ROUNDS: usize = 3;
const OFFERS: [&str; 7] = [
    "espresso machines for the home",
    "coffee grinders with steel burrs",
    "milk frothers and jugs",
    "water filters and descaler",
    "freshly roasted coffee beans",
    "spare parts and repairs",
    "courses for baristas",
];

/// The reader, and a customer for all Managers.
pub(super) struct Reading {
    reader: Reader,
    customer: Customer,
}

impl Reading {
    pub(super) fn open(folder: &Path, report: &mut Report) -> Result<Self> {
        let reader = Reader::in_folder(folder)?;
        let sells = Sells {
            summary: "Espresso machines and all that belongs to them.".to_owned(),
            offers: OFFERS.map(str::to_owned).to_vec(),
        };
        let start = processor_seconds()?;
        let names: &[WatchedName] = &[];
        let customer = reader.customer_of(Focus::Sales, Some(&sells), names)?;
        let taken = (processor_seconds()? - start) * 1e3;
        let what = format!("reader, what a customer sells, {} offers", OFFERS.len());
        report.row(Row::new(what, format!("{taken:.0} ms")));
        Ok(Self { reader, customer })
    }

    pub(super) fn measure(
        &self,
        load: &load::Load,
        managers: u64,
        rounds: usize,
        report: &mut Report,
    ) -> Result<()> {
        let posts: Vec<_> = (0..POSTS).map(|number| load.post(number)).collect();
        for is_read in [false, true] {
            let lower = |instructions: Instructions| Instructions {
                threshold: { instructions.threshold }.map(|usual| {
                    if is_read {
                        candidate_threshold(usual)
                    } else {
                        usual
                    }
                }),
                ..instructions
            };
            let plans = plans_of(load, managers, lower)?;
            let index = Index::build(plans, PlanVersion::default());
            let (mut best, mut work) = (f64::MAX, (0, 0));
            for _ in 0..rounds.clamp(1, MAX_ROUNDS) {
                let start = processor_seconds()?;
                work = self.decide(&index, &posts, is_read)?;
                best = best.min(processor_seconds()? - start);
            }
            let with = if is_read { "with" } else { "without" };
            let (read, judged) = work;
            let figure = format!("{best:.3} s CPU ({read} read, {judged} times judged)");
            let what = format!("focused, {managers} Managers, {POSTS} posts {with} the reader");
            report.row(Row::new(what, figure));
        }
        Ok(())
    }

    /// Returns how many posts were read, and how many pairs judged.
    fn decide(&self, index: &Index, posts: &[load::Post], is_read: bool) -> Result<(u64, u64)> {
        let mut judged: HashMap<ManagerName, u32> = HashMap::new();
        let mut read = 0;
        for post in posts {
            let text = PostText::new(Some(&post.title), Some(&post.text));
            let mut matches = index.matches(&text, &post.feed);
            matches.retain(|(manager, _)| {
                let count = judged.entry(*manager).or_default();
                *count += 1;
                *count <= JUDGED
            });
            if !is_read || matches.is_empty() {
                continue;
            }
            read += 1;
            let vectors = self.reader.post(&post.title, &post.text)?;
            for (manager, _) in matches {
                let plan = index.plan(&manager).context("a match without plan")?;
                let score = self.reader.score(&plan, &text, &vectors, &self.customer);
                std::hint::black_box(score);
            }
        }
        let judged = judged
            .into_values()
            .map(|count| u64::from(count.min(JUDGED)));
        Ok((read, if is_read { judged.sum() } else { 0 }))
    }
}

/// Returns the CPU time of the process, because the model has a separate thread.
fn processor_seconds() -> Result<f64> {
    seconds(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}
