//! Attacks of one account on another, and on the operator. Nearly all worked on an early version.
//!
//! They attack an `earshot dev` over HTTP, with feeds, pages and receivers that they serve themselves. So the
//! same tests run against an older program: `EARSHOT_BINARY` is the path of another `earshot`. They assert what is
//! answered, how often and in what order, and no times. Those of [`memory`] attack the four services, because each has a
//! memory limit of its own; [`deaths`] kills three of them.
//!
//! [`stage`] is the service with its accounts, [`fleet`] the four services with a victim, and [`host`] the attacker's web
//! server.

mod deaths;
mod fairness;
mod fleet;
mod host;
mod mcp;
mod memory;
mod networks;
mod redirects;
mod secrets;
mod stage;

use std::{process::ExitCode, sync::Arc};

use tokio::{runtime::Runtime, sync::OnceCell};

use crate::suite::{self, Test};
use fleet::Fleet;
use stage::{Account, Stage};

/// The nextest configuration runs nothing next to the tests of this name.
const FOUR_SERVICES: &str = "on_four_services";

/// Runs the tests in sequence. Those that need no settings share a service; those that keep it busy come last.
#[must_use]
pub fn run() -> ExitCode {
    let shared = Arc::new(Shared {
        runtime: Runtime::new().unwrap(),
        stage: OnceCell::new(),
        fleet: OnceCell::new(),
    });
    let tests = [
        secrets::tests(&shared),
        mcp::tests(&shared),
        networks::tests(&shared),
        redirects::tests(&shared),
        fairness::tests(&shared),
        deaths::tests(&shared),
        memory::tests(&shared),
    ];
    let code = suite::run("attacks", tests.into_iter().flatten().collect());
    let _within = shared.runtime.enter();
    code
}

struct Shared {
    // Dropped first: they run in the runtime.
    stage: OnceCell<Stage>,
    fleet: OnceCell<Fleet>,
    runtime: Runtime,
}

impl Shared {
    /// A test on the shared service, with separate accounts.
    fn test<F>(self: &Arc<Self>, name: &str, attack: F) -> Test
    where
        F: AsyncFnOnce(&Stage) + Send + 'static,
    {
        let shared = Arc::clone(self);
        Test::sharing(format!("attacks::{name}"), move || {
            shared.runtime.block_on(async {
                let stage = shared.stage.get_or_init(Stage::start).await;
                attack(stage).await;
            });
        })
    }

    /// A test on the four services, with an attacker of its own. The victim must not notice it, and no service may end or
    /// need more memory than the chart gives it.
    fn test_memory<F>(self: &Arc<Self>, name: &str, attack: F) -> Test
    where
        F: AsyncFnOnce(&Fleet, &Account) + Send + 'static,
    {
        let shared = Arc::clone(self);
        let name = format!("attacks::{name}");
        Test::sharing_another(FOUR_SERVICES, name, move || {
            shared.runtime.block_on(async {
                let fleet = shared.fleet.get_or_init(Fleet::start).await;
                fleet.survives(attack).await;
            });
        })
    }

    /// A test that starts a service.
    fn test_alone<F>(self: &Arc<Self>, name: &str, attack: F) -> Test
    where
        F: AsyncFnOnce() + Send + 'static,
    {
        let shared = Arc::clone(self);
        Test::alone(format!("attacks::{name}"), move || {
            shared.runtime.block_on(attack())
        })
    }
}
