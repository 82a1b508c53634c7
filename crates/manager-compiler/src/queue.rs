//! The queue of Managers that wait for compilation, claimed from the database and fair to all accounts.
//!
//! AUTOMATIC and MANUAL Managers have separate capacity: what needs no page never waits for one that does. Both kinds
//! are shared between accounts ([`store::fair`]): even if one account submits many Managers, half of the capacity is
//! left for the others.
//!
//! An event wakes the queue of the process that receives it. If a process dies with a claim, or a Manager's event is
//! lost, the next check of any process finds the Manager.

use std::{sync::Arc, time::Duration};

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
/// Longest time between two checks.
const LOOK: Duration = Duration::from_secs(1);

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
        let compilation = self.compiler.compile(leased.account, &leased.item);
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
        fail(conn, leased.item, self.code(), &setback.reason).await
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
    /// Code of a failure of the service. The published list of codes has none for that, so the code names the kind of
    /// input, and the message says that the service failed.
    fn code(&self) -> ApplyErrorCode {
        match self.mode {
            Mode::Automatic => ApplyErrorCode::NoUsableContent,
            Mode::Manual => ApplyErrorCode::InvalidInstructions,
        }
    }

    /// Fails a Manager that the database refuses. The error names tables, which are not the owner's business.
    async fn give_up(
        &self,
        leased: &Leased<Generation>,
        error: store::Error,
    ) -> Result<(), store::Error> {
        let (_permit, mut conn) = self.compiler.connect(leased.account).await?;
        let reason = "the service could not read or store it; its log has the details";
        fail(&mut conn, leased.item, self.code(), reason).await?;
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
