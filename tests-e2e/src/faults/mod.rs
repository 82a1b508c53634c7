//! Faults at random moments, on the distributed form with two replicas of each service; at the end the
//! books must balance.
//!
//! Three things go on at once, each by its own numbers from the seed: [`load`] publishes posts and calls the
//! API, [`services`] kills and freezes replicas and has their clocks jump, [`servers`] restarts, moves, purges, blocks and cuts PostgreSQL and
//! RabbitMQ and the ways to them. Then everything is mended, nobody helps any further, and [`books`] are checked: every post that
//! a platform shows is one Scan of each Manager that it concerns, every Scan one delivery to each Connection,
//! received and recorded; no event, lease or message is left, and nothing is leaked. [`pressure`] slows one stage after
//! the other instead, under even load; [`upgrade`] changes the schema below it.
//!
//! `EARSHOT_FAULTS_SEEDS` names the seeds, with commas, and `EARSHOT_FAULTS_SECONDS` how long each goes on. A seed
//! gives the same faults in the same order; what they hit is up to the machine.

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
/// From the last fault on, for everything to be where it belongs. On an idle machine it takes a few seconds.
const RECOVERY: Duration = Duration::from_secs(90);

/// One test for each seed, one after the other.
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
    reason = "a test is told by its environment, like Cargo's own"
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
        println!("SKIPPED: clocks do not jump without libfaketime");
    }
    let runtime = Runtime::new().unwrap();
    let fleet = runtime.block_on(Fleet::start(&Options::throwaway()));
    with_logs(&runtime, fleet, async |fleet| {
        disturb_and_check(fleet, seed, length).await;
    });
}

/// When it fails, the ends of all logs are printed.
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
    // Each its own, so that how fast one goes on does not change what another does.
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
