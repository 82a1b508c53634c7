//! Black-box tests of the whole service, only over HTTP and webhooks.
//!
//! Scenarios run against `earshot dev` (`tests/dev.rs`), against the four services with a private PostgreSQL and
//! RabbitMQ (`tests/distributed.rs`), or both. The platforms are the simulator; the customer's pages and
//! receivers are test servers. The tests use no internals of the services: they only check what a customer and an
//! operator can see.
//!
//! The programs must be in the directory of the test program, so the workspace must have been built. `cargo xtask test`
//! does that; after `cargo build --workspace`, `cargo test -p tests-e2e` also works.
//!
//! [`harness`] starts, kills and calls the services; [`customer`] and [`posts`] are the invented world; [`scenarios`]
//! are the tests. [`faults`] are separate tests with random seeds, on replicas of everything; [`tenants`] makes random
//! requests of two accounts; [`attacks`] are those that worked at one time, and run against older programs too.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod attacks;
mod chance;
mod customer;
mod faults;
mod harness;
mod posts;
mod scenarios;
mod suite;
mod tenants;

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    process::ExitCode,
    sync::{Arc, Mutex},
};

use tokio::runtime::Runtime;

pub use attacks::run as run_attacks;
pub use faults::run as run_faults;
pub use harness::Kind;
use harness::Stack;
use suite::Test;
pub use tenants::run as run_tenants;

/// Runs all scenarios on one stack, and stops it.
#[must_use]
pub fn run(kind: Kind) -> ExitCode {
    let shared = Arc::new(Shared {
        kind,
        runtime: Runtime::new().unwrap(),
        stack: Mutex::new(Start::Waiting),
    });
    let code = suite::run(kind.name(), scenarios::all(&shared));
    shared.stop();
    code
}

/// State that the scenarios of one run share. The first scenario that needs the stack starts it.
pub(crate) struct Shared {
    pub(crate) kind: Kind,
    runtime: Runtime,
    stack: Mutex<Start>,
}

enum Start {
    Waiting,
    Running(Arc<Stack>),
    Failed,
}

impl Shared {
    /// A scenario on the shared stack; when it fails, the ends of all logs are printed.
    pub(crate) fn test<F>(self: &Arc<Self>, name: &str, scenario: F) -> Test
    where
        F: AsyncFnOnce(&Stack) + Send + 'static,
    {
        let shared = Arc::clone(self);
        Test::sharing(self.full_name(name), move || {
            let stack = shared.stack();
            let run = AssertUnwindSafe(|| shared.runtime.block_on(scenario(&stack)));
            if let Err(panic) = catch_unwind(run) {
                stack.print_logs();
                resume_unwind(panic);
            }
        })
    }

    /// A scenario that needs no stack, or starts a separate one.
    pub(crate) fn test_alone<F>(self: &Arc<Self>, name: &str, scenario: F) -> Test
    where
        F: AsyncFnOnce() + Send + 'static,
    {
        let shared = Arc::clone(self);
        Test::alone(self.full_name(name), move || {
            shared.runtime.block_on(scenario())
        })
    }

    fn full_name(&self, name: &str) -> String {
        format!("{}::{name}", self.kind.name())
    }

    fn stack(&self) -> Arc<Stack> {
        let mut start = self.stack.lock().unwrap();
        match &*start {
            Start::Running(stack) => return Arc::clone(stack),
            Start::Failed => panic!("the stack did not start: see the first failure"),
            Start::Waiting => {}
        }
        let started = catch_unwind(AssertUnwindSafe(|| {
            self.runtime.block_on(Stack::start(self.kind))
        }));
        match started {
            Ok(stack) => {
                let stack = Arc::new(stack);
                *start = Start::Running(Arc::clone(&stack));
                stack
            }
            Err(panic) => {
                *start = Start::Failed;
                drop(start);
                resume_unwind(panic)
            }
        }
    }

    fn stop(&self) {
        let _within = self.runtime.enter();
        *self.stack.lock().unwrap() = Start::Waiting;
    }
}
