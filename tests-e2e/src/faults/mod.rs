//! Faults at random moments, on the distributed form with two replicas of each service. At the end all invariants must
//! hold.
//!
//! Three tasks run concurrently, each with its own random numbers from the seed. [`load`] publishes posts and calls the
//! API. [`services`] kills and freezes replicas and makes their clocks jump. [`servers`] restarts, moves, purges and
//! blocks PostgreSQL and RabbitMQ, and disturbs the network to them and to the platforms, for all replicas or for one
//! alone. Clients that poll by `createTime` ([`pollers`]) run throughout. Then everything is repaired, the service
//! must recover without help, and [`books`] checks the invariants: every post that a platform shows is one Scan of each
//! matching Manager, and every Scan is one delivery to each Connection, received and recorded. No lease is left,
//! and nothing is leaked.
//!
//! Other tests have certain faults: [`pressure`] slows one stage after the other, under constant load, and then the disk of
//! PostgreSQL ([`slow_disk`]); [`upgrade`] changes the schema during operation; in [`absences`] one server after the other
//! is away for long, or its name ([`names`]); in [`lost`] PostgreSQL loses its last commits; in [`refusals`] it refuses
//! work; in [`pooler`] services reach it through PgBouncer; in [`patroni`] its synchronous standby takes over; in [`nodes`]
//! nodes of a RabbitMQ cluster die.
//!
//! `EARSHOT_FAULTS_SEEDS` lists the seeds, separated by commas, and `EARSHOT_FAULTS_SECONDS` sets how long each one
//! runs. A seed gives the same faults in the same order; their effects depend on the machine.

mod absences;
mod books;
mod clock;
mod disk;
mod fleet;
mod load;
mod lost;
mod names;
mod nodes;
mod patroni;
mod pollers;
mod pooler;
mod pressure;
mod refusals;
mod servers;
mod services;
mod slow_disk;
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
use fleet::{Fleet, Servers};
use load::{Done, Load, World};
use lost::Loss;

const SECONDS: u64 = 25;
const SEEDS: &str = "1";
const PRESSURE: &str = "slow_stages_do_not_block_others";
const UPGRADE: &str = "earlier_services_work_with_a_later_schema";
const ABSENCES: &str = "absences_lose_nothing";
const CRASH: &str = "lost_commits_are_found_again";
const FAILOVER: &str = "a_promoted_standby_finds_every_post_again";
const REFUSALS: &str = "a_database_that_refuses_work_loses_nothing";
const POOLER: &str = "services_work_through_a_pooler_that_restarts";
const PATRONI: &str = "a_promoted_synchronous_standby_loses_nothing";
const NODES: &str = "killed_broker_nodes_lose_nothing";
/// Deadline for the recovery after the last fault. On an idle machine it takes a few seconds.
const RECOVERY: Duration = Duration::from_secs(120);

/// Returns the deadline for the recovery. Waits between attempts grow to about the time that an absence lasted.
fn recovery() -> Duration {
    RECOVERY + 3 * absences::length()
}

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
    let trials = trials.chain([
        directed(PRESSURE, slow_disk::servers(), async |fleet| {
            pressure::run(fleet).await;
        }),
        directed(UPGRADE, Options::throwaway(), async |fleet| {
            upgrade::run(fleet).await;
        }),
        directed(ABSENCES, absences::servers(), async |fleet| {
            absences::run(fleet).await;
        }),
        directed(CRASH, Loss::Crash.options(), async |fleet| {
            lost::run(fleet, Loss::Crash).await;
        }),
        // Services see the same as after the crash, but that posts arrive meanwhile.
        directed(FAILOVER, Loss::Failover.options(), async |fleet| {
            lost::run(fleet, Loss::Failover).await;
        })
        .with_ignored_flag(true),
        directed(REFUSALS, refusals::servers(), async |fleet| {
            refusals::run(fleet).await;
        }),
        directed(POOLER, few(Options::throwaway()), async |fleet| {
            pooler::run(fleet).await;
        }),
        // Patroni needs twenty seconds to notice the death of a primary.
        directed(PATRONI, patroni::servers(), async |fleet| {
            patroni::run(fleet).await;
        })
        .with_ignored_flag(true),
        // Three more Erlang machines are too much for two cores that also run the services.
        directed(NODES, nodes::servers(), async |fleet| {
            nodes::run(fleet).await;
        })
        .with_ignored_flag(true),
    ]);
    let trials = trials.collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Servers of a fleet that needs one gateway and one compiler.
fn few(postgres: Options) -> Servers {
    Servers {
        has_few_replicas: true,
        ..postgres.into()
    }
}

/// A test of certain faults instead of random ones.
fn directed<F>(name: &str, servers: impl Into<Servers>, run: F) -> Trial
where
    F: AsyncFnOnce(&Arc<Fleet>) + Send + 'static,
{
    let servers = servers.into();
    Trial::test(format!("faults::{name}"), move || {
        let runtime = Runtime::new().unwrap();
        let fleet = runtime.block_on(Fleet::start(&servers));
        with_logs(&runtime, fleet, run);
        Ok(())
    })
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
    let servers = Servers {
        has_clocks: true,
        ..Options::throwaway().into()
    };
    let fleet = runtime.block_on(Fleet::start(&servers));
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
    let (done, absences) = tokio::join!(
        Load::new(fleet, &world).go_on(chance(2), until),
        absences::disturb(fleet, &world, chance(3), until),
    );
    let faults = services.await.unwrap() + servers.await.unwrap() + absences;
    fleet.mend().await;
    let mended = Instant::now();
    let Done { posts, calls, .. } = &done;
    println!("{faults} faults, {} posts, {calls} calls", posts.len());
    books::check(fleet, &world, &done, mended).await;
    fleet.terminate();
}
