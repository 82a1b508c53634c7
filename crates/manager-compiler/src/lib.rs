//! Compiles a Manager's seed pages into instructions.
//!
//! The compiling itself is in the crate `compiling`. Around it, `seeds` fetches the pages, `queue` claims submissions,
//! `service` compiles them and stores the results, `discovery` searches for communities, `refine` asks the operator's model if there is one, `recompile`
//! recompiles applied Managers, and `feedback` applies the customers' verdicts on matches.

mod arrivals;
mod discovery;
mod failures;
mod feedback;
mod monitor;
mod queue;
mod recompile;
mod refine;
mod seeds;
mod service;

use std::sync::Arc;

use backbone::{Backbone, work};
use domain::manager::Mode;
use runtime::{Config, Context};

use queue::Queue;
use recompile::Recompilation;
use service::ManagerCompiler;

/// Compiles until the context's shutdown, then finishes the compilations in progress.
///
/// # Errors
/// Returns an error when a setting cannot be used.
pub async fn run(config: Arc<Config>, context: Context, backbone: Backbone) -> anyhow::Result<()> {
    let compiler = Arc::new(ManagerCompiler::new(&config, backbone)?);
    if !compiler.backbone.ready(&context.shutdown).await {
        return Ok(());
    }
    let check = context.health.check("consumer.manager-submitted");
    let queue = |mode| {
        let compiler = Arc::clone(&compiler);
        Arc::new(Queue { compiler, mode })
    };
    let recompilation = Recompilation::new(&compiler, config.compiler.recompile_interval);
    let (host, shutdown) = (&compiler.backbone, &context.shutdown);
    let working = async {
        tokio::join!(
            bus::consume(
                Arc::clone(&compiler.backbone.bus),
                Arc::clone(&compiler),
                Some(check),
                shutdown.clone()
            ),
            work::run(queue(Mode::Automatic), host, shutdown),
            work::run(queue(Mode::Manual), host, shutdown),
            work::run(Arc::new(recompilation), host, shutdown),
            monitor::run(&compiler.backbone.pool, shutdown),
        );
    };
    // A large future.
    Box::pin(working).await;
    Ok(())
}
