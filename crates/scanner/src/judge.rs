//! Lets a model judge posts whose score lies close to the threshold, where the operator has one.
//!
//! The index is then built with thresholds that are lower by the band ([`Thresholds`]), so that a poll finds
//! what falls short by a little too. Between matching and the poll's transaction each such post is asked
//! about, with what its Manager looks for ([`question`]): those closest to the threshold first, within a
//! [`Budget`] and a bound on open questions. What is not answered, in time and in form, is decided by the
//! threshold, as it is without a model; so a poll loses nothing to a model that hangs but twice its
//! time-out, once to wait for a turn and once for the answer.
//!
//! Nothing is stored of a judgement but the Scan. A poll that is repeated, after a crash between judgement and
//! commit or because plans changed, asks again what is not remembered here, and a Manager gets one Scan of a
//! post whatever was answered when, or to whom.

mod budget;
mod question;
mod remembered;
mod thresholds;

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use domain::{Instructions, ManagerName};
use futures::future::join_all;
use model_endpoint::{Endpoint, Failure, Purpose};
use runtime::config;
use store::{Pool, plans, scans::NewScan};
use tokio::{sync::Semaphore, time::Instant};

use crate::metrics;
use budget::Budget;
use question::Answer;
use remembered::Remembered;
pub(crate) use thresholds::{Thresholds, lowered};

pub struct Judge {
    endpoint: Endpoint,
    /// How far from its threshold a score is in doubt.
    band: f64,
    timeout: Duration,
    open: Semaphore,
    budget: Mutex<Budget>,
    remembered: Mutex<Remembered>,
}

/// A match that is to be judged.
struct Doubt<'a> {
    /// What is decided without an answer.
    embedded: bool,
    distance: f64,
    scan: NewScan<'a>,
}

impl Judge {
    #[must_use]
    pub fn new(settings: &config::Judge) -> Self {
        Self {
            endpoint: Endpoint::new(&settings.model),
            band: f64::from(settings.band_percent) / 100.0,
            timeout: settings.model.timeout,
            open: Semaphore::new(settings.max_open as usize),
            budget: Mutex::new(Budget::new(
                settings.max_per_minute,
                settings.max_per_manager_per_hour,
            )),
            remembered: Mutex::default(),
        }
    }

    pub(crate) fn band(&self) -> f64 {
        self.band
    }

    /// Those of `matches` that become Scans, in their order; what the lowered thresholds let in goes.
    pub(crate) async fn decide<'a>(
        &self,
        pool: &Pool,
        thresholds: &Thresholds,
        matches: Vec<NewScan<'a>>,
    ) -> Vec<NewScan<'a>> {
        let mut decided: Vec<Option<NewScan<'a>>> = Vec::with_capacity(matches.len());
        let mut doubts = Vec::new();
        for (place, scan) in matches.into_iter().enumerate() {
            let score = scan.matched.score;
            let threshold = thresholds.of(&scan.manager);
            // Without one there is no focus, and the index has decided.
            let embedded = threshold.is_none_or(|threshold| score >= threshold);
            let distance = threshold.map_or(f64::INFINITY, |threshold| (score - threshold).abs());
            if distance <= self.band {
                let doubt = Doubt {
                    embedded,
                    distance,
                    scan,
                };
                doubts.push((place, doubt));
                decided.push(None);
            } else {
                decided.push(embedded.then_some(scan));
            }
        }
        for (place, scan) in self.judge(pool, doubts).await {
            decided[place] = scan;
        }
        decided.into_iter().flatten().collect()
    }

    async fn judge<'a>(
        &self,
        pool: &Pool,
        mut doubts: Vec<(usize, Doubt<'a>)>,
    ) -> Vec<(usize, Option<NewScan<'a>>)> {
        if doubts.is_empty() {
            return Vec::new();
        }
        doubts.sort_by(|(_, a), (_, b)| a.distance.total_cmp(&b.distance));
        let mut managers: Vec<ManagerName> = doubts.iter().map(|(_, d)| d.scan.manager).collect();
        managers.sort_unstable();
        managers.dedup();
        // The connection is given back before anything is asked.
        let instructions = match instructions(pool, &managers).await {
            Ok(instructions) => instructions,
            Err(error) => {
                let error = anyhow::Error::from(error);
                tracing::debug!("nothing is judged: {error:#}");
                HashMap::new()
            }
        };
        let instructions = &instructions;
        let asked = doubts.into_iter().map(|(place, doubt)| async move {
            let answer = match instructions.get(&doubt.scan.manager) {
                Some(of) => self.ask(&doubt.scan, of).await,
                None => None,
            };
            (place, settled(doubt, answer))
        });
        join_all(asked).await
    }

    /// The model's verdict, if there is one.
    async fn ask(&self, scan: &NewScan<'_>, instructions: &Instructions) -> Option<bool> {
        let material = question::material(scan, instructions);
        let key = self.remembered().key(&scan.manager, &material);
        if let Some(known) = self.remembered().get(key) {
            return Some(known);
        }
        if let Some(rest) = self.endpoint.rest() {
            self.endpoint.forgo(Purpose::Judge, &rest);
            return None;
        }
        let granted = self.budget().take(scan.manager, Instant::now());
        if !granted {
            self.endpoint.forgo(Purpose::Judge, &Failure::OverBudget);
            return None;
        }
        let turn = tokio::time::timeout(self.timeout, self.open.acquire()).await;
        let Ok(Ok(_turn)) = turn else {
            self.endpoint.forgo(Purpose::Judge, &Failure::Busy);
            return None;
        };
        let answer = self
            .endpoint
            .ask::<Answer>(Purpose::Judge, question::INSTRUCTION, &material)
            .await;
        let verdict = answer.ok()?.relevant;
        self.remembered().put(key, verdict);
        Some(verdict)
    }

    fn budget(&self) -> std::sync::MutexGuard<'_, Budget> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remembered(&self) -> std::sync::MutexGuard<'_, Remembered> {
        self.remembered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn settled<'a>(doubt: Doubt<'a>, answer: Option<bool>) -> Option<NewScan<'a>> {
    let outcome = match (doubt.embedded, answer) {
        (_, None) => "undecided",
        (true, Some(true)) => "kept",
        (true, Some(false)) => "dropped",
        (false, Some(true)) => "added",
        (false, Some(false)) => "left_out",
    };
    metrics::JUDGEMENTS.with_label_values(&[outcome]).inc();
    let mut scan = doubt.scan;
    scan.matched.judged = answer.is_some();
    answer.unwrap_or(doubt.embedded).then_some(scan)
}

async fn instructions(
    pool: &Pool,
    managers: &[ManagerName],
) -> Result<HashMap<ManagerName, Instructions>, store::Error> {
    let mut conn = pool.get().await?;
    Ok(plans::instructions_of(&mut conn, managers).await?)
}
