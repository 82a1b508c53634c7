//! The reader and then the LLM filter decide on matches after the index, if the operator configured them.
//!
//! Both can add posts as well as reject them, so the index is then built with lower thresholds than the instructions have.
//! Without an answer, the score and the threshold of the instructions decide.

use std::{
    collections::HashSet,
    hash::{BuildHasher, RandomState},
    sync::{Arc, OnceLock},
};

use domain::{Id, Instructions, ManagerName, PlanVersion, Post};
use matching::Index;
use reader::is_candidate;
use runtime::config;
use store::{Pool, scans::NewScan};
use tokio::time::Instant;

use crate::{
    llm_filter::{self, LlmFilter},
    reading::{Doubtful, Reading, hash_of_seller, is_untitled},
    thresholds::{Rule, Rules, threshold_of},
};

#[derive(Default)]
pub struct Deciders {
    reading: Option<Reading>,
    llm_filter: Option<LlmFilter>,
    rules: Rules,
    hasher: RandomState,
}

/// Deadlines for the decisions on the new posts of a poll, or on a block of a backfill. The first reading sets that of the
/// reader, and the first question of an account that of its questions.
#[derive(Default)]
pub(crate) struct Deadlines {
    /// No reading begins after it.
    reading: OnceLock<Instant>,
    questions: llm_filter::Deadlines,
}

impl Deciders {
    /// Loads the reader's files, which takes about 100 ms. If they cannot be used, that is logged and shown.
    pub async fn new(settings: &config::Scanner) -> Self {
        let hasher = RandomState::new();
        Self {
            reading: match &settings.reader {
                Some(settings) => Some(Reading::new(settings, hasher.clone()).await),
                None => None,
            },
            llm_filter: settings.judge.as_ref().map(LlmFilter::new),
            rules: Rules::default(),
            hasher,
        }
    }

    /// Returns instructions with a lower threshold for the index, so that it finds all candidates. Returns `None` if
    /// the Manager's own threshold is low enough.
    pub(crate) fn lowered(&self, instructions: &Instructions) -> Option<Instructions> {
        if self.is_empty() {
            return None;
        }
        let threshold = threshold_of(instructions)?;
        let reading = self.reading.as_ref();
        let filter = self.llm_filter.as_ref();
        let candidates = [
            reading.map(|reading| reading.candidate_threshold(threshold)),
            filter.map(|filter| filter.candidate_threshold(threshold)),
        ];
        let lowest = candidates.into_iter().flatten().fold(threshold, f64::min);
        Some(Instructions {
            threshold: Some(lowest),
            ..instructions.clone()
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.reading.is_none() && self.llm_filter.is_none()
    }

    /// Stores the instructions of a Manager, which the index has from version `since` on.
    pub(crate) fn put(
        &self,
        manager: ManagerName,
        instructions: &Instructions,
        since: PlanVersion,
    ) {
        if self.is_empty() {
            return;
        }
        let text = serde_json::to_string(instructions).unwrap_or_default();
        let Instructions {
            focus,
            sells,
            names,
            ..
        } = instructions;
        let rule = Rule {
            threshold: threshold_of(instructions),
            plan: self.hasher.hash_one(text),
            seller: hash_of_seller(&self.hasher, *focus, sells.as_ref(), names),
            since,
        };
        self.rules.put(manager, rule);
    }

    pub(crate) fn remove(&self, manager: &ManagerName) {
        self.rules.remove(manager);
    }

    /// Removes Managers that no longer exist. Call it after the index was replaced, because versions before and after
    /// cannot be compared.
    pub(crate) fn retain(&self, exists: impl Fn(&ManagerName) -> bool) {
        self.rules.retain(&exists);
        if let Some(reading) = &self.reading {
            reading.retain(exists);
        }
    }

    /// Returns true for a match below the Manager's threshold that neither the reader nor the model will see.
    pub(crate) fn falls_short(&self, manager: &ManagerName, score: f64, post: &Post) -> bool {
        let only_reads = self.reading.is_some() && self.llm_filter.is_none();
        only_reads && is_untitled(post) && {
            let threshold = self.rules.get(manager).and_then(|rule| rule.threshold);
            threshold.is_some_and(|threshold| score < threshold)
        }
    }

    /// Returns the matches that become Scans, in their order. The work counts for `account`. The quota refuses matches
    /// of the Namespaces `used_up`, so nothing judges them; those that the reader may accept are returned, and decided
    /// once the quota allows Scans again. Without deadlines, neither the reader nor the model is used.
    pub(crate) async fn decide<'a>(
        &self,
        pool: &Pool,
        index: &Arc<Index>,
        account: Id,
        matches: Vec<NewScan<'a>>,
        used_up: &HashSet<Id>,
        deadlines: Option<&Deadlines>,
    ) -> Vec<NewScan<'a>> {
        if self.is_empty() || matches.is_empty() {
            return matches;
        }
        let (mut rules, mut decidable) = (Vec::new(), Vec::new());
        for scan in matches {
            // The Manager has no plan any more.
            let Some(mut rule) = self.rules.get(&scan.manager) else {
                continue;
            };
            if used_up.contains(&scan.manager.namespace)
                && let Some(threshold) = rule.threshold.take()
            {
                let lowest = match &self.reading {
                    Some(reading) if !is_untitled(scan.post) => {
                        reading.candidate_threshold(threshold)
                    }
                    _ => threshold,
                };
                if scan.matched.score < lowest {
                    continue;
                }
            }
            rules.push(rule);
            decidable.push(scan);
        }
        if let Some(reading) = &self.reading {
            let doubtful = rules.iter().zip(&mut decidable).filter_map(|(rule, scan)| {
                let threshold = rule.threshold?;
                // Candidates of the LLM filter may have lower scores, for which the reader was not trained.
                is_candidate(scan.matched.score, threshold)
                    .then_some(Doubtful { rule: *rule, scan })
            });
            let doubtful = doubtful.collect();
            // After its deadline, the reader only returns scores that it has already.
            let new_deadline = || Instant::now() + reading.max_wait();
            let until = match deadlines {
                Some(deadlines) => *deadlines.reading.get_or_init(new_deadline),
                None => Instant::now(),
            };
            reading.judge(pool, index, account, doubtful, until).await;
        }
        let thresholds = rules.into_iter().map(|rule| rule.threshold);
        let decidable = thresholds.zip(decidable);
        match (&self.llm_filter, deadlines) {
            (Some(filter), Some(Deadlines { questions, .. })) => {
                filter.decide(pool, decidable.collect(), questions).await
            }
            _ => decidable
                .filter(|(threshold, scan)| {
                    threshold.is_none_or(|threshold| scan.matched.score >= threshold)
                })
                .map(|(_, scan)| scan)
                .collect(),
        }
    }
}
