//! Attacks of one account on another, and on the operator. Nearly all worked on an early version.
//!
//! They attack an `earshot dev` over HTTP, with feeds, pages and receivers that it serves itself. So the
//! same tests run against an older program: `EARSHOT_BINARY` is the path of another `earshot`. They assert what is
//! answered, how often and in what order, and no times.
//!
//! [`stage`] is the service with its accounts, and [`host`] the attacker's web server.

mod fairness;
mod host;
mod keys;
mod lists;
mod mcp;
mod networks;
mod posts;
mod redirects;
mod secrets;
mod stage;
mod test_deliveries;

use std::{process::ExitCode, sync::Arc};

use libtest_mimic::{Arguments, Trial};
use tokio::{runtime::Runtime, sync::OnceCell};

use stage::Stage;

/// Runs the tests in sequence. Those that need no settings share a service; those that keep it busy come last.
#[must_use]
pub fn run() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let shared = Arc::new(Shared {
        runtime: Runtime::new().unwrap(),
        stage: OnceCell::new(),
    });
    let trials = [
        posts::trials(&shared),
        secrets::trials(&shared),
        keys::trials(&shared),
        mcp::trials(&shared),
        lists::trials(&shared),
        test_deliveries::trials(&shared),
        networks::trials(&shared),
        redirects::trials(&shared),
        fairness::trials(&shared),
    ];
    let trials = trials.into_iter().flatten().collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    let _within = shared.runtime.enter();
    conclusion.exit_code()
}

struct Shared {
    // Dropped first: it runs in the runtime.
    stage: OnceCell<Stage>,
    runtime: Runtime,
}

impl Shared {
    /// A test on the shared service, with separate accounts.
    fn trial<F>(self: &Arc<Self>, name: &str, attack: F) -> Trial
    where
        F: AsyncFnOnce(&Stage) + Send + 'static,
    {
        let shared = Arc::clone(self);
        self.trial_alone(name, async move || {
            let stage = shared.stage.get_or_init(Stage::start).await;
            attack(stage).await;
        })
    }

    /// A test that starts a service.
    fn trial_alone<F>(self: &Arc<Self>, name: &str, attack: F) -> Trial
    where
        F: AsyncFnOnce() + Send + 'static,
    {
        let shared = Arc::clone(self);
        Trial::test(format!("attacks::{name}"), move || {
            shared.runtime.block_on(attack());
            Ok(())
        })
    }
}
