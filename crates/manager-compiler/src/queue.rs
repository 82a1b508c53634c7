//! The queue of Managers that wait for compilation, claimed from the database and fair to all accounts.
//!
//! AUTOMATIC and MANUAL Managers have separate capacity: what needs no page never waits for one that does. Both kinds
//! are shared between accounts ([`store::fair`]): even if one account submits many Managers, half of the capacity is
//! left for the others.
//!
//! An event wakes the queue of the process that receives it. If a process dies with a claim, or a Manager's event is
//! lost, the next look of any process finds the Manager.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use backbone::{
    Backbone,
    work::{self, Settings, Work},
};
use domain::{
    Timestamp,
    manager::{ApplyErrorCode, Mode},
};
use store::{
    AsyncPgConnection,
    managers::{self, Generation},
    work::{Claim, Claimed, Leased, Setback},
};
use tracing::Span;

use crate::service::{ManagerCompiler, error};

/// AUTOMATIC Managers compiled concurrently. One account can use half of the capacity. Compiling is CPU-bound, so more
/// concurrency only makes each slower.
const AUTOMATIC: usize = 8;
/// MANUAL Managers compiled concurrently.
const MANUAL: usize = 16;
/// Longest time between two looks.
const LOOK: Duration = Duration::from_secs(2);

/// Failures in a row after which a compilation that the database may refuse is not tried again. They take three minutes:
/// during an upgrade, a newer compiler can start meanwhile, and read what this one cannot.
const MAX_FAILURES: u32 = 8;
/// The same for violations of a constraint. Another transaction may cause one.
const MAX_VIOLATIONS: u32 = 3;
/// Limit of the compilations whose failures are counted.
const MAX_COUNTED: usize = 10_000;

/// Failures in a row of the compilations that are tried again, by their keys.
#[derive(Default)]
pub(crate) struct Failures(Mutex<HashMap<String, u32>>);

impl Failures {
    /// Counts a failure. Returns true if it must be the last one.
    fn is_last(&self, key: &str, error: &store::Error) -> bool {
        if !error.may_be_refusal() {
            return false;
        }
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() >= MAX_COUNTED {
            counts.clear();
        }
        let count = counts.entry(key.to_owned()).or_default();
        *count += 1;
        let most = if error.is_refusal() {
            MAX_VIOLATIONS
        } else {
            MAX_FAILURES
        };
        *count >= most
    }

    fn forget(&self, key: &str) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.remove(key);
    }
}

/// The Managers of one mode that wait for compilation.
pub(crate) struct Queue {
    pub(crate) compiler: Arc<ManagerCompiler>,
    pub(crate) mode: Mode,
}

impl Work for Queue {
    type Item = Generation;

    fn settings(&self) -> Settings {
        match self.mode {
            Mode::Automatic => Settings::new("compile", LOOK, AUTOMATIC),
            Mode::Manual => Settings::new("compile_manual", LOOK, MANUAL),
        }
    }

    async fn claim(
        &self,
        conn: &mut AsyncPgConnection,
        claim: &mut Claim<'_>,
    ) -> Result<Claimed<Generation>, store::Error> {
        Ok(managers::claim(conn, self.mode, claim).await?)
    }

    async fn run(&self, leased: &Leased<Generation>) -> Result<(), store::Error> {
        let compilation = self.compiler.compile(&leased.item);
        let compiled = self.compiler.in_turn(leased.account, compilation).await;
        let failures = &self.compiler.failures;
        match compiled {
            Err(error) if failures.is_last(&leased.key, &error) => {
                self.give_up(leased, error).await?
            }
            compiled => compiled?,
        }
        failures.forget(&leased.key);
        Ok(())
    }

    async fn set_aside(
        &self,
        conn: &mut AsyncPgConnection,
        _backbone: &Backbone,
        leased: &Leased<Generation>,
        setback: &Setback,
    ) -> Result<(), store::Error> {
        fail(
            conn,
            leased.item,
            ApplyErrorCode::NoUsableContent,
            &setback.reason,
        )
        .await
    }

    fn uses_table(&self) -> bool {
        false
    }

    async fn woken(&self) {
        self.compiler.arrivals.of(self.mode).notified().await;
    }

    fn span(&self, item: &Generation) -> Span {
        self.compiler.arrivals.span(item)
    }

    fn name(&self, leased: &Leased<Generation>) -> String {
        leased.item.manager.to_string()
    }
}

impl Queue {
    /// Fails a Manager that the database refuses. The error names tables, which are not the owner's business.
    async fn give_up(
        &self,
        leased: &Leased<Generation>,
        error: store::Error,
    ) -> Result<(), store::Error> {
        let mut conn = self.compiler.backbone.pool.get().await?;
        let reason = "the service could not read or store it; its log has the details";
        fail(
            &mut conn,
            leased.item,
            ApplyErrorCode::InvalidInstructions,
            reason,
        )
        .await?;
        work::count_set_aside(self.settings().kind, 1);
        let (name, error) = (leased.item.manager, anyhow::Error::from(error));
        tracing::error!(manager.name = %name, "cannot be compiled, and is not tried again: {error:#}");
        Ok(())
    }
}

async fn fail(
    conn: &mut AsyncPgConnection,
    claimed: Generation,
    code: ApplyErrorCode,
    reason: &str,
) -> Result<(), store::Error> {
    let failure = error(code, &format!("could not be compiled: {reason}"));
    let Generation {
        manager,
        generation,
    } = claimed;
    managers::fail(conn, manager, generation, &failure, Timestamp::now()).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreadable_submission_is_given_up_after_some_tries_and_a_lost_connection_never() {
        let failures = Failures::default();
        let lost = store::Error::Pool("lost".into());
        let json = serde_json::from_str::<()>("x").unwrap_err();
        let unreadable = store::Error::Json(json);
        for _ in 1..MAX_FAILURES {
            assert!(!failures.is_last("a", &unreadable));
            assert!(!failures.is_last("a", &lost));
        }
        assert!(!failures.is_last("b", &unreadable));
        assert!(failures.is_last("a", &unreadable));
        failures.forget("a");
        assert!(!failures.is_last("a", &unreadable));
    }
}
