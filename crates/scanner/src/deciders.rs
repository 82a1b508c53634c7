//! The reader and then the LLM filter decide on matches after the index, if the operator configured them.
//!
//! Both can add posts as well as reject them, so the index is then built with lower thresholds than the instructions have.
//! Without an answer, the score and the threshold of the instructions decide.

use std::collections::HashSet;

use domain::{Id, Instructions, ManagerName};
use matching::Index;
use reader::is_candidate;
use runtime::config;
use store::{Pool, scans::NewScan};

use crate::{
    llm_filter::LlmFilter,
    reading::Reading,
    thresholds::{Thresholds, threshold_of},
};

#[derive(Default)]
pub struct Deciders {
    reading: Option<Reading>,
    llm_filter: Option<LlmFilter>,
    thresholds: Thresholds,
}

impl Deciders {
    /// Loads the reader's files, which takes about 100 ms. If they cannot be used, that is logged and shown.
    #[must_use]
    pub fn new(settings: &config::Scanner) -> Self {
        Self {
            reading: settings.reader.as_ref().map(Reading::new),
            llm_filter: settings.judge.as_ref().map(LlmFilter::new),
            thresholds: Thresholds::default(),
        }
    }

    /// Returns the threshold of instructions with a focus, and the instructions whose matches include all candidates.
    /// `None` if nothing decides after the index.
    pub(crate) fn lowered(&self, instructions: &Instructions) -> Option<(f64, Instructions)> {
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
        let lowered = Instructions {
            threshold: Some(lowest),
            ..instructions.clone()
        };
        Some((threshold, lowered))
    }

    fn is_empty(&self) -> bool {
        self.reading.is_none() && self.llm_filter.is_none()
    }

    /// Notes the plan of a Manager, which the index gets next. `threshold` is that of its instructions.
    pub(crate) fn put(&self, manager: ManagerName, threshold: Option<f64>) {
        self.thresholds.put(manager, threshold);
        if let Some(reading) = &self.reading {
            reading.forget(&manager);
        }
    }

    /// Keeps the Managers that exist.
    pub(crate) fn retain(&self, exists: impl Fn(&ManagerName) -> bool) {
        self.thresholds.retain(exists);
    }

    /// Returns the matches that become Scans, in their order. `account` is the one that the work counts for. Matches of the
    /// Namespaces `used_up` are decided by the threshold, because the quota refuses them.
    pub(crate) async fn decide<'a>(
        &self,
        pool: &Pool,
        index: &Index,
        account: Id,
        mut matches: Vec<NewScan<'a>>,
        used_up: &HashSet<Id>,
    ) -> Vec<NewScan<'a>> {
        if self.is_empty() || matches.is_empty() {
            return matches;
        }
        let thresholds = &self.thresholds;
        if let Some(reading) = &self.reading {
            let asked = matches.iter_mut().filter_map(|scan| {
                let is_used_up = used_up.contains(&scan.manager.namespace);
                let threshold = thresholds.get(&scan.manager).filter(|_| !is_used_up)?;
                // The LLM filter looks further down, where the reader was not fitted.
                is_candidate(scan.matched.score, threshold).then_some((threshold, scan))
            });
            reading.judge(pool, index, account, asked.collect()).await;
        }
        match &self.llm_filter {
            Some(filter) => filter.decide(pool, thresholds, matches, used_up).await,
            None => {
                // Managers without a focus have no threshold here: the index has decided.
                let reaches = |scan: &NewScan<'_>| match thresholds.get(&scan.manager) {
                    Some(threshold) => scan.matched.score >= threshold,
                    None => true,
                };
                matches.retain(reaches);
                matches
            }
        }
    }
}
