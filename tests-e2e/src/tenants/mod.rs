//! Two accounts with random operations on one service: nothing of one is ever visible to the other.
//!
//! [`canary`] are words that name their account. Every field that an account writes has one: nicknames, terms, mutes,
//! addresses, headers, labels; and so have the pages and feeds that it watches and the answers of its receivers.
//! [`world`] makes random requests for every operation of the API's own description, with [`requests`] and [`bodies`]:
//! each account uses its own resources, and the names, page tokens, ids and keys of the other. [`hosts`] is one server
//! for the feeds, pages and receivers of both, whose feeds have the same entry ids. After every request, [`watch`]
//! searches all that either account or the operator can see. [`plants`] leaks on purpose, and must be caught.
//!
//! `EARSHOT_TENANTS_MINUTES` sets how long the operations go on, and `EARSHOT_TENANTS_SEED` the random numbers. A seed
//! gives the same choices in the same order; ids and what the services do meanwhile differ.

mod bodies;
mod canary;
mod document;
mod estate;
mod hosts;
mod mcp;
mod plants;
mod requests;
mod watch;
mod world;

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    process::ExitCode,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use tokio::runtime::Runtime;

use crate::suite::{self, Test};
use plants::Plant;
use world::World;

const SEED: u64 = 1;
/// Rounds without a length of time. Each round has four requests for every operation.
const ROUNDS: u64 = 2;

type Shared = Arc<Mutex<Option<World>>>;

/// Runs the tests in sequence, on one service.
#[must_use]
pub fn run() -> ExitCode {
    let runtime = Arc::new(Runtime::new().unwrap());
    let shared = Shared::default();
    let minutes = number("EARSHOT_TENANTS_MINUTES");
    let name = "random_operations_show_nothing_of_the_other_account";
    let mut tests = vec![test(name, &runtime, &shared, async move |world: &mut _| {
        operate(world, minutes).await;
    })];
    for plant in Plant::ALL {
        let run = async move |world: &mut _| plants::run(world, plant).await;
        tests.push(test(plant.name(), &runtime, &shared, run));
    }
    let code = suite::run("tenants", tests);
    let _within = runtime.enter();
    shared.lock().unwrap().take();
    code
}

/// A test on the shared world; the first one starts it.
fn test<F>(name: &str, runtime: &Arc<Runtime>, shared: &Shared, run: F) -> Test
where
    F: AsyncFnOnce(&mut World) + Send + 'static,
{
    let (runtime, shared) = (Arc::clone(runtime), Arc::clone(shared));
    Test::sharing(format!("tenants::{name}"), move || {
        let taken = shared.lock().unwrap().take();
        let mut world = taken.unwrap_or_else(|| {
            let seed = number("EARSHOT_TENANTS_SEED").unwrap_or(SEED);
            println!("seed {seed}");
            runtime.block_on(World::start(seed))
        });
        let work = AssertUnwindSafe(|| runtime.block_on(run(&mut world)));
        if let Err(panic) = catch_unwind(work) {
            world.print_log();
            let _within = runtime.enter();
            drop(world);
            resume_unwind(panic);
        }
        *shared.lock().unwrap() = Some(world);
    })
}

async fn operate(world: &mut World, minutes: Option<u64>) {
    let until = minutes.map(|minutes| Instant::now() + Duration::from_secs(60 * minutes));
    let mut rounds = 0;
    while until.map_or(rounds < ROUNDS, |until| Instant::now() < until) {
        for step in world.deck(rounds == 0) {
            world.step(step).await;
            world.assert_private();
        }
        rounds += 1;
    }
    world.use_tools().await;
    world.settle().await;
    world.assert_private();
    world.assert_thorough();
    println!("{rounds} rounds: {}", world.summary());
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests are configured by environment variables, like Cargo's own"
)]
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a whole number"))
}
