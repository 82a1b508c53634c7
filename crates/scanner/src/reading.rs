//! Reading: a small transformer ([`reader`]) decides on doubtful posts, if the operator configured it.
//!
//! The index finds posts by words. Whether a need is one for what the customer sells, words cannot tell. So each match of a
//! Manager with a focus whose score suffices ([`candidate_threshold`]) is compared with what the customer sells, and gets the reader's
//! score instead. The Manager's threshold then decides as before.
//!
//! A post is read once for all Managers of a block of matches. Readings take turns: one account has at most half of them.
//! After [`PostReader::max_wait`](config::PostReader::max_wait), none of the block begins. A Manager has a budget of posts for the day. A post that is not read keeps its
//! score, and its Scan says why ([`ReaderOutcome`]).

mod customers;

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use backbone::shares::Shares;
use domain::{Id, ManagerName, Post, scan::ReaderOutcome};
use matching::{Index, Plan, PostText};
use reader::{Customer, Reader, candidate_threshold, obstacle};
use runtime::{background, config};
use store::{Pool, scans::NewScan};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

use crate::{
    llm_filter::{Budget, Request},
    metrics,
    thresholds::uncertainty,
};
use customers::{Customers, Found};

/// Readings that wait for the reader's thread or use it: the second begins as soon as the first ends.
const TURNS: usize = 2;

pub(crate) struct Reading {
    /// `None` if its files cannot be used.
    reader: Option<Arc<Reader>>,
    max_wait: Duration,
    turns: Semaphore,
    shares: Shares,
    budget: Mutex<Budget>,
    customers: Customers,
}

/// A match to decide on, and the threshold of its Manager.
pub(crate) type Doubtful<'s, 'a> = (f64, &'s mut NewScan<'a>);

/// A match to judge once its post was read.
struct Asked {
    /// Position among the matches.
    at: usize,
    plan: Plan,
    customer: Arc<Customer>,
}

impl Reading {
    pub(crate) fn new(settings: &config::PostReader) -> Self {
        Self {
            reader: open(Path::new(&settings.folder)).map(Arc::new),
            max_wait: settings.max_wait,
            turns: Semaphore::new(TURNS),
            shares: Shares::of(TURNS),
            // A minute has no limit: turns and waits bound the work.
            budget: Mutex::new(Budget::new(u32::MAX, settings.max_per_manager_per_day)),
            customers: Customers::default(),
        }
    }

    /// Returns the lowest score of a post that is read for a Manager with this threshold.
    pub(crate) fn candidate_threshold(&self, threshold: f64) -> f64 {
        match self.reader {
            Some(_) => candidate_threshold(threshold),
            None => threshold,
        }
    }

    /// Forgets what a Manager's customer sells, because its plan changed.
    pub(crate) fn forget(&self, manager: &ManagerName) {
        self.customers.forget(manager);
    }

    /// Gives matches the reader's score, and notes on each what it did.
    pub(crate) async fn judge(
        &self,
        pool: &Pool,
        index: &Index,
        account: Id,
        mut matches: Vec<Doubtful<'_, '_>>,
    ) {
        let outcomes = self.outcomes(pool, index, account, &mut matches).await;
        for ((_, scan), outcome) in matches.iter_mut().zip(outcomes) {
            let label = outcome.as_str().to_ascii_lowercase();
            metrics::READER.with_label_values(&[&label]).inc();
            scan.matched.reader = Some(outcome);
        }
    }

    async fn outcomes(
        &self,
        pool: &Pool,
        index: &Index,
        account: Id,
        matches: &mut [Doubtful<'_, '_>],
    ) -> Vec<ReaderOutcome> {
        let mut outcomes = vec![ReaderOutcome::Unavailable; matches.len()];
        let Some(reader) = &self.reader else {
            return outcomes;
        };
        let deadline = Instant::now() + self.max_wait;
        let readable = self.readable(account, matches, &mut outcomes);
        let managers = readable.iter().map(|at| matches[*at].1.manager);
        let found = self.customers.of(pool, managers.collect()).await;
        let mut sold = HashMap::new();
        for (manager, found) in found {
            let customer = match found {
                Found::Known(customer) => Ok(customer),
                Found::Missing(missing) => match self.turn(account, deadline).await {
                    Some(_turn) => self.customers.read(reader, manager, *missing).await,
                    None => Err(ReaderOutcome::Busy),
                },
                Found::Failed(outcome) => Err(outcome),
            };
            sold.insert(manager, customer);
        }
        // The matches of a post stand together.
        let mut left = &readable[..];
        while let Some(first) = left.first() {
            let post = matches[*first].1.post;
            let is_same = |at: &&usize| std::ptr::eq(matches[**at].1.post, post);
            let of_post = left.iter().take_while(is_same).count();
            let (now, rest) = left.split_at(of_post);
            left = rest;
            let mut asked = Vec::new();
            for at in now {
                let manager = &matches[*at].1.manager;
                match sold.get(manager) {
                    Some(Ok(customer)) => {
                        asked.extend(index.plan(manager).map(|plan| Asked {
                            at: *at,
                            plan,
                            customer: Arc::clone(customer),
                        }));
                    }
                    Some(Err(outcome)) => outcomes[*at] = *outcome,
                    None => {}
                }
            }
            if asked.is_empty() {
                continue;
            }
            let Some(_turn) = self.turn(account, deadline).await else {
                asked
                    .iter()
                    .for_each(|one| outcomes[one.at] = ReaderOutcome::Busy);
                continue;
            };
            let post = post.clone();
            let reader = Arc::clone(reader);
            let begin = Instant::now();
            let scores = background::spawn(move || scores(&reader, &post, &asked)).await;
            metrics::READER_DURATION.observe(begin.elapsed().as_secs_f64());
            match scores {
                Ok(Ok(scores)) => {
                    for (at, score) in scores {
                        matches[at].1.matched.score = score;
                        outcomes[at] = ReaderOutcome::Judged;
                    }
                }
                Ok(Err(error)) => tracing::warn!("a post cannot be judged by the reader: {error}"),
                Err(_panic) => {
                    tracing::warn!("a post cannot be judged by the reader: an internal error")
                }
            }
        }
        outcomes
    }

    /// Returns the positions of the matches to judge, and notes why the others are not.
    fn readable(
        &self,
        account: Id,
        matches: &[Doubtful<'_, '_>],
        outcomes: &mut [ReaderOutcome],
    ) -> Vec<usize> {
        let mut readable = Vec::new();
        let mut last: Option<(&Post, Option<ReaderOutcome>)> = None;
        for (at, (_, scan)) in matches.iter().enumerate() {
            let post = scan.post;
            let obstacle = match last {
                Some((known, obstacle)) if std::ptr::eq(known, post) => obstacle,
                _ => obstacle(
                    post.title.as_deref().unwrap_or_default(),
                    &PostText::from(post),
                ),
            };
            last = Some((post, obstacle));
            match obstacle {
                Some(obstacle) => outcomes[at] = obstacle,
                None => readable.push(at),
            }
        }
        let requests: Vec<_> = readable
            .iter()
            .map(|at| {
                let (threshold, scan) = &matches[*at];
                Request {
                    account,
                    manager: scan.manager,
                    uncertainty: uncertainty(scan.matched.score, *threshold),
                }
            })
            .collect();
        let mut admitted = self.lock_budget().admit(&requests, Instant::now());
        admitted.sort_unstable();
        for (nth, at) in readable.iter().enumerate() {
            if admitted.binary_search(&nth).is_err() {
                outcomes[*at] = ReaderOutcome::OverBudget;
            }
        }
        admitted.into_iter().map(|nth| readable[nth]).collect()
    }

    async fn turn(
        &self,
        account: Id,
        deadline: Instant,
    ) -> Option<(OwnedSemaphorePermit, tokio::sync::SemaphorePermit<'_>)> {
        // A turn that is free would be taken after the deadline, too.
        if Instant::now() >= deadline {
            return None;
        }
        let turn = async {
            let share = self.shares.take(account, 1).await?;
            Some((share, self.turns.acquire().await.ok()?))
        };
        timeout_at(deadline, turn).await.ok().flatten()
    }

    fn lock_budget(&self) -> MutexGuard<'_, Budget> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open(folder: &Path) -> Option<Reader> {
    match Reader::in_folder(folder) {
        Ok(reader) => {
            metrics::READER_READY.set(1);
            Some(reader)
        }
        Err(error) => {
            metrics::READER_READY.set(0);
            tracing::error!("posts are judged without the reader: {error}");
            None
        }
    }
}

/// Reads a post and returns its score for each Manager, by position.
fn scores(
    reader: &Reader,
    post: &Post,
    asked: &[Asked],
) -> Result<Vec<(usize, f64)>, reader::ReadError> {
    let title = post.title.as_deref().unwrap_or_default();
    let read = reader.post(title, post.text.as_deref().unwrap_or_default())?;
    let text = PostText::from(post);
    let scores = asked.iter().filter_map(|one| {
        let score = reader.score(&one.plan, &text, &read, &one.customer)?;
        Some((one.at, score))
    });
    Ok(scores.collect())
}
