//! Faults at random moments, on the distributed form with two replicas of each service. At the end all invariants must
//! hold.
//!
//! Three tasks run concurrently, each with its own random numbers from the seed. [`load`] publishes posts and calls the
//! API. [`services`] kills and freezes replicas and makes their clocks jump. [`servers`] restarts, moves, purges,
//! blocks and disconnects PostgreSQL and RabbitMQ and the connections to them. Then everything is repaired, the service
//! must recover without help, and [`books`] checks the invariants: every post that a platform shows is one Scan of each
//! matching Manager, and every Scan is one delivery to each Connection, received and recorded. No event, lease or
//! message is left, and nothing is leaked. [`pressure`] slows one stage after the other instead, under constant load;
//! [`upgrade`] changes the schema during operation.
//!
//! `EARSHOT_FAULTS_SEEDS` lists the seeds, separated by commas, and `EARSHOT_FAULTS_SECONDS` sets how long each one
//! runs. A seed gives the same faults in the same order; their effects depend on the machine.

mod books;
mod clock;
mod fleet;
mod load;
mod pressure;
mod servers;
mod services;
mod upgrade;

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use libtest_mimic::{Arguments, Trial};
use private_servers::postgres::Options;
use tokio::runtime::Runtime;

use crate::chance::Chance;
use fleet::Fleet;
use load::{Done, Load, World};

const SECONDS: u64 = 40;
const SEEDS: &str = "1";
const PRESSURE: &str = "slow_stages_hold_nobody_up";
const UPGRADE: &str = "a_later_schema_serves_the_services_of_before";
/// Deadline for the recovery after the last fault. On an idle machine it takes a few seconds.
const RECOVERY: Duration = Duration::from_secs(90);

/// Returns one test for each seed, to run in sequence.
#[must_use]
pub fn run() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let length = Duration::from_secs(number("EARSHOT_FAULTS_SECONDS").unwrap_or(SECONDS));
    let seeds = setting("EARSHOT_FAULTS_SEEDS").unwrap_or_else(|| SEEDS.to_owned());
    let trials = seeds.split(',').map(|seed| {
        let seed: u64 = seed.trim().parse().expect("a seed is a number");
        Trial::test(format!("faults::seed_{seed}"), move || {
            trial(seed, length);
            Ok(())
        })
    });
    let pressure = Trial::test(format!("faults::{PRESSURE}"), || {
        let runtime = Runtime::new().unwrap();
        let fleet = runtime.block_on(Fleet::start(&Options::durable()));
        with_logs(&runtime, fleet, async |fleet| pressure::run(fleet).await);
        Ok(())
    });
    let upgrade = Trial::test(format!("faults::{UPGRADE}"), || {
        let runtime = Runtime::new().unwrap();
        let fleet = runtime.block_on(Fleet::start(&Options::throwaway()));
        with_logs(&runtime, fleet, async |fleet| upgrade::run(fleet).await);
        Ok(())
    });
    let trials = trials.chain([pressure, upgrade]).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests are configured by environment variables, like Cargo's own"
)]
fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn number(name: &str) -> Option<u64> {
    setting(name).map(|text| text.parse().expect("a number of seconds"))
}

fn trial(seed: u64, length: Duration) {
    println!("seed {seed}: faults for {length:?}");
    if clock::library().is_none() {
        println!("SKIPPED: clocks cannot jump without libfaketime");
    }
    let runtime = Runtime::new().unwrap();
    let fleet = runtime.block_on(Fleet::start(&Options::throwaway()));
    with_logs(&runtime, fleet, async |fleet| {
        disturb_and_check(fleet, seed, length).await;
    });
}

/// Runs a test; when it fails, prints the ends of all logs.
fn with_logs(runtime: &Runtime, fleet: Fleet, run: impl AsyncFnOnce(&Arc<Fleet>)) {
    let fleet = Arc::new(fleet);
    let run = AssertUnwindSafe(|| runtime.block_on(run(&fleet)));
    if let Err(panic) = catch_unwind(run) {
        fleet.print_logs();
        resume_unwind(panic);
    }
    let _within = runtime.enter();
    drop(fleet);
}

async fn disturb_and_check(fleet: &Arc<Fleet>, seed: u64, length: Duration) {
    let world = World::new(fleet).await;
    let until = Instant::now() + length;
    // Each task has its own generator, so that the speed of one does not change what another does.
    let chance = |lane: u64| Chance::new(seed.wrapping_mul(8).wrapping_add(lane));
    let (own, mine) = (Arc::clone(fleet), chance(0));
    let services = tokio::spawn(async move { services::disturb(&own, mine, until).await });
    let (own, mine) = (Arc::clone(fleet), chance(1));
    let servers = tokio::spawn(async move { servers::disturb(&own, mine, until).await });
    let done = Load::new(fleet, &world).go_on(chance(2), until).await;
    let faults = services.await.unwrap() + servers.await.unwrap();
    fleet.mend().await;
    let mended = Instant::now();
    let Done { posts, calls, .. } = &done;
    println!("{faults} faults, {} posts, {calls} calls", posts.len());
    books::check(fleet, &world, &done, mended).await;
    fleet.terminate();
}
