//! Recompiles applied Managers, because their pages change and their customers give feedback.
//!
//! A sweep claims a few due Managers at a time. A claim postpones a Manager's next turn, so that replicas share the
//! work; if one dies, the others take over an hour later. Old instructions stay active until new ones are stored, and
//! remain so when a page that they are based on does not answer.

use std::time::Duration;

use domain::{Instructions, ManagerName, Timestamp};
use events::ManagerApplied;
use runtime::Periodic;
use store::{
    AsyncConnection,
    feedback::{self, Due},
    managers::{self, Submission},
    outbox,
};
use tokio_util::sync::CancellationToken;

use crate::{compile, service::ManagerCompiler};

const SWEEP: Duration = Duration::from_secs(5);
/// Concurrent recompilations; limited so that submissions, which a user waits for, have capacity.
const AT_A_TIME: i64 = 4;
/// Number of new verdicts that trigger a recompilation.
const VERDICTS: i64 = 5;
const MEMORY: Duration = Duration::from_secs(7 * 24 * 3600);
const PAUSE: Duration = Duration::from_secs(3600);

impl ManagerCompiler {
    pub(crate) async fn recompile(&self, interval: Duration, shutdown: &CancellationToken) {
        let due = Due {
            interval,
            verdicts: VERDICTS,
            memory: MEMORY,
            pause: PAUSE,
        };
        let mut rounds = Periodic::new(shutdown);
        while rounds.after(SWEEP).await {
            rounds.note(
                "recompile due Managers",
                self.recompile_due(due, shutdown).await,
            );
        }
    }

    /// Recompiles everything that is due now.
    async fn recompile_due(
        &self,
        due: Due,
        shutdown: &CancellationToken,
    ) -> Result<(), store::Error> {
        while !shutdown.is_cancelled() {
            let claimed = {
                let mut conn = self.backbone.pool.get().await?;
                feedback::claim_due(&mut conn, due, AT_A_TIME).await?
            };
            if claimed.is_empty() {
                return Ok(());
            }
            for submission in claimed {
                match self.compile_again(&submission).await {
                    // An unreadable row stays unreadable, and must not delay others.
                    Err(error @ store::Error::Json(_)) => {
                        let name = submission.manager;
                        tracing::error!(manager.name = %name, "cannot recompile: {:#}", anyhow::Error::from(error));
                    }
                    done => done?,
                }
            }
        }
        Ok(())
    }

    async fn compile_again(&self, submission: &Submission) -> Result<(), store::Error> {
        let (name, generation) = (submission.manager, submission.generation);
        let (mut instructions, missed) = match self.instructions(submission).await {
            Ok(compiled) => compiled,
            Err(error) => {
                tracing::info!(manager.name = %name, reason = error.message, "kept the previous instructions");
                return Ok(());
            }
        };
        let at_work = {
            let mut conn = self.backbone.pool.get().await?;
            managers::get(&mut conn, name).await?
        };
        let at_work = at_work.and_then(|manager| manager.instructions);
        if { at_work.as_ref() }.is_some_and(|at_work| missed.is_news_to(&at_work.brief)) {
            // A page that is unavailable for an hour must not remove what it says about the subject.
            tracing::info!(manager.name = %name, reason = missed.told, "kept the previous instructions");
            return Ok(());
        }
        let mut applied = self.reapply(name, generation, &instructions).await;
        if let (Err(store::Error::QuotaExceeded(exceeded)), Some(at_work)) = (&applied, at_work) {
            instructions.feeds = at_work.feeds;
            let why = format!("Its feeds were kept, because {exceeded}.");
            compile::tell(&mut instructions, &why);
            applied = self.reapply(name, generation, &instructions).await;
        }
        match applied {
            Ok(true) => {
                self.backbone.outbox.wake();
                tracing::info!(manager.name = %name, generation, "compiled again");
            }
            Ok(false) => {}
            Err(store::Error::QuotaExceeded(exceeded)) => {
                tracing::info!(manager.name = %name, reason = %exceeded, "kept the previous instructions");
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Stores the instructions and announces them. Returns false for a stale result.
    async fn reapply(
        &self,
        name: ManagerName,
        generation: i64,
        instructions: &Instructions,
    ) -> Result<bool, store::Error> {
        let mut conn = self.backbone.pool.get().await?;
        conn.transaction(async |conn| {
            let (quotas, now) = (&self.quotas, Timestamp::now());
            let version =
                feedback::reapply(conn, name, generation, instructions, quotas, now).await?;
            if let Some(plan_version) = version {
                let event = ManagerApplied {
                    name,
                    generation,
                    plan_version,
                };
                outbox::enqueue(conn, &event).await?;
            }
            Ok(version.is_some())
        })
        .await
    }
}
