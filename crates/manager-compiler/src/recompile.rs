//! Recompiles applied Managers, because their pages change and their customers give feedback.
//!
//! Once its recompilation begins, a Manager rests, for longer each time in a row, until new instructions are stored. So
//! pages that fail delay no other Manager. Old instructions stay active until new ones are stored, and remain so when a
//! page that they are based on does not answer.

use std::{sync::Arc, time::Duration};

use backbone::{
    Backbone,
    work::{Settings, Work},
};
use compiling::compile;
use domain::{Id, Instructions, ManagerName, Timestamp};
use events::ManagerApplied;
use store::{
    AsyncConnection, AsyncPgConnection,
    feedback::{self, Due},
    managers::{self, Submission},
    work::{Claim, Claimed, Leased, Setback, table},
};

use crate::service::ManagerCompiler;

const LOOK: Duration = Duration::from_secs(5);
/// Concurrent recompilations; limited so that submissions, which a user waits for, have capacity.
const AT_A_TIME: usize = 4;
/// Number of new verdicts that trigger a recompilation.
const VERDICTS: i32 = 5;
const PAUSE: Duration = Duration::from_secs(3600);

/// Applied Managers that are due.
pub(crate) struct Recompilation {
    compiler: Arc<ManagerCompiler>,
    due: Due,
}

impl Recompilation {
    pub(crate) fn new(compiler: &Arc<ManagerCompiler>, interval: Duration) -> Self {
        Self {
            compiler: Arc::clone(compiler),
            due: Due {
                interval,
                verdicts: VERDICTS,
                pause: PAUSE,
            },
        }
    }
}

impl Work for Recompilation {
    type Item = ManagerName;

    fn settings(&self) -> Settings {
        Settings::new("recompile", LOOK, AT_A_TIME)
    }

    async fn claim(
        &self,
        conn: &mut AsyncPgConnection,
        claim: &mut Claim<'_>,
    ) -> Result<Claimed<ManagerName>, store::Error> {
        let due = feedback::due(conn, self.due, claim.room).await?;
        Ok(table::lease(conn, self.settings().kind, due, claim).await?)
    }

    async fn run(&self, leased: &Leased<ManagerName>) -> Result<(), store::Error> {
        let begun = {
            let (_permit, mut conn) = self.compiler.connect(leased.account).await?;
            feedback::begin(&mut conn, leased.item, self.due).await
        };
        match begun {
            Ok(Some(submission)) => {
                let compilation = self.compiler.compile_again(leased.account, &submission);
                self.compiler.in_turn(leased.account, compilation).await
            }
            Ok(None) => Ok(()),
            // An unreadable row stays unreadable, so the Manager rests.
            Err(error @ store::Error::Json(_)) => {
                let error = anyhow::Error::from(error);
                tracing::error!(manager.name = %leased.item, "cannot recompile: {error:#}");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn set_aside(
        &self,
        conn: &mut AsyncPgConnection,
        backbone: &Backbone,
        leased: &Leased<ManagerName>,
        setback: &Setback,
    ) -> Result<(), store::Error> {
        let Setback { reason, retry_in } = setback;
        feedback::record_setback(conn, leased.item, reason).await?;
        let (kind, replica) = (self.settings().kind, backbone.replica);
        table::set_aside(conn, kind, &leased.key, replica, reason, *retry_in).await?;
        Ok(())
    }
}

impl ManagerCompiler {
    async fn compile_again(
        &self,
        account: Id,
        submission: &Submission,
    ) -> Result<(), store::Error> {
        let (name, generation) = (submission.manager, submission.generation);
        let (mut instructions, missed) = match self.instructions(account, submission).await {
            Ok(compiled) => compiled,
            Err(error) => {
                tracing::info!(manager.name = %name, reason = error.message, "kept the previous instructions");
                return Ok(());
            }
        };
        let at_work = {
            let (_permit, mut conn) = self.connect(account).await?;
            managers::get(&mut conn, name).await?
        };
        let at_work = at_work.and_then(|manager| manager.instructions);
        if { at_work.as_ref() }.is_some_and(|at_work| missed.is_news_to(&at_work.brief)) {
            // A page that is unavailable for an hour must not remove what it says about the subject.
            tracing::info!(manager.name = %name, reason = missed.unread_note, "kept the previous instructions");
            return Ok(());
        }
        let mut applied = self.reapply(account, name, generation, &instructions).await;
        if let (Err(store::Error::QuotaExceeded(exceeded)), Some(at_work)) = (&applied, at_work) {
            instructions.feeds = at_work.feeds;
            let why = format!("Its feeds were kept, because {exceeded}.");
            compile::add_to_brief(&mut instructions, &why);
            applied = self.reapply(account, name, generation, &instructions).await;
        }
        match applied {
            Ok(Some(plan_version)) => {
                self.backbone.events.publish(ManagerApplied {
                    name,
                    generation,
                    plan_version,
                });
                tracing::info!(manager.name = %name, generation, "compiled again");
            }
            Ok(None) => {}
            Err(store::Error::QuotaExceeded(exceeded)) => {
                tracing::info!(manager.name = %name, reason = %exceeded, "kept the previous instructions");
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Stores the instructions. Returns the plan's version; `None` for a stale result.
    async fn reapply(
        &self,
        account: Id,
        name: ManagerName,
        generation: i64,
        instructions: &Instructions,
    ) -> Result<Option<i64>, store::Error> {
        let (_permit, mut conn) = self.connect(account).await?;
        conn.transaction(async |conn| {
            let (quotas, now) = (&self.quotas, Timestamp::now());
            feedback::reapply(conn, name, generation, instructions, quotas, now).await
        })
        .await
    }
}
