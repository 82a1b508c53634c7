//! LLM filter: a language model decides on candidate posts, if the operator configured one.
//!
//! With the filter the first stage aims at recall. The index is built with lower thresholds
//! ([`candidate_threshold`]), so a poll also finds posts that fall short of their Manager's threshold. All
//! posts that it finds for a Manager with a focus are candidates: the model may add those below the
//! threshold and reject those above it. The question ([`question`]) is asked between matching and the
//! poll's transaction. [`Budget`] chooses the candidates that are worth a question.
//!
//! A candidate without an answer keeps the embedded decision (score against threshold): because the budget is
//! spent, or because the model is slow, fails or answers in another format. One deadline holds for all questions of
//! an account in a poll, however many blocks its matches are stored in, because later posts may be for other accounts. So
//! a hung or busy model costs an account's matches at most two timeouts: one until the last question is sent, and one for
//! its answer.
//!
//! Only the Scan is stored. A poll that is repeated, after a crash or because plans changed, asks again
//! unless the answer is in the cache. A Manager has one Scan of a post even if the answers differ.

mod answer_cache;
mod budget;
mod question;

use std::{
    collections::HashMap,
    panic::AssertUnwindSafe,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use backbone::shares::Shares;
use domain::{Id, Instructions, ManagerName};
use futures::{FutureExt as _, future::join_all};
use model_endpoint::{Endpoint, Failure, Purpose};
use runtime::config;
use store::{Pool, plans, scans::NewScan};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};

use crate::{metrics, thresholds::uncertainty};
use answer_cache::{AnswerCache, Key};
pub use budget::{Budget, Request};
use question::Answer;

/// Model endpoint that decides on candidates, with its budget.
pub struct LlmFilter {
    endpoint: Endpoint,
    candidate_percent: u32,
    /// Time limit for an answer, and for all waits of a poll's questions until they are sent.
    timeout: Duration,
    open: Semaphore,
    /// An account may use half of `open`, because its answers may be slow.
    shares: Shares,
    budget: Mutex<Budget>,
    answers: Mutex<AnswerCache>,
}

/// A match that the model may decide on.
struct Candidate<'a> {
    /// Position among the matches of the poll.
    position: usize,
    scan: NewScan<'a>,
    /// The decision without the model.
    embedded: bool,
    uncertainty: f64,
    answer: Option<bool>,
}

/// When the last question about the new posts of a poll, or about a block of a backfill, begins, by account: the questions of
/// one account may all wait, and must not take the time of others.
#[derive(Default)]
pub(crate) struct Deadlines(Mutex<HashMap<Id, Instant>>);

impl Deadlines {
    /// Returns the deadline of an account, which is `new` at its first question.
    fn of(&self, account: Id, new: Instant) -> Instant {
        let mut deadlines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *deadlines.entry(account).or_insert(new)
    }
}

impl LlmFilter {
    pub fn new(settings: &config::Judge) -> Self {
        Self {
            endpoint: Endpoint::new(&settings.endpoint()),
            candidate_percent: settings.candidate_percent,
            timeout: settings.timeout,
            open: Semaphore::new(settings.max_open as usize),
            shares: Shares::of(settings.max_open as usize),
            budget: Mutex::new(Budget::new(
                settings.max_per_minute,
                settings.max_per_manager_per_day,
            )),
            answers: Mutex::default(),
        }
    }

    /// Returns the lowest score of a candidate of a Manager with this threshold.
    pub(crate) fn candidate_threshold(&self, threshold: f64) -> f64 {
        candidate_threshold(threshold, self.candidate_percent)
    }

    /// Returns the matches that become Scans, in their order. Matches without a threshold always do: the index has
    /// decided on them. No question begins after the deadline of its account.
    pub(crate) async fn decide<'a>(
        &self,
        pool: &Pool,
        matches: Vec<(Option<f64>, NewScan<'a>)>,
        deadlines: &Deadlines,
    ) -> Vec<NewScan<'a>> {
        let mut decided: Vec<Option<NewScan<'a>>> = Vec::with_capacity(matches.len());
        let mut candidates = Vec::new();
        for (position, (threshold, scan)) in matches.into_iter().enumerate() {
            let score = scan.matched.score;
            let Some(threshold) = threshold else {
                decided.push(Some(scan));
                continue;
            };
            decided.push(None);
            // The threshold can be newer than the index that found the post.
            if score >= self.candidate_threshold(threshold) {
                candidates.push(Candidate {
                    position,
                    scan,
                    embedded: score >= threshold,
                    uncertainty: uncertainty(score, threshold),
                    answer: None,
                });
            }
        }
        let answered = AssertUnwindSafe(self.answer(pool, &mut candidates, deadlines));
        if answered.catch_unwind().await.is_err() {
            tracing::warn!("candidates decided without the model: an internal error");
        }
        for candidate in candidates {
            let position = candidate.position;
            decided[position] = settle(candidate);
        }
        decided.into_iter().flatten().collect()
    }

    /// Fills in the answers that the cache has and that the model gives.
    async fn answer(&self, pool: &Pool, candidates: &mut [Candidate<'_>], deadlines: &Deadlines) {
        if candidates.is_empty() {
            return;
        }
        // The connection is returned to the pool before the model is asked.
        let instructions = match instructions_of(pool, candidates).await {
            Ok(instructions) => instructions,
            Err(error) => {
                let error = anyhow::Error::from(error);
                tracing::debug!("candidates decided without the model: {error:#}");
                return;
            }
        };
        let now = Instant::now();
        let mut unanswered = Vec::new();
        let mut requests = Vec::new();
        for candidate in candidates.iter_mut() {
            let manager = candidate.scan.manager;
            let Some((account, instructions)) = instructions.get(&manager) else {
                continue;
            };
            let Some(key) = self.key(&candidate.scan, instructions) else {
                continue;
            };
            candidate.answer = self.answers().get(key);
            if candidate.answer.is_some() {
                continue;
            }
            let deadline = deadlines.of(*account, now + self.timeout);
            if deadline <= now {
                self.endpoint.count_skipped(Purpose::Judge, &Failure::Busy);
                continue;
            }
            requests.push(Request {
                account: *account,
                manager,
                uncertainty: candidate.uncertainty,
            });
            unanswered.push((candidate, *account, instructions, key, deadline));
        }
        if let Some(pause) = self.endpoint.pause() {
            for _ in &unanswered {
                self.endpoint.count_skipped(Purpose::Judge, &pause);
            }
            return;
        }
        let admitted = self.budget().admit(&requests, Instant::now());
        for _ in admitted.len()..requests.len() {
            self.endpoint
                .count_skipped(Purpose::Judge, &Failure::OverBudget);
        }
        // The semaphores serve in order, so the most uncertain get their turn first.
        let questions = admitted.into_iter().map(|nth| {
            let (candidate, account, instructions, key, deadline) = &unanswered[nth];
            let question = self.ask(&candidate.scan, *account, instructions, *key, *deadline);
            async move { (nth, question.await) }
        });
        for (nth, answer) in join_all(questions).await {
            unanswered[nth].0.answer = answer;
        }
    }

    /// Returns the cache key of a question; `None` for a Manager that lost its focus since the match.
    fn key(&self, scan: &NewScan<'_>, instructions: &Instructions) -> Option<Key> {
        let focus = instructions.focus?;
        let material = question::material(scan, instructions);
        Some(self.answers().key(&scan.manager, focus, &material))
    }

    /// Asks one question that the budget admitted.
    async fn ask(
        &self,
        scan: &NewScan<'_>,
        account: Id,
        instructions: &Instructions,
        key: Key,
        deadline: Instant,
    ) -> Option<bool> {
        let instruction = question::instruction(instructions.focus?);
        let turn = async {
            let share = self.shares.take(account, 1).await?;
            Some((share, self.open.acquire().await.ok()?))
        };
        let Ok(Some(_turn)) = timeout_at(deadline, turn).await else {
            self.endpoint.count_skipped(Purpose::Judge, &Failure::Busy);
            self.budget().release(account, &scan.manager);
            return None;
        };
        let material = question::material(scan, instructions);
        let answer = self
            .endpoint
            .complete::<Answer>(Purpose::Judge, &instruction, &material)
            .await;
        match answer {
            Ok(Answer { relevant }) => {
                self.answers().put(key, relevant);
                Some(relevant)
            }
            Err(failure) => {
                // The question was not sent, because another one failed in the meantime.
                if failure == Failure::Paused {
                    self.budget().release(account, &scan.manager);
                }
                None
            }
        }
    }

    fn budget(&self) -> MutexGuard<'_, Budget> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answers(&self) -> MutexGuard<'_, AnswerCache> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the lowest score of a candidate.
///
/// It is never zero for a positive threshold: posts that the gate rules out have the score zero, and must
/// not become candidates.
pub fn candidate_threshold(threshold: f64, candidate_percent: u32) -> f64 {
    if threshold > 0.0 {
        threshold * f64::from(candidate_percent) / 100.0
    } else {
        threshold
    }
}

/// Decides on a candidate and counts the outcome.
fn settle(candidate: Candidate<'_>) -> Option<NewScan<'_>> {
    let Candidate {
        mut scan,
        embedded,
        answer,
        ..
    } = candidate;
    let outcome = match (embedded, answer) {
        (_, None) => "undecided",
        (true, Some(true)) => "kept",
        (true, Some(false)) => "dropped",
        (false, Some(true)) => "added",
        (false, Some(false)) => "left_out",
    };
    metrics::JUDGEMENTS.with_label_values(&[outcome]).inc();
    scan.matched.judged = answer.is_some();
    is_relevant(embedded, answer).then_some(scan)
}

/// Returns the final decision: the model's answer, or the embedded decision without one.
pub fn is_relevant(embedded: bool, answer: Option<bool>) -> bool {
    answer.unwrap_or(embedded)
}

async fn instructions_of(
    pool: &Pool,
    candidates: &[Candidate<'_>],
) -> Result<HashMap<ManagerName, (Id, Instructions)>, store::Error> {
    let mut managers: Vec<ManagerName> = candidates.iter().map(|c| c.scan.manager).collect();
    managers.sort_unstable();
    managers.dedup();
    let mut conn = pool.get().await?;
    Ok(plans::instructions_of(&mut conn, &managers).await?)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::{Id, ManagerName};
    use tokio::time::Instant;

    use super::{Budget, Deadlines, Request, candidate_threshold, is_relevant};

    #[test]
    fn first_question_of_an_account_sets_its_deadline_alone() {
        let (deadlines, now) = (Deadlines::default(), Instant::now());
        let [one, other] = [Id::generate(), Id::generate()];
        let later = now + Duration::from_secs(1);
        assert_eq!(deadlines.of(one, now), now);
        assert_eq!(deadlines.of(one, later), now);
        assert_eq!(deadlines.of(other, later), later);
    }

    #[test]
    fn candidates_beyond_the_budget_keep_the_embedded_decision() {
        let manager = ManagerName {
            namespace: Id::generate(),
            manager: Id::generate(),
        };
        let request = |uncertainty| Request {
            account: Id::NIL,
            manager,
            uncertainty,
        };
        let mut budget = Budget::new(1_000, 2);
        // The model says no to all; every second candidate lies above the threshold.
        let poll = [0.9, 0.8, 0.5, 0.4, 0.3].map(request);
        let asked = budget.admit(&poll, Instant::now());
        assert!(asked.len() <= 2 && asked.contains(&0), "{asked:?}");
        let decisions = (0..poll.len()).map(|nth| {
            let answer = asked.contains(&nth).then_some(false);
            is_relevant(nth % 2 == 0, answer)
        });
        assert_eq!(
            decisions.collect::<Vec<_>>(),
            [false, false, true, false, true]
        );
    }

    #[test]
    fn candidate_threshold_is_a_share_of_a_positive_threshold() {
        assert!((candidate_threshold(0.3, 33) - 0.099).abs() < 1e-9);
        assert!((candidate_threshold(0.3, 100) - 0.3).abs() < 1e-9);
        assert!(candidate_threshold(0.0, 33).abs() < 1e-9);
        assert!((candidate_threshold(-1.0, 33) + 1.0).abs() < 1e-9);
    }

    #[test]
    fn answer_overrules_the_embedded_decision() {
        for embedded in [true, false] {
            assert_eq!(is_relevant(embedded, None), embedded);
            assert!(is_relevant(embedded, Some(true)));
            assert!(!is_relevant(embedded, Some(false)));
        }
    }
}
